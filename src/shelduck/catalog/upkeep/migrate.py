"""A lake gets a newer version of DuckLake, in one transaction.

`shelduck.ducklake.format` says what a version has more, and which of the repairs here it wants.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn, CreateTable, DropTable

from shelduck import clock
from shelduck.catalog.databases.dialect import as_it_is
from shelduck.catalog.databases.known import dialect_of, renaming, stored_columns
from shelduck.catalog.databases.store import Store, with_retries
from shelduck.catalog.read import queries
from shelduck.catalog.read.overview.lake_tables import named_tables
from shelduck.catalog.running.job_rows import jobs
from shelduck.catalog.running.writers import registered_writers
from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE
from shelduck.ducklake.descriptions import begin_under, rows_at, schema_of
from shelduck.ducklake.format import FORMATS, VERSIONS, Format, known_format
from shelduck.errors import Conflict, CorruptLake, InvalidRequest, ShelduckError, Unsupported
from shelduck.model.tables.schema import Field
from shelduck.model.text.names import double_quoted

_column, _inlined = tables.column.c, tables.inlined_data_tables.c
_versions, _snapshot = tables.schema_versions.c, tables.snapshot.c
_DEFAULTS = ("initial_default", "default_value", "default_value_type", "default_value_dialect")
# Bounds of one are bounds of the other.
_ALIKE = (re.compile(r"u?int\d+"), re.compile(r"decimal\(.*\)"))


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One step of a migration: what is done to which table of the catalog, and what it means.

    ``action`` is ``refuse``, ``rename``, ``drop``, ``repair``, ``add`` or ``version``.
    """

    action: str
    object: str
    told: str

    def __str__(self) -> str:
        return f"{self.action} {self.object}: {self.told}"


@dataclass(frozen=True, slots=True)
class _Act:
    """A step with its statements, or with the error that a refusal raises."""

    step: MigrationStep
    statements: Sequence[tuple[sa.Executable, Any]] = ()
    refusal: ShelduckError | None = None


def migrate(
    store: Store, to: str, is_gone: Callable[[str], bool], *, plan: bool
) -> tuple[str, list[MigrationStep]]:
    """Return the version that the lake had, and the steps to a newer one, none if it has it.

    They are done in one transaction, or only listed with ``plan``. ``is_gone`` tells which writers
    are known to be dead. Raises the first refusal.
    """
    target = known_format(to)
    if plan:
        with store.read() as connection:
            return _Migration(connection, target, is_gone, is_plan=True).all()

    def attempt() -> tuple[str, list[MigrationStep]]:
        with store.write() as connection:
            return _Migration(connection, target, is_gone, is_plan=False).all()

    done = with_retries(attempt)
    store.use(target)
    return done


@dataclass(eq=False)
class _Migration:
    """One look at a catalog inside a transaction, and what it leads to."""

    connection: sa.Connection
    target: Format
    _is_gone: Callable[[str], bool]
    is_plan: bool
    _steps: list[MigrationStep] = field(default_factory=list, init=False)

    def all(self) -> tuple[str, list[MigrationStep]]:
        """Do every step, and return them with the version before."""
        known = sa.select(tables.metadata.c.value).where(tables.IS_VERSION)
        version = self.connection.execute(known).scalar_one()
        if version not in FORMATS:
            raise Unsupported(
                f"the lake has DuckLake version {version!r}, but Shelduck migrates only {VERSIONS}"
            )
        older = FORMATS[version]
        if older == self.target:
            return version, []
        coming = self.target.after(older)
        if not coming:
            raise InvalidRequest(
                f"the lake has DuckLake version {version!r}, and there is no way back to"
                f" {self.target.version!r}; restore a backup of the catalog"
            )
        self.present = stored_columns(self.connection)
        acts = [*self._busy(), *self._missing(older), *self._inlined_tables()]
        refusals = [act.refusal for act in acts if act.refusal is not None]
        if refusals and not self.is_plan:
            raise refusals[0]
        # DuckDB commits no table that a transaction has altered after it changed its rows.
        self._do([*acts, *self._additions()])
        for name in (name for each in coming for name in each.repairs):
            self._do(list(_REPAIRS[name](self)))
        self._do([self._version(older)])
        return version, self._steps

    def _do(self, acts: Sequence[_Act]) -> None:
        for act in acts:
            self._steps.append(act.step)
            for statement, values in () if self.is_plan else act.statements:
                self.connection.execute(statement, values)

    def _busy(self) -> Iterator[_Act]:
        """Refuse while somebody writes what the commit of another version would not fit."""
        now = clock.now()
        for one in registered_writers(self.connection):
            if one.expires > now and not self._is_gone(one.writer):
                told = f"it writes to {self._name(one.table_id)}; wait until it ends"
                yield self._refused(f"writer {one.writer}", told, Conflict)
        for job in jobs(self.connection):
            if job.is_open:
                told = f"it changes {job.table_name}; wait for it, or cancel it"
                yield self._refused(f"job {job.id}", told, Conflict)

    def _missing(self, older: Format) -> Iterator[_Act]:
        for name in older.metadata.tables.keys() - self.present.keys():
            yield self._refused(name, f"the table is missing; {RESTORE}", CorruptLake)

    def _inlined_tables(self) -> Iterator[_Act]:
        """Give the columns of each registered table for inlined rows their names."""
        query = sa.select(_inlined.table_id, _inlined.table_name).order_by(*_inlined)
        for number, name in self.connection.execute(query).all():
            columns = list(self.present.get(name, ()))
            found = self.target.renames(columns)
            if found is None or not re.fullmatch(rf"ducklake_inlined_data_{number}_\d+", name):
                told = "it does not exist" if not columns else "it is not a table for inlined rows"
                yield self._refused(name, f"{told}; {RESTORE}", CorruptLake)
                continue
            others = {c.lower(): c for c in columns[len(self.target.system_columns) :]}
            taken = next((others[new] for new in found.values() if new in others), None)
            if taken is not None:
                yield self._taken(number, name, taken)
            elif found:
                told = ", ".join(f"{old} becomes {new}" for old, new in found.items())
                statements = [(each, None) for each in renaming(name, found)]
                yield _Act(MigrationStep("rename", name, told), statements)

    def _taken(self, number: int, name: str, column: str) -> _Act:
        """Drop a table without rows whose column has a name of DuckLake, or refuse."""
        rows = sa.table(name)
        if self.connection.execute(sa.select(sa.func.count()).select_from(rows)).scalar_one():
            told = (
                f"DuckLake {self.target.version} uses the name of the column {column} of"
                f" {self._name(number)} for rows in the catalog; rename the column, then CALL"
                " flush_inlined_data"
            )
            return self._refused(name, told, InvalidRequest)
        told = f"it has no rows, and DuckLake {self.target.version} uses the name of {column}"
        registered = sa.delete(tables.inlined_data_tables).where(_inlined.table_name == name)
        drop = DropTable(sa.Table(name, sa.MetaData()))
        return _Act(MigrationStep("drop", name, told), [(registered, None), (drop, None)])

    def versions_of_inlined(self) -> Iterator[_Act]:
        """Record in which snapshots tables of inlined rows began, where older DuckDBs did not."""
        known: dict[int, dict[int, int]] = defaultdict(dict)
        for row in self.connection.execute(
            sa.select(*_versions).where(_versions.table_id.is_not(None))
        ):
            known[row.table_id][row.schema_version] = row.begin_snapshot
        query = sa.select(_snapshot.snapshot_id, _snapshot.schema_version)
        snapshots = self.connection.execute(query.order_by(_snapshot.snapshot_id)).all()
        began = {
            version: after.snapshot_id
            for before, after in pairwise(snapshots)
            if before.snapshot_id == after.snapshot_id - 1
            for version in range(before.schema_version + 1, after.schema_version + 1)
        }
        for row in self.connection.execute(sa.select(*_inlined).order_by(*_inlined)).all():
            begins, at = known[row.table_id], began.get(row.schema_version)
            if at is None or row.schema_version in begins:
                continue
            # The first version of a table begins with the table.
            if sum(begin <= at for begin in begins.values()) > 1:
                added = {"begin_snapshot": at, "schema_version": row.schema_version}
                statement = sa.insert(tables.schema_versions).values(
                    added | {"table_id": row.table_id}
                )
                what = f"{tables.schema_versions.name} (table_id {row.table_id})"
                told = f"schema version {row.schema_version} began in snapshot {at}"
                yield self._repair(what, told, [(statement, None)])

    def defaults_of_fields(self) -> Iterator[_Act]:
        """Give fields of structs the defaults back that a rename of older DuckDBs dropped."""
        query = sa.select(*_column).where(_column.parent_column.is_not(None))
        order = (_column.table_id, _column.column_id, _column.begin_snapshot)
        last: Any = None
        for row in self.connection.execute(query.order_by(*order)).all():
            if row.initial_default is not None:
                last = row
            elif last is not None and (row.table_id, row.column_id) == (
                last.table_id,
                last.column_id,
            ):
                values = {name: getattr(last, name) for name in _DEFAULTS}
                mine = (
                    _column.table_id == row.table_id,
                    _column.column_id == row.column_id,
                    _column.begin_snapshot == row.begin_snapshot,
                )
                yield self._repair(
                    f"{tables.column.name} (table_id {row.table_id}, column_id {row.column_id})",
                    f"{row.column_name} gets the default {last.initial_default} back, which a"
                    f" rename in snapshot {row.begin_snapshot} dropped",
                    [(sa.update(tables.column).where(*mine).values(values), None)],
                )

    def types_of_inlined_rows(self) -> Iterator[_Act]:
        """Convert inlined values that DuckLake 0.3 stored in other types."""
        dialect = dialect_of(self.connection)
        if dialect.older_value is as_it_is:
            return
        for row in self.connection.execute(sa.select(*_inlined).order_by(*_inlined)).all():
            changed = [
                f"ALTER COLUMN {double_quoted(field.name)} TYPE {dialect.inlined_type(field)}"
                f" USING {value}"
                for field, kind in self._fields(row)
                if (value := dialect.older_value(field, kind)) is not None
            ]
            if changed:
                alter = f"ALTER TABLE {row.table_name} {', '.join(changed)}".replace(":", "\\:")
                texts = ("SET LOCAL TimeZone = 'UTC'", "SET LOCAL DateStyle = 'ISO'", alter)
                told = f"{len(changed)} column(s) get the types that DuckLake stores now"
                yield self._repair(row.table_name, told, [(sa.text(each), None) for each in texts])

    def bounds(self) -> Iterator[_Act]:
        """Clear bounds that may be those of another type."""
        several = (
            sa.select(_column.table_id, _column.column_id)
            .group_by(_column.table_id, _column.column_id)
            .having(sa.func.count(_column.column_type.distinct()) > 1)
            .subquery()
        )
        query = sa.select(_column.table_id, _column.column_id, _column.column_type)
        query = query.add_columns(_column.begin_snapshot).join(
            several,
            (several.c.table_id == _column.table_id) & (several.c.column_id == _column.column_id),
        )
        order = (_column.table_id, _column.column_id, _column.begin_snapshot)
        changed: dict[tuple[int, int], int] = {}
        for before, after in pairwise(self.connection.execute(query.order_by(*order)).all()):
            if before[:2] == after[:2] and not _is_alike(before.column_type, after.column_type):
                changed[after.table_id, after.column_id] = after.begin_snapshot
        for (table, column), since in changed.items():
            yield from self._clear(table, column, since)

    def _clear(self, table: int, column: int, since: int) -> Iterator[_Act]:
        """Clear bounds of a column in files from before a snapshot, and in the table."""
        file = tables.data_file.c
        older = sa.select(file.data_file_id).where(
            file.table_id == table, file.begin_snapshot < since
        )
        in_files, in_table = tables.file_column_stats, tables.table_column_stats
        for source, more in ((in_files, [in_files.c.data_file_id.in_(older)]), (in_table, [])):
            c = source.c
            has_bounds = sa.or_(c.min_value.is_not(None), c.max_value.is_not(None))
            mine = (c.table_id == table, c.column_id == column, has_bounds, *more)
            count = self.connection.execute(sa.select(sa.func.count()).where(*mine)).scalar_one()
            if count:
                yield self._repair(
                    f"{source.name} (table_id {table}, column_id {column})",
                    f"{count} row(s) lose bounds: the column got its type in snapshot {since}",
                    [(sa.update(source).where(*mine).values(min_value=None, max_value=None), None)],
                )

    def _additions(self) -> Iterator[_Act]:
        for more in self.target.beyond(self.present):
            if isinstance(more, sa.Table):
                step = MigrationStep("add", more.name, "a new table")
                yield _Act(step, [(CreateTable(more), None)])
            else:
                yield self._added_column(more)

    def _added_column(self, column: sa.Column[Any]) -> _Act:
        table = column.table.name
        made = CreateColumn(column).compile(dialect=self.connection.dialect)
        step = MigrationStep("add", f"{table}.{column.name}", "NULL for rows that exist")
        return _Act(step, [(sa.text(f"ALTER TABLE {table} ADD COLUMN {made}"), None)])

    def _version(self, older: Format) -> _Act:
        told = (
            f"{older.version} becomes {self.target.version}: every client needs {self.target.needs}"
            " or its like from then on, and only a backup of the catalog leads back"
        )
        changed = (
            sa.update(tables.metadata).where(tables.IS_VERSION).values(value=self.target.version)
        )
        return _Act(MigrationStep("version", tables.metadata.name, told), [(changed, None)])

    def _fields(self, row: Any) -> list[tuple[Field, str]]:
        """Return the columns of a table for inlined rows with their stored types.

        None if they are not columns of its table.
        """
        stored = list(self.present[row.table_name].items())[len(self.target.system_columns) :]
        begins = self.connection.execute(queries.schema_versions_of(row.table_id)).all()
        versions = self.connection.execute(queries.column_versions(row.table_id)).all()
        begin = begin_under(begins, row.schema_version)
        if begin is None:
            begin = min((each.begin_snapshot for each in versions), default=0)
        known = {f.name.lower(): f for f in schema_of(rows_at(versions, begin), row.table_name)}
        if any(name.lower() not in known for name, _ in stored):
            return []
        return [(known[name.lower()], kind) for name, kind in stored]

    def _name(self, number: int) -> str:
        """Return what a table is called now."""
        called = named_tables(self.connection, None)
        return called.get(number, f"the dropped table {number}")

    def _repair(
        self, what: str, told: str, statements: Sequence[tuple[sa.Executable, Any]]
    ) -> _Act:
        return _Act(MigrationStep("repair", what, told), statements)

    def _refused(self, what: str, told: str, error: type[ShelduckError]) -> _Act:
        raised = error(f"cannot migrate the lake to DuckLake {self.target.version}: {what}: {told}")
        return _Act(MigrationStep("refuse", what, told), refusal=raised)


def _is_alike(before: str, after: str) -> bool:
    """Return whether bounds of a type are bounds of another one."""
    same = before.lower() == after.lower()
    return same or any(k.fullmatch(before) and k.fullmatch(after) for k in _ALIKE)


_REPAIRS: Mapping[str, Callable[[_Migration], Iterator[_Act]]] = {
    "schema versions": _Migration.versions_of_inlined,
    "defaults of fields": _Migration.defaults_of_fields,
    "types of inlined rows": _Migration.types_of_inlined_rows,
    "bounds": _Migration.bounds,
}
