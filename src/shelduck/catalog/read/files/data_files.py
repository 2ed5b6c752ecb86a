"""The data files of a table at a snapshot, and everything that a reader must know about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from shelduck.catalog.read import queries
from shelduck.catalog.read.holdings import Holdings, holdings_of, holdings_with_files
from shelduck.catalog.read.views_and_macros import file_place, hive_values
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE, require_row
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.data_file import (
    ColumnStats,
    DataFile,
    DeleteFile,
    Layout,
    MappedName,
    NameMapping,
    text_digest,
)
from shelduck.model.files.place import SealedPath
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion, is_later

# Of more files, the delete files and layouts are asked for by themselves: that decodes faster.
FEW = 1_000
_node = tables.name_mapping.c
_NODE = (
    *(_node.mapping_id, _node.column_id, _node.source_name, _node.target_field_id),
    _node.parent_column,
)


def data_files(
    connection: sa.Connection,
    table: TableVersion,
    known: Holdings | None = None,
    ids: Collection[int] | None = None,
) -> list[DataFile]:
    """Return the files that hold the table's rows at its snapshot, with the deletes of each.

    ``ids`` are the files that matter, None for all of them.

    A part of a delete file may be newer than the snapshot: if it has a snapshot column, only rows
    up to ``table.snapshot.id`` count. The same applies to a data file with a snapshot column.
    ``partition_values`` are those of the file's name mapping, in the mapping's order of partition
    names: from the file's path, or from the catalog if the path has no such name. Two statements,
    one less with the ``known`` holdings, and one more each for layouts, delete files, inlined
    deletes, mappings and partition values.

    Raises Unsupported for formats other than Parquet, CorruptLake for rows that contradict
    themselves or name one file twice.
    """
    found = few_data_files(connection, table, known, ids)
    assert found is not None
    return found


def few_data_files(
    connection: sa.Connection,
    table: TableVersion,
    known: Holdings | None = None,
    ids: Collection[int] | None = None,
    *,
    at_most: int | None = None,
) -> list[DataFile] | None:
    """Return what `data_files` does, or None if there are more than ``at_most`` files."""
    at = table.snapshot.id
    known = known or holdings_of(connection, table.id)
    with_layouts = own_tables.file_layout.name in known.present
    query = queries.data_files_at(table.id, at, with_layouts=with_layouts)
    if at_most is not None:
        # A database would sort all files to find the first ones.
        query = query.order_by(None).limit(at_most + 1)
    rows = list(connection.execute(_among(query, queries.t_file.c.data_file_id, ids)))
    if not rows:
        return []
    if at_most is not None and len(rows) > at_most:
        return None
    queries.require_file_rows(rows)
    rows.sort(key=itemgetter(0))
    deletes: Iterable[Any] = ()
    if known.has_delete_files:
        query = queries.delete_files_at(table.id, at)
        deletes = connection.execute(_among(query, queries.t_delete.c.data_file_id, ids)).all()
    beside = known, deletes, _layout_rows(connection, rows)
    return _complete(connection, table, rows, beside, ids)


def files_at_once(
    connection: sa.Connection, table: TableVersion, *, at_most: int = FEW, seen: int = -1
) -> tuple[list[DataFile], Holdings] | None:
    """Return what `data_files` does, and the holdings; None if there are more than ``at_most``.

    ``seen`` is as in `holdings_of`. All tables of Shelduck must exist. One statement, and one more
    each for inlined deletes, mappings and partition values.
    """
    known, found = holdings_with_files(
        connection, table.id, table.snapshot.id, most=at_most + 1, seen=seen
    )
    rows = found["files"]
    if max(len(rows), len(found["deletes"])) > at_most:
        return None
    queries.require_file_rows(rows)
    if not rows:
        return [], known
    rows.sort(key=lambda row: row.data_file_id)
    beside = known, found["deletes"], found["layouts"]
    return _complete(connection, table, rows, beside, None), known


def _complete(
    connection: sa.Connection,
    table: TableVersion,
    rows: Sequence[Any],
    beside: tuple[Holdings, Iterable[Any], Iterable[Any]],
    ids: Collection[int] | None,
) -> list[DataFile]:
    """Return the files for their rows; beside are the holdings, and rows of deletes and layouts."""
    holdings, deletes, layouts = beside
    inlined = queries.inlined_delete_table(table.id)
    mappings = name_mappings(connection, {row[7] for row in rows})
    has_positions = inlined in holdings.present
    known = _Known(
        _delete_files(table, deletes),
        _inlined_deletes(connection, inlined, table.snapshot.id) if has_positions else {},
        _layouts(layouts),
        mappings,
        _values_of_keys(connection, table, rows, mappings, ids),
    )
    files = _files(table, rows, known)
    if ids is None and (known.deletes or known.positions):
        strays = (known.deletes.keys() | known.positions.keys()) - {f.id for f in files}
        _require_known(connection, table, strays)
    _require_distinct(table, files)
    return files


def data_files_of(
    connection: sa.Connection, table: TableVersion, ids: Collection[int] | None
) -> list[DataFile]:
    """Return files of a table whatever snapshot sees them; all files if ``ids`` is None.

    Their deletes are left out. Statements and errors are those of `data_files`.
    """
    present = queries.present_tables(connection, [own_tables.file_layout.name])
    query = queries.every_data_file(table.id, with_layouts=bool(present))
    rows = connection.execute(_among(query, queries.t_file.c.data_file_id, ids)).all()
    queries.require_file_rows(rows)
    layouts = _layouts(_layout_rows(connection, rows))
    mappings = name_mappings(connection, {row[7] for row in rows})
    values = _values_of_keys(connection, table, rows, mappings, ids)
    return _files(table, rows, _Known({}, {}, layouts, mappings, values))


def _layout_rows(connection: sa.Connection, rows: Iterable[Any]) -> Sequence[Any]:
    """Ask for the layouts that rows of `queries.every_data_file` name."""
    ids = {row[11] for row in rows} - {None}
    return connection.execute(queries.layouts(ids)).all() if ids else ()


def _require_deletable(
    table: TableVersion, number: int, records: int, deleted: DeleteFile | None, gone: Sequence[int]
) -> None:
    """Raise CorruptLake if deletes name more rows than a data file has."""
    count = deleted.delete_count if deleted is not None else 0
    if count > records or (gone and max(gone) >= records):
        raise CorruptLake(
            f"data file {number} of {table.full_name} has {records} rows in ducklake_data_file, but"
            f" deletes of more rows; {RESTORE}"
        )


def _require_known(connection: sa.Connection, table: TableVersion, owners: Collection[int]) -> None:
    """Raise CorruptLake if deletes are for data files that the table never had."""
    f = tables.data_file.c
    for some in queries.chunks(sorted(owners)):
        query = sa.select(f.data_file_id).where(f.table_id == table.id, f.data_file_id.in_(some))
        lost = set(some) - set(connection.execute(query).scalars())
        if lost:
            raise CorruptLake(
                f"{table.full_name} has deletes of data file {min(lost)}, but no such file;"
                f" {RESTORE}"
            )


def _require_distinct(table: TableVersion, files: Sequence[DataFile]) -> None:
    """Raise CorruptLake if two rows of the catalog name one file: its rows would count twice."""
    if len({f.path for f in files}) < len(files):
        _require_apart(table, "data", [(f.id, f.path) for f in files])
    deletes = [(f.id, f.delete_file.path) for f in files if f.delete_file is not None]
    _require_apart(table, "delete", deletes)


def _require_apart(table: TableVersion, kind: str, named: Sequence[tuple[int, str]]) -> None:
    if len({path for _, path in named}) == len(named):
        return
    seen: dict[str, int] = {}
    for number, path in named:
        other = seen.setdefault(path, number)
        if other != number:
            raise CorruptLake(
                f"data files {other} and {number} of {table.full_name} have the same {kind} file"
                f" {path} at snapshot {table.snapshot.id}; correct the wrong path in"
                f" ducklake_{kind}_file, or set an end_snapshot there"
            )


def _among(
    query: sa.Select[Any], column: sa.Column[Any], ids: Collection[int] | None
) -> sa.Select[Any]:
    return query if ids is None else query.where(column.in_(sorted(ids)))


class _Known(NamedTuple):
    """Rows of other tables: by data file id, by layout id, by mapping id."""

    deletes: Mapping[int, DeleteFile]
    positions: Mapping[int, tuple[int, ...]]
    layouts: Mapping[int | None, Layout]
    mappings: Mapping[int, NameMapping]
    values: Mapping[tuple[int, int], str | None]
    """Partition values by data file id and column id."""


def _files(table: TableVersion, rows: Iterable[Any], known: _Known) -> list[DataFile]:
    """Return the files for plain rows; this loop is most of the Python cost of a large table."""
    deletes, positions, layouts, mappings, of_keys = known
    files = []
    for (
        number,
        path,
        relative,
        size,
        records,
        first,
        begin,
        mapping,
        partial,
        kind,
        key,
        kept,
        spec,
        _,
    ) in rows:
        if kind != "parquet":
            raise _unreadable(table, path, kind)
        # Most paths are plain names: nothing to look at.
        is_plain = relative == 1 and ".." not in path
        place = table.path + path if is_plain else file_place(table, path, relative)
        if key is not None:
            place = sealed(table, place, key)
        values: tuple[str | None, ...] = ()
        if mapping is not None:
            values = _partition_values(table, number, place, mappings[mapping], of_keys)
        deleted = deletes.get(number) if deletes else None
        gone = positions.get(number, ()) if positions else ()
        if (deleted is not None or gone) and records is not None:
            _require_deletable(table, number, records, deleted, gone)
        made = (
            *(number, place, size, records, first, begin, mapping, partial),
            *(deleted, gone, values, layouts.get(kept), spec),
        )
        files.append(tuple.__new__(DataFile, made))
    return files


def file_bounds(
    connection: sa.Connection,
    table: TableVersion,
    column_ids: Collection[int],
    file_ids: Collection[int] | None = None,
) -> dict[int, dict[int, ColumnStats]]:
    """Return the statistics of leaf columns, per column by data file id; one statement.

    ``file_ids`` are the files that matter, None for all of them. A file without an entry has no
    known bounds and must not be pruned; files that the snapshot does not see may have entries.
    """
    found: dict[int, dict[int, ColumnStats]] = {c: {} for c in column_ids}
    if not found:
        return found
    rows = connection.execute(queries.bounds_of(table.id, column_ids, file_ids)).all()
    queries.require_bounds_rows(rows)
    for column, number, size, values, nulls, low, high, nan in rows:
        if values is None or nulls is None:
            continue
        of_column = found[column]
        if number in of_column:
            raise CorruptLake(
                f"ducklake_file_column_stats has two rows for data file {number} and column id"
                f" {column} of {table.full_name}; delete one of them"
            )
        flag = None if nan is None else bool(nan)
        made = (column, size or 0, values, nulls, low, high, flag, None, None)
        of_column[number] = tuple.__new__(ColumnStats, made)
    return found


def identity_values(
    connection: sa.Connection, table: TableVersion, file_ids: Collection[int] | None = None
) -> dict[tuple[int, int], str | None]:
    """Return the values of columns by which files are partitioned, by data file and column id.

    ``file_ids`` are the files that matter, None for all of them. One statement.
    """
    found = connection.execute(queries.identity_values(table.id, file_ids))
    return {(number, column): value for number, column, value in found}


def _delete_files(table: TableVersion, rows: Iterable[Any]) -> dict[int, DeleteFile]:
    found: dict[int, DeleteFile] = {}
    for row in rows:
        number, path, is_relative, kind, count, key, delete_id, _ = row
        shape = delete_format(table, path, kind)
        if number in found:
            raise CorruptLake(
                f"data file {number} of {table.full_name} has two delete files,"
                f" {found[number].path!r} and {path!r}, at snapshot {table.snapshot.id}"
            )
        place = sealed_place(table, path, is_relative, key)
        later = is_later(delete_id, table.snapshot)
        found[number] = DeleteFile(place, shape, count, delete_id, later)
    return found


def delete_format(table: TableVersion, path: str, kind: str) -> str:
    """Return the format of a delete file; Unsupported for one that cannot be read."""
    if kind.lower() not in ("parquet", "puffin"):
        raise _unreadable(table, path, kind)
    return kind.lower()


def sealed_place(table: TableVersion, path: str, is_relative: object, key: str | None) -> str:
    """Return `file_place`, with the key of the file if it has one."""
    place = file_place(table, path, is_relative)
    return place if key is None else sealed(table, place, key)


def sealed(table: TableVersion, place: str, key: str) -> SealedPath:
    """Return the path of an encrypted file with its key; CorruptLake in a plain lake."""
    if not table.options.encrypted:
        raise CorruptLake(
            f"file {place!r} of {table.full_name} has an encryption_key, but the lake is not"
            f" encrypted; correct 'encrypted' in ducklake_metadata, or {RESTORE}"
        )
    return SealedPath(place, key)


def _inlined_deletes(connection: sa.Connection, name: str, at: int) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = defaultdict(list)
    for number, position, _ in connection.execute(queries.inlined_deletes_at(name, at)):
        if not found[number] or found[number][-1] != position:
            found[number].append(position)
    return {number: tuple(positions) for number, positions in found.items()}


def _layouts(rows: Iterable[Any]) -> dict[int | None, Layout]:
    # A text that was changed is worth nothing: the footers tell the same.
    kept = ((number, text) for number, text, digest in rows if digest == text_digest(text))
    found = ((number, Layout.from_json(text)) for number, text in kept)
    return {number: layout for number, layout in found if layout is not None}


def _values_of_keys(
    connection: sa.Connection,
    table: TableVersion,
    rows: Iterable[Any],
    mappings: Mapping[int, NameMapping],
    ids: Collection[int] | None,
) -> dict[tuple[int, int], str | None]:
    """Return the catalog's partition values if some path lacks one; one statement."""
    wanted = {
        number: {n.source_name.lower() for n in mapping.names if n.is_partition}
        for number, mapping in mappings.items()
    }
    if not any(wanted.values()):
        return {}
    of_files = ((row[1], wanted[row[7]]) for row in rows if row[7] is not None)
    if all(names <= hive_values(path).keys() for path, names in of_files if names):
        return {}
    return identity_values(connection, table, ids)


def _partition_values(
    table: TableVersion,
    number: int,
    path: str,
    mapping: NameMapping,
    of_keys: Mapping[tuple[int, int], str | None],
) -> tuple[str | None, ...]:
    wanted = [name for name in mapping.names if name.is_partition]
    if not wanted:
        return ()
    told = hive_values(path)
    values = []
    for name in wanted:
        key = (number, name.field_id)
        if name.source_name.lower() in told:
            values.append(told[name.source_name.lower()])
        elif key in of_keys:
            values.append(of_keys[key])
        else:
            raise CorruptLake(
                f"data file {path!r} of {table.full_name} has no value of {name.source_name!r} in"
                " its path"
            )
    return tuple(values)


def _unreadable(table: TableVersion, path: str, kind: str) -> Unsupported:
    return Unsupported(
        f"file {path!r} of {table.full_name} is of format {kind!r}, which Shelduck does not"
        " support; rewrite the table with DuckDB"
    )


def name_mappings(connection: sa.Connection, named: Iterable[int | None]) -> dict[int, NameMapping]:
    """Return name mappings by id; at most one statement. CorruptLake if one is missing.

    ``named`` are the mappings of files, None where a file has none.
    """
    ids = {number for number in named if number is not None}
    if not ids:
        return {}
    nodes: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(queries.mapping_rows(ids)):
        if row.column_id is not None or row.source_name is not None:
            require_row(_NODE, [getattr(row, c.name) for c in _NODE])
        if row.type != "map_by_name":
            raise Unsupported(f"column mapping {row.mapping_id} has the unknown type {row.type!r}")
        nodes[row.mapping_id].append(row)
    missing = sorted(ids - set(nodes))
    if missing:
        raise CorruptLake(f"data files refer to column mapping {missing[0]}, which does not exist")
    for number, rows in nodes.items():
        places = {row.column_id for row in rows}
        if len(places) < len(rows) or any(
            row.parent_column not in places | {None} or row.parent_column == row.column_id
            for row in rows
            if row.column_id is not None
        ):
            raise CorruptLake(
                f"ducklake_name_mapping has a node of column mapping {number} twice, or below one"
                f" that does not exist; {RESTORE}"
            )
    return {number: NameMapping(number, _names(rows, None)) for number, rows in nodes.items()}


def _names(rows: Iterable[Any], parent: int | None) -> tuple[MappedName, ...]:
    rows = list(rows)
    return tuple(
        MappedName(
            row.source_name,
            FieldId(row.target_field_id),
            bool(row.is_partition),
            _names(rows, row.column_id),
        )
        for row in rows
        if row.column_id is not None and row.parent_column == parent
    )
