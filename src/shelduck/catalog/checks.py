"""What must hold in the catalog, inside the commit's lock, before anything is written.

The conflict matrix sees what others logged; this sees what is there. Together they leave no hole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, column, func, literal, select, true, union_all
from sqlalchemy import table as sql_table

from shelduck.catalog import tables
from shelduck.catalog.column_types import BIGINT
from shelduck.catalog.create import LakeInfo
from shelduck.catalog.draft import Draft
from shelduck.catalog.queries import has_columns, inlined_tables, live
from shelduck.catalog.work import TableWork, Work
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, Unsupported
from shelduck.model.change import CommitInfo, DropView, RenameView
from shelduck.model.rollup import ROLLUPS
from shelduck.model.schema import SchemaId, TableId
from shelduck.model.table import SchemaInfo, Snapshot

_t = tables.table.c
_LIVE_TABLES = select(
    *(_t.table_id, _t.table_uuid, _t.schema_id, _t.table_name, _t.path, _t.path_is_relative)
).where(_t.table_id.in_(bindparam("ids", expanding=True)), live(tables.table))

_LIVE_FILES = select(tables.data_file.c.data_file_id).where(
    tables.data_file.c.table_id == bindparam("of_table"), live(tables.data_file)
)
_LIVE_SCHEMAS = select(tables.schema.c.schema_id, tables.schema.c.schema_name).where(
    live(tables.schema)
)

_option = tables.metadata.c
_OPTIONS = select(_option.key, _option.value).where(
    _option.scope.is_(None), _option.key.in_(["version", "require_commit_message"])
)


@dataclass(frozen=True)
class Found:
    """Rows that were looked at and that writing needs again: live tables by id."""

    tables: dict[int, Any]


def check_options(connection: Connection, lake: LakeInfo, info: CommitInfo) -> None:
    """Refuse a commit that lacks the message which the lake demands, and a migrated lake."""
    options = {row.key: row.value for row in connection.execute(_OPTIONS)}
    if options.get("version") != lake.version:
        raise Unsupported(
            f"the lake has DuckLake version {options.get('version')!r} by now, and was opened with"
            f" {lake.version!r}; nothing was written"
        )
    if options.get("require_commit_message") == "true" and not info.message:
        raise InvalidRequest(
            "this lake demands a commit message (option require_commit_message); give one"
        )


def check_work(connection: Connection, work: Work, head: Snapshot) -> Found:
    """Raise Conflict, AlreadyExists or InvalidRequest unless the work fits what is there.

    Tables that were read at ``head`` and keep their name are alive. One statement for other tables
    that exist, two when names are given, one more when a schema ends.
    """
    found = Found({})
    if not all(_was_read_at(head, table) for table in work.existing()):
        found = _live_tables(connection, work)
        _check_rollups(connection, work, head, found)
    names = _given_names(work)
    if names or work.created_schemas or work.dropped_schemas:
        _check_schemas(connection, work, {schema for schema, _ in names})
    if names:
        _check_names(connection, work, names)
    if work.dropped_schemas:
        _check_emptiness(connection, work)
    return found


def require_only_files(draft: Draft, work: TableWork) -> None:
    """Raise Conflict when a table has other rows than in the files that a change was made for.

    No statement for changes that do not ask, else two, and one for each table of inlined rows.
    """
    if work.only_files is None:
        return
    live_files = draft.connection.execute(_LIVE_FILES, {"of_table": work.id}).scalars()
    others = set(live_files) - work.only_files
    if others:
        raise Conflict(f"{work.name} has got {len(others)} other data file(s) meanwhile")
    for name, _ in draft.connection.execute(inlined_tables(work.id)).all():
        rows = sql_table(name, column("end_snapshot", BIGINT))
        kept = select(func.count()).select_from(rows).where(rows.c.end_snapshot.is_(None))
        if draft.connection.execute(kept).scalar():
            raise Conflict(f"the catalog keeps rows of {work.name} meanwhile")


def _was_read_at(head: Snapshot, table: TableWork) -> bool:
    seen = table.old
    return seen is not None and seen.snapshot.id == head.id and table.new_name is None


def _live_tables(connection: Connection, work: Work) -> Found:
    ids = [table.id for table in work.existing()]
    if not ids:
        return Found({})
    rows = {row.table_id: row for row in connection.execute(_LIVE_TABLES, {"ids": ids})}
    for table in work.existing():
        row = rows.get(table.id)
        if row is None:
            raise Conflict(f"table {table.name} was dropped by another commit")
        if table.new_name is not None and table.old and row.table_name != table.old.name:
            raise Conflict(
                f"cannot rename table {table.name}: another commit renamed it to {row.table_name!r}"
            )
    return Found(rows)


def _check_rollups(connection: Connection, work: Work, head: Snapshot, found: Found) -> None:
    """Raise Conflict where a table ends or gets a name, and another commit gave it rollups.

    Their names begin with that of their table, so both have to know of each other.
    """
    stale = []
    for table in work.existing():
        old, number = table.old, table.id
        if old is None or old.snapshot.id == head.id:
            continue
        if table.dropped or table.new_name is not None:
            stale.append((number, old))
        elif table.properties is not None:
            lists = table.properties.get(ROLLUPS) != old.properties.get(ROLLUPS)
            name = found.tables[number].table_name
            if lists and name != old.name:
                raise Conflict(f"table {table.name} was renamed to {name!r} by another commit")
    if not stale:
        return
    tag = tables.tag.c
    listed = select(tag.object_id, tag.value).where(
        tag.object_id.in_([n for n, _ in stale]), tag.key == ROLLUPS, live(tables.tag)
    )
    now = {row.object_id: row.value for row in connection.execute(listed)}
    for number, old in stale:
        if now.get(number) != old.properties.get(ROLLUPS):
            raise Conflict(f"another commit changed the rollups of table {old.full_name}")


def _given_names(work: Work) -> list[tuple[SchemaInfo, str]]:
    """Return the names that the commit gives to tables and views, which share them."""
    given = [(change.schema, change.name) for change in work.created_views]
    given += [(change.view.schema, change.new_name) for change in work.renamed_views]
    for table in work.tables.values():
        if table.created is not None:
            given.append((table.created.schema, table.new_name or table.created.name))
        elif table.new_name is not None and table.old is not None:
            given.append((table.old.schema, table.new_name))
    twice = Counter((schema.id, name.lower()) for schema, name in given)
    for (_, name), count in twice.items():
        if count > 1:
            raise AlreadyExists(
                f"one commit gives the name {name!r} to {count} tables or views", about="table"
            )
    return given


def _check_schemas(connection: Connection, work: Work, used: set[SchemaInfo]) -> None:
    alive = {row.schema_id: row.schema_name for row in connection.execute(_LIVE_SCHEMAS)}
    created = {change.schema.id for change in work.created_schemas}
    for schema in used | {change.schema for change in work.dropped_schemas}:
        if schema.id not in alive and schema.id not in created:
            raise Conflict(f"schema {schema.name!r} was dropped by another commit")
    ending = {change.schema.id for change in work.dropped_schemas}
    for schema in used:
        if schema.id in ending:
            raise InvalidRequest(
                f"one commit drops schema {schema.name!r} and puts a table into it; do one of them"
            )
    taken = {name.lower() for number, name in alive.items() if number not in ending}
    for change in work.created_schemas:
        if change.schema.name.lower() in taken:
            raise AlreadyExists(f"schema {change.schema.name!r} already exists", about="schema")
        taken.add(change.schema.name.lower())


def _check_names(
    connection: Connection, work: Work, names: Sequence[tuple[SchemaInfo, str]]
) -> None:
    schema_ids = {schema.id for schema, _ in names if schema.id >= 0}
    if not schema_ids:
        return
    wanted = [func.lower(name) for _, name in names]
    t, v = tables.table.c, tables.view.c
    taken = connection.execute(
        union_all(
            select(literal("table"), t.table_id, t.schema_id, t.table_name).where(
                live(tables.table),
                has_columns(),
                t.schema_id.in_(schema_ids),
                func.lower(t.table_name).in_(wanted),
            ),
            select(literal("view"), v.view_id, v.schema_id, v.view_name).where(
                live(tables.view), v.schema_id.in_(schema_ids), func.lower(v.view_name).in_(wanted)
            ),
        )
    ).all()
    given = {(schema.id, name.lower()): schema for schema, name in names}
    for kind, number, schema_id, name in taken:
        schema = given.get((SchemaId(schema_id), name.lower()))
        if schema is not None and not _leaves_name(work, kind, number):
            raise AlreadyExists(
                f"{kind} {name!r} already exists in schema {schema.name!r}", about=kind
            )


def _leaves_name(work: Work, kind: str, number: int) -> bool:
    """Tell whether the commit drops or renames a table or view that is there."""
    if kind == "view":
        changed: list[DropView | RenameView] = [*work.dropped_views, *work.renamed_views]
        return any(change.view.id == number for change in changed)
    mine = work.tables.get(TableId(number))
    return mine is not None and (mine.dropped or mine.new_name is not None)


def _check_emptiness(connection: Connection, work: Work) -> None:
    ids = [change.schema.id for change in work.dropped_schemas]
    parts = [
        select(
            literal(kind), source.c[f"{kind}_id"], source.c.schema_id, source.c[f"{kind}_name"]
        ).where(live(source), source.c.schema_id.in_(ids), is_there)
        for kind, source, is_there in (
            ("table", tables.table, has_columns()),
            ("view", tables.view, true()),
            ("macro", tables.macro, true()),
        )
    ]
    for kind, number, _, name in connection.execute(union_all(*parts)):
        mine = work.tables.get(number) if kind == "table" else None
        ends_view = kind == "view" and any(c.view.id == number for c in work.dropped_views)
        if not ends_view and (mine is None or not mine.dropped):
            raise InvalidRequest(
                f"a schema cannot be dropped while {kind} {name!r} is in it; drop that first"
            )
