"""DuckDB's bucket hash as Spark expressions: Murmur3 (x86, 32 bits, seed 0), without its sign.

Spark's own ``hash`` has another seed and handles the last bytes differently. Through the bridge, a
few lines of Java compute it; over Spark Connect, SQL functions do, which take many times longer.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal as Number

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import engine_for
from shelduck.engine.rows import store_rules
from shelduck.engine.rows.unheld import clock_micros, floor_div, micros, zone_seconds
from shelduck.errors import Unsupported
from shelduck.model.types.buckets import LONG_DIGITS, UNITS
from shelduck.model.types.data_types import FLOATS, Decimal, Leaf
from shelduck.model.types.temporal import MICROSECONDS, NANOSECONDS

_MASK = 0xFFFFFFFF
_AS_THEY_ARE = frozenset({"boolean", "int8", "int16", "int32", "int64", *NANOSECONDS})
_UNKNOWN = frozenset({"interval", "geometry", "variant", "unknown", "null", "time_ns"})
_GREATEST_OFFSET = 57_599


def bucket(spark: SparkSession, value: Column, leaf: Leaf, buckets: int) -> Column:
    """Return the bucket, an int, of a column of Spark's type for ``leaf``; null for null.

    Raises Unsupported for types whose hash is unknown.
    """
    number = _number(value, leaf)
    data = _bytes(value, leaf) if number is None else number
    found = engine_for(spark).bucket_hash(data)
    if found is None:
        found = _hash_by_sql(data, leaf, is_number=number is not None)
    return found.cast("int") % F.lit(buckets)


def _hash_by_sql(data: Column, leaf: Leaf, *, is_number: bool) -> Column:
    if not is_number:
        return _bound(data, _hash_of_bytes)
    return _bound(_double_bits(data) if str(leaf) in FLOATS else data, _hash_of_long)


def decimal_text(value: Column, leaf: Decimal) -> Column:
    """Return DuckDB's text of a decimal: all digits of the scale, no zero before a lone point."""
    text = value.cast("string")
    # Spark writes very small values with an exponent if ANSI mode is off.
    advice = f"a value of type {leaf} needs spark.sql.ansi.enabled to be put into a bucket"
    refused = store_rules.fail(advice, T.StringType())
    plain = F.when(text.contains("E"), refused).otherwise(text)
    return F.regexp_replace(plain, r"^(-?)0\.", "$1.") if leaf.precision == leaf.scale else plain


def _number(value: Column, leaf: Leaf) -> Column | None:
    """Return the bigint or double whose eight bytes are hashed; None if it is text or bytes."""
    if isinstance(leaf, Decimal):
        if leaf.precision > LONG_DIGITS:
            return None
        return (value * F.lit(Number(10**leaf.scale))).cast("bigint")
    name = leaf.name
    if name in _AS_THEY_ARE:
        return value.cast("bigint")
    if name in FLOATS:
        # Negative zero becomes zero.
        return value.cast("double") + F.lit(0.0)
    if name == "date":
        return F.unix_date(value).cast("bigint")
    if name in MICROSECONDS:
        return floor_div(micros(value, leaf), UNITS.get(name, 1))
    if name == "time":
        return clock_micros(value)
    if name == "timetz":
        return clock_micros(value) * (1 << 24) + (F.lit(_GREATEST_OFFSET) - zone_seconds(value))
    return None


def _bytes(value: Column, leaf: Leaf) -> Column:
    if isinstance(leaf, Decimal):
        return decimal_text(value, leaf).cast("binary")
    if leaf.name in _UNKNOWN:
        raise Unsupported(f"values of type {leaf} cannot be put into buckets")
    return value if leaf.name == "blob" else value.cast("string").cast("binary")


def _double_bits(value: Column) -> Column:
    text = F.call_function("reflect", F.lit("java.lang.Double"), F.lit("doubleToLongBits"), value)
    return F.when(value.isNotNull(), text.cast("bigint"))


def _hash_of_long(value: Column) -> Column:
    blocks = F.array(_low(value), _low(F.shiftrightunsigned(value, 32)))
    return _hash(blocks, F.lit(0).cast("bigint"), F.lit(8).cast("bigint"))


def _hash_of_bytes(value: Column) -> Column:
    length = F.octet_length(value).cast("bigint")
    digits = F.hex(value)
    count = floor_div(length, 4)
    places = F.when(count > 0, F.sequence(F.lit(0).cast("bigint"), count - 1)).otherwise(F.array())
    blocks = F.transform(places.cast("array<bigint>"), lambda n: _block(digits, n * 8, 4))
    rest = F.aggregate(
        F.sequence(F.lit(3), F.lit(1), F.lit(-1)),
        F.lit(0).cast("bigint"),
        lambda found, n: F.when(
            n <= length % 4, F.shiftleft(found, 8) + _byte(digits, count * 8 + n * 2 - 1)
        ).otherwise(found),
    )
    return _hash(blocks, rest, length)


def _block(digits: Column, start: Column, size: int) -> Column:
    found = F.lit(0).cast("bigint")
    for n in range(size, 0, -1):
        found = F.shiftleft(found, 8) + _byte(digits, start + (n * 2 - 1))
    return found


def _byte(digits: Column, at: Column) -> Column:
    return F.conv(F.substr(digits, at.cast("int"), F.lit(2)), 16, 10).cast("bigint")


def _hash(blocks: Column, rest: Column, length: Column) -> Column:
    mixed = F.aggregate(blocks, F.lit(0).cast("bigint"), _mixed)
    last = _bound(rest, _scrambled)
    found = mixed.bitwiseXOR(last).bitwiseXOR(length)
    found = _bound(found, lambda h: _times(_folded(h, 16), 0x85EBCA6B))
    found = _bound(found, lambda h: _times(_folded(h, 13), 0xC2B2AE35))
    return _bound(found, lambda h: _folded(h, 16).bitwiseAND(F.lit(0x7FFFFFFF)))


def _mixed(found: Column, block: Column) -> Column:
    return _low(_rotated(found.bitwiseXOR(_scrambled(block)), 13) * 5 + 0xE6546B64)


def _scrambled(block: Column) -> Column:
    return _times(_rotated(_times(block, 0xCC9E2D51), 15), 0x1B873593)


def _times(value: Column, factor: int) -> Column:
    """Return the low 32 bits of a product; the halves of the factor keep it below 64 bits."""
    high = F.shiftleft((value * (factor >> 16)).bitwiseAND(F.lit(0xFFFF)), 16)
    return _low(value * (factor & 0xFFFF) + high)


def _rotated(value: Column, by: int) -> Column:
    return _low(F.shiftleft(value, by).bitwiseOR(F.shiftright(value, 32 - by)))


def _folded(value: Column, by: int) -> Column:
    return value.bitwiseXOR(F.shiftright(value, by))


def _low(value: Column) -> Column:
    return value.bitwiseAND(F.lit(_MASK))


def _bound(value: Column, function: Callable[[Column], Column]) -> Column:
    """Return a function of a value that is computed once, however often the function uses it."""
    found: Column = F.transform(F.array(value), function)[0]
    return found
