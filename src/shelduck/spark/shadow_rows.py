"""Converted columns beside a table's own, and the values that cannot be converted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.quoting import backticked
from shelduck.planning.shadows import Shadow, shadow_name
from shelduck.spark.conversions import converted
from shelduck.spark.read import Origin
from shelduck.spark.store_rules import fail
from shelduck.spark.types import spark_type


@dataclass(frozen=True, slots=True)
class BadValues:
    """Values of one file that a conversion cannot make: how many, and one of them as text."""

    file_id: int
    count: int
    example: str


def add_shadows(rows: DataFrame, shadows: Sequence[Shadow]) -> DataFrame:
    """Return the rows with the converted columns; a value that does not survive fails the job."""
    return rows.withColumns({shadow_name(s): _checked(s) for s in shadows})


def bad_values(rows: DataFrame, shadow: Shadow) -> list[BadValues]:
    """Return the files that hold values which the conversion cannot make, by file id; one job.

    ``rows`` have the origin FILE_ID.
    """
    file = F.col(Origin.FILE_ID)
    found = (
        rows.where(_is_bad(shadow))
        .groupBy(file)
        .agg(F.count(F.lit(1)), F.min(_source(shadow).cast("string")))
        .orderBy(file)
    )
    return [BadValues(*row) for row in found.collect()]


def _source(shadow: Shadow) -> Column:
    return F.col(backticked(shadow.old.name))


def _made(shadow: Shadow) -> Column:
    using = shadow.conversion.using
    if using is None:
        return converted(_source(shadow), shadow.source, shadow.target)
    wanted = spark_type(shadow.target)
    made = F.expr(using)
    return made.try_cast(wanted) if shadow.conversion.on_error_null else made.cast(wanted)


def _is_bad(shadow: Shadow) -> Column:
    """Tell a value that is lost; an expression of the user's own may make NULL where that fits."""
    lost = _made(shadow).isNull()
    if not shadow.old.nullable:
        return lost
    own_rules = shadow.conversion.using is not None or shadow.conversion.on_error_null
    return F.lit(False) if own_rules else lost & _source(shadow).isNotNull()


def _checked(shadow: Shadow) -> Column:
    wanted = spark_type(shadow.target)
    told = F.concat(
        F.lit(f"column {shadow.old.name}: "),
        F.coalesce(_source(shadow).cast("string"), F.lit("NULL")),
        F.lit(f" does not survive as {shadow.target}"),
    )
    return F.when(_is_bad(shadow), fail(told, wanted)).otherwise(_made(shadow))
