"""The contents of a lake at a snapshot: catalog rows in, model values out.

Each function takes the connection of one `Store.read` or `Store.write`, so that several calls see
one state. Files and inlined rows of a table are in `shelduck.catalog.read.files.data_files` and
`shelduck.catalog.read.inlined_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from shelduck.catalog.read import queries
from shelduck.catalog.read.files.data_files import data_files, file_bounds, name_mappings
from shelduck.catalog.read.inlined_rows import inlined_rows
from shelduck.catalog.read.queries import SNAPSHOT, TABLE, live, shown_or_broken
from shelduck.catalog.read.together import Together
from shelduck.catalog.read.views_and_macros import distinct_names, resolve, schema_of_row, view
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.ducklake import tables
from shelduck.ducklake.checked import BIGINT, begin_of, two_rows
from shelduck.ducklake.descriptions import description_of, schema_of, setting_of
from shelduck.ducklake.format import Format, first_with, follow, format_of, schemas_of
from shelduck.errors import Conflict, CorruptLake, InvalidRequest, NotFound
from shelduck.model.changes.change import Entry, Verb, parse_entries
from shelduck.model.files.place import require_allowed
from shelduck.model.tables.lengths import limited
from shelduck.model.tables.options import (
    ENCRYPTED,
    OPTION_NAMES,
    OptionSetting,
    TableOptions,
    table_options,
)
from shelduck.model.tables.schema import FieldId, SnapshotId, TableId
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.text.names import INSIDE, shown_schema

# Names of other modules that this one stands for.
__all__ = ["Connection", "data_files", "file_bounds", "inlined_rows", "name_mappings"]

NO_NESTING = (
    f"schemas inside schemas need {first_with('ducklake_schema', 'parent_schema_id')}; migrate the"
    " lake, or use one name, in backticks if it has a dot"
)
# A look at the newest snapshots should be fast, and a look at all should take few statements.
_FIRST_PAGE, _NEXT_PAGES = 200, 5_000
_SCHEMA: sa.BindParameter[Any] = sa.bindparam("schema", type_=BIGINT)
_option = tables.metadata.c
OPTIONS = sa.select(_option.key, _option.value, _option.scope, _option.scope_id).where(
    _option.key.in_((*OPTION_NAMES, ENCRYPTED)),
    sa.or_(
        _option.scope.is_(None),
        sa.and_(_option.scope == "table", _option.scope_id == TABLE),
        sa.and_(_option.scope == "schema", _option.scope_id == _SCHEMA),
    ),
)
"""The options that apply to :table in :schema."""
_tag, _column_tag = tables.tag.c, tables.column_tag.c
_tags = sa.and_(_tag.object_id == TABLE, _tag.key.is_not(None))
_comments = sa.and_(_column_tag.table_id == TABLE, _column_tag.key == "comment")


def snapshot(
    connection: Connection, version: int | None = None, timestamp: datetime | None = None
) -> Snapshot:
    """Return the newest snapshot, the one with that id, or the newest at that time; one statement.

    If somebody has migrated the lake, the connection works in its version from then on.
    Raises NotFound, naming the existing snapshots, if it does not exist or has expired.
    """
    if version is not None and timestamp is not None:
        raise InvalidRequest("pass a version or a timestamp, not both")
    query = queries.newest_snapshot()
    if version is not None:
        # No snapshot has a greater id, and no database takes a greater number.
        query = query.where(queries.t_snapshot.c.snapshot_id == max(-1, min(version, 2**63 - 1)))
    if timestamp is not None:
        if timestamp.tzinfo is None:
            raise InvalidRequest(f"the timestamp {timestamp} needs a time zone")
        query = query.where(queries.t_snapshot.c.snapshot_time <= timestamp)
    row = connection.execute(query).first()
    if row is not None:
        follow(connection, row.ducklake_version)
        found = as_snapshot(row)
        if timestamp is not None:
            _require_successor(connection, found, timestamp)
        return found
    oldest, newest = connection.execute(queries.range_of_snapshots()).one()
    if newest is None:
        raise CorruptLake("the lake has no snapshot: ducklake_snapshot is empty")
    if version is not None:
        if oldest < version < newest:
            raise NotFound(
                f"snapshot {version} has expired; read a newer or an older one", about="snapshot"
            )
        raise NotFound(
            f"snapshot {version} does not exist; existing snapshots: {oldest} to {newest}",
            about="snapshot",
        )
    first = snapshot(connection, oldest)
    raise NotFound(
        f"the lake has no snapshot as old as {timestamp}; its first snapshot is {oldest}, of"
        f" {first.time}",
        about="snapshot",
    )


def _require_successor(connection: Connection, found: Snapshot, timestamp: datetime) -> None:
    """Raise NotFound if an expired snapshot may have been the newest at that time."""
    after = connection.execute(queries.next_snapshot(found.id)).scalar()
    if after is not None and after > found.id + 1:
        raise NotFound(
            f"snapshots {found.id + 1} to {after - 1} have expired, and one of them may be the"
            f" snapshot at {timestamp}; read version {found.id} or {after}",
            about="snapshot",
        )


def snapshots(
    connection: Connection, *, limit: int | None = None, before: int | None = None
) -> list[Snapshot]:
    """Return snapshots, oldest first: all, or the newest ``limit`` of those before ``before``."""
    found = newest_first(connection, queries.every_snapshot(), before)
    return list(islice(found, limit))[::-1]


def newest_first(
    connection: Connection, query: sa.Select[Any], before: int | None = None
) -> Iterator[Snapshot]:
    """Yield what a query like `queries.every_snapshot` finds, newest first, page by page.

    ``before`` is a snapshot; the first one is the next older one.
    """
    number, most = tables.snapshot.c.snapshot_id, _FIRST_PAGE
    query = query.order_by(None).order_by(number.desc())
    while True:
        some = query if before is None else query.where(number < before)
        rows = connection.execute(some.limit(most)).all()
        yield from map(as_snapshot, rows)
        if len(rows) < most:
            return
        before, most = rows[-1].snapshot_id, _NEXT_PAGES


def entries_since(connection: Connection, base: int, head: int) -> list[tuple[SnapshotId, Entry]]:
    """Return what every snapshot after ``base`` up to ``head``, the newest, changed; oldest first.

    Raises Conflict if one of them has expired, because what it did is no longer known.
    """
    rows = connection.execute(queries.changes_after(), {"base": base})
    return entries_between(rows, base, head)


def entries_between(
    rows: Iterable[Any], base: int, head: int, *, needs_all: bool = True
) -> list[tuple[SnapshotId, Entry]]:
    """Return what rows of `queries.changes_after` say, as `entries_since` does.

    Without ``needs_all``, expired snapshots are left out.
    """
    logged = _logged(rows)
    gone = next((n for n in range(base + 1, head + 1) if n not in logged), None)
    if gone is not None and needs_all:
        raise Conflict(
            f"snapshot {gone}, later than snapshot {base} of your changes, has expired, so"
            " conflicts with it are unknown; read the table again and repeat the change"
        )
    return [(n, entry) for n, entries in logged.items() for entry in entries]


def logged_since(connection: Connection, base: int, last: int) -> dict[SnapshotId, list[Entry]]:
    """Return what each remaining snapshot after ``base`` up to ``last`` changed, oldest first."""
    upto = queries.changes_after().where(tables.snapshot_changes.c.snapshot_id <= last)
    return _logged(connection.execute(upto, {"base": base}))


def _logged(rows: Iterable[Any]) -> dict[SnapshotId, list[Entry]]:
    return {SnapshotId(number): entries_in(number, text) for number, text in sorted(rows)}


def logged(connection: Connection, first: int, last: int) -> list[tuple[Snapshot, list[Entry]]]:
    """Return the snapshots from ``first`` to ``last``, each with its log entries; one statement.

    Expired ones are left out.
    """
    chosen = tables.snapshot.c.snapshot_id.between(first, last)
    rows = connection.execute(queries.every_snapshot().where(chosen))
    return [(found, entries_of(found)) for found in map(as_snapshot, rows)]


def entries_of(snapshot: Snapshot) -> list[Entry]:
    """Return what a snapshot changed."""
    return entries_in(snapshot.id, snapshot.changes_made)


def schemas(connection: Connection, at: Snapshot, lake: LakeInfo) -> list[SchemaInfo]:
    """Return the schemas at a snapshot, in the order in which they were made."""
    rows = connection.execute(queries.schemas_at(schemas_of(connection), at.id))
    return [schema_of_row(row, lake.data_path) for row in rows]


def table_names(connection: Connection, at: Snapshot, schema: SchemaInfo) -> list[str]:
    """Return the names of a schema's tables at a snapshot, sorted."""
    return distinct_names(connection, tables.table.c.table_name, schema, at)


def names_with_tag(connection: Connection, key: str) -> list[tuple[str, str]]:
    """Return the schemas and names of the tables that have a tag now; one statement."""
    table, schema = tables.table, schemas_of(connection)
    query = (
        sa.select(schema.c.schema_name, table.c.table_name)
        .join_from(tables.tag, table, table.c.table_id == _tag.object_id)
        .join(schema, schema.c.schema_id == table.c.schema_id)
        .where(_tag.key == key, live(tables.tag), live(table), live(schema))
        .order_by(schema.c.schema_name, table.c.table_name)
    )
    return [(row.schema_name, row.table_name) for row in connection.execute(query)]


def table(
    connection: Connection, at: Snapshot, schema: str, name: str, lake: LakeInfo
) -> TableVersion:
    """Return a table at a snapshot, by its name in any case; two statements.

    Raises NotFound with similar names, CorruptLake if its rows contradict themselves.
    """
    wanted = {"schema": schema, "name": name, "snapshot": at.id}
    asked = queries.table_called(schemas_of(connection))
    found = connection.execute(asked, wanted).all()
    if not found:
        raise _no_such_table(connection, at, schema, name, lake)
    if len(found) > 1:
        raise two_rows(tables.table, f"{shown_schema(schema)}.{name}", at.id)
    row = found[0]
    home = schema_of_row(row, lake.data_path, "schema_")
    full_name = f"{home.text}.{row.table_name}"
    mine = {"table": row.table_id, "snapshot": at.id}
    described = _described().ask(connection, mine | {"schema": home.id})
    columns = described["columns"]
    shown = schema_of((c for c in columns if c.shown), full_name)
    if not shown.fields:
        raise _no_such_table(connection, at, schema, name, lake)
    path = resolve(home.path, row.path, row.path_is_relative)
    require_allowed(path, lake.roots, f"the directory {path!r} of {full_name}")
    known = description_of(described, at.id, full_name)
    return TableVersion(
        id=TableId(row.table_id),
        uuid=str(row.table_uuid),
        schema=home,
        name=row.table_name,
        path=path,
        columns=limited(shown, known.properties, full_name),
        snapshot=at,
        begin_snapshot=SnapshotId(row.begin_snapshot),
        max_column_id=max(c.column_id for c in columns),
        first_names={FieldId(c.column_id): c.column_name for c in columns if c.version == 1},
        comments=known.comments,
        partition_id=known.partition_id,
        partition=known.partition,
        sort=known.sort,
        properties=known.properties,
        options=table_options(known.options, schema_id=home.id, table_id=row.table_id),
        has_reserved=any(c.begin_snapshot == c.end_snapshot for c in columns),
        roots=lake.roots,
    )


@cache
def _described() -> Together:
    return Together({"columns": queries.columns_at(), **TRAITS})


def read_settings(connection: Connection) -> list[OptionSetting]:
    """Return every option that is set, in any scope; one statement."""
    c = _option
    known = sa.select(c.key, c.value, c.scope, c.scope_id).where(c.key.in_(OPTION_NAMES))
    rows = connection.execute(known.order_by(c.key, c.scope, c.scope_id))
    return [setting_of(row) for row in rows]


def read_table_options(connection: Connection, table: TableVersion) -> TableOptions:
    """Return what applies to a table; one statement."""
    rows = connection.execute(OPTIONS, {"schema": table.schema.id, "table": table.id})
    settings = [setting_of(row) for row in rows]
    return table_options(settings, schema_id=table.schema.id, table_id=table.id)


def names_of(connection: Connection, table_id: int) -> dict[int, tuple[str, str]]:
    """Return the schemas and names that a table ever had, by their first snapshots, in order."""
    rows = connection.execute(queries.names_of_table(schemas_of(connection), table_id))
    return {begin: (schema, name) for begin, schema, name in sorted(map(tuple, rows))}


def name_at(connection: Connection, table_id: int, at: Snapshot) -> tuple[str, str] | None:
    """Return the schema and name of a table at a snapshot, None if it did not exist."""
    known = [name for begin, name in names_of(connection, table_id).items() if begin <= at.id]
    return known[-1] if known else None


def table_by_id(
    connection: Connection, number: int, at: Snapshot, lake: LakeInfo
) -> TableVersion | None:
    """Return a table at a snapshot by its id, None if it does not exist there.

    The snapshot may have expired: columns of a table stay in the catalog as long as the table.
    """
    name = name_at(connection, number, at)
    found = None if name is None else table_called(connection, at, *name, lake)
    return found if found is not None and found.id == number else None


def table_called(
    connection: Connection, at: Snapshot, schema: str, name: str, lake: LakeInfo
) -> TableVersion | None:
    """Return what `table` does, None if there is none."""
    try:
        return table(connection, at, schema, name, lake)
    except NotFound:
        return None


def table_history(
    connection: Connection,
    table: TableVersion,
    *,
    limit: int | None = None,
    before: int | None = None,
) -> list[Snapshot]:
    """Return the newest ``limit`` snapshots before ``before`` that touched a table, newest first.

    Without them, all; one statement for the names, and one for each page. A rename appears as
    ``created_table`` with the new name, as DuckLake logs it.
    """
    names = names_of(connection, table.id)
    found = newest_first(connection, queries.snapshots_naming(table.id, list(names)), before)
    mine = (s for s in found if entries_about(entries_of(s), table.id, names.get(s.id)))
    return list(islice(mine, limit))


def was_table(connection: Connection, schema: str, name: str) -> bool:
    """Return whether a remaining snapshot may have a table of that name; one statement."""
    query = _of_name(connection, tables.table.c.table_id, schema, name).limit(1)
    return connection.execute(query).first() is not None


def dropped_at(connection: Connection, schema: str, name: str) -> int | None:
    """Return the snapshot that dropped the last table of that name; None if none was dropped.

    One that was renamed lives on.
    """
    t = tables.table.c
    living = sa.select(t.table_id).where(t.end_snapshot.is_(None))
    query = _of_name(connection, sa.func.max(t.end_snapshot), schema, name)
    found: int | None = connection.execute(query.where(t.table_id.not_in(living))).scalar()
    return found


def _of_name(
    connection: Connection, asked: sa.ColumnElement[Any], schema: str, name: str
) -> sa.Select[Any]:
    """Ask about all tables that ever had a name, whatever the case."""
    schemas = schemas_of(connection)
    t, s = tables.table.c, schemas.c
    return (
        sa.select(asked)
        .join(schemas, s.schema_id == t.schema_id)
        .where(sa.func.lower(t.table_name) == name.lower())
        .where(sa.func.lower(s.schema_name) == schema.lower())
    )


def entries_about(
    entries: Iterable[Entry], table_id: int, name: tuple[str, ...] | None
) -> list[Entry]:
    """Return what a snapshot did to a table; ``name`` is the one that it gave it, if it did."""
    # Schemas, tables and views get their ids from one counter, so an id identifies the kind.
    return [
        entry
        for entry in entries
        if entry.id == table_id or (entry.verb is Verb.CREATED_TABLE and entry.names == name)
    ]


def newest(rows: list[Any]) -> Snapshot:
    """Return the snapshot of the only row of `queries.newest_snapshot`, or raise CorruptLake."""
    if not rows:
        raise CorruptLake("the lake has no snapshot: ducklake_snapshot is empty")
    return as_snapshot(rows[0])


def entries_in(snapshot_id: int, text: str | None) -> list[Entry]:
    """Return what a snapshot changed according to a text of its log."""
    try:
        return parse_entries(text)
    except CorruptLake as error:
        raise CorruptLake(f"snapshot {snapshot_id}: {error}") from error


def as_snapshot(row: Any) -> Snapshot:
    """Return the snapshot that a row of `queries.every_snapshot` describes, field by field."""
    return Snapshot(*row[: len(fields(Snapshot))])


def _no_such_table(
    connection: Connection, at: Snapshot, schema: str, name: str, lake: LakeInfo
) -> NotFound:
    try:
        home = schema_named(schemas(connection, at, lake), schema, format_of(connection))
    except NotFound as error:
        return error
    if view(connection, at, home.name, name, lake) is not None:
        return NotFound(
            f"{home.text}.{name} is a view, not a table; read it with"
            f" lake.sql('SELECT * FROM {home.text}.{name}')",
            about="view instead of table",
        )
    names = table_names(connection, at, home)
    return NotFound.named("table", name, names, where=f"schema {home.text!r}")


def schema_named(known: Sequence[SchemaInfo], word: str, known_format: Format) -> SchemaInfo:
    """Return the schema of a name as one word, in any case, or raise NotFound."""
    for each in known:
        if each.name.lower() == word.lower():
            return each
    raise no_such_schema(known_format, word, known)


def no_such_schema(known_format: Format, word: str, known: Sequence[SchemaInfo]) -> NotFound:
    """Return what to say of a schema that does not exist."""
    if INSIDE in word and not known_format.nests:
        return NotFound(f"schema {shown_schema(word)} does not exist: {NO_NESTING}", about="schema")
    return NotFound.named("schema", shown_schema(word), [s.text for s in known])


def _shown(source: sa.Table, owner: sa.ColumnElement[bool], *names: str) -> sa.Select[Any]:
    """Ask for columns of what :snapshot shows of an owner; fetching refuses broken rows."""
    asked = sa.select(begin_of(source), *(source.c[name] for name in names))
    return asked.where(owner, shown_or_broken(source, SNAPSHOT))


def _keys(info: sa.Table, keys: sa.Table, number: str) -> sa.Select[Any]:
    found = _shown(info, info.c.table_id == TABLE)
    named = [c for c in keys.c if c.name not in ("table_id", "dialect")]
    of_table = sa.and_(keys.c.table_id == TABLE, info.c[number] == keys.c[number])
    return found.add_columns(*named).join_from(info, keys, of_table)


TRAITS: Mapping[str, sa.Select[Any]] = {
    "tags": _shown(tables.tag, _tags, "key", "value"),
    "comments": _shown(tables.column_tag, _comments, "column_id", "value"),
    "partition": _keys(tables.partition_info, tables.partition_column, "partition_id"),
    "sort": _keys(tables.sort_info, tables.sort_expression, "sort_id"),
    "table": _shown(tables.table, tables.table.c.table_id == TABLE),
    "schema": _shown(tables.schema, tables.schema.c.schema_id == _SCHEMA),
    "options": OPTIONS,
}
"""Everything about :table at :snapshot; the rows of itself and of its :schema are counted."""
