"""The rows that each kind of change of schemas and tables writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Table, Update, bindparam, delete, insert, update

from shelduck.catalog import tables
from shelduck.catalog.adoptions import refuse_other_numbers
from shelduck.catalog.checks import require_only_files
from shelduck.catalog.column_rows import rows_of, with_parents
from shelduck.catalog.draft import Draft
from shelduck.catalog.inlined_tables import add_inlined_table, needs_another
from shelduck.catalog.kept_places import keep_places, put_back
from shelduck.catalog.queries import live
from shelduck.catalog.table_layouts import set_partitioning, set_sorting
from shelduck.catalog.work import TableWork
from shelduck.errors import Conflict
from shelduck.model.change import CreateSchema, DropSchema, Entry, Verb
from shelduck.model.names import directory
from shelduck.model.schema import Field, FieldId, Schema, SchemaId, TableId
from shelduck.model.table import TableVersion

Comments = Mapping[FieldId | None, str]


def _ending(source: Table, *keys: str) -> Update:
    """Return the statement that ends live rows whose ``keys`` are in the lists of those names."""
    chosen = [source.c[key].in_(bindparam(f"in_{key}", expanding=True)) for key in keys]
    return update(source).where(*chosen, live(source)).values(end_snapshot=bindparam("ended"))


_INSERT_SCHEMA = insert(tables.schema)
_INSERT_TABLE = insert(tables.table)
_INSERT_COLUMNS = insert(tables.column)
_INSERT_TAGS = insert(tables.tag)
_INSERT_COLUMN_TAGS = insert(tables.column_tag)

_END_SCHEMAS = _ending(tables.schema, "schema_id")
_END_TABLES = _ending(tables.table, "table_id")
_END_COLUMNS = _ending(tables.column, "table_id", "column_id")
_END_KEYS = _ending(tables.tag, "object_id", "key")
_END_COLUMN_COMMENTS = _ending(tables.column_tag, "table_id", "column_id", "key")
_END_COLUMN_TAGS = _ending(tables.column_tag, "table_id", "column_id")
_END_PARTS = tuple(
    _ending(source, "table_id")
    for source in (
        tables.partition_info,
        tables.column,
        tables.column_tag,
        tables.data_file,
        tables.delete_file,
        tables.sort_info,
    )
)
_END_TAGS = _ending(tables.tag, "object_id")

_file_stats, _table_stats = tables.file_column_stats, tables.table_column_stats
_CLEAR_FILE_BOUNDS = (
    update(_file_stats)
    .where(
        _file_stats.c.table_id == bindparam("of_table"),
        _file_stats.c.column_id.in_(bindparam("ids", expanding=True)),
    )
    .values(min_value=None, max_value=None)
)
# A row without bounds would say "no values yet", and DuckDB's next insert would narrow it.
_DELETE_TABLE_BOUNDS = delete(_table_stats).where(
    _table_stats.c.table_id == bindparam("of_table"),
    _table_stats.c.column_id.in_(bindparam("ids", expanding=True)),
)


def create_schemas(draft: Draft, changes: Sequence[CreateSchema]) -> dict[SchemaId, SchemaId]:
    """Write new schemas and return their ids by provisional id; one statement."""
    ids: dict[SchemaId, SchemaId] = {}
    rows = []
    for change in changes:
        number = ids[change.schema.id] = SchemaId(draft.catalog_id())
        rows.append(
            {
                "schema_id": number,
                "schema_uuid": change.uuid,
                "begin_snapshot": draft.id,
                "end_snapshot": None,
                "schema_name": change.schema.name,
                "path": directory(change.schema.name, change.uuid),
                "path_is_relative": True,
            }
        )
        draft.entries.append(Entry(Verb.CREATED_SCHEMA, names=(change.schema.name,)))
    if rows:
        draft.connection.execute(_INSERT_SCHEMA, rows)
        draft.has_schema_change = True
    return ids


def drop_schemas(draft: Draft, changes: Sequence[DropSchema]) -> None:
    """End schemas; one statement."""
    if changes:
        ids = [change.schema.id for change in changes]
        draft.connection.execute(_END_SCHEMAS, {"in_schema_id": ids, "ended": draft.id})
        draft.entries.extend(Entry(Verb.DROPPED_SCHEMA, i) for i in ids)
        draft.has_schema_change = True


def create_table(draft: Draft, work: TableWork, schema_ids: Mapping[SchemaId, SchemaId]) -> TableId:
    """Write a new table with its final columns, name and comments, and return its id."""
    created = work.created
    assert created is not None
    assert work.columns is not None
    number = TableId(draft.catalog_id())
    name = work.new_name or created.name
    draft.connection.execute(
        _INSERT_TABLE,
        {
            "table_id": number,
            "table_uuid": created.uuid,
            "begin_snapshot": draft.id,
            "end_snapshot": None,
            "schema_id": schema_ids.get(created.schema.id, created.schema.id),
            "table_name": name,
            "path": created.directory,
            "path_is_relative": True,
        },
    )
    rows = rows_of(number, draft.id, with_parents(work.columns))
    draft.connection.execute(_INSERT_COLUMNS, rows)
    _reserve(draft, number, work)
    add_inlined_table(draft, number, work.columns)
    keep_places(draft, number, work.columns, is_renewed=False)
    _change_comments(draft, number, {}, work.comments or {})
    _change_tags(draft, number, {}, work.properties or {})
    set_partitioning(draft, number, work)
    set_sorting(draft, number, work)
    draft.entries.append(Entry(Verb.CREATED_TABLE, names=(created.schema.name, name)))
    if number not in draft.new_table_versions:
        draft.new_table_versions.append(number)
    draft.has_schema_change = True
    return number


def drop_tables(draft: Draft, works: Iterable[TableWork]) -> None:
    """End tables and all that belongs to them; eight statements, however many tables."""
    ids = [work.id for work in works]
    if not ids:
        return
    for statement in (_END_TABLES, *_END_PARTS):
        draft.connection.execute(statement, {"in_table_id": ids, "ended": draft.id})
    draft.connection.execute(_END_TAGS, {"in_object_id": ids, "ended": draft.id})
    draft.entries.extend(Entry(Verb.DROPPED_TABLE, i) for i in ids)
    draft.has_schema_change = True


def rename_table(draft: Draft, work: TableWork, row: Any) -> None:
    """Give the table, of which ``row`` is the live row, its new name; two statements.

    DuckLake logs a rename as the creation of the new name.
    """
    assert work.old is not None
    assert work.new_name is not None
    draft.connection.execute(_END_TABLES, {"in_table_id": [work.id], "ended": draft.id})
    draft.connection.execute(
        _INSERT_TABLE,
        {
            "table_id": work.id,
            "table_uuid": row.table_uuid,
            "begin_snapshot": draft.id,
            "end_snapshot": None,
            "schema_id": row.schema_id,
            "table_name": work.new_name,
            "path": row.path,
            "path_is_relative": row.path_is_relative,
        },
    )
    draft.entries.append(Entry(Verb.CREATED_TABLE, names=(work.old.schema.name, work.new_name)))
    draft.new_table_versions.append(work.id)
    draft.has_schema_change = True


def alter_table(draft: Draft, work: TableWork) -> None:
    """Write the column versions and comments that differ; two statements for each that does."""
    old = work.old
    assert old is not None
    assert work.columns is not None
    refuse_other_numbers(draft, work)
    require_only_files(draft, work)
    changed = _change_columns(draft, work.id, old, work.columns)
    keep_places(draft, work.id, work.columns, is_renewed=needs_another(work))
    _change_comments(draft, work.id, old.comments, work.comments or {})
    if work.properties is not None:
        _change_tags(draft, work.id, old.properties, work.properties)
    set_partitioning(draft, work.id, work)
    set_sorting(draft, work.id, work)
    _reserve(draft, work.id, work)
    if work.unsafe_bounds:
        for statement in (_CLEAR_FILE_BOUNDS, _DELETE_TABLE_BOUNDS):
            draft.connection.execute(
                statement, {"of_table": work.id, "ids": sorted(work.unsafe_bounds)}
            )
        draft.has_stats_change = True
    draft.entries.append(Entry(Verb.ALTERED_TABLE, work.id))
    draft.has_schema_change = True
    if changed and work.id not in draft.new_table_versions:
        draft.new_table_versions.append(work.id)


def _reserve(draft: Draft, table: TableId, work: TableWork) -> None:
    if work.reserved:
        # A row without an extent is seen by nobody, and its id is never given again.
        rows = rows_of(table, draft.id, with_parents(Schema(work.reserved)))
        draft.connection.execute(_INSERT_COLUMNS, [r | {"end_snapshot": draft.id} for r in rows])


def _change_columns(draft: Draft, table: TableId, old: TableVersion, new: Schema) -> bool:
    before = {f.id: _own(f, parent) for f, parent in with_parents(old.columns)}
    after = with_parents(new)
    kept = {f.id for f, _ in after}
    begun = [(f, parent) for f, parent in after if before.get(f.id) != _own(f, parent)]
    ended = [i for i in before if i not in kept] + [f.id for f, _ in begun if f.id in before]
    if ended:
        done = draft.connection.execute(
            _END_COLUMNS, {"in_table_id": [table], "in_column_id": ended, "ended": draft.id}
        )
        if done.rowcount != len(ended):
            raise Conflict(f"columns of table {old.full_name} are not what this change was made on")
    if begun:
        draft.connection.execute(_INSERT_COLUMNS, rows_of(table, draft.id, begun))
        fields = [f for f, _ in begun]
        put_back(draft, table, old.columns.walk(), fields, old.max_column_id)
    gone = [i for i in before if i not in kept]
    if gone:
        draft.connection.execute(
            _END_COLUMN_TAGS, {"in_table_id": [table], "in_column_id": gone, "ended": draft.id}
        )
    return bool(ended or begun)


def _own(f: Field, parent: FieldId | None) -> tuple[Field, FieldId | None]:
    """Return what the field's own row holds; its children have rows of their own."""
    return replace(f, children=()), parent


def _change_comments(draft: Draft, table: TableId, old: Comments, new: Comments) -> None:
    own = [{"comment": c[None]} if None in c else {} for c in (old, new)]
    _change_tags(draft, table, *own)
    changed = [k for k in {*old, *new} if k is not None and old.get(k) != new.get(k)]
    if changed:
        # Also those that are new: DuckDB's COMMENT ... IS NULL leaves a tag without a value.
        ended = {"in_table_id": [table], "in_column_id": changed, "in_key": ["comment"]}
        draft.connection.execute(_END_COLUMN_COMMENTS, ended | {"ended": draft.id})
    begun = {"begin_snapshot": draft.id, "end_snapshot": None, "key": "comment"}
    rows = [
        begun | {"table_id": table, "column_id": k, "value": new[k]} for k in changed if k in new
    ]
    if rows:
        draft.connection.execute(_INSERT_COLUMN_TAGS, rows)


def _change_tags(
    draft: Draft, table: TableId, old: Mapping[str, str], new: Mapping[str, str]
) -> None:
    """End the tags of a table that differ, and begin the new ones; a statement for each of both."""
    changed = sorted(k for k in {*old, *new} if old.get(k) != new.get(k))
    if changed:
        draft.connection.execute(
            _END_KEYS, {"in_object_id": [table], "in_key": changed, "ended": draft.id}
        )
    begun = {"object_id": table, "begin_snapshot": draft.id, "end_snapshot": None}
    rows = [begun | {"key": k, "value": new[k]} for k in changed if k in new]
    if rows:
        draft.connection.execute(_INSERT_TAGS, rows)
