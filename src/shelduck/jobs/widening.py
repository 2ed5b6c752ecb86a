"""Type widening as a feature of a table: its history, pending rewrites, and dropping it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.filesize import decimal

from shelduck.catalog.read import table_facts as read_upkeep
from shelduck.errors import Conflict, NotFound, ShelduckError
from shelduck.files.compact import survey
from shelduck.files.verb import rewrite
from shelduck.jobs.convert import renewal_of_columns
from shelduck.lake.lookup import TableHandle
from shelduck.lake.results import Committed, Compacted, Staged, TableName, Unchanged
from shelduck.lake.unit import UnitOfWork, carry_out, refuse_in_transaction
from shelduck.model.changes.change import alteration
from shelduck.model.files.data_file import DataFile, NameMapping
from shelduck.model.files.resolve import resolve
from shelduck.model.shadows.type_changes import OlderType, TypeChange, older_types, type_changes
from shelduck.model.tables.properties import (
    TYPE_WIDENING,
    TYPE_WIDENING_FEATURE,
    forgotten_at,
    without_type_widening,
)
from shelduck.model.tables.schema import Path, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.table_rows import TableRows, table_rows

FEATURE = "typeWidening"


@dataclass(frozen=True, slots=True)
class OlderFile:
    """A file that holds values in older types: its path, its size, and which columns."""

    id: int
    path: str
    bytes: int
    columns: tuple[OlderType, ...]

    def __str__(self) -> str:
        told = ", ".join(f"{path_text(c.path)} {c.stored} -> {c.column}" for c in self.columns)
        return f"{self.path} ({decimal(self.bytes)}): {told}"


@dataclass(frozen=True, slots=True)
class PendingRewrites:
    """The files that dropping type widening would rewrite; printing it lists them."""

    table: TableName
    files: tuple[OlderFile, ...]

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(f.bytes for f in self.files)

    def __str__(self) -> str:
        head = f"{self.table}: {len(self.files)} file(s) ({decimal(self.bytes)}) hold older types"
        return "\n".join([head, *(f"  {f}" for f in self.files)])


class WideningVerbs(TableHandle, in_parts=True):
    """Types that changed while files stayed."""

    def type_changes(self) -> dict[str, list[dict[str, str]]]:
        """Return the type changes by column, oldest first, as in ``delta.typeChanges``.

        A column is a top-level one or a member of a struct, by its dotted path. Each change has
        ``fromType`` and ``toType`` in Delta's words and, for parts of maps and lists, ``fieldPath``
        (``key``, ``value``, ``element``, dotted). Columns whose type never changed are left out. A
        rename keeps the history; a drop ends it.
        """
        changes = self._type_changes(self._version())
        return {path_text(p): [c.as_delta() for c in found] for p, found in changes.items()}

    def pending_type_rewrites(self) -> PendingRewrites:
        """Return the files that hold older types, with the columns; reads footers, but no rows.

        Reads are correct without a rewrite. `drop_feature` would rewrite these files.
        """
        table = self._version()
        staged = self._unit.workspace.staged_rows(table) if self._unit is not None else None
        rows = table_rows(self._state.store, table, self._state.layouts, staged)
        return PendingRewrites(self.name, _older_files(rows))

    def drop_feature(self, name: str) -> Committed | Unchanged:
        """Drop a feature of the table; ``typeWidening`` is the only one.

        Files that hold older types are rewritten in the current types, in lots that are committed
        one by one: after a crash the next call continues with the rest. The last commit removes the
        property, so that only the promotions of DuckLake remain, and the history of type changes
        starts over. Row ids stay the same; older snapshots read the old files until they expire. If
        there is nothing to do, no snapshot is made.

        Raises:
            NotFound: the feature does not exist.
            InvalidRequest: inside a transaction.
            Conflict: other writers kept adding files of older types.
            Unsupported: a column has a type that Shelduck does not write.
        """
        if name.lower() != FEATURE.lower():
            raise NotFound.named("feature", name, [FEATURE], where=str(self.name))
        refuse_in_transaction(self._unit, "DROP FEATURE")
        done = self._rewrite_older()
        result = carry_out(self._state, None, self._forget_types)
        assert not isinstance(result, Staged)
        if not done.snapshots:
            return result
        return Committed(result.snapshot, files=done.new_files, bytes=done.new_bytes or 0)

    def _rewrite_older(self) -> Compacted:
        """Rewrite the files of older types; the last commit finds those that others add."""
        found = survey(self._state, self._version())
        older = {f.id for f, _ in files_of_older_types(found.rows)}
        bins, how = renewal_of_columns(self._state.spark, found, older)
        what = "write new types into"
        return rewrite(self._state, found, bins, what=what, dry_run=False, must=True, derived=how)

    def _forget_types(self, unit: UnitOfWork) -> None:
        table = unit.workspace.table(self.name)
        self._require_today(table)
        has_feature = TYPE_WIDENING in table.properties or TYPE_WIDENING_FEATURE in table.properties
        if not has_feature and not self._type_changes(table):
            return
        kept = without_type_widening(table.properties, table.snapshot.id)
        unit.workspace.alter_table(
            alteration(table, replace(table, properties=kept), excludes_inserts=True)
        )

    def _require_today(self, table: TableVersion) -> None:
        left = _older_files(table_rows(self._state.store, table, self._state.layouts))
        if left:
            raise Conflict(
                f"{len(left)} file(s) of {table.full_name} still hold older types, such as"
                f" {left[0]}: other commits wrote them, or their rows have no ids; drop the"
                " feature again"
            )

    def _type_changes(self, table: TableVersion) -> dict[Path, tuple[TypeChange, ...]]:
        if table.id < 0:
            return {}
        versions = self._state.store.ask(read_upkeep.column_versions, table.id)
        return type_changes(
            table.columns,
            versions,
            at=table.snapshot.id,
            forgotten_at=forgotten_at(table.properties),
        )


def _older_files(rows: TableRows) -> tuple[OlderFile, ...]:
    return tuple(
        OlderFile(file.id, file.path, file.file_size_bytes, columns)
        for file, columns in files_of_older_types(rows)
    )


def files_of_older_types(rows: TableRows) -> list[tuple[DataFile, tuple[OlderType, ...]]]:
    """Return the files that hold leaves in another type than their column's, with those leaves.

    Columns of a file that the table no longer has do not count. Raises Unsupported or CorruptLake,
    naming the file, for a column that cannot be read correctly.
    """

    def look(file: DataFile, mapping: NameMapping | None) -> tuple[OlderType, ...]:
        assert file.layout is not None
        fields = rows.table.columns.fields
        try:
            nodes = resolve(file.layout, fields, mapping, fields).nodes
        except ShelduckError as error:
            raise type(error)(
                f"data file {file.path} of {rows.table.full_name}: {error}"
            ) from error
        return older_types(nodes, file.layout.fields)

    found, layout_of = rows.by_layout(look)
    return [(file, older) for file in rows.files if (older := found[layout_of[file.id]])]
