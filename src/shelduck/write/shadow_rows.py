"""Converted columns beside a table's own, and the values that cannot be converted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import column_of
from shelduck.engine.bridge.jvm import columns_used
from shelduck.engine.named_errors import AnalysisException, SparkError, data_fault, first_line
from shelduck.engine.rows.assign import Assigning, Demand
from shelduck.engine.rows.conversions import converted, converted_parts, fitted, lost, needs_fit
from shelduck.engine.rows.store_rules import NEW_TYPE, fail
from shelduck.engine.rows.table_rules import stored
from shelduck.engine.rows.unheld import held_or_null, may_be_unheld
from shelduck.engine.session import local_frame
from shelduck.engine.types import spark_type, struct_type
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.shadows.shadows import Shadow
from shelduck.model.tables.table_version import TableVersion, holds_map, shadow_name
from shelduck.model.text.names import backticked, quote_name
from shelduck.model.types.data_types import (
    DataType,
    Decimal,
    Leaf,
    List,
    Map,
    Primitive,
    Struct,
    Text,
)
from shelduck.read.scan.scan_frames import Origin

_MOST_SHOWN = 200
_TEXT = Primitive("varchar")
_BYTES = Primitive("blob")


@dataclass(frozen=True, slots=True)
class BadValues:
    """Values of one file that cannot be converted: how many, and one of them as text."""

    file_id: int
    count: int
    example: str | None


def add_shadows(rows: DataFrame, shadows: Sequence[Shadow], *, counted: bool = False) -> DataFrame:
    """Return the rows with the converted columns; a value that is lost fails the query.

    With ``counted``, it becomes NULL instead in columns for which `counts_losses` is true. Spark
    then logs no stack traces, and the writer of the rows compares the counts of NULL.
    """
    return rows.withColumns(
        {
            shadow_name(s.field): _made(rows, s)
            if counted and counts_losses(s)
            else _checked(rows, s)
            for s in shadows
        }
    )


def with_converted(rows: DataFrame, shadows: Sequence[Shadow]) -> DataFrame:
    """Return the rows with the converted columns, without those that would be lost."""
    for shadow in shadows:
        rows = rows.where(~_is_bad(rows, shadow))
    return rows.withColumns({shadow_name(s.field): _made(rows, s) for s in shadows})


_PAST, _ROW = "__shelduck_past", "__shelduck_row"


def add_recalled(
    rows: DataFrame, old: DataFrame, then: DataFrame, shadows: Sequence[Shadow], *, few: bool
) -> DataFrame:
    """Return the rows with the older values of some columns, and converted ones of the others.

    A row gets its older value back if its value is still the one into which that was converted.
    ``old`` and ``then`` have the row ids behind a column for each shadow that recalls, in order.
    The ids of ``few`` rows are sent to all tasks, so that no table is shuffled.
    The result is one partition, in the order of the row ids.
    """
    recalled = [s for s in shadows if s.conversion.recalls]
    row, count = F.col(Origin.ROW_ID), len(recalled)
    old = old.toDF(*(f"{_PAST}_old_{n}" for n in range(count)), _PAST)
    then = then.toDF(*(f"{_PAST}_then_{n}" for n in range(count)), f"{_PAST}_same")
    if few:
        wanted = F.broadcast(rows.select(row.alias(_ROW)))
        old = old.join(wanted, F.col(_PAST) == F.col(_ROW), "left_semi")
        then = then.join(wanted, F.col(f"{_PAST}_same") == F.col(_ROW), "left_semi")
        then = F.broadcast(then)
    known = old.join(then, F.col(_PAST) == F.col(f"{_PAST}_same"))
    if few:
        known = F.broadcast(known)
    joined = rows.join(known, row == F.col(_PAST), "left")
    made: dict[str, Column] = {}
    for shadow in shadows:
        value = _checked(joined, shadow)
        if shadow.conversion.recalls:
            at = recalled.index(shadow)
            before = F.col(f"{_PAST}_old_{at}").cast(spark_type(shadow.field.type))
            was = F.col(f"{_PAST}_then_{at}").cast(spark_type(shadow.old.type))
            is_kept = F.col(_PAST).isNotNull() & _is_same(was, _source(shadow), shadow.old.type)
            value = F.when(is_kept, before).otherwise(value)
        made[shadow_name(shadow.field)] = value
    found = joined.withColumns(made).drop(*known.columns)
    return found.coalesce(1).sortWithinPartitions(row)


def unlike_rows(before: DataFrame, after: DataFrame, shadows: Sequence[Shadow]) -> int:
    """Return how many rows do not have the values into which theirs of before are converted.

    Both have the row ids behind a column for each shadow, in order. A row that only one of them
    has counts, too. One query.
    """
    names = [f"{_PAST}_then_{n}" for n in range(len(shadows))]
    made = [_made(before, s).alias(f"{_PAST}_old_{n}") for n, s in enumerate(shadows)]
    old = before.select(*made, F.col(Origin.ROW_ID).alias(_PAST))
    both = old.join(after.toDF(*names, _ROW), F.col(_PAST) == F.col(_ROW), "full")
    same = F.col(_PAST).eqNullSafe(F.col(_ROW))
    for n, shadow in enumerate(shadows):
        same &= _is_same(F.col(f"{_PAST}_old_{n}"), F.col(names[n]), shadow.field.type)
    [(count,)] = both.select(F.count_if(~same)).collect()
    return int(count)


def _is_same(one: Column, other: Column, data_type: DataType) -> Column:
    """Return whether two values are the same; Spark compares no maps."""
    if holds_map(data_type):
        one, other = shown(one, data_type), shown(other, data_type)
    return one.eqNullSafe(other)


def counts_losses(shadow: Shadow) -> bool:
    """Return whether a lost value is one more NULL in the converted column than in the old one."""
    is_leaf = shadow.old.is_leaf and shadow.field.is_leaf
    return is_leaf and shadow.old.nullable and not _has_own_rules(shadow)


def require_resolved(spark: SparkSession, table: TableVersion, shadows: Sequence[Shadow]) -> None:
    """Raise InvalidRequest if Spark cannot analyse an expression of USING; no job."""
    for shadow in shadows:
        rows = spark.createDataFrame([], struct_type(table.columns))
        try:
            _ = add_shadows(rows, [shadow]).schema
        except AnalysisException as error:
            raise InvalidRequest(
                f"USING {shadow.conversion.using} of {quote_name(shadow.old.name)} of"
                f" {table.full_name} is not valid: {first_line(error)}"
            ) from error


def bad_values(rows: DataFrame, shadow: Shadow) -> list[BadValues]:
    """Return the files with values that cannot be converted, by file id; one job.

    ``rows`` have the origin FILE_ID.
    """
    file = F.col(Origin.FILE_ID)
    found = (
        rows.where(_is_bad(rows, shadow))
        .groupBy(file)
        .agg(F.count(F.lit(1)), F.min(_text(shadow)))
        .orderBy(file)
    )
    return [BadValues(*row) for row in found.collect()]


@dataclass(frozen=True, slots=True)
class JudgedValues:
    """What became of the values of files: how many files are ``unread``, and which ones fail.

    ``failing`` are files, None for the catalog, each with how many of its values fail or become
    NULL, and one of them as text.
    """

    unread: int
    failing: tuple[tuple[int | None, int, str], ...]


def judged_values(rows: DataFrame, shadow: Shadow, file: str) -> JudgedValues:
    """Return which values are lost or become NULL, by the column ``file`` of the rows; one job.

    A value that is NULL stands for a file that is not read. Raises Spark's error if an expression
    fails.
    """
    value = _source(shadow)
    kept = rows.where(value.isNull() | _is_lost(rows, shadow))
    unread = F.count_if(value.isNull())
    of_files = kept.groupBy(F.col(file).alias("file")).agg(
        unread.alias("unread"),
        (F.count(F.lit(1)) - unread).alias("count"),
        F.min(_text(shadow)).alias("example"),
    )
    failing = F.when(F.col("count") > 0, F.struct("file", "count", "example"))
    found = of_files.agg(F.count_if(F.col("unread") > 0), F.collect_list(failing))
    [(unread_files, lost)] = found.collect()
    return JudgedValues(unread_files, tuple(sorted(map(tuple, lost), key=lambda f: f[0] or 0)))


def judges_alone(spark: SparkSession, table: TableVersion, shadow: Shadow) -> bool:
    """Return whether values of its column alone decide if a conversion fails, and NULL does not.

    An expression may name other columns, or be random. No job.
    """
    if shadow.conversion.using is None:
        return True
    shape, name = struct_type(table.columns), shadow.old.name
    try:
        rows = spark.createDataFrame([], shape)
        if columns_used(rows.select(_made(rows, shadow))) not in ([], [name]):
            return False
        rows = local_frame(
            spark, [(None,)], T.StructType([T.StructField(name, shape[name].dataType)])
        )
        [found] = rows.select(_made(rows, shadow).cast("string"), _is_bad(rows, shadow)).collect()
        return not (found[1] and shadow.old.nullable)
    except (AnalysisException, Unsupported):
        # Whoever submits the job refuses it.
        return False
    except SparkError as error:
        if data_fault(error) is None:
            raise
        return False


def _is_lost(rows: DataFrame, shadow: Shadow) -> Column:
    """Return whether a value that is not NULL fails, or becomes NULL where that is allowed."""
    made = _made(rows, shadow)
    if shadow.conversion.using is None or shadow.conversion.on_error_null:
        return made.isNull()
    # An expression fails only where somebody wants what it computes.
    return _is_bad(rows, shadow) | F.coalesce(F.length(made.cast("string")) < 0, F.lit(False))


@dataclass(frozen=True, slots=True)
class Failing:
    """A value for which an expression fails: as text, and Spark's message."""

    example: str | None
    reason: str


def failing_part(count: int, first: Callable[[int], DataFrame], shadow: Shadow) -> int | None:
    """Return the first of ``count`` parts with a value for which the expression fails, or None.

    ``first`` returns the rows of that many first parts, which are halved until one is left.
    """
    if shadow.conversion.using is None or _failure(first(count), shadow) is None:
        return None
    least, most = 0, count
    while most - least > 1:
        half = (least + most) // 2
        if _failure(first(half), shadow) is None:
            least = half
        else:
            most = half
    return least


def failing_value(rows: DataFrame, last: int, shadow: Shadow) -> Failing | None:
    """Return the first value of one file for which an expression fails; a job for each halving.

    ``rows`` have the origin POSITION, ``last`` is the largest one.
    """
    place = F.col(Origin.POSITION)
    at = failing_part(last + 1, lambda count: rows.where(place < count), shadow)
    if at is None:
        return None
    row = rows.where(place == at)
    reason = _failure(row, shadow)
    [found] = row.select(_text(shadow)).collect()
    return Failing(found[0], reason or "")


def _failure(rows: DataFrame, shadow: Shadow) -> str | None:
    """Return Spark's message when it computes the values of all rows, None if there is no error."""
    try:
        rows.select(F.max(_made(rows, shadow).cast("string"))).collect()
    except SparkError as error:
        told = data_fault(error)
        if told is None:
            raise
        return told
    return None


def _source(shadow: Shadow) -> Column:
    return F.col(backticked(shadow.old.name))


def _made(rows: DataFrame, shadow: Shadow) -> Column:
    using = shadow.conversion.using
    if using is None:
        made = converted(_source(shadow), shadow.old.type, shadow.field.type)
        return fitted(made, shadow.field.type) if isinstance(shadow.field.type, Text) else made
    if not shadow.field.is_leaf:
        return _assigned(rows, shadow, using)
    made = _cast(shadow, using)
    target = shadow.field.type
    assert isinstance(target, Primitive | Decimal)
    return held_or_null(fitted(made, target) if needs_fit(target) else made, target)


def _cast(shadow: Shadow, using: str) -> Column:
    wanted = spark_type(shadow.field.type)
    made = _expression(using)
    return made.try_cast(wanted) if shadow.conversion.on_error_null else made.cast(wanted)


def _assigned(rows: DataFrame, shadow: Shadow, using: str) -> Column:
    """Return the result of an expression as a nested column, with struct fields by name."""
    [given] = rows.select(_expression(using)).schema
    demand = Demand("the result of USING", "give every field, NULL if it has no value")
    assigning = Assigning(f"the job that changes {shadow.old.name}", demand)
    step = assigning.step(given.dataType, shadow.field, shadow.old.name)
    assigning.finish()
    made = _expression(using)
    return step.convert(made) if step.convert else made


def _expression(using: str) -> Column:
    """Return an expression that comes from the catalog, and that others may have written."""
    way_out = "use functions of Spark, or change the values with UPDATE"
    return column_of(stored(using, f"USING {using}", way_out))


def _is_bad(rows: DataFrame, shadow: Shadow) -> Column:
    """Return whether a value is lost; a user's expression may return NULL if NULL is allowed."""
    bad = F.lit(False)
    if not _has_own_rules(shadow):
        bad = lost(_source(shadow), shadow.old.type, shadow.field.type)
        if isinstance(shadow.field.type, Text):
            bad |= _source(shadow).isNotNull() & _made(rows, shadow).isNull()
    elif _may_misfit(shadow):
        bad = _misfits(rows, shadow)
    return bad if shadow.old.nullable else bad | _made(rows, shadow).isNull()


def _has_own_rules(shadow: Shadow) -> bool:
    return shadow.conversion.using is not None or shadow.conversion.on_error_null


def _may_misfit(shadow: Shadow) -> bool:
    """Return whether an expression may return values that the column's type does not allow."""
    target = shadow.field.type
    if shadow.conversion.using is None or shadow.conversion.on_error_null:
        return False
    return isinstance(target, Primitive | Decimal) and (needs_fit(target) or may_be_unheld(target))


def _misfits(rows: DataFrame, shadow: Shadow) -> Column:
    assert shadow.conversion.using is not None
    return _cast(shadow, shadow.conversion.using).isNotNull() & _made(rows, shadow).isNull()


def _text(shadow: Shadow) -> Column:
    return F.left(shown(_source(shadow), shadow.old.type), F.lit(_MOST_SHOWN))


def _checked(rows: DataFrame, shadow: Shadow) -> Column:
    wanted = spark_type(shadow.field.type)
    told = F.concat(
        F.lit(f"column {shadow.old.name}: "),
        F.coalesce(_text(shadow), F.lit("NULL")),
        F.lit(f" cannot be converted to {shadow.field.type}"),
    )
    failing, made = fail(told, wanted, NEW_TYPE), _made(rows, shadow)
    if _has_own_rules(shadow):
        if not shadow.old.nullable:
            return F.coalesce(made, failing)
        if not _may_misfit(shadow):
            return made
        return F.coalesce(made, F.when(_misfits(rows, shadow), failing))
    if not (shadow.old.is_leaf and shadow.field.is_leaf):
        return F.when(_is_bad(rows, shadow), failing).otherwise(made)
    # A value that Spark must compute once occurs only once.
    if shadow.old.nullable:
        failing = F.when(_source(shadow).isNotNull(), failing)
    return F.coalesce(made, failing)


def shown(value: Column, data_type: DataType) -> Column:
    """Return values as text: bytes in hexadecimal, at any depth, all others as Spark casts them."""
    readable = _without_bytes(data_type)
    if readable != data_type:
        value = converted_parts(value, data_type, readable, _in_hexadecimal)
    return value.cast("string")


def _in_hexadecimal(value: Column, _source: Leaf, _target: Leaf) -> Column:
    return F.concat(F.lit("X'"), F.hex(value), F.lit("'"))


def _without_bytes(data_type: DataType) -> DataType:
    match data_type:
        case Struct(members):
            return Struct(tuple(replace(m, type=_without_bytes(m.type)) for m in members))
        case List(element):
            return List(_without_bytes(element))
        case Map(key, value):
            return Map(_without_bytes(key), _without_bytes(value))
        case _:
            return _TEXT if data_type == _BYTES else data_type
