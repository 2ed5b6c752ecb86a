"""Views and macros follow what they read to new names, in the commit that gives these names.

It runs behind everything else of the commit, under its lock, so it sees the tables as they will be.
Pinned views have queries of their own: see `follow_pins`. A macro that changes gets another id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kinds.definitions import end_views, replace_macros
from shelduck.catalog.commit.opening import Work
from shelduck.catalog.commit.view_follower import Row, ViewFollower, changed_names, rows_with
from shelduck.catalog.read import read
from shelduck.catalog.read.queries import live
from shelduck.catalog.read.views_and_macros import macros
from shelduck.ducklake import tables
from shelduck.ducklake.descriptions import tag_rows
from shelduck.model.changes.change import CreateView, DependentViews, Entry, RenameView, Verb
from shelduck.model.changes.definition import CreateMacro
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.model.tables.view import SPARK_SQL, MacroVersion

_v, _t = tables.view, tables.tag


def follow_views(draft: Draft, work: Work, rows: Sequence[Row]) -> None:
    """Write the queries of views that read tables or views whose names change.

    ``rows`` are the views as the commit leaves them. Raises InvalidRequest if an ALTER that must
    not break views would break one, and drops those if the ALTER says so.
    """
    altered = [t.altered for t in work.existing() if t.altered and t.altered.changed]
    renamed = work.of(RenameView)
    new_names = [t.old.name for t in work.existing() if t.old and t.new_name]
    new_names += [each.view.name for each in renamed]
    names = {*new_names, *(each.table.name for each in altered)}
    rows = [row for row in rows if row["pin"] is None]
    bodies = [row._asdict() for row in draft.opening.answers.get("macros", ())]
    if not rows_with([*rows, *bodies], names):
        return
    after = _Committed(draft, work)
    schemas = read.schemas(draft.connection, after.at, draft.lake)
    homes = {schema.id: schema.name for schema in schemas}
    made = {(each.schema.name, each.name) for each in work.of(CreateView)}
    rows = [r for r in rows if (homes[r["schema_id"]], r["view_name"]) not in made]
    following = ViewFollower(after, schemas, renamed)
    following.take(rows, names, None if new_names else changed_names(altered))
    there = _macros(after) if bodies else []
    new_macros = following.macros(there)
    lost: list[int] = []
    if any(each.views is DependentViews.CASCADE for each in altered):
        lost = following.lost
        end_views(draft, lost)
    else:
        for each in altered:
            following.require_all(each.table.full_name, each.views)
    renew_views(draft, [each for each in following.done if each[0]["view_id"] not in lost])
    gone = [macro for macro in there if -macro.id in lost or macro.id in new_macros]
    if gone:
        replace_macros(draft, gone, list(new_macros.values()))


def _macros(after: _Committed) -> list[MacroVersion]:
    """Return the macros that the commit has not made, as it leaves them; two statements."""
    made = {(m.macro.schema.name, m.macro.name) for m in after.work.of(CreateMacro)}
    found = macros(after.draft.connection, after.at, after.draft.lake)
    return [macro for macro in found if (macro.schema.name, macro.name) not in made]


@dataclass(frozen=True)
class _Committed:
    """Tables as a commit found them and as it leaves them."""

    draft: Draft
    work: Work

    @property
    def at(self) -> Snapshot:
        """The snapshot that the commit makes."""
        return replace(self.draft.head, id=self.draft.id)

    def before(self, schema: str, name: str) -> TableVersion | None:
        draft = self.draft
        return read.table_called(draft.connection, draft.head, schema, name, draft.lake)

    def after(self, table: TableVersion) -> TableVersion | None:
        work = self.work.tables.get(table.id)
        if work is None or (work.altered is None and work.new_name is None and not work.dropped):
            return table
        return read.table_by_id(self.draft.connection, table.id, self.at, self.draft.lake)

    def named_after(self, schema: str, name: str) -> TableVersion | None:
        works = self.work.tables.values()
        new = [t.new_name or (t.created.name if t.created else "") for t in works]
        is_new = name.lower() in (each.lower() for each in new)
        if not is_new:
            return None
        return read.table_called(self.draft.connection, self.at, schema, name, self.draft.lake)

    def new_ids(self, table: TableVersion) -> Mapping[FieldId, FieldId]:
        work = self.work.tables.get(table.id)
        return dict(work.altered.converted) if work is not None and work.altered is not None else {}


def renew_views(draft: Draft, done: Sequence[tuple[Row, str, str | None]]) -> None:
    """Write new texts of views: DuckDB's, and Spark's or None; seven statements at most."""
    older = {row["view_id"]: sql for row, sql, _ in done if row["begin_snapshot"] != draft.id}
    source = draft.format.table(_v)
    whole = sa.select(source).where(source.c.view_id.in_(older), live(source))
    rows = [dict(row) for row in draft.connection.execute(whole).mappings()] if older else []
    draft.renew(_v, "view_id", [(row, {"sql": older[row["view_id"]]}) for row in rows])
    for row, sql, _ in done:
        if row["begin_snapshot"] == draft.id:
            one = sa.update(_v).where(_v.c.view_id == row["view_id"], live(_v))
            draft.connection.execute(one.values(sql=sql))
    draft.entries += [Entry(Verb.ALTERED_VIEW, number) for number in older]
    draft.has_schema_change |= bool(older)
    ids = [row["view_id"] for row, _, _ in done]
    mine = (_t.c.object_id.in_(ids), _t.c.key == SPARK_SQL, live(_t))
    if len(older) < len(done):
        draft.connection.execute(sa.delete(_t).where(*mine, _t.c.begin_snapshot == draft.id))
    draft.end(_t, object_id=ids, key=[SPARK_SQL])
    texts = {row["view_id"]: spark for row, _, spark in done if spark is not None}
    draft.begin(
        tag for number, spark in texts.items() for tag in tag_rows(number, {SPARK_SQL: spark})
    )
