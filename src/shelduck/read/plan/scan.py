"""The plan of a table scan: groups of files that one schema reads correctly, and projections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shelduck.errors import CorruptLake, InvalidRequest, NotFound, ShelduckError
from shelduck.model.files.data_file import DataFile, NameMapping
from shelduck.model.files.resolve import Node, refuse_unreadable, resolve, untrusted_columns
from shelduck.model.tables.partition import IDENTITY
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.data_types import DataType
from shelduck.model.types.literals import blob_bytes, canonical_text
from shelduck.read.plan.scan_groups import Expression, Shape, group_of

# Their partition values have one text for each value, and Spark's type has the same values.
_KEY_TYPES = frozenset("boolean date varchar int8 int16 int32 int64 uint8 uint16 uint32".split())


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of the read schema, by its physical name.

    Files that lack it read ``default`` (DuckDB text, None for NULL).
    """

    name: str
    type: DataType
    default: str | None = None


@dataclass(frozen=True, slots=True)
class ScanGroup:
    """Files that one read schema reads correctly, and how table columns are computed from it.

    ``outputs`` has one expression per column of the plan, in order. ``constants`` names the columns
    that are partition values of files; ``values`` holds them, a tuple of canonical texts per file.
    For the columns ``untrusted``, footers may not mention NaN, so these columns skip nothing.
    ``row_id_column`` and ``snapshot_column`` are read for what their names say; rows with a later
    snapshot than the plan's do not exist yet. Of the read columns ``keys``, every file has one
    value, which the catalog knows. ``table`` tells which files Shelduck wrote.
    """

    files: tuple[DataFile, ...]
    read: tuple[ReadColumn, ...]
    outputs: tuple[Expression, ...]
    nodes: tuple[Node, ...]
    constants: tuple[str, ...] = ()
    values: tuple[tuple[str | None, ...], ...] = ()
    with_deletes: bool = False
    row_id_column: str | None = None
    snapshot_column: str | None = None
    untrusted: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    table: TableVersion | None = None


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """How a table is read at its snapshot: the chosen columns, from groups in file order."""

    table: TableVersion
    columns: tuple[Field, ...]
    groups: tuple[ScanGroup, ...]


def plan_scan(
    table: TableVersion,
    files: Sequence[DataFile],
    mappings: Mapping[int, NameMapping],
    columns: Sequence[str] | None = None,
    *,
    snapshots: bool = False,
) -> ScanPlan:
    """Return how the rows of ``files`` are read with the columns of ``table``.

    Every file must have its layout; ``mappings`` has each mapping that a file refers to by id.
    ``columns`` chooses top-level columns, None for all of them. With ``snapshots``, rows that store
    their own snapshot are read with it, even if it is not needed. Raises Unsupported or
    CorruptLake, naming file, column and types, if no reading is known to be correct.
    """
    chosen = tuple(_chosen(table, columns))
    for field in chosen:
        refuse_unreadable(field)
    open_groups: list[tuple[Shape, list[DataFile]]] = []
    place: dict[object, int] = {}
    seen: dict[object, list[DataFile]] = {}
    for file in files:
        # Nearly all files share one layout object, and the loop may run a million times.
        alike = (id(file.layout), file.mapping_id, _has_deletes(file), file.partial_max)
        if alike not in seen:
            key = _key(file, table)
            if key not in place:
                shape = _shape(file, table, chosen, mappings, snapshots=snapshots)
                place[key] = _join(open_groups, shape)
            seen[alike] = open_groups[place[key]][1]
        seen[alike].append(file)
    return ScanPlan(table, chosen, tuple(_group(table, *found) for found in open_groups))


def _chosen(table: TableVersion, columns: Sequence[str] | None) -> list[Field]:
    if columns is None:
        return list(table.columns)
    found: list[Field] = []
    for name in columns:
        field = table.columns.find((name,))
        if field is None:
            raise NotFound.named("column", name, table.columns.names, where=table.full_name)
        if field in found:
            raise InvalidRequest(f"column {name!r} is selected twice")
        found.append(field)
    return found


def _key(file: DataFile, table: TableVersion) -> object:
    """Return what two files that are read in the same way have in common."""
    if file.layout is None:
        raise CorruptLake(f"the layout of data file {file.path} is unknown; read its footer first")
    return (
        file.layout,
        file.mapping_id,
        _has_deletes(file),
        file.partial_max is None,
        _is_partly_later(file, table),
    )


def _has_deletes(file: DataFile) -> bool:
    return file.delete_file is not None or bool(file.inlined_deletes)


def _is_partly_later(file: DataFile, table: TableVersion) -> bool:
    return file.partial_max is not None and file.partial_max > table.snapshot.id


def _shape(
    file: DataFile,
    table: TableVersion,
    chosen: Sequence[Field],
    mappings: Mapping[int, NameMapping],
    *,
    snapshots: bool,
) -> Shape:
    mapping = None
    if file.mapping_id is not None:
        mapping = mappings.get(file.mapping_id)
        if mapping is None:
            raise CorruptLake(
                f"data file {file.path} refers to column mapping {file.mapping_id}, which does not"
                " exist"
            )
    assert file.layout is not None
    try:
        resolved = resolve(file.layout, chosen, mapping, table.columns.fields)
    except ShelduckError as error:
        raise type(error)(f"data file {file.path} of {table.full_name}: {error}") from error
    later = _is_partly_later(file, table)
    if later and resolved.snapshot_column is None:
        raise CorruptLake(
            f"data file {file.path} of {table.full_name} contains rows of later snapshots, but no"
            " column to tell them apart; read the newest snapshot instead"
        )
    needed = snapshots or later or file.partial_max is None
    filtered = resolved.snapshot_column if needed else None
    return Shape(
        replace(resolved, snapshot_column=filtered), with_deletes=_has_deletes(file), path=file.path
    )


def _join(groups: list[tuple[Shape, list[DataFile]]], shape: Shape) -> int:
    for number, (known, _) in enumerate(groups):
        merged = known.merged(shape)
        if merged is not None:
            groups[number] = (merged, groups[number][1])
            return number
    groups.append((shape, []))
    return len(groups) - 1


def _group(table: TableVersion, shape: Shape, files: list[DataFile]) -> ScanGroup:
    read, outputs, constants = group_of(shape)
    return ScanGroup(
        files=tuple(files),
        read=tuple(ReadColumn(*column) for column in read),
        outputs=outputs,
        nodes=shape.resolved.nodes,
        constants=tuple(name for name, _, _ in constants),
        values=tuple(
            tuple(_partition_value(f, at, field) for _, at, field in constants) for f in files
        )
        if constants
        else ((),) * len(files),
        with_deletes=shape.with_deletes,
        row_id_column=shape.resolved.row_id_column,
        snapshot_column=shape.resolved.snapshot_column,
        untrusted=untrusted_columns(table, shape.resolved.nodes, files),
        keys=_keys(table, shape.resolved.nodes, files),
        table=table,
    )


def _keys(table: TableVersion, nodes: Sequence[Node], files: Sequence[DataFile]) -> tuple[str, ...]:
    """Return the read columns by whose values all of the files are partitioned."""
    spec = table.partition_id
    if spec is None or any(file.partition_id != spec for file in files):
        return ()
    columns = {key.column_id for key in table.partition if key.transform == IDENTITY}
    return tuple(
        node.name
        for node in nodes
        if node.name is not None
        and node.field.id in columns
        and is_plain(node)
        and str(node.read) in _KEY_TYPES
    )


def is_plain(node: Node) -> bool:
    """Return whether files have the values of a column that is not nested as they are."""
    return node.is_read and node.how is None and node.read == node.field.shape


def _partition_value(file: DataFile, at: int, field: Field) -> str | None:
    """Return the canonical text of one partition value; for bytes, their hexadecimal digits."""
    if at >= len(file.partition_values):
        raise CorruptLake(
            f"data file {file.path}: column {field.name!r} is mapped to a partition value, but the"
            " file has none"
        )
    text = file.partition_values[at]
    try:
        if text is None:
            return None
        known = canonical_text(field.leaf, text)
        return (blob_bytes(known) or b"").hex() if str(field.leaf) == "blob" else known
    except InvalidRequest as error:
        raise CorruptLake(f"data file {file.path}: column {field.name!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class GroupSize:
    """How large a group is: its files, their bytes, and a path in each place where files are."""

    files: int
    bytes: int
    places: Iterable[str]


class FileSource:
    """The files that a plan names, of which nothing more is known.

    Spark asks while it plans a query, from any thread. Over Spark Connect, it is asked before.
    """

    knows_values = False
    """Whether `values` and `measured` have answers."""

    def parts(self, group: ScanGroup, filters: list[str]) -> Iterable[ScanGroup]:  # noqa: ARG002
        """Return the files that may hold a row that passes all filters, as parts of a group.

        ``filters`` are Spark's, on the group's read columns, as SQL texts.
        """
        return [group]

    def size(self, group: ScanGroup) -> GroupSize:
        """Return how large a group of the plan is."""
        total = sum(f.file_size_bytes for f in group.files)
        return GroupSize(len(group.files), total, (path for f in group.files for path in f.paths))

    def values(self, group: ScanGroup, files: Sequence[DataFile]) -> Mapping[int, tuple[Any, ...]]:
        """Return the values of a group's keys in files, by data file id.

        With them, Spark knows keys as partition columns.
        """
        raise NotImplementedError

    def measured(self, group: ScanGroup, measures: list[list[str]]) -> list[str | None] | None:
        """Return COUNT, MIN and MAX of a group's files as texts, None if they are not certain.

        ``measures`` are those of `shelduck.engine.bridge.relation.FileRelation`.
        """
        raise NotImplementedError

    def statistics(self, group: ScanGroup) -> list[list[str | None]]:
        """Return what the optimizer wants to know of a group, empty if nothing is known.

        The first row has the number of rows. Each other one has a name of the read schema, distinct
        values, NULLs, the lowest and the highest value, and the average and the greatest length.
        """
        raise NotImplementedError


PLANNED = FileSource()
