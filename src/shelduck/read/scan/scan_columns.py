"""Spark columns for the expressions of a scan plan.

Nothing here depends on the session: no cast reads its time zone, and none overflows differently
with and without ANSI mode.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.engine.types import literal, micros_to_ntz, spark_type, text_to_value
from shelduck.model.files.readable import How
from shelduck.model.text.names import backticked
from shelduck.model.types.literals import integer_range
from shelduck.model.types.temporal import DAY_MICROS
from shelduck.read.plan.scan_groups import (
    Build,
    Column,
    Constant,
    Convert,
    Each,
    Entries,
    Expression,
    Literal,
    Part,
    Recast,
    Variable,
)

_MAX_NANO_MICROS = (2**63 - 1) // 1000
_MAX_NANO_DAYS = 106_751

Variables = Mapping[str, SparkColumn]


def to_column(made: Expression, variables: Variables | None = None) -> SparkColumn:
    """Return the Spark column that computes ``made`` over a group's relation."""
    known = variables or {}
    if isinstance(made, Column):
        return F.col(backticked(made.name))
    if isinstance(made, Variable):
        return known[made.name]
    if isinstance(made, Part):
        return to_column(made.source, known).getField(made.name)
    if isinstance(made, Literal):
        return literal(made.text, made.type)
    if isinstance(made, Constant):
        return text_to_value(F.col(backticked(made.name)), made.type)
    if isinstance(made, Recast):
        return to_column(made.source, known).cast(spark_type(made.target))
    if isinstance(made, Convert):
        return _converted(made, to_column(made.source, known))
    return _nested(made, known)


def _nested(made: Build | Each | Entries, known: Variables) -> SparkColumn:
    source = to_column(made.source, known)
    if isinstance(made, Build):
        parts = [to_column(e, known).alias(name) for name, e in made.members]
        return F.when(source.isNotNull(), F.struct(*parts))
    if isinstance(made, Each):
        variable, element = made.variable.name, made.element
        return F.transform(source, lambda x: to_column(element, {**known, variable: x}))
    key, value = made.key_variable.name, made.value_variable.name
    if made.key == made.key_variable:
        return F.transform_values(
            source, lambda k, v: to_column(made.value, {**known, key: k, value: v})
        )

    def entry(e: SparkColumn) -> SparkColumn:
        inside = {**known, key: e.getField("key"), value: e.getField("value")}
        return F.struct(
            to_column(made.key, inside).alias("key"), to_column(made.value, inside).alias("value")
        )

    return F.map_from_entries(F.transform(F.map_entries(source), entry))


def _converted(made: Convert, source: SparkColumn) -> SparkColumn:
    how = made.how
    if how is How.CAST:
        return source.cast(spark_type(made.target))
    if how is How.CHECKED_CAST:
        return _checked(source, made)
    if how is How.UUID_BYTES:
        return _unless(F.length(source) == 16, source, _dashed(F.lower(F.hex(source))), made)
    if how is How.UUID_TEXT:
        plain = F.lower(F.regexp_replace(source, "[-{}]", ""))
        return _unless(plain.rlike("^[0-9a-f]{32}$"), source, _dashed(plain), made)
    if how is How.NULL_OF_VARIANT:
        return F.when(~F.is_variant_null(source), source)
    if how is How.TIME:
        return _time_text(source)
    if how is How.TIMETZ:
        return F.concat(_time_text(source), F.lit("+00"))
    if how is How.TIMESTAMP_OF_NANOS:
        return micros_to_ntz(_div(source, 1000))
    if how is How.INSTANT_OF_NANOS:
        return F.timestamp_micros(_div(source, 1000))
    if how is How.NANOS_OF_INSTANT:
        micros = F.unix_micros(source)
        return _unless(F.abs(micros) <= _MAX_NANO_MICROS, source, micros * 1000, made)
    days = F.unix_date(source).cast("bigint")
    if how is How.NANOS_OF_DATE:
        return _unless(F.abs(days) <= _MAX_NANO_DAYS, source, days * DAY_MICROS * 1000, made)
    return F.timestamp_micros(days * DAY_MICROS)


def _checked(source: SparkColumn, made: Convert) -> SparkColumn:
    found = source.try_cast(spark_type(made.target))
    limits = integer_range(made.target)
    fits = found.isNotNull()
    if limits is not None and limits[1] < 10**38:
        fits = (
            fits
            & (found >= F.lit(limits[0]))
            & (found <= F.lit(str(limits[1])).cast("decimal(38,0)"))
        )
    elif limits is not None and limits[0] == 0:
        fits = fits & (found >= F.lit(0))
    return _unless(fits, source, found, made)


def _unless(
    fits: SparkColumn, source: SparkColumn, value: SparkColumn, made: Convert
) -> SparkColumn:
    """Return ``value`` if it fits; if not, and there is a message, an error."""
    told = (F.lit(f"Shelduck: {made.where}: "), F.lit(f" is not a value of {made.target}"))
    refusal = F.raise_error(F.concat(told[0], source.cast("string"), told[1]))
    refused = refusal.cast(spark_type(made.target))
    return F.when(source.isNull(), F.lit(None)).when(fits, value).otherwise(refused)


def _dashed(digits: SparkColumn) -> SparkColumn:
    cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    parts: list[SparkColumn] = []
    for start, length in cuts:
        parts += [F.lit("-"), F.substring(digits, start, length)]
    return F.concat(*parts[1:])


def _time_text(micros: SparkColumn) -> SparkColumn:
    seconds = _div(micros, 1_000_000)
    fraction = F.lpad((micros % 1_000_000).cast("string"), 6, "0")
    clock = F.format_string(
        "%02d:%02d:%02d", _div(seconds, 3600), _div(seconds, 60) % 60, seconds % 60
    )
    tail = F.when(micros % 1_000_000 == 0, F.lit("")).otherwise(
        F.concat(F.lit("."), F.regexp_replace(fraction, "0+$", ""))
    )
    return F.when(micros.isNotNull(), F.concat(clock, tail))


def _div(source: SparkColumn, divisor: int) -> SparkColumn:
    return F.call_function("div", source, F.lit(divisor).cast("bigint"))
