"""The clauses of a MERGE on joined rows, each evaluated with the names in its scope.

WHEN MATCHED sees the table and the source; the other two see only one of them. There, a name
without an alias is a column of that one, and a name of the other is an error, not NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.errors import InvalidRequest
from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.spark.bridge.jvm import qualified
from shelduck.spark.merge.merge_clauses import Action, Merge, When
from shelduck.spark.scan.matching import as_condition
from shelduck.spark.types import spark_type

CLAUSE = "__shelduck_clause"
_TARGET, _SOURCE = "__shelduck_target", "__shelduck_source"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of columns after the join, where names of users are not used.

    ``now`` are the current columns of the table, ``values`` those with the values of each clause.
    """

    now: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, table: TableVersion, assigned: Sequence[int]) -> Names:
        """Return names for a table and the number of values that each clause assigns."""
        now = tuple(f"__shelduck_now_{n}" for n in range(len(table.columns.names)))
        values = [
            tuple(f"__shelduck_value_{n}_{k}" for k in range(count))
            for n, count in enumerate(assigned)
        ]
        return cls(now, tuple(values))


def taken_rows(
    target: DataFrame,
    source: DataFrame,
    table: TableVersion,
    merge: Merge,
    *,
    names: Names,
    values: Sequence[Mapping[str, Column]],
    origins: Sequence[str],
) -> DataFrame:
    """Return the joined rows that a clause takes: `CLAUSE` is its number.

    It is followed by the table's columns as ``names.now``, NULL in new rows, the origins, and the
    ``values`` of each clause under their names, NULL in rows of other clauses.
    """
    work = _Scopes(merge, values)
    frame = _joined(target, source, merge, table=table, names=names, origins=origins)
    hidden_origins = [_hidden(o) for o in origins]
    work.hidden += [*names.now, *hidden_origins, _TARGET]
    frame = work.evaluate(frame, When.MATCHED)
    if merge.of(When.NOT_MATCHED):
        frame = work.evaluate(_source_alone(frame, target, merge, work.hidden), When.NOT_MATCHED)
    work.hidden.append(_SOURCE)
    if merge.of(When.NOT_MATCHED_BY_SOURCE):
        ours = zip(table.columns, names.now, strict=True)
        columns = [F.col(now).alias(f.name) for f, now in ours]
        alone = _called(frame.select(*columns, *work.hidden), merge)
        frame = work.evaluate(alone, When.NOT_MATCHED_BY_SOURCE)
    numbers = [F.col(_number(c.when)) for c in merge.clauses]
    back = [F.col(h).alias(o) for h, o in zip(hidden_origins, origins, strict=True)]
    found = frame.select(
        F.coalesce(*numbers).alias(CLAUSE), *names.now, *back, *[n for v in values for n in v]
    )
    idle = [n for n, c in enumerate(merge.clauses) if c.action is Action.NOTHING]
    return found.where(F.col(CLAUSE).isNotNull() & ~F.col(CLAUSE).isin(idle))


@dataclass
class _Scopes:
    """``hidden`` are the columns that every scope passes to the next."""

    merge: Merge
    values: Sequence[Mapping[str, Column]]
    hidden: list[str] = field(default_factory=list)

    def evaluate(self, frame: DataFrame, when: When) -> DataFrame:
        """Return the rows with the clauses for one kind of them, which may name its columns."""
        clauses = [(n, c) for n, c in enumerate(self.merge.clauses) if c.when is when]
        if not clauses:
            return frame
        in_target, in_source = F.col(_TARGET).isNotNull(), F.col(_SOURCE).isNotNull()
        is_meant = {
            When.MATCHED: in_target & in_source,
            When.NOT_MATCHED: ~in_target,
            When.NOT_MATCHED_BY_SOURCE: ~in_source,
        }[when]
        cases = [
            (is_meant if c.condition is None else is_meant & as_condition(c.condition), F.lit(n))
            for n, c in clauses
        ]
        number = _number(when)
        guarded = [
            F.when(F.col(number) == n, value).alias(name)
            for n, _ in clauses
            for name, value in self.values[n].items()
        ]
        self.hidden += [number, *[name for n, _ in clauses for name in self.values[n]]]
        try:
            return frame.select("*", _first(cases).alias(number)).select("*", *guarded)
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


def _joined(
    target: DataFrame,
    source: DataFrame,
    merge: Merge,
    *,
    table: TableVersion,
    names: Names,
    origins: Sequence[str],
) -> DataFrame:
    """Return all columns of both sides, and the hidden ones."""
    on = merge.on_column(source)
    theirs = source.withColumn(_SOURCE, F.lit(True))
    if merge.source_alias is not None:
        theirs = theirs.alias(merge.source_alias)
    fields = list(zip(table.columns, names.now, strict=True))
    if merge.only_inserts:
        joined = theirs.join(_called(target, merge), on, "left_anti")
        now = [F.lit(None).cast(spark_type(f.type, f.name)).alias(n) for f, n in fields]
        nothing = F.lit(None).cast(T.LongType())
        marks = [nothing.alias(_hidden(o)) for o in origins]
        return joined.select("*", *now, *marks, F.lit(None).cast("boolean").alias(_TARGET))
    ours = _called(target.withColumn(_TARGET, F.lit(True)), merge)
    joined = ours.join(theirs, on, merge.join)
    now = [_target_column(target, merge, f.name).alias(n) for f, n in fields]
    marks = [_target_column(target, merge, o).alias(_hidden(o)) for o in origins]
    return joined.select("*", *now, *marks)


def _called(target: DataFrame, merge: Merge) -> DataFrame:
    """Return the table's rows under the name that conditions and values use for it."""
    if merge.target_qualifier:
        return qualified(target, (*merge.target_qualifier, merge.target_alias))
    return target.alias(merge.target_alias)


def _target_column(target: DataFrame, merge: Merge, name: str) -> Column:
    """Return a column of the table, even if the source has the same names as the table."""
    if merge.target_qualifier:
        return target[backticked(name)]
    return F.col(f"{backticked(merge.target_alias)}.{backticked(name)}")


def _source_alone(
    joined: DataFrame, target: DataFrame, merge: Merge, hidden: Sequence[str]
) -> DataFrame:
    """Return joined rows with the source's columns, under all of their names, and hidden ones."""
    if merge.source_alias is not None:
        return joined.select(f"{backticked(merge.source_alias)}.*", *hidden)
    if merge.only_inserts:
        return joined
    return joined.drop(*[target[backticked(name)] for name in target.columns])


def _hidden(origin: str) -> str:
    return f"__shelduck_of{origin}"


def _number(when: When) -> str:
    return f"{CLAUSE}_{when.name}"


def _first(cases: Sequence[tuple[Column, Column]]) -> Column:
    """Return the value of the first case whose condition is true."""
    condition, value = cases[0]
    found = F.when(condition, value)
    for condition, value in cases[1:]:
        found = found.when(condition, value)
    return found
