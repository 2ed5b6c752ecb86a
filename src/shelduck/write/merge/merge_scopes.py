"""The clauses of a MERGE on joined rows, each in its scope, and their effect on each row.

WHEN MATCHED sees the table and the source; the other two see only one of them. There, a name
without an alias is a column of that one, and a name of the other is an error, not NULL.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, Sql, column_of, select_named
from shelduck.engine.bridge.classic import equal_columns
from shelduck.engine.bridge.jvm import qualified
from shelduck.engine.bridge.relation import ALL, Wildcard
from shelduck.engine.rows.assign import Assigning, Demand, has_rules
from shelduck.engine.rows.assignments import Assignments
from shelduck.engine.rows.table_rules import ruled
from shelduck.engine.types import spark_type
from shelduck.errors import InvalidRequest
from shelduck.lake.done import Counts
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.matching import as_condition
from shelduck.read.scan.scan_frames import ORIGINS
from shelduck.write.merge.merge_clauses import (
    Merge,
    MergeAction,
    MergeClause,
    When,
    assigned,
    lacking_columns,
)
from shelduck.write.parquet.kept import ACTION

CLAUSE = "__shelduck_clause"
_TARGET, _SOURCE = "__shelduck_target", "__shelduck_source"
_NOW, _REST, _VALUE = "__shelduck_now", "__shelduck_rest", "__shelduck_value"
_IS_OURS, _MATCHES = "__shelduck_ours", "__shelduck_matches"
# Rows without a match are spread over so many places.
_PLACES = 1000
_EVERY_FIELD = Demand(
    "the source",
    "give every column and field, list the columns, or use MERGE WITH SCHEMA EVOLUTION, which"
    " leaves them out",
)
_STAYS = Sql(f"{ACTION} IN ({MergeAction.INSERT.value}, {MergeAction.UPDATE.value})")


@dataclass(frozen=True, slots=True)
class ScopeNames:
    """The names of values after the join, where names of users are not used.

    Values are fields of a few structs: Spark's work for a filter grows with the square of the
    columns that are renamed below it. ``now`` are the current values of the table's columns: those
    that a clause ``needs`` are in one struct, the others in another. ``values`` are those that each
    clause assigns, in a struct for each.
    """

    now: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    needs: frozenset[int]

    @classmethod
    def of(cls, table: TableVersion, assigned: Sequence[int], needs: Collection[int]) -> ScopeNames:
        """Return names for a table and the number of values that each clause assigns."""
        places = range(len(table.columns.fields))
        now = tuple(f"{_NOW if n in needs else _REST}.c{n}" for n in places)
        values = [tuple(f"{_VALUE}_{n}.v{k}" for k in range(c)) for n, c in enumerate(assigned)]
        return cls(now, tuple(values), frozenset(needs))

    def structs(self, merge: Merge) -> dict[str, list[int]]:
        """Return the structs of current values, and which columns of the table each has."""
        rest = [n for n in range(len(self.now)) if n not in self.needs]
        found = {_NOW: sorted(self.needs)}
        if merge.of(When.NOT_MATCHED_BY_SOURCE):
            found[_REST] = rest
        return {name: places for name, places in found.items() if places}


def values_of(found: DataFrame) -> dict[str, T.StructField]:
    """Return the values of the clauses in `taken_rows` under the names of `ScopeNames`."""
    return {
        f"{struct.name}.{value.name}": T.StructField(
            f"{struct.name}.{value.name}", value.dataType, nullable=True
        )
        for struct in found.schema.fields
        if struct.name.startswith(_VALUE) and isinstance(struct.dataType, T.StructType)
        for value in struct.dataType.fields
    }


def taken_rows(
    target: DataFrame,
    source: DataFrame,
    table: TableVersion,
    merge: Merge,
    *,
    names: ScopeNames,
    values: Sequence[Sql | Column | None],
    shares: bool = False,
) -> DataFrame:
    """Return the joined rows that a clause takes: `CLAUSE` is its number.

    It is followed by the origins, the table's columns as ``names.now``, NULL in new rows, and the
    struct of ``values`` of each clause, NULL in rows of other clauses. With ``shares``, every
    executor gets the rows of ``source``, which are kept and few.
    """
    work = _Scopes(merge, values, table, names)
    if not shares:
        frame = _joined(target, source, work, merge.join)
        frame = work.evaluated(frame, target, tuple(When))
    elif not merge.of(When.NOT_MATCHED):
        frame = _joined(target, F.broadcast(source), work, merge.join)
        frame = work.evaluated(frame, target, tuple(When))
    else:
        frame = _in_parts(target, source, work)
    structs = [f"{_VALUE}_{n}" for n, v in enumerate(values) if v is not None]
    kept = (CLAUSE, *(name for name in names.structs(merge) if name == _NOW), *structs)
    back = [Named(o, _hidden(o)) for o in ORIGINS]
    found = select_named(frame, [*back, *(Named(n, n) for n in kept)])
    busy = [str(n) for n, c in enumerate(merge.clauses) if c.action is not MergeAction.NOTHING]
    return found.where(f"{CLAUSE} IN ({', '.join(busy)})" if busy else "false")


def _in_parts(target: DataFrame, source: DataFrame, work: _Scopes) -> DataFrame:
    """Return the rows of the table and, separately, those of the source that match none of them.

    No row of the table is shuffled to find the latter: only matches and rows of the source are.
    """
    merge = work.merge
    numbered = select_named(source, [ALL, Named(_SOURCE, Sql("monotonically_increasing_id()"))])
    how = "left_outer" if merge.of(When.NOT_MATCHED_BY_SOURCE) else "inner"
    ours = _joined(target, F.broadcast(numbered), work, how)
    if merge.only_inserts:
        # Their columns would be read for nothing.
        ours = select_named(ours, [Named(_SOURCE, _SOURCE), Named(_IS_OURS, Sql("true"))])
    else:
        ours = work.evaluated(ours, target, (When.MATCHED, When.NOT_MATCHED_BY_SOURCE), "true")
        ours = ours.where(f"{_SOURCE} IS NOT NULL OR {CLAUSE} IS NOT NULL")
    work = replace(work, hidden=[])
    theirs = _without_target(_theirs(numbered, merge), work)
    theirs = work.evaluated(theirs, target, (When.NOT_MATCHED,), "false")
    both = ours.unionByName(theirs, allowMissingColumns=True)
    # Rows of the table without a match have no number; they need not come together.
    spread = f"-1 - abs(xxhash64({', '.join(map(_hidden, ORIGINS))}) % {_PLACES})"
    place = f"coalesce({_SOURCE}, {spread})"
    matches = Named(_MATCHES, Sql(f"count_if({_IS_OURS}) OVER (PARTITION BY {place})"))
    return select_named(both, [ALL, matches]).where(f"{_IS_OURS} OR {_MATCHES} = 0")


@dataclass
class _Scopes:
    """The clauses, evaluated; ``hidden`` are the columns that every scope passes to the next."""

    merge: Merge
    values: Sequence[Sql | Column | None]
    table: TableVersion
    names: ScopeNames
    hidden: list[str] = field(default_factory=list)

    def evaluated(
        self, frame: DataFrame, target: DataFrame, kinds: Sequence[When], is_ours: str = ""
    ) -> DataFrame:
        """Return the rows with the clauses for these kinds of them, `CLAUSE`, and ``is_ours``."""
        merge = self.merge
        clauses = [c for c in merge.clauses if c.when in kinds]
        self.hidden += [*self.names.structs(merge), *map(_hidden, ORIGINS), _TARGET]
        if When.MATCHED in kinds:
            frame = self.evaluate(frame, When.MATCHED)
        if When.NOT_MATCHED in kinds and merge.of(When.NOT_MATCHED):
            alone = _source_alone(frame, target, merge, self.hidden)
            frame = self.evaluate(alone, When.NOT_MATCHED)
        self.hidden.append(_SOURCE)
        if When.NOT_MATCHED_BY_SOURCE in kinds and merge.of(When.NOT_MATCHED_BY_SOURCE):
            ours = zip(self.table.columns, self.names.now, strict=True)
            named = [Named(f.name, now) for f, now in ours]
            alone = select_named(frame, [*named, *(Named(h, h) for h in self.hidden)])
            alone = _called(alone, merge)
            frame = self.evaluate(alone, When.NOT_MATCHED_BY_SOURCE)
        numbers = dict.fromkeys(_number(c.when) for c in clauses)
        number = Sql(f"coalesce({', '.join(numbers) or 'CAST(NULL AS INT)'})")
        told = [Named(CLAUSE, number), *([Named(_IS_OURS, Sql(is_ours))] if is_ours else [])]
        return select_named(frame, [*told, *(Named(h, h) for h in self.hidden)])

    def evaluate(self, frame: DataFrame, when: When) -> DataFrame:
        """Return the rows with the clauses for one kind of them, which may name its columns."""
        clauses = [(n, c) for n, c in enumerate(self.merge.clauses) if c.when is when]
        if not clauses:
            return frame
        meant = {
            When.MATCHED: Sql(f"{_TARGET} IS NOT NULL AND {_SOURCE} IS NOT NULL"),
            When.NOT_MATCHED: Sql(f"{_TARGET} IS NULL"),
            When.NOT_MATCHED_BY_SOURCE: Sql(f"{_SOURCE} IS NULL"),
        }[when]
        cases = [
            (meant if c.condition is None else F.expr(meant) & as_condition(c.condition), Sql(n))
            for n, c in clauses
        ]
        number = _number(when)
        guarded = [
            Named(f"{_VALUE}_{n}", first_case([(Sql(f"{number} = {n}"), value)]))
            for n, _ in clauses
            if (value := self.values[n]) is not None
        ]
        self.hidden += [number, *(one.name for one in guarded)]
        try:
            numbered = select_named(frame, [ALL, Named(number, first_case(cases))])
            return select_named(numbered, [ALL, *guarded]) if guarded else numbered
        except AnalysisException as error:
            if when is When.MATCHED:
                raise
            raise InvalidRequest(self._told(when, error)) from error

    def _told(self, when: When, error: AnalysisException) -> str:
        merge = self.merge
        side, alias = ("source", merge.source_alias)
        if when is When.NOT_MATCHED_BY_SOURCE:
            side, alias = ("table", merge.target_alias)
        called = "" if alias is None else f", alias {alias!r}"
        what = str(error).split("\n", 1)[0].split(" Did you mean", 1)[0]
        return f"MERGE: WHEN {when.value} can refer only to the {side}{called}: {what}"


def _joined(target: DataFrame, source: DataFrame, work: _Scopes, how: str) -> DataFrame:
    """Return all columns of both sides, and the hidden ones."""
    merge = work.merge
    on = merge.on_column(source)
    theirs = source
    if _SOURCE not in source.columns:
        theirs = select_named(source, [ALL, Named(_SOURCE, Sql("0L"))])
        if merge.only_inserts:
            unmatched = _theirs(theirs, merge).join(_called(target, merge), on, "left_anti")
            return _without_target(unmatched, work)
    ours = _called(select_named(target, [ALL, Named(_TARGET, Sql("true"))]), merge)
    joined = ours.join(_theirs(theirs, merge), on, how)
    names, structs = work.table.columns.names, work.names.structs(merge)
    if merge.target_qualifier:
        marks = [target[o].alias(_hidden(o)) for o in ORIGINS]
        now = [
            F.struct(*[target[backticked(names[n])].alias(f"c{n}") for n in places]).alias(struct)
            for struct, places in structs.items()
        ]
        return joined.select("*", *now, *marks)
    alias = backticked(merge.target_alias)
    kept = [Named(_hidden(o), Sql(f"{alias}.{o}")) for o in ORIGINS]
    for struct, places in structs.items():
        parts = ", ".join(f"'c{n}', {alias}.{backticked(names[n])}" for n in places)
        kept.append(Named(struct, Sql(f"named_struct({parts})")))
    return select_named(joined, [ALL, *kept])


def _without_target(rows: DataFrame, work: _Scopes) -> DataFrame:
    """Return rows of the source as those that match no row of the table."""
    fields = work.table.columns.fields
    empty: dict[str, T.DataType] = {}
    for struct, places in work.names.structs(work.merge).items():
        kinds = {f"c{n}": spark_type(fields[n].type, fields[n].name) for n in places}
        empty[struct] = T.StructType([T.StructField(*one) for one in kinds.items()])
    empty |= {_hidden(o): T.LongType() for o in ORIGINS} | {_TARGET: T.BooleanType()}
    return select_named(rows, [ALL, *(Named(n, Sql("NULL"), kind) for n, kind in empty.items())])


def _theirs(source: DataFrame, merge: Merge) -> DataFrame:
    return source if merge.source_alias is None else source.alias(merge.source_alias)


def columns_of_match(target: DataFrame, source: DataFrame, merge: Merge) -> list[tuple[str, str]]:
    """Return the columns of the table and of the source that are equal if two rows match."""
    return equal_columns(
        _called(target, merge).join(_theirs(source, merge), merge.on_column(source))
    )


def _called(target: DataFrame, merge: Merge) -> DataFrame:
    """Return the table's rows under the name that conditions and values use for it."""
    if merge.target_qualifier:
        return qualified(target, (*merge.target_qualifier, merge.target_alias))
    return target.alias(merge.target_alias)


def _source_alone(
    joined: DataFrame, target: DataFrame, merge: Merge, hidden: Sequence[str]
) -> DataFrame:
    """Return joined rows with the source's columns, under all of their names, and hidden ones."""
    if merge.source_alias is not None:
        every = Named("", Wildcard(f"{backticked(merge.source_alias)}.*"))
        return select_named(joined, [every, *(Named(h, h) for h in hidden)])
    if merge.only_inserts:
        return joined
    return joined.drop(*[target[backticked(name)] for name in target.columns])


def _hidden(origin: str) -> str:
    return f"__shelduck_of{origin}"


def _number(when: When) -> str:
    return f"{CLAUSE}_{when.name}"


def first_case(cases: Sequence[tuple[Sql | Column, str | Column]]) -> Sql | Column:
    """Return the value of the first case whose condition is true, NULL if there is none.

    It is SQL if all parts are. Values are as the sources of `Named`.
    """
    if all(isinstance(part, str) for case in cases for part in case):
        texts = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases)
        return Sql(f"CASE {texts} END")
    (condition, value), *others = [tuple(map(column_of, case)) for case in cases]
    found = F.when(condition, value)
    for condition, value in others:
        found = found.when(condition, value)
    return found


def merged_rows(
    target: DataFrame, source: DataFrame, table: TableVersion, merge: Merge, *, shares: bool = False
) -> DataFrame:
    """Return a row for each change: `ACTION`, the table's new columns, then the origins.

    ``target`` has the table's columns and the origins. Rows that no clause takes are left out; rows
    to delete have no columns, rows to insert no origins. Types that do not fit are InvalidRequest
    at once. ``shares`` is as in `taken_rows`.
    """
    assignments = [Assignments(table, assigned(c, table, source, merge)) for c in merge.clauses]
    clauses = list(zip(merge.clauses, assignments, strict=True))
    needs = {n for c, a in clauses if c.action is MergeAction.UPDATE for n in a.needed()}
    names = ScopeNames.of(table, [len(a.values) for a in assignments], needs)
    values = [a.struct(given) for a, given in zip(assignments, names.values, strict=True)]
    found = taken_rows(target, source, table, merge, names=names, values=values, shares=shares)
    schema = values_of(found)
    demand = None if merge.schema_evolution else _EVERY_FIELD
    assigning = Assigning.into(table, demand)
    assigning.lacking += lacking_columns(table, source, merge)
    made = [
        (n, a.columns(assigning, schema, names.values[n], None if is_new else names.now))
        for n, (clause, a) in enumerate(clauses)
        if (is_new := clause.action is MergeAction.INSERT) or clause.action is MergeAction.UPDATE
    ]
    assigning.finish()
    actions = _case([(n, _action(c)) for n, c in enumerate(merge.clauses)])
    columns = [
        Named(f.name, _case([(n, parts[at]) for n, parts in made]))
        if made
        else Named(f.name, Sql("NULL"), spark_type(f.type, f.name))
        for at, f in enumerate(table.columns)
    ]
    kept = [Named(o, o) for o in ORIGINS]
    named = [Named(ACTION, actions), *columns, *kept]
    if not has_rules(table):
        return select_named(found, named)
    changed = select_named(found, [*named, Named(CLAUSE, CLAUSE)])
    is_given = partial(_is_given, assignments)
    return ruled(changed, table, is_given, assigning.fitting, only=_STAYS).drop(CLAUSE)


def _is_given(assignments: Sequence[Assignments], field: Field) -> Column:
    """Return whether the clause of a row gives the value of a column."""
    return F.col(CLAUSE).isin([n for n, a in enumerate(assignments) if a.gives(field)])


def _action(clause: MergeClause) -> Sql | Column:
    if clause.action is MergeAction.ERROR:
        return F.raise_error(clause.message).cast(T.LongType())
    return Sql(clause.action.value)


def tally(rows: DataFrame) -> tuple[Counts, int]:
    """Count the rows of `merged_rows`, and those of the table that several of the source change.

    One job.

    A row of the table that is both updated and deleted is contested, and counts as updated.
    """
    by_row = rows.groupBy(*ORIGINS).agg(F.count("*").alias("times"), F.min(ACTION).alias(ACTION))
    found = by_row.groupBy(ACTION).agg(
        F.sum("times"), F.count("*"), F.count(F.when(F.col("times") > 1, 1))
    )
    # Three rows of numbers.
    counts = {row[0]: row[1:] for row in found.collect()}
    inserted, _, _ = counts.get(MergeAction.INSERT.value, (0, 0, 0))
    _, updated, twice_updated = counts.get(MergeAction.UPDATE.value, (0, 0, 0))
    _, deleted, twice_deleted = counts.get(MergeAction.DELETE.value, (0, 0, 0))
    return Counts(inserted, updated, deleted), twice_updated + twice_deleted


def by_action(rows: DataFrame, *actions: MergeAction) -> DataFrame:
    """Return the rows with one of these actions."""
    return rows.where(f"{ACTION} IN ({', '.join(str(a.value) for a in actions)})")


def _case(parts: Sequence[tuple[int, str | Column]]) -> Sql | Column:
    """Return the part whose number is the row's clause, NULL for no part."""
    return first_case([(Sql(f"{CLAUSE} = {number}"), value) for number, value in parts])
