"""A column's default becomes what its values become, or is refused: for every pair of types."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck import change_type
from shelduck.engine.rows.conversions import converted
from shelduck.engine.types import spark_type, text_to_value
from shelduck.errors import ShelduckError
from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.tables.schema import Default
from shelduck.model.types.data_types import ducklake_type
from shelduck.model.types.literals import blob_bytes
from tests.properties.test_conversion_law import accepted
from tests.support.scans import column, table

TEXTS = {
    "varchar": ["12", " 7 ", "1.50", "2024-02-29", "true", "2024-02-29 12:00:00", "é", "[1]"],
    "json": ["12", "1.50", '"x"', "true"],
    "blob": [r"\x61b", r"\x00\xFF", "12"],
    "boolean": ["true", "false"],
    "int32": ["5", "-1", "20240229"],
    "uint64": ["18446744073709551615"],
    "float32": ["1.5", "0.1", "16777216.0"],
    "float64": ["1.5", "0.1", "3.0", "1e300"],
    "decimal(10,2)": ["1.50", "-7.00"],
    "date": ["2024-02-29"],
    "timestamp": ["2024-02-29 00:00:00", "2024-02-29 12:00:00.5"],
    "timestamptz": ["2024-02-29 12:00:00+00"],
    "uuid": ["f79c3e09-677c-4bbd-a479-3f349cb785e7"],
}


def value(text, kind):
    """The column of a value by its canonical text."""
    said = blob_bytes(text).hex() if kind == "blob" else text
    return text_to_value(F.lit(said), ducklake_type(kind))


def default_after(source, text, target):
    """The text of the default after the change, None where the change is refused."""
    before = table(replace(column("c", source, 1), default=Default(text)))
    try:
        plan = plan_alter(before, [change_type("c", target)])
    except ShelduckError:
        return None
    if plan.change is None:
        return None
    [field] = [s.field for s in plan.shadows] or list(plan.change.columns)
    return field.default.text


@pytest.mark.parametrize("source", TEXTS)
def test_a_default_becomes_what_values_become(source, spark):
    old = ducklake_type(source)
    pairs = [
        (text, target, made)
        for text in TEXTS[source]
        for target in accepted(source)
        if (made := default_after(source, text, target)) is not None
    ]
    columns = []
    for text, target, made in pairs:
        as_value = converted(value(text, source), old, ducklake_type(target))
        as_default = value(made, target)
        is_same = as_value.eqNullSafe(as_default)
        if target in ("varchar", "json"):
            # Texts may say the same in other words: 1e300 and 1.0E300.
            back = spark_type(old)
            is_same |= as_value.cast(back).eqNullSafe(as_default.cast(back)) & as_value.isNotNull()
        columns += [is_same, as_value.cast("string")]
    found = spark.range(1).select(*columns).first()

    assert pairs
    told = [(*p, v) for p, same, v in zip(pairs, found[::2], found[1::2], strict=True) if not same]
    assert told == []
