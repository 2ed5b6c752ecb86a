"""Views as changes that are staged or planned leave them: what a commit will write of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shelduck.catalog.commit.opening import views_now
from shelduck.catalog.commit.view_follower import Row, ViewFollower, changed_names
from shelduck.catalog.read.read import Connection
from shelduck.ducklake.descriptions import column_names_text
from shelduck.errors import Conflict, InvalidRequest
from shelduck.lake.results import TableName
from shelduck.lake.staged_objects import StagedTable, StagedView
from shelduck.model.changes.change import AlterTable, altered
from shelduck.model.tables.schema import FieldId, TableId
from shelduck.model.tables.table_version import SchemaInfo, TableVersion
from shelduck.model.tables.view import MacroVersion, ViewDefinition, ViewVersion

Defined = ViewVersion | MacroVersion
Named = Callable[[TableName], TableVersion | None]


@dataclass(frozen=True)
class StagedTables:
    """What names mean before some tables change and after it.

    ``earlier`` finds a table by its name before the change, and ``now`` has those that change, None
    for one that goes; ``names`` are those that they had.
    """

    earlier: Named
    now: Mapping[TableId, TableVersion | None]
    names: Sequence[str]
    converted: Mapping[FieldId, FieldId] = field(default_factory=dict)

    @classmethod
    def of(cls, staged: Iterable[StagedTable], earlier: Named) -> StagedTables:
        """Return the tables that a unit makes, and whose columns or name it changes."""
        changed = [work for work in staged if _is_changed(work)]
        now = {w.current.id: None if w.dropped else w.current for w in changed}
        return cls(earlier, now, [w.original.name for w in changed if w.original is not None])

    def before(self, schema: str, name: str) -> TableVersion | None:
        """Return the table that has a name before the change."""
        try:
            return self.earlier(TableName(schema, name))
        except InvalidRequest:
            return None

    def after(self, table: TableVersion) -> TableVersion | None:
        """Return the same table after the change."""
        return self.now.get(table.id, table)

    def named_after(self, schema: str, name: str) -> TableVersion | None:
        """Return the table that has the name after the change."""
        there = [table for table in self.now.values() if table is not None]
        named = {(table.schema.name.lower(), table.name.lower()): table for table in there}
        return named.get((schema.lower(), name.lower()))

    def new_ids(self, table: TableVersion) -> Mapping[FieldId, FieldId]:
        """Return the ids of columns that get converted values."""
        return self.converted if table.id in self.now else {}


def planned_views(
    connection: Connection,
    schemas: Iterable[SchemaInfo],
    earlier: Named,
    change: AlterTable,
    known: Iterable[MacroVersion],
) -> ViewFollower:
    """Return the views and ``known`` macros of the lake as an ALTER will leave them."""
    now = {change.table.id: altered(change.table, change)}
    tables = StagedTables(earlier, now, [change.table.name], dict(change.converted))
    found = ViewFollower(tables, schemas)
    found.take(_unpinned(views_now(connection)), tables.names, changed_names([change]))
    found.macros(known)
    return found


def after_tables(
    connection: Connection, tables: StagedTables, view: ViewVersion, schemas: Iterable[SchemaInfo]
) -> ViewVersion:
    """Return a view of the lake after its tables change; one statement."""
    if view.definition.pin is not None:
        return view
    others = [row for row in views_now(connection) if row["view_id"] != view.id]
    found = _followed(tables, [view], others, schemas)
    return replace(view, definition=found.get(view.id, view.definition))


def follow_made(
    made: Sequence[StagedView],
    before: TableVersion,
    after: TableVersion,
    named: Named,
    schemas: Iterable[SchemaInfo],
) -> None:
    """Change views that a unit has made as one table changes; ``named`` finds the others."""

    def earlier(name: TableName) -> TableVersion | None:
        same = (name.home.lower(), name.name.lower())
        is_it = same == (before.schema.name.lower(), before.name.lower())
        return before if is_it else named(name)

    tables = StagedTables(earlier, {before.id: after}, [before.name])
    found = _followed(tables, [work.current for work in made], (), schemas)
    for work in made:
        definition = found.get(work.current.id, work.current.definition)
        work.current = replace(work.current, definition=definition)


def follow_pairs(
    made: Sequence[Defined],
    pairs: Iterable[tuple[TableVersion, TableVersion]],
    schemas: Iterable[SchemaInfo],
) -> list[Defined]:
    """Return views and macros that name columns of some tables, with those of their pairs.

    A pair has the same columns by their ids, and the second one's place. Raises Conflict if one
    reads a column that the other table lacks.
    """
    known = [
        (replace(one, id=two.id, schema=two.schema), two)
        for one, two in pairs
        if one.name != two.name or _names_by_id(one) != _names_by_id(two)
    ]
    earlier = {(one.schema.name.lower(), one.name.lower()): one for one, _ in known}
    tables = StagedTables(
        lambda name: earlier.get((name.home.lower(), name.name.lower())),
        {two.id: two for _, two in known},
        [one.name for one, _ in known],
    )
    found = ViewFollower(tables, schemas)
    views = [each for each in made if isinstance(each, ViewVersion)]
    found.take([*map(_row, views)], tables.names, None)
    macros = found.macros(each for each in made if isinstance(each, MacroVersion))
    if found.broken:
        raise Conflict(f"cannot merge: {'; '.join(found.reasons)}; change it on the branch")
    new = _definitions(found, views)
    return [
        macros.get(each.id, each)
        if isinstance(each, MacroVersion)
        else replace(each, definition=new.get(each.id, each.definition))
        for each in made
    ]


def _followed(
    tables: StagedTables,
    views: Sequence[ViewVersion],
    others: Sequence[Row],
    schemas: Iterable[SchemaInfo],
) -> dict[int, ViewDefinition]:
    """Return the new definitions of views that read the tables."""
    found = ViewFollower(tables, schemas)
    found.take(_unpinned([*others, *map(_row, views)]), tables.names, None)
    return _definitions(found, views)


def _definitions(found: ViewFollower, views: Iterable[ViewVersion]) -> dict[int, ViewDefinition]:
    """Return the new definitions of those ``views`` that get other texts."""
    old = {view.id: view.definition for view in views}
    done = [(row["view_id"], sql, spark) for row, sql, spark in found.done]
    return {n: replace(old[n], sql=sql, spark_sql=spark) for n, sql, spark in done if n in old}


def _is_changed(work: StagedTable) -> bool:
    old, now = work.original, work.current
    return old is None or work.dropped or old.name != now.name or old.columns != now.columns


def _names_by_id(table: TableVersion) -> dict[FieldId, str]:
    return {field.id: field.name for field in table.columns.walk()}


def _unpinned(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["pin"] is None]


def _row(view: ViewVersion) -> Row:
    made = view.definition
    return {
        "view_id": view.id,
        "schema_id": view.schema.id,
        "view_name": view.name,
        "sql": made.sql,
        "spark": made.spark_sql,
        "pin": made.pin,
        "dialect": view.dialect,
        "column_aliases": column_names_text(made.columns),
    }
