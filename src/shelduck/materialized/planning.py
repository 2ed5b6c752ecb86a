"""What a refresh of a materialized view has to do: nothing, a part of its rows, or all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from shelduck.catalog.commit.settled import is_settled
from shelduck.catalog.read.read import entries_since
from shelduck.engine.session import DataFrame, StructType
from shelduck.engine.types import struct_type
from shelduck.errors import Conflict, ShelduckError
from shelduck.lake.lookup import as_of_today
from shelduck.lake.results import table_name
from shelduck.lake.table_changes import feed_since
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.change import DELETES, INSERTS, Entry, Verb
from shelduck.model.changes.records import Settling
from shelduck.model.tables.schema import SnapshotId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.view import Materialized, ViewVersion
from shelduck.model.types.data_types import FLOATS, Decimal
from shelduck.objects.targets import query_of, view_frame
from shelduck.read.scan.expect import has_no_hash
from shelduck.streams.streamed import version_then
from shelduck.text.query.query_shape import (
    Fold,
    NeedsAllError,
    QueryShape,
    query_shape,
    require_stable,
)
from shelduck.text.tokens.parts import Query, Relation

# Spark rounds the sum of two longer numbers.
_MOST_DIGITS = 37


class Way(Enum):
    """How the rows of a materialized view become those of its query."""

    NOTHING = "nothing"
    ROWS = "rows"
    SUMS = "sums"
    GROUPS = "groups"
    ALL = "all"


@dataclass(frozen=True)
class BaseTable:
    """A table that a query reads, as it was with today's columns, and as it is.

    ``feed`` has what changed, if anything did, and ``verbs`` say how.
    """

    then: TableVersion
    now: TableVersion
    verbs: frozenset[Verb]
    feed: DataFrame | None = None


@dataclass(frozen=True)
class RefreshPlan:
    """What REFRESH does to a materialized view, and why.

    ``rows`` are those of the query. Where a part of them is enough, ``shape`` is that of ``query``,
    and ``bases`` are its tables by placeholder.
    """

    way: Way
    why: str
    rows: DataFrame
    query: Query
    shape: QueryShape = field(default_factory=lambda: QueryShape({}))
    bases: Mapping[str, BaseTable] = field(default_factory=dict)

    @property
    def loses(self) -> bool:
        """Return whether rows of a table may have gone, or of a LEFT JOIN have got a match."""
        joined = (w for w, matching in self.shape.tables.items() if matching is not None)
        gone = any(base.verbs & DELETES for base in self.bases.values())
        return gone or any(self.bases[word].verbs for word in joined)


@dataclass(frozen=True)
class Planning:
    """A materialized view as a unit of work sees it: its table, and the view with its query."""

    unit: UnitOfWork
    table: TableVersion
    view: ViewVersion
    known: Materialized

    def plan(self, *, full: bool = False) -> RefreshPlan:
        """Return what a refresh does; no row is read."""
        rows = view_frame(self.unit, self.view, None, ())
        every = RefreshPlan(Way.ALL, "FULL", rows, query_of(self.unit, self.view, None))
        if full:
            return every
        try:
            self._require_known(rows)
            log = self._log()
            bases = {r.placeholder: self._base(r, log) for r in every.query.relations}
            require_stable(
                every.query.text, {f.name for b in bases.values() for f in b.now.columns}
            )
            if not any(base.verbs for base in bases.values()):
                return replace(every, way=Way.NOTHING, why="no row of its tables changed")
            shape = query_shape(
                every.query.text,
                {w: {f.name: f.nullable for f in b.now.columns} for w, b in bases.items()},
            )
            bases = {word: self._with_feed(base, shape.named) for word, base in bases.items()}
        except NeedsAllError as error:
            return replace(every, why=str(error))
        return self._chosen(replace(every, shape=shape, bases=bases))

    def _require_known(self, rows: DataFrame) -> None:
        """Raise NeedsAllError unless the table has exactly what this query gave at a snapshot."""
        if self.known.snapshot < 0:
            raise NeedsAllError("it has no rows yet")
        if self.known.view != self.view.uuid:
            raise NeedsAllError("its query is another one")
        if self.known.session != session_of(self.unit):
            raise NeedsAllError("its rows were computed with another time zone or ANSI mode")
        if _columns_of(rows.schema) != _columns_of(struct_type(self.table.columns)):
            raise NeedsAllError("its query has other columns")
        if not self.unit.state.store.ask(is_settled, self.settling(), self.unit.workspace.base):
            raise NeedsAllError("somebody else changed its rows")
        if any(map(has_no_hash, self.table.columns)):
            raise NeedsAllError("Spark cannot compare values of one of its columns")

    def sources(self, query: Query) -> set[str]:
        """Return the UUIDs of the tables that the query reads."""
        names = (table_name(r.name.parts, self.view.schema.name) for r in query.relations)
        found = map(self.unit.workspace.find_table, names)
        return {table.uuid for table in found if table is not None}

    def settling(self) -> Settling:
        """Return what the commit of a refresh records: nobody else has changed the rows."""
        number = self.table.id
        return Settling(number, frozenset({number}), self.unit.workspace.base.id, required=True)

    def _log(self) -> list[Entry]:
        """Return what happened in the lake since the last refresh."""
        since, store = SnapshotId(self.known.snapshot), self.unit.state.store
        try:
            return [e for _, e in store.ask(entries_since, since, self.unit.workspace.base.id)]
        except Conflict as error:
            raise NeedsAllError(f"snapshots since {since} have expired") from error

    def _base(self, relation: Relation, log: Sequence[Entry]) -> BaseTable:
        unit, since = self.unit, self.known.snapshot
        is_plain = not (relation.version or relation.timestamp or relation.computed)
        name = table_name(relation.name.parts, self.view.schema.name)
        now = unit.workspace.find_table(name) if is_plain and not relation.virtual else None
        if now is None:
            raise NeedsAllError(f"{relation.name} is not simply a table")
        if now.uuid not in self.known.sources:
            raise NeedsAllError(f"{now.full_name} is another table than it was")
        try:
            then = version_then(unit.state, now, since)
            _require_same_columns(then, now)
            then = as_of_today(unit, then)
        except ShelduckError as error:
            raise NeedsAllError(f"nobody knows {now.full_name} of snapshot {since}") from error
        verbs = {e.verb for e in log if e.id == now.id and e.verb in INSERTS | DELETES}
        return BaseTable(then, now, frozenset(verbs))

    def _with_feed(self, base: BaseTable, named: Collection[str]) -> BaseTable:
        """Return a table with its changes, of which other columns than those named are left out."""
        if not base.verbs:
            return base
        feed = feed_since(self.unit, base.now, self.known.snapshot)
        if feed is None:
            raise NeedsAllError(f"the changes of {base.now.full_name} are not known any more")
        names = (f.name for f in base.now.columns)
        unused = [n for n in names if n.lower() not in named] if named else []
        return replace(base, feed=feed.drop(*unused))

    def _chosen(self, plan: RefreshPlan) -> RefreshPlan:
        """Return the plan with the least work for a query of its shape."""
        shape, loses = plan.shape, plan.loses
        if shape.keys is None:
            return replace(plan, way=Way.ROWS, why="its rows are those of its tables")
        if not shape.keys:
            return replace(plan, why="it has one group")
        if shape.folds is None:
            why = "a column is neither a group nor a count, sum, least or greatest value"
            return replace(plan, way=Way.GROUPS, why=why)
        kinds = [column.type for column in self.table.columns]
        sums = [kinds[n] for n, fold in shape.folds.items() if fold is Fold.SUM]
        if any(isinstance(kind, Decimal) and kind.precision > _MOST_DIGITS for kind in sums):
            return replace(plan, way=Way.GROUPS, why="a sum has too many digits to add to it")
        if not loses:
            return replace(plan, way=Way.SUMS, why="rows were added")
        if not shape.subtracts:
            why = "rows went, and there is no count(*), or no count of what is summed"
            return replace(plan, way=Way.GROUPS, why=why)
        if any(str(kind) in FLOATS for kind in sums):
            return replace(plan, way=Way.GROUPS, why="rows went, and a sum is not exact")
        return replace(plan, way=Way.SUMS, why="rows were added and went")


def _require_same_columns(then: TableVersion, now: TableVersion) -> None:
    """Raise NeedsAllError if a column of a table holds other values, or its name means another."""
    names = {f.name.lower() for f in then.columns}
    for column in now.columns:
        before = then.columns.by_id(column.id)
        if before is None and column.name.lower() in names:
            raise NeedsAllError(f"{column.name} of {now.full_name} is another column than it was")
        if before is not None and before.type != column.type:
            raise NeedsAllError(f"{column.name} of {now.full_name} has another type")


def session_of(unit: UnitOfWork) -> str:
    """Return what the values of expressions depend on in a session."""
    spark = unit.state.spark
    return f"{unit.state.zone} ansi={spark.conf.get('spark.sql.ansi.enabled', 'true')}"


def _columns_of(schema: StructType) -> list[tuple[str, object]]:
    """Return the names and types of columns; which may be NULL does not count."""
    return [(f.name, f.dataType) for f in schema]
