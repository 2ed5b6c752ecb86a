"""The rows of metadata tables: files, snapshots and statistics of one table.

Rows are plain tuples in the order of the column names below, because a table may have hundreds of
thousands of files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import sqlalchemy as sa

from shelduck.catalog.read import queries, read
from shelduck.catalog.read.files.numbers import dead_in_catalog
from shelduck.catalog.read.inlined_rows import inlined_rows
from shelduck.catalog.read.queries import visible
from shelduck.catalog.read.row_counts import deleted_from_files, inlined_counts, uncertain_snapshots
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.ducklake import tables
from shelduck.ducklake.checked import or_null, sum_of
from shelduck.model.changes.change import COMPACTIONS, DELETES, INSERTS, Entry, Verb, parse_entries
from shelduck.model.files.fitted import InlinedBatch, batch_stats, fitted_batch
from shelduck.model.tables.schema import with_paths
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.model.text.names import double_quoted, quote_name

_PAGE = 10_000
_file, _delete = tables.data_file, tables.delete_file
_value, _key = tables.file_partition_value.c, tables.partition_column.c

Partition = tuple[tuple[str, str | None], ...]
# The columns of each metadata table, in order, with their types.
FILE_COLUMNS = {
    "data_file_id": "bigint",
    "file_path": "string",
    "file_format": "string",
    "record_count": "bigint",
    "file_size_in_bytes": "bigint",
    "partition": "map",
    "spec_id": "bigint",
    "delete_file_path": "string",
    "delete_count": "bigint",
    "row_id_start": "bigint",
    "begin_snapshot": "bigint",
    "end_snapshot": "bigint",
    "mapping_id": "bigint",
    "partial_max": "bigint",
}
_WORDS: tuple[tuple[frozenset[Verb], str], ...] = (
    (frozenset({Verb.DROPPED_TABLE}), "DROP TABLE"),
    (frozenset({Verb.ALTERED_TABLE}), "ALTER TABLE"),
    (frozenset({Verb.INLINE_FLUSH}), "FLUSH"),
    (COMPACTIONS, "OPTIMIZE"),
)
STATS_COLUMNS = {
    "column_name": "string",
    "field_id": "bigint",
    "data_type": "string",
    "file_count": "bigint",
    "column_size_in_bytes": "bigint",
    "value_count": "bigint",
    "null_count": "bigint",
    "lower_bound": "string",
    "upper_bound": "string",
    "contains_null": "boolean",
    "contains_nan": "boolean",
}
_CALLED = {
    Verb.INSERTED_INTO_TABLE: "tables_inserted_into",
    Verb.DELETED_FROM_TABLE: "tables_deleted_from",
    Verb.INLINE_FLUSH: "flushed_inlined",
}


def file_rows(connection: sa.Connection, table: TableVersion) -> Iterator[tuple[Any, ...]]:
    """Yield a tuple of `FILE_COLUMNS` for each data file of the table at its snapshot.

    A partition is pairs of a key, as DDL writes it, and the value's text. Three statements,
    and one for each 10,000 files of a partitioned table.
    """
    query = _files_at(table.id, table.snapshot.id).execution_options(yield_per=_PAGE)
    inlined: Mapping[int, int] | None = None
    specs: Mapping[int, Mapping[int, str]] | None = None
    last = -1
    for rows in connection.execute(query).partitions():
        if inlined is None:
            inlined = _inlined_deletes(connection, table)
        partitions: Mapping[int, Partition] = {}
        if any(row.partition_id is not None for row in rows):
            specs = specs or partition_keys(connection, table)
            partitions = _partitions(connection, table, specs, (last, rows[-1].data_file_id))
        for row in rows:
            yield _file_row(table, row, partitions, inlined)
        last = rows[-1].data_file_id


def _file_row(
    table: TableVersion, row: Any, partitions: Mapping[int, Partition], inlined: Mapping[int, int]
) -> tuple[Any, ...]:
    number, path, kind, count, size, spec, dead, deleted, relative, dead_relative, *rest = row
    place = None if dead is None else resolve(table.path, dead, dead_relative)
    gone = (deleted or 0) + inlined.get(number, 0)
    return (
        *(number, resolve(table.path, path, relative), kind, count, size),
        *(partitions.get(number, ()), spec, place, gone, *rest),
    )


def _files_at(table_id: int, at: int) -> sa.Select[Any]:
    f, d = _file.c, _delete.c
    return with_deletes(
        sa.select(
            *(f.data_file_id, f.path, f.file_format, f.record_count, f.file_size_bytes),
            *(f.partition_id, or_null(d.path), or_null(d.delete_count)),
            *(f.path_is_relative, d.path_is_relative),
            *(f.row_id_start, f.begin_snapshot, f.end_snapshot, f.mapping_id, f.partial_max),
        ),
        table_id,
        at,
    )


def with_deletes(columns: sa.Select[Any], table_id: int, at: int) -> sa.Select[Any]:
    """Return columns of a table's data files at a snapshot and of their delete files, by id."""
    f = _file.c
    return (
        columns.outerjoin_from(_file, _delete, queries.deletes_of_file(at))
        .where(f.table_id == table_id, visible(_file, at))
        .order_by(f.data_file_id)
    )


def partition_keys(connection: sa.Connection, table: TableVersion) -> dict[int, dict[int, str]]:
    """Return the keys of each partitioning by place, named as at the snapshot; one statement."""
    info = tables.partition_info
    specs: dict[int, dict[int, str]] = defaultdict(dict)
    keys = (
        sa.select(_key.partition_id, _key.partition_key_index, _key.column_id, _key.transform)
        .join_from(info, tables.partition_column, info.c.partition_id == _key.partition_id)
        .where(info.c.table_id == table.id, _key.table_id == table.id)
    )
    for spec, place, column_id, transform in connection.execute(keys):
        specs[spec][place] = key_text(table, column_id, transform)
    return specs


def _partitions(
    connection: sa.Connection,
    table: TableVersion,
    specs: Mapping[int, Mapping[int, str]],
    page: tuple[int, int],
) -> dict[int, Partition]:
    """Return the partition of each file by id, behind the first id of the page to its last."""
    number = _value.data_file_id
    values = (
        sa.select(number, _file.c.partition_id, _value.partition_key_index, _value.partition_value)
        .join_from(tables.file_partition_value, _file, number == _file.c.data_file_id)
        .where(_value.table_id == table.id, visible(_file, table.snapshot.id))
        .where(number > page[0], number <= page[1])
        .order_by(number, _value.partition_key_index)
    )
    found: dict[int, list[tuple[str, str | None]]] = defaultdict(list)
    for file, spec, place, value in connection.execute(values):
        name = specs.get(spec, {}).get(place)
        if name is not None:
            found[file].append((name, value))
    return {file: tuple(pairs) for file, pairs in found.items()}


def key_text(table: TableVersion, column_id: int, transform: str) -> str:
    """Return a partition key as DDL writes it: ``p``, ``year(ts)``, ``bucket(4, id)``."""
    column = table.columns.by_id(column_id)
    name = quote_name(column.name) if column else f"column {column_id}"
    if transform == "identity":
        return name if column is None else column.name
    kind, _, count = transform.rstrip(")").partition("(")
    return f"{kind}({count}, {name})" if count else f"{kind}({name})"


def _inlined_deletes(connection: sa.Connection, table: TableVersion) -> Mapping[int, int]:
    name = queries.inlined_delete_table(table.id)
    is_there = queries.present_tables(connection, [name])
    return dead_in_catalog(connection, table) if is_there else {}


class ChangedSnapshot(NamedTuple):
    """A snapshot that changed a table: what it did, in words, and its numbers of files and rows.

    Rows are those of files and those that the catalog itself keeps; an update deletes a row and
    adds one. They are None if a compaction or a flush has merged rows of several snapshots.
    """

    snapshot: Snapshot
    operation: str
    parent: int | None
    files_added: int = 0
    rows_added: int | None = 0
    bytes_added: int = 0
    files_removed: int = 0
    rows_deleted: int | None = 0


def changed_snapshots(
    connection: sa.Connection, table: TableVersion, limit: int | None = None
) -> list[ChangedSnapshot]:
    """Return the snapshots up to the table's own that changed it, newest first, at most ``limit``.

    Thirteen statements, a few more for rows in the catalog, and one for each page of the log.

    Compaction moves files from one snapshot to another, and the numbers of files with them.
    """
    # One more, as the parent of the last one.
    most = None if limit is None else limit + 1
    before = table.snapshot.id + 1
    found = read.table_history(connection, table, limit=most, before=before)
    since = 0 if most is None or not found else found[-1].id
    named = read.names_of(connection, table.id)
    made = connection.execute(_first_columns(table.id)).scalar()
    added = {
        row[0]: (row[1], row[2], row[3])
        for row in connection.execute(_sums(table.id, "begin_snapshot", since))
    }
    removed = {row[0]: row[1] for row in connection.execute(_sums(table.id, "end_snapshot", since))}
    kept, ended = inlined_counts(connection, table.id, since)
    deleted = deleted_from_files(connection, table.id, since)
    unsure = uncertain_snapshots(connection, table.id, since)
    ids: list[int | None] = [s.id for s in found]
    parents = [*ids, None][1:]
    changed = []
    for snapshot, parent in islice(zip(found, parents, strict=True), limit):
        verbs = {e.verb for e in parse_entries(snapshot.changes_made) if e.id == table.id}
        words = operation_words(verbs, is_made=snapshot.id == made, is_named=snapshot.id in named)
        files, rows, size = added.get(snapshot.id, (0, 0, 0))
        number, gone = snapshot.id, removed.get(snapshot.id, 0)
        moves = bool(verbs & (COMPACTIONS | {Verb.INLINE_FLUSH}))
        came: int | None = rows + kept[number]
        went: int | None = deleted[number] + ended[number] if verbs & DELETES and not moves else 0
        if number in unsure:
            came = went = None
        changed.append(ChangedSnapshot(snapshot, words, parent, files, came, size, gone, went))
    return changed


def _first_columns(table_id: int) -> sa.Select[Any]:
    c = tables.column.c
    return sa.select(or_null(sa.func.min(c.begin_snapshot))).where(c.table_id == table_id)


def _sums(table_id: int, edge: str, since: int) -> sa.Select[Any]:
    at = _file.c[edge]
    return (
        sa.select(
            at, sa.func.count(), sum_of(_file.c.record_count), sum_of(_file.c.file_size_bytes)
        )
        .where(_file.c.table_id == table_id, at >= since)
        .group_by(at)
    )


def operation_words(verbs: Collection[Verb], *, is_made: bool, is_named: bool) -> str:
    """Return what a snapshot did to a table, in Delta's words if Delta has one.

    ``verbs`` are those of the table's own id; ``is_made`` and ``is_named`` say that the table was
    created, and that it got its name. The catalog does not distinguish UPDATE, MERGE and INSERT
    OVERWRITE: deleted and inserted rows together are an UPDATE here.
    """
    mine = frozenset(verbs)
    if mine & COMPACTIONS:
        # Shelduck's rewrites also log a flush, so that DuckDB yields.
        mine -= {Verb.INLINE_FLUSH}
    inserts, deletes = bool(mine & INSERTS), bool(mine & DELETES)
    words = [word for known, word in _WORDS if mine & known]
    if is_made:
        return ", ".join(["CREATE TABLE AS SELECT" if inserts else "CREATE TABLE", *words])
    if is_named:
        words.append("RENAME TABLE")
    if inserts or deletes:
        words.append("UPDATE" if inserts and deletes else "WRITE" if inserts else "DELETE")
    return ", ".join(words)


def column_stats_rows(connection: sa.Connection, table: TableVersion) -> list[tuple[Any, ...]]:
    """Return a tuple of `STATS_COLUMNS` for each leaf column at the table's snapshot.

    Counts are sums over its files and the rows that the catalog keeps; ``file_count`` counts the
    files that have statistics. Bounds are the table's, which include every row that it ever had;
    None if they are not certain. Two statements, and those of `inlined_rows`.
    """
    s = tables.file_column_stats.c
    totals = map(sum_of, (s.column_size_bytes, s.value_count, s.null_count))
    sums = _by_column(table, sa.func.count(), *totals)
    counts = {row[0]: tuple(row[1:]) for row in connection.execute(sums)}
    kept = _inlined_stats(connection, table)
    bounds = table_bounds(connection, table)
    nothing = (0, None, None, None)
    return [
        (
            ".".join(quote_name(p) for p in path),
            *(leaf.id, str(leaf.type)),
            *_with_kept(counts.get(leaf.id, nothing), kept.get(leaf.id)),
            *bounds.get(leaf.id, (None,) * 4),
        )
        for path, leaf in with_paths(table.columns)
        if leaf.is_leaf
    ]


def table_bounds(connection: sa.Connection, table: TableVersion) -> dict[int, tuple[Any, ...]]:
    """Return the least and the greatest value, as texts, and whether there are NULL and NaN.

    By column; they hold for every row that the table ever had. One statement.
    """
    t = tables.table_column_stats.c
    query = sa.select(t.column_id, t.min_value, t.max_value, t.contains_null, t.contains_nan)
    rows = connection.execute(query.where(t.table_id == table.id))
    return {row[0]: tuple(row[1:]) for row in rows}


def null_counts(
    connection: sa.Connection, table: TableVersion, columns: Collection[int]
) -> dict[int, int]:
    """Return how many NULLs files have in each of these columns; one statement.

    A column is left out if some file does not say.
    """
    s = tables.file_column_stats.c
    files, known = sa.func.count(), sa.func.count(s.null_count)
    query = _by_column(table, sum_of(s.null_count)).where(s.column_id.in_(columns))
    return {row[0]: row[1] for row in connection.execute(query.having(files == known))}


def _by_column(table: TableVersion, *numbers: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return numbers of the statistics of a table's files by column."""
    s = tables.file_column_stats.c
    return (
        sa.select(s.column_id, *numbers)
        .join_from(_file, tables.file_column_stats, _file.c.data_file_id == s.data_file_id)
        .where(_file.c.table_id == table.id, visible(_file, table.snapshot.id))
        .where(s.table_id == table.id)
        .group_by(s.column_id)
    )


def _inlined_stats(connection: sa.Connection, table: TableVersion) -> dict[int, tuple[int, int]]:
    """Return the values and NULLs of each leaf in the rows that the catalog keeps."""
    found: dict[int, tuple[int, int]] = {}
    for part in inlined_rows(connection, table):
        batch = fitted_batch(InlinedBatch(part.columns, part.rows), table.columns)
        for one in batch_stats(batch):
            values, nulls = found.get(one.column_id, (0, 0))
            found[one.column_id] = (values + one.value_count, nulls + one.null_count)
    return found


def _with_kept(counts: tuple[Any, ...], kept: tuple[int, int] | None) -> tuple[Any, ...]:
    if kept is None:
        return counts
    files, size, values, nulls = counts
    return (files, size, (values or 0) + kept[0], (nulls or 0) + kept[1])


def change_map(entries: list[Entry]) -> dict[str, list[str]]:
    """Return what a snapshot did as in DuckDB's ``snapshots()``: names or ids by action."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        names = ".".join(n if n.isidentifier() else double_quoted(n) for n in entry.parts)
        found.setdefault(_called(entry.verb), []).append(names or str(entry.id))
    return found


def _called(verb: Verb) -> str:
    if verb in _CALLED:
        return _CALLED[verb]
    act, _, what = verb.value.partition("_")
    return f"{what}s_{act}" if act in ("created", "dropped", "altered") else verb.value


def table_rows(
    connection: sa.Connection, at: Snapshot, table: int | None = None
) -> list[tuple[Any, ...]]:
    """Return name, schema id, id, UUID, and the count and bytes of files and delete files.

    One row for each table of the snapshot, by id, or for one table; one statement.
    """
    t = tables.table.c
    query = (
        sa.select(t.table_name, t.schema_id, t.table_id, t.table_uuid)
        .add_columns(*_files_in_sum(_file, at), *_files_in_sum(_delete, at))
        .where(visible(tables.table, at.id))
        .order_by(t.table_id)
    )
    if table is not None:
        query = query.where(t.table_id == table)
    return [tuple(row) for row in connection.execute(query)]


def _files_in_sum(files: sa.Table, at: Snapshot) -> list[sa.ColumnElement[Any]]:
    mine = sa.and_(files.c.table_id == tables.table.c.table_id, visible(files, at.id))
    counted: list[sa.ColumnElement[Any]] = [sa.func.count(), sum_of(files.c.file_size_bytes)]
    return [sa.select(c).select_from(files).where(mine).scalar_subquery() for c in counted]


def listed_files(connection: sa.Connection, table: TableVersion) -> list[tuple[Any, ...]]:
    """Return path, size, footer size and key of each data file and of its delete file.

    The table's files at its snapshot, by id; one statement.
    """
    found = []
    for row in connection.execute(_files(table.id, table.snapshot.id)):
        path, relative, *about, dead, dead_relative, size, footer, key = row
        place = None if dead is None else resolve(table.path, dead, dead_relative)
        found.append((resolve(table.path, path, relative), *about, place, size, footer, key))
    return found


def _files(table_id: int, at: int) -> sa.Select[Any]:
    f, d = _file.c, _delete.c
    of_file = (f.path, f.path_is_relative, f.file_size_bytes, f.footer_size, f.encryption_key)
    of_deletes = (or_null(d.path), d.path_is_relative, or_null(d.file_size_bytes), d.footer_size)
    columns = sa.select(*of_file, *of_deletes, d.encryption_key)
    return with_deletes(columns, table_id, at)
