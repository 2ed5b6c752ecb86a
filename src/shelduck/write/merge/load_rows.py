"""Rows that are loaded into a table with a key model, and how rows of one key become one row.

The column `ORDER` decides which of several rows is the last; in a table with a sequence column,
that column decides first. Sums are computed in types that can hold them. If a column cannot hold
its sum, the write fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, Sql, select_named, select_names
from shelduck.engine.rows import store_rules
from shelduck.engine.types import spark_type
from shelduck.model.tables.keys import Aggregation, KeyModel, TableKeys
from shelduck.model.tables.schema import Field, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name
from shelduck.read.scan.scan_frames import Origin
from shelduck.write.merge.merge_clauses import MergeAction
from shelduck.write.parquet.kept import ACTION, Kept, shared
from shelduck.write.shadow_rows import shown

_OLD = "__shelduck_old_{}"
_COUNT = "__shelduck_count"
_LONGEST = 200
_ORIGINS = (Origin.ROW_ID, Origin.FILE_ID, Origin.POSITION)
_MOST_TOLD = 3
ORDER = "__shelduck_order"
"""A number for each row: among rows with the same key, the largest is the last."""
GONE = "__shelduck_gone"
"""True if a load says that the key is deleted; only UNIQUE tables have it."""
_SMALL = (T.ByteType, T.ShortType, T.IntegerType)
_FRACTIONAL = (T.FloatType, T.DoubleType)
_KEPT_SCALE = 6
"""Fraction digits that Spark keeps when it adds decimals of 38 digits (`adjustPrecisionScale`)."""


def ordered(rows: DataFrame, gone: str | None = None) -> DataFrame:
    """Return rows followed by `ORDER` and `GONE`; ``gone`` is the last column, if any.

    Of two rows, the later one is the row that Spark reads later: rows of one task are in their
    order, and tasks are in the order of their input.
    """
    sign, rest = "false", rows.columns
    if gone is not None:
        sign, rest = f"coalesce(CAST({backticked(gone)} AS BOOLEAN), false)", rest[:-1]
    columns = [Named(name, backticked(name)) for name in rest]
    columns += [Named(ORDER, Sql("monotonically_increasing_id()")), Named(GONE, Sql(sign))]
    return select_named(rows, columns)


def matched_rows(
    target: DataFrame, source: DataFrame, folding: Folding, loaded: int, also: Sequence[str] = ()
) -> DataFrame:
    """Return what happens to the table's rows whose key is loaded.

    ``source`` are folded rows, ``loaded`` of them. The result has the table's columns, the origins,
    `ACTION`, which is NULL for a row that is later than the loaded one, `GONE`, and columns of the
    source that are wanted ``also``.
    """
    old = [f for f in folding.columns if f.name in target.columns]
    was = {f.id: _OLD.format(n) for n, f in enumerate(old)}
    origins = [Named(o, o) for o in _ORIGINS]
    before = [Named(_OLD.format(n), backticked(f.name)) for n, f in enumerate(old)]
    ours = select_named(target, before + origins)
    pairs = [(was[f.id], backticked(f.name)) for f in folding.key_fields]
    joined = ours.join(shared(source, loaded), same_keys(pairs))
    action, gone = f"{MergeAction.UPDATE.value}", "false"
    columns = [Named(f.name, backticked(f.name)) for f in folding.columns]
    if folding.is_unique:
        gone, action = GONE, f"IF({GONE}, {MergeAction.DELETE.value}, {action})"
        sequence = folding.sequence
        if sequence is not None:
            newer = folding.is_newer(was[sequence.id], backticked(sequence.name))
            action = f"IF({newer}, {action}, NULL)"
    else:
        keys = set(folding.keys.columns)
        columns = [
            c if f.id in keys else Named(f.name, folding.updated(f, F.col(was[f.id]), c.column))
            for f, c in zip(folding.columns, columns, strict=True)
        ]
    more = [Named(ACTION, Sql(action)), Named(GONE, Sql(gone)), *(Named(n, n) for n in also)]
    return select_named(joined, [*columns, *origins, *more])


def dying(folding: Folding) -> tuple[Column, ...]:
    """Return which folded rows delete their key; no condition if no load can do this."""
    return (F.col(GONE),) if folding.is_unique else ()


def outcomes() -> tuple[Column, Column, Column]:
    """Return which of `matched_rows` are updated, which deleted, and whose key the load deletes."""
    updated, deleted = (F.col(ACTION) == a.value for a in (MergeAction.UPDATE, MergeAction.DELETE))
    return updated, deleted, F.col(GONE)


def alive_rows(source: DataFrame, folding: Folding) -> DataFrame:
    """Return folded rows whose key is not deleted, as rows of the table."""
    for dies in dying(folding):
        source = source.where(~dies)
    return folding.without_sign(source)


def fresh_rows(source: DataFrame, matched: Kept, folding: Folding) -> DataFrame:
    """Return the loaded rows whose key the table does not have, as its rows."""
    known = shared(matched.rows, matched.count)
    return _joined(alive_rows(source, folding), known, folding.key_fields, "left_anti")


def rows_of_keys(
    frame: DataFrame, folding: Folding, since: int | None, among: DataFrame | None = None
) -> DataFrame:
    """Return the rows whose key is that of a row ``among`` others.

    By default, the others are the rows of ``frame`` that were added after snapshot ``since``.
    """
    if among is None:
        among = frame.where(F.col(Origin.SNAPSHOT_ID) > F.lit(since))
    return _joined(frame, among, folding.key_fields, "left_semi")


def with_order(rows: DataFrame, changes: DataFrame | None) -> DataFrame:
    """Return rows of a table with `ORDER`: when each was added, by a change feed if there is one.

    A row that is not in the feed existed before, whatever file it is in now.
    """
    if changes is None:
        order = F.struct(F.col(Origin.SNAPSHOT_ID), F.col(Origin.ROW_ID))
        return rows.withColumn(ORDER, order)
    came = changes.where(F.col("_change_type").isin("insert", "update_postimage"))
    when = came.groupBy(F.col("_row_id").alias("__shelduck_row")).agg(
        F.max("_commit_version").alias("__shelduck_came")
    )
    found = rows.join(when, F.col(Origin.ROW_ID) == F.col("__shelduck_row"), "left")
    order = F.struct(F.coalesce(F.col("__shelduck_came"), F.lit(-1)), F.col(Origin.ROW_ID))
    return found.select(*map(backticked, rows.columns), order.alias(ORDER))


def as_inserted(rows: DataFrame) -> DataFrame:
    """Return what a change feed says of rows that are new; they have their ids and snapshots."""
    came = F.lit("insert").alias("_change_type"), F.col(Origin.ROW_ID).alias("_row_id")
    return rows.select(*came, F.col(Origin.SNAPSHOT_ID).alias("_commit_version"))


def folded_again(rows: DataFrame, folding: Folding) -> DataFrame:
    """Return one row, with its row id, for each key that several rows have."""
    marked = rows.withColumn(GONE, F.lit(False))
    also = [F.min(Origin.ROW_ID).alias(Origin.ROW_ID), F.count("*").alias(_COUNT)]
    found = folding.folded(marked, also).where(F.col(_COUNT) > 1)
    return select_names(found, [*(f.name for f in folding.columns), Origin.ROW_ID])


@dataclass(frozen=True, slots=True)
class MeetingKeys:
    """Keys that become equal: how many new ones there are, of how many rows, and some of them."""

    count: int
    rows: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        more = self.count - len(self.examples)
        told = ", ".join(self.examples) + (f", and {more} more" if more else "")
        return f"{self.count} key(s) of {self.rows} rows: {told}"


def repeated_keys(rows: DataFrame, old: Sequence[Field], new: Sequence[Field]) -> DataFrame:
    """Return each new key that several rows have, and the least and the last of their old ones.

    ``rows`` have the columns of both. The keys are structs: ``new``, ``least`` and ``last``.
    """
    pairs = rows.select(_struct(new).alias("new"), _struct(old).alias("old"))
    ends = F.min("old").alias("least"), F.max("old").alias("last")
    return pairs.groupBy("new").agg(F.count("*").alias(_COUNT), *ends).where(F.col(_COUNT) > 1)


def different_keys(
    found: DataFrame, old: Sequence[Field], new: Sequence[Field]
) -> MeetingKeys | None:
    """Return those of `repeated_keys` with different old keys; one query, two if there are some."""
    found = found.where("NOT (least <=> last)")
    [(count, rows)] = found.agg(F.count("*"), F.sum(_COUNT)).collect()
    if not count:
        return None
    keys = _shown("least", old), _shown("last", old), _shown("new", new)
    told = F.format_string("%s and %s become %s", *keys)
    first = found.orderBy("new").limit(_MOST_TOLD).select(told).collect()
    return MeetingKeys(count, rows, tuple(text for (text,) in first))


def _struct(fields: Sequence[Field]) -> Column:
    columns = (F.col(backticked(f.name)).alias(f"k{n}") for n, f in enumerate(fields))
    return F.struct(*columns)


def _shown(name: str, fields: Sequence[Field]) -> Column:
    """Return a key as text: ('a', 1)."""
    parts = list[Column]()
    for n, field in enumerate(fields):
        text = shown(F.col(f"{name}.k{n}"), field.type)
        quote = F.lit("'" if str(field.type) == "varchar" else "")
        parts.append(
            F.coalesce(F.concat(quote, F.left(text, F.lit(_LONGEST)), quote), F.lit("NULL"))
        )
    return F.concat(F.lit("("), F.concat_ws(", ", *parts), F.lit(")"))


def some_twice(rows: DataFrame, keys: Sequence[Field]) -> tuple[object, ...]:
    """Return a key that several of the rows have, nothing if there is none."""
    names = [backticked(f.name) for f in keys]
    counted = rows.groupBy(*names).agg(F.count("*").alias(_COUNT)).where(F.col(_COUNT) > 1)
    # One row at most.
    return next((tuple(row) for row in counted.select(*names).limit(1).collect()), ())


def some_of_keys(rows: DataFrame, among: DataFrame, keys: Sequence[Field]) -> tuple[object, ...]:
    """Return a key that one of the rows and one ``among`` others have, nothing if there is none."""
    names = [backticked(f.name) for f in keys]
    found = _joined(rows, among, keys, "left_semi").select(*names).limit(1)
    # One row at most.
    return next((tuple(row) for row in found.collect()), ())


def without_rows(rows: DataFrame, gone: DataFrame) -> DataFrame:
    """Return the rows that are not among ``gone`` ones, by their origins."""
    names = [_OLD.format(n) for n in range(len(_ORIGINS))]
    others = select_named(gone, [Named(n, o) for o, n in zip(_ORIGINS, names, strict=True)])
    return rows.join(others, same_keys(zip(names, _ORIGINS, strict=True)), "left_anti")


def _joined(rows: DataFrame, others: DataFrame, keys: Sequence[Field], how: str) -> DataFrame:
    """Return the rows with a key that is, or is not, among others."""
    names = [_OLD.format(n) for n in range(len(keys))]
    own = [Named(n, backticked(f.name)) for f, n in zip(keys, names, strict=True)]
    found = select_named(others, own).distinct()
    pairs = zip(names, (backticked(f.name) for f in keys), strict=True)
    return rows.join(found, same_keys(pairs), how)


def same_keys(pairs: Iterable[tuple[str, str]]) -> Column:
    """Return whether keys are equal; NULL is a key like any other."""
    return F.expr(" AND ".join(f"{old} <=> {new}" for old, new in pairs))


@dataclass(frozen=True)
class Folding:
    """How rows of one table are folded."""

    table: TableVersion
    keys: TableKeys

    @property
    def columns(self) -> Schema:
        """Return the table's columns."""
        return self.table.columns

    @property
    def key_fields(self) -> list[Field]:
        """Return the key columns in their order."""
        return self.keys.key_fields(self.columns)

    @property
    def values(self) -> list[Field]:
        """Return the columns that are not keys."""
        return [f for f in self.columns if f.id not in self.keys.columns]

    @property
    def sequence(self) -> Field | None:
        """Return the column that decides which row is the last."""
        return None if self.keys.sequence is None else self.columns.by_id(self.keys.sequence)

    @property
    def is_unique(self) -> bool:
        """True if the last row replaces the others as a whole."""
        return self.keys.model is KeyModel.UNIQUE

    def folded(self, rows: DataFrame, also: Sequence[Column] = ()) -> DataFrame:
        """Return one row for each key: the table's columns, then those of ``also`` for a group.

        ``rows`` have the table's columns and `ORDER`. Those of a UNIQUE table have `GONE`, which
        then follows the columns.
        """
        keys = [backticked(f.name) for f in self.key_fields]
        names = [f"__shelduck_folded_{n}" for n in range(len(self.values))]
        if self.is_unique:
            whole = ", ".join([*(backticked(f.name) for f in self.values), GONE])
            last = F.expr(f"max_by(struct({whole}), {self._rank}) AS __shelduck_last")
            found = rows.groupBy(*keys).agg(last, *also)
            rest = found.columns[len(keys) + 1 :]
            made = [f"__shelduck_last.{backticked(f.name)}" for f in self.values]
            after = [Named(GONE, f"__shelduck_last.{GONE}")]
        else:
            parts = [self._combined(f).alias(n) for f, n in zip(self.values, names, strict=True)]
            found = rows.select(*keys).distinct()
            if parts or also:
                found = rows.groupBy(*keys).agg(*parts, *also)
            rest = found.columns[len(keys) + len(names) :]
            made, after = names, []
        value_of = {f.id: value for f, value in zip(self.values, made, strict=True)}
        columns = [Named(f.name, value_of.get(f.id, backticked(f.name))) for f in self.columns]
        after += [Named(name, backticked(name)) for name in rest]
        return select_named(found, columns + after)

    def without_sign(self, rows: DataFrame) -> DataFrame:
        """Return the table's columns of folded rows."""
        return select_names(rows, [f.name for f in self.columns])

    def only_keys(self, rows: DataFrame) -> DataFrame:
        """Return the key columns of rows."""
        return select_names(rows, [f.name for f in self.key_fields])

    def updated(self, field: Field, old: Column, new: Column) -> Column:
        """Return the new value of a row's column when a folded row of its key is loaded."""
        match self.keys.aggregation(field.id):
            case Aggregation.SUM:
                total = self._narrow(_added(_wide(old, field), _wide(new, field), field), field)
                return F.when(old.isNull(), new).when(new.isNull(), old).otherwise(total)
            case Aggregation.MIN:
                return F.least(old, new)
            case Aggregation.MAX:
                return F.greatest(old, new)
            case Aggregation.REPLACE_IF_NOT_NULL:
                return F.coalesce(new, old)
            case _:
                return new

    def is_newer(self, old: str, new: str) -> str:
        """Return whether a loaded row comes after one of the table, by their sequence values."""
        return f"{old} IS NULL OR coalesce({new} >= {old}, false)"

    @property
    def _rank(self) -> str:
        # NULL comes before all other values.
        sequence = self.sequence
        return ORDER if sequence is None else f"struct({backticked(sequence.name)}, {ORDER})"

    def _combined(self, field: Field) -> Column:
        value = F.col(backticked(field.name))
        match self.keys.aggregation(field.id):
            case Aggregation.SUM:
                total = self._narrow(F.try_sum(_wide(value, field)), field)
                return F.when(F.count(value) > 0, total)
            case Aggregation.MIN:
                return F.min(value)
            case Aggregation.MAX:
                return F.max(value)
            case Aggregation.REPLACE_IF_NOT_NULL:
                return F.max_by(value, F.when(value.isNotNull(), F.col(ORDER)))
            case _:
                return F.max_by(value, F.col(ORDER))

    def _narrow(self, total: Column, field: Field) -> Column:
        """Return a sum in the column's type; a sum that does not fit fails the query."""
        place = f"{quote_name(field.name)} of {self.table.full_name} (its sum)"
        kind = _wide_type(field)
        sure = F.coalesce(total, store_rules.fail(f"column {place} has more than 38 digits", kind))
        convert = store_rules.conversion(kind, field.leaf, place)
        return convert(sure) if convert else sure


def _wide(value: Column, field: Field) -> Column:
    return value.cast(_wide_type(field))


def _added(one: Column, other: Column, field: Field) -> Column:
    """Return the exact sum of two wide values, NULL if it has more than 38 digits.

    Spark gives the sum of two decimals of 38 digits one fraction digit less. Without their points
    they are integers, which Spark adds exactly.
    """
    kind = _wide_type(field)
    if not isinstance(kind, T.DecimalType) or kind.scale <= _KEPT_SCALE:
        return F.try_add(one, other)
    total = F.try_add(_without_point(one), _without_point(other))
    return F.concat(total.cast("string"), F.lit(f"E-{kind.scale}")).cast(kind)


def _without_point(value: Column) -> Column:
    # As text it is 0.0000000012 or, without ANSI rules, 1.2E-9; both have all of its digits.
    return F.regexp_replace(value.cast("string"), r"\.|E.*", "").cast(T.DecimalType(38, 0))


def _wide_type(field: Field) -> T.DataType:
    """Return a type that holds sums of a column."""
    kind = spark_type(field.type, field.name)
    if isinstance(kind, _SMALL):
        return T.LongType()
    if isinstance(kind, _FRACTIONAL):
        return T.DoubleType()
    return T.DecimalType(38, kind.scale if isinstance(kind, T.DecimalType) else 0)
