"""Every SELECT of the catalog, named by the question it answers. No decisions here.

"At S" means: as snapshot S sees it. Rows have a first and a last snapshot; the last is excluded.
Building a statement takes longer than running it, so the statements of the light path are built
once and take their values as parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.sql.elements import ColumnElement

from shelduck.catalog.databases.known import DIALECTS
from shelduck.catalog.schema import own_tables
from shelduck.ducklake import tables
from shelduck.ducklake.checked import (
    BIGINT,
    TEXT,
    begin_of,
    checked_numbers,
    guard,
    is_broken,
    is_wrong,
    or_null,
    unchecked,
)

Value = TypeVar("Value")

# SQLite accepts 32,766 parameters in one statement, PostgreSQL 65,535.
_CHUNK = 10_000

t_option = tables.metadata.c
t_snapshot = tables.snapshot
t_changes = tables.snapshot_changes
t_table = tables.table
t_column = tables.column
t_file = tables.data_file
t_delete = tables.delete_file
_of_file, _of_stats = t_file.c, tables.file_column_stats.c
IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
TABLE: sa.BindParameter[Any] = sa.bindparam("table", type_=BIGINT)
SNAPSHOT: sa.BindParameter[Any] = sa.bindparam("snapshot", type_=BIGINT)
OF_TABLE: sa.BindParameter[Any] = sa.bindparam("of_table")
COUNT: ColumnElement[Any] = sa.func.count()
"""The number of rows."""
_LAYOUT_ID = or_null(own_tables.file_layout.c.layout_id).label("layout_id")
FILE_COLUMNS = (
    *(_of_file.data_file_id, _of_file.path, _of_file.path_is_relative, _of_file.file_size_bytes),
    *(_of_file.record_count, _of_file.row_id_start, _of_file.begin_snapshot, _of_file.mapping_id),
    *(_of_file.partial_max, _of_file.file_format, _of_file.encryption_key, _LAYOUT_ID),
    *(_of_file.partition_id, _of_file.end_snapshot),
)
"""What `every_data_file` finds; `require_file_rows` checks its rows."""
require_file_rows = guard(FILE_COLUMNS)
BOUNDS_COLUMNS = (
    *(_of_stats.column_id, _of_stats.data_file_id, _of_stats.column_size_bytes),
    *(_of_stats.value_count, _of_stats.null_count, _of_stats.min_value, _of_stats.max_value),
    _of_stats.contains_nan,
)
"""What `bounds_of` finds; `require_bounds_rows` checks its rows."""
require_bounds_rows = guard(BOUNDS_COLUMNS)


def chunks(values: Iterable[Value], size: int = _CHUNK) -> Iterator[list[Value]]:
    """Yield the values in lists that are short enough for one statement."""
    left = iter(values)
    while part := list(islice(left, size)):
        yield part


def visible(
    source: sa.FromClause, snapshot: int | sa.BindParameter[int] | None
) -> ColumnElement[bool]:
    """Return the condition that a versioned row is visible at a snapshot, None for now."""
    if snapshot is None:
        return live(source)
    end = source.c.end_snapshot
    return sa.and_(source.c.begin_snapshot <= snapshot, sa.or_(end.is_(None), end > snapshot))


def shown_or_broken(
    source: sa.FromClause, snapshot: int | sa.BindParameter[int]
) -> ColumnElement[bool]:
    """Return the condition that a row is visible or broken; select `begin_of` to refuse those."""
    return sa.or_(visible(source, snapshot), is_broken(source))


def deletes_of_file(snapshot: int) -> ColumnElement[bool]:
    """Return the condition that joins a data file with its delete file at a snapshot."""
    same_file = t_delete.c.data_file_id == t_file.c.data_file_id
    return sa.and_(same_file, visible(t_delete, snapshot))


def total(what: Any) -> ColumnElement[Any]:
    """Return a sum as a whole number, 0 for nothing."""
    return sa.cast(sa.func.coalesce(sa.func.sum(what), 0), BIGINT)


def live(source: sa.FromClause) -> ColumnElement[bool]:
    """Return the condition that no snapshot has ended a versioned row."""
    return source.c.end_snapshot.is_(None)


def has_columns(snapshot: int | sa.BindParameter[int] | None = None) -> ColumnElement[bool]:
    """Return the condition that a table has columns at a snapshot, None for now.

    Without columns, it is not a table. DuckDB too hides the row that a RENAME leaves after a DROP
    TABLE won the race.
    """
    same_table = t_column.c.table_id == t_table.c.table_id
    return sa.exists().where(same_table, visible(t_column, snapshot))


def present_tables(connection: sa.Connection, names: Collection[str]) -> set[str]:
    """Return which of these tables the catalog's database has; one statement."""
    query = present_of(connection.dialect.name)
    return set(connection.execute(query, {"names": list(names)}).scalars())


@cache
def present_of(dialect: str, others: sa.Select[Any] | None = None) -> sa.Select[Any]:
    """Ask which of the tables :names, and of those that ``others`` finds, the database has."""
    name = sa.column("name", TEXT)
    every = sa.text(f"({DIALECTS[dialect].tables}) AS present")
    chosen: ColumnElement[bool] = name.in_(sa.bindparam("names", type_=TEXT, expanding=True))
    if others is not None:
        chosen = sa.or_(chosen, name.in_(others))
    return sa.select(sa.cast(name, TEXT).label("name")).select_from(every).where(chosen)


def every_snapshot() -> sa.Select[Any]:
    """Ask for all snapshots with what they changed, oldest first."""
    changes = [c for c in t_changes.c if c.name != "snapshot_id"]
    return (
        sa.select(*t_snapshot.c, *changes)
        .outerjoin_from(t_snapshot, t_changes, t_snapshot.c.snapshot_id == t_changes.c.snapshot_id)
        .order_by(t_snapshot.c.snapshot_id)
    )


@cache
def newest_snapshot() -> sa.Select[Any]:
    """Ask for the newest snapshot, and for the version of DuckLake that the lake has."""
    version = sa.select(or_null(sa.func.max(t_option.value))).where(tables.IS_VERSION)
    newest = every_snapshot().order_by(None).order_by(t_snapshot.c.snapshot_id.desc()).limit(1)
    return newest.add_columns(version.scalar_subquery().label("ducklake_version"))


def range_of_snapshots() -> sa.Select[Any]:
    """Ask for the ids of the oldest and the newest snapshot."""
    number = t_snapshot.c.snapshot_id
    return sa.select(or_null(sa.func.min(number)), or_null(sa.func.max(number)))


def next_snapshot(snapshot: int) -> sa.Select[Any]:
    """Ask for the id of the oldest snapshot after this one."""
    number = t_snapshot.c.snapshot_id
    return sa.select(or_null(sa.func.min(number))).where(number > snapshot)


@cache
def changes_after() -> sa.Select[Any]:
    """Ask what every snapshot after :base changed."""
    after = t_changes.c.snapshot_id > sa.bindparam("base", type_=BIGINT)
    return sa.select(t_changes.c.snapshot_id, t_changes.c.changes_made).where(after)


def snapshots_naming(table_id: int, begins: Sequence[int]) -> sa.Select[Any]:
    """Ask for snapshots that may concern a table: they name its id, or gave it a name."""
    named = t_changes.c.changes_made.like(f"%:{table_id}%")
    return every_snapshot().where(sa.or_(named, t_snapshot.c.snapshot_id.in_(begins)))


def snapshots_altering() -> sa.Select[Any]:
    """Ask for the snapshots that altered a table."""
    return every_snapshot().where(t_changes.c.changes_made.like("%altered_table:%"))


def schemas_at(schemas: sa.FromClause, snapshot: int) -> sa.Select[Any]:
    """Ask for the schemas at a snapshot."""
    return (
        sa.select(*about_schema(schemas), begin_of(schemas))
        .where(shown_or_broken(schemas, snapshot))
        .order_by(schemas.c.schema_id)
    )


def about_schema(schemas: sa.FromClause, prefix: str = "") -> list[ColumnElement[Any]]:
    """Return what `views_and_macros.schema_of_row` needs of `Format.schemas`."""
    parent = schemas.c.get("parent_schema_id")
    return [
        *(schemas.c.schema_id, schemas.c.schema_name),
        schemas.c.path.label(f"{prefix}path"),
        schemas.c.path_is_relative.label(f"{prefix}path_is_relative"),
        *([] if parent is None else [parent]),
    ]


@cache
def table_called(schemas: sa.FromClause) -> sa.Select[Any]:
    """Ask for the tables :schema.:name, whatever the case, with their schema, at :snapshot."""
    s, t = schemas.c, t_table.c
    return (
        sa.select(
            *(t.table_id, t.table_uuid, t.table_name, t.path, t.path_is_relative),
            begin_of(t_table),
            *about_schema(schemas, "schema_"),
            begin_of(schemas).label("schema_begins"),
        )
        .join_from(t_table, schemas, t.schema_id == s.schema_id)
        .where(shown_or_broken(t_table, SNAPSHOT), shown_or_broken(schemas, SNAPSHOT))
        .where(has_columns(SNAPSHOT))
        .where(sa.func.lower(s.schema_name) == sa.func.lower(sa.bindparam("schema", type_=TEXT)))
        .where(sa.func.lower(t.table_name) == sa.func.lower(sa.bindparam("name", type_=TEXT)))
    )


@cache
def columns_at() -> sa.Select[Any]:
    """Ask for the columns of :table at :snapshot, and the first version of every column ever."""
    number = sa.func.row_number(type_=BIGINT).over(
        partition_by=t_column.c.column_id,
        order_by=(t_column.c.begin_snapshot, t_column.c.end_snapshot),
    )
    version = sa.type_coerce(number, BIGINT)
    unused = ("begin_snapshot", "table_id", "default_value_dialect")
    known = [begin_of(t_column), *(c for c in t_column.c if c.name not in unused)]
    ranked = (
        sa.select(*known, version.label("version"), visible(t_column, SNAPSHOT).label("shown"))
        .where(t_column.c.table_id == TABLE)
        .subquery()
    )
    found = sa.or_(ranked.c.version == 1, ranked.c.shown, ranked.c.begin_snapshot.is_(None))
    return sa.select(ranked).where(found)


def column_versions(table_id: int) -> sa.Select[Any]:
    """Ask for every version of every column of a table."""
    known = [begin_of(t_column), *(c for c in t_column.c if c.name != "begin_snapshot")]
    return sa.select(*known).where(t_column.c.table_id == table_id)


def data_files_at(
    table_id: int | sa.BindParameter[int],
    snapshot: int | sa.BindParameter[int],
    *,
    with_layouts: bool,
) -> sa.Select[Any]:
    """Ask for the data files at a snapshot; the last but one is the layout's id, if it is known."""
    return every_data_file(table_id, with_layouts=with_layouts).where(
        shown_or_broken(t_file, snapshot)
    )


def every_data_file(table_id: int | sa.BindParameter[int], *, with_layouts: bool) -> sa.Select[Any]:
    """Ask for all data files that a table ever had, as `data_files_at` does."""
    c, known = t_file.c, own_tables.file_layout.c
    layout = unchecked(known.layout_id) if with_layouts else sa.null()
    asked = [layout if one is _LAYOUT_ID else unchecked(one) for one in FILE_COLUMNS]
    base = sa.select(*asked).where(c.table_id == table_id)
    if with_layouts:
        same = c.data_file_id == known.data_file_id
        base = base.outerjoin_from(t_file, own_tables.file_layout, same)
    return base.order_by(c.data_file_id)


def delete_files_at(
    table_id: int | sa.BindParameter[int], snapshot: int | sa.BindParameter[int]
) -> sa.Select[Any]:
    """Ask for the delete files at a snapshot."""
    c = t_delete.c
    return sa.select(
        *(c.data_file_id, c.path, c.path_is_relative, c.format),
        *(c.delete_count, c.encryption_key, c.delete_file_id, begin_of(t_delete)),
    ).where(c.table_id == table_id, shown_or_broken(t_delete, snapshot))


def inlined_delete_table(table_id: int) -> str:
    """Return the name of the table with the deleted positions of a table's files."""
    return f"ducklake_inlined_delete_{table_id}"


def inlined_deletes(name: str) -> sa.TableClause:
    """Return a table with deleted positions, for statements."""
    return checked_numbers(name, *((n, n) for n in ("file_id", "row_id", "begin_snapshot")))


def inlined_deletes_at(name: str, snapshot: int) -> sa.Select[Any]:
    """Ask for the deleted positions in the catalog itself, by data file, with their snapshots."""
    source = inlined_deletes(name)
    begin = source.c.begin_snapshot
    return (
        sa.select(source.c.file_id, source.c.row_id, begin)
        .where(sa.or_(begin <= snapshot, is_wrong(begin)))  # refused when fetched
        .order_by(source.c.file_id, source.c.row_id)
    )


def inlined_delete_counts(name: str) -> sa.Select[Any]:
    """Ask for the number of deleted positions in the catalog itself, by data file."""
    number = sa.column("file_id", inlined_deletes(name).c.file_id.type)
    return sa.select(number, COUNT).select_from(sa.table(name, number)).group_by(number)


def layouts(ids: Iterable[int]) -> sa.Select[Any]:
    """Ask for layouts by id."""
    return layouts_of().params(ids=sorted(ids))


@cache
def layouts_of(ids: sa.Select[Any] | None = None) -> sa.Select[Any]:
    """Ask for the layouts :ids, or for those that another question finds."""
    c = own_tables.layout.c
    wanted = sa.bindparam("ids", type_=BIGINT, expanding=True) if ids is None else ids
    return sa.select(c.layout_id, c.layout, c.digest).where(c.layout_id.in_(wanted))


def bounds_of(
    table_id: int, column_ids: Iterable[int], file_ids: Iterable[int] | None
) -> sa.Select[Any]:
    """Ask for the statistics of some columns in some files, or in all that the table ever had."""
    c = tables.file_column_stats.c
    mine = (c.table_id == table_id, c.column_id.in_(sorted(column_ids)))
    found = sa.select(*map(unchecked, BOUNDS_COLUMNS)).where(*mine)
    return found if file_ids is None else found.where(c.data_file_id.in_(sorted(file_ids)))


def identity_values(table_id: int, file_ids: Iterable[int] | None) -> sa.Select[Any]:
    """Ask for the partition values of some or all files that are values of a column itself."""
    file, key, value = t_file, tables.partition_column, tables.file_partition_value
    same_key = sa.and_(
        key.c.table_id == table_id,
        key.c.partition_id == file.c.partition_id,
        key.c.partition_key_index == value.c.partition_key_index,
    )
    found = (
        sa.select(file.c.data_file_id, key.c.column_id, value.c.partition_value)
        .join_from(value, file, value.c.data_file_id == file.c.data_file_id)
        .join(key, same_key)
        .where(value.c.table_id == table_id, key.c.transform == "identity")
    )
    return found if file_ids is None else found.where(file.c.data_file_id.in_(sorted(file_ids)))


def mapping_rows(ids: Iterable[int]) -> sa.Select[Any]:
    """Ask for the nodes of name mappings, each mapping in its own order."""
    kind, node = tables.column_mapping, tables.name_mapping
    return (
        sa.select(
            *(kind.c.mapping_id, kind.c.type),
            *(or_null(c) for c in (node.c.column_id, node.c.source_name, node.c.target_field_id)),
            *(node.c.parent_column, node.c.is_partition),
        )
        .outerjoin_from(kind, node, kind.c.mapping_id == node.c.mapping_id)
        .where(kind.c.mapping_id.in_(sorted(ids)))
        .order_by(kind.c.mapping_id, node.c.column_id)
    )


def inlined_tables(table_id: int) -> sa.Select[Any]:
    """Ask which tables hold inlined rows, and under which schema version each was made."""
    c = tables.inlined_data_tables.c
    return (
        sa.select(c.table_name, c.schema_version)
        .where(c.table_id == table_id)
        .order_by(c.schema_version)
    )


def schema_versions_of(table_id: int) -> sa.Select[Any]:
    """Ask at which snapshots the table's columns changed, and to which schema version."""
    c = tables.schema_versions.c
    return (
        sa.select(c.schema_version, c.begin_snapshot)
        .where(c.table_id == table_id)
        .order_by(c.schema_version)
    )


def names_of_table(schemas: sa.FromClause, table_id: int) -> sa.Select[Any]:
    """Ask for the names that a table ever had, with their schema's name and the first snapshot."""
    s, t = schemas.c, t_table.c
    return (
        sa.select(t.begin_snapshot, or_null(s.schema_name), t.table_name)
        .outerjoin_from(t_table, schemas, t.schema_id == s.schema_id)
        .where(t.table_id == table_id)
    )
