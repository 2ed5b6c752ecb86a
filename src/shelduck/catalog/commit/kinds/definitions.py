"""CREATE, DROP and RENAME of schemas, views and macros, and comments on columns of views."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from shelduck.catalog.commit.draft import ChangeKind, Draft
from shelduck.catalog.commit.opening import Work
from shelduck.catalog.read.queries import live
from shelduck.ducklake import tables
from shelduck.ducklake.descriptions import (
    Row,
    column_comment_rows,
    macro_rows,
    schema_row,
    view_rows,
)
from shelduck.errors import AlreadyExists, Conflict, Unsupported
from shelduck.model.changes.change import (
    CreateSchema,
    CreateView,
    DropSchema,
    DropView,
    Entry,
    RenameView,
    Verb,
)
from shelduck.model.changes.conflict import describe
from shelduck.model.changes.definition import CommentViewColumns, CreateMacro, DropMacro
from shelduck.model.tables.schema import SchemaId
from shelduck.model.tables.view import MacroKind, MacroVersion

_CREATED = {MacroKind.SCALAR: Verb.CREATED_SCALAR_MACRO, MacroKind.TABLE: Verb.CREATED_TABLE_MACRO}
_DROPPED = {MacroKind.SCALAR: Verb.DROPPED_SCALAR_MACRO, MacroKind.TABLE: Verb.DROPPED_TABLE_MACRO}
_macro, _impl = tables.macro.c, tables.macro_impl.c
_LIVE_MACROS = (
    sa.select(
        *(_macro.macro_id, _macro.schema_id),
        *(sa.func.lower(_macro.macro_name).label("name"), _impl.type),
    )
    .join_from(tables.macro, tables.macro_impl, _macro.macro_id == _impl.macro_id)
    .where(
        live(tables.macro),
        sa.func.lower(_macro.macro_name).in_(sa.bindparam("names", expanding=True)),
    )
)


def _write_schemas(draft: Draft, work: Work) -> None:
    """Write new schemas and end dropped ones; one statement each, however many there are."""
    rows: list[tuple[sa.Table, Row]] = []
    for made in work.of(CreateSchema):
        schema = made.schema
        number = draft.schema_ids[schema.id] = SchemaId(draft.catalog_id())
        parent = None if schema.parent is None else draft.schema_id(schema.parent)
        path = schema.path.removeprefix(draft.lake.data_path)
        rows.append((tables.schema, schema_row(number, schema, made.uuid, parent, path)))
        draft.entries.append(Entry(Verb.CREATED_SCHEMA, names=(schema.name,)))
    draft.begin(rows)
    dropped = [gone.schema.id for gone in work.of(DropSchema)]
    draft.end(tables.schema, schema_id=dropped)
    draft.end(tables.tag, object_id=dropped)
    draft.entries.extend(Entry(Verb.DROPPED_SCHEMA, number) for number in dropped)
    draft.has_schema_change = True


def _check_views(draft: Draft, work: Work) -> None:
    """Raise Conflict if another commit dropped or renamed a view; at most one statement."""
    changes: list[DropView | RenameView | CommentViewColumns] = [
        *work.of(DropView),
        *work.of(RenameView),
        *work.of(CommentViewColumns),
    ]
    if not changes:
        return
    ids = [change.view.id for change in changes]
    source = draft.format.table(tables.view)
    query = sa.select(source).where(source.c.view_id.in_(ids), live(source))
    rows = draft.connection.execute(query).mappings()
    draft.found.update((row["view_id"], dict(row)) for row in rows)
    for each in changes:
        row = draft.found.get(each.view.id)
        if row is None:
            raise Conflict(f"cannot {describe(each)}: another commit dropped or replaced it")
        if row["view_name"] != each.view.name:
            raise Conflict(
                f"cannot {describe(each)}: another commit renamed it to {row['view_name']!r}"
            )


def _write_views(draft: Draft, work: Work) -> None:
    """Write dropped, renamed and new views; seven statements, and three for comments on columns."""
    dropped = [gone.view.id for gone in work.of(DropView)]
    end_views(draft, dropped)
    renamed = {each.view.id: each for each in work.of(RenameView)}
    named = [(draft.found[n], {"view_name": each.new_name}) for n, each in renamed.items()]
    draft.renew(tables.view, "view_id", named)
    rows: list[tuple[sa.Table, Row]] = []
    # DuckLake logs a rename as the creation of the new name.
    names = [(each.view.schema.name, each.new_name) for each in renamed.values()]
    for made in work.of(CreateView):
        number, schema = draft.catalog_id(), draft.schema_id(made.schema.id)
        rows += view_rows(number, schema, made.name, made.uuid, made.definition)
        if made.definition.column_comments:
            known = _tags_of_columns(draft)
            rows += column_comment_rows(known, number, made.definition.column_comments)
        names.append((made.schema.name, made.name))
    draft.begin(rows)
    draft.entries.extend(Entry(Verb.CREATED_VIEW, names=each) for each in names)
    for told in work.of(CommentViewColumns):
        _comment(draft, told)
    draft.has_schema_change = True


def end_views(draft: Draft, ids: Collection[int]) -> None:
    """End views, their texts, and comments on their columns; three statements."""
    draft.end(tables.view, view_id=ids)
    draft.end(tables.tag, object_id=ids)
    if draft.format.view_column_tag is not None:
        draft.end(draft.format.view_column_tag, view_id=ids)
    draft.entries.extend(Entry(Verb.DROPPED_VIEW, number) for number in ids)


def _comment(draft: Draft, change: CommentViewColumns) -> None:
    """Write comments on columns of one view; one without a text is a row too, as in DuckDB."""
    number, table = change.view.id, _tags_of_columns(draft)
    c = table.c
    named = sa.func.lower(c.column_name).in_([sa.func.lower(name) for name, _ in change.comments])
    mine = (c.view_id == number, c.key == "comment", named, live(table))
    draft.connection.execute(sa.update(table).where(*mine).values(end_snapshot=draft.id))
    draft.begin(column_comment_rows(table, number, change.comments))
    draft.entries.append(Entry(Verb.ALTERED_VIEW, number))


def _tags_of_columns(draft: Draft) -> sa.Table:
    table = draft.format.view_column_tag
    if table is None:
        raise Unsupported(draft.format.lacking("comments on columns of views"))
    return table


def _check_macros(draft: Draft, work: Work) -> None:
    """Raise Conflict if a macro was dropped, AlreadyExists for a name in use; one statement."""
    created, dropped = work.of(CreateMacro), work.of(DropMacro)
    wanted = {m.name.lower() for m in [*(c.macro for c in created), *(d.macro for d in dropped)]}
    rows = draft.connection.execute(_LIVE_MACROS, {"names": sorted(wanted)}).all()
    alive = {row.macro_id for row in rows}
    for drop in dropped:
        if drop.macro.id not in alive:
            raise Conflict(f"cannot {describe(drop)}: another commit dropped or replaced it")
    ending_here = {drop.macro.id for drop in dropped}
    taken = {(r.schema_id, r.name, r.type) for r in rows if r.macro_id not in ending_here}
    for create in created:
        macro = create.macro
        key = (macro.schema.id, macro.name.lower(), macro.kind.value)
        if key in taken:
            raise AlreadyExists(f"macro {macro.full_name} already exists", about="macro")
        taken.add(key)


def _write_macros(draft: Draft, work: Work) -> None:
    dropped = [gone.macro for gone in work.of(DropMacro)]
    replace_macros(draft, dropped, [made.macro for made in work.of(CreateMacro)])


def replace_macros(draft: Draft, gone: Sequence[MacroVersion], new: Sequence[MacroVersion]) -> None:
    """Write dropped and new macros; at most six statements."""
    dropped = {macro.id: macro for macro in gone}
    draft.end(tables.macro, macro_id=dropped)
    draft.end(tables.tag, object_id=dropped)
    draft.entries.extend(Entry(_DROPPED[macro.kind], n) for n, macro in dropped.items())
    rows: list[tuple[sa.Table, Row]] = []
    for macro in new:
        rows += macro_rows(draft.catalog_id(), draft.schema_id(macro.schema.id), macro)
        draft.entries.append(Entry(_CREATED[macro.kind], names=(macro.schema.name, macro.name)))
    draft.begin(rows)
    draft.has_schema_change = True


SCHEMAS = ChangeKind((CreateSchema, DropSchema), Work.keep, _write_schemas)
VIEWS = ChangeKind(
    (CreateView, DropView, RenameView, CommentViewColumns),
    *(Work.keep, _write_views),
    check=_check_views,
)
MACROS = ChangeKind((CreateMacro, DropMacro), Work.keep, _write_macros, check=_check_macros)
