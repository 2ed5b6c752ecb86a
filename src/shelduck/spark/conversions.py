"""Values of one type made into values of another, one by one, or told to have no counterpart.

Nothing is rounded or cut: a value survives when it comes back the same. What does not survive is
NULL here; whoever asks decides whether that is allowed. Casts are Spark's, moments without an
offset are those of the session's time zone.
"""

from __future__ import annotations

import decimal as dec

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.literals import integer_range
from shelduck.model.types import FLOATS, SIGNED, UNSIGNED, DataType, Decimal, Leaf, Primitive
from shelduck.spark.nested_conversions import converted_parts, lost_parts
from shelduck.spark.store_rules import FORMS
from shelduck.spark.types import spark_type

_WIDEST = T.DecimalType(38, 18)
_INTEGERS = frozenset({*SIGNED, *UNSIGNED})
_TEXTS = frozenset({"varchar", "json"})
_MOMENTS = frozenset({"date", "timestamp_s", "timestamp_ms", "timestamp", "timestamptz"})
# Digits of a number that a double tells from all other numbers of so many.
_EXACT_DIGITS = 15
# Days from 1970 that microseconds count.
_MOST_DAYS = 106_751_990
_STEPS = {"timestamp_s": 1_000_000, "timestamp_ms": 1000}
# As Doris reads dates: the form of the text, and what Spark calls it. There is no year 0.
_DATES = (
    (r"(?!0000)\d{4}-\d{1,2}-\d{1,2}", "y-M-d"),
    (r"\d{2}-\d{1,2}-\d{1,2}", "yy-M-d"),
    (r"(?!0000)\d{8}", "yyyyMMdd"),
    (r"\d{6}", "yyMMdd"),
    (r"(?!0000)\d{4}/\d{1,2}/\d{1,2}", "y/M/d"),
    (r"\d{2}/\d{1,2}/\d{1,2}", "yy/M/d"),
)


def converted(value: Column, source: DataType, target: DataType) -> Column:
    """Return ``value`` as the target's Spark type; NULL for what has no counterpart there.

    Inside nested values it is the leaf that is NULL, or a map whose keys do not survive as keys.
    The pair must be one that `shelduck.model.conversion` does not refuse.
    """
    if isinstance(source, Primitive | Decimal) and isinstance(target, Primitive | Decimal):
        return _leaf(value, source, target)
    return converted_parts(value, source, target, _leaf)


def lost(value: Column, source: DataType, target: DataType) -> Column:
    """Tell whether ``value``, or any part inside it, does not survive as the target; never NULL."""
    if isinstance(source, Primitive | Decimal) and isinstance(target, Primitive | Decimal):
        return _leaf(value, source, target).isNull() & value.isNotNull()
    return lost_parts(value, source, target, _leaf)


def _leaf(value: Column, source: Leaf, target: Leaf) -> Column:
    wanted = spark_type(target)
    if str(target) in FORMS:
        text = F.lower(F.trim(value.cast("string"))) if str(target) == "uuid" else F.trim(value)
        return F.when(text.rlike(f"^{FORMS[str(target)]}$"), text)
    if str(source) in _TEXTS:
        return _of_text(F.trim(value) if str(target) not in _TEXTS else value, target, wanted)
    if str(target) in _TEXTS:
        return _to_text(value, source, target)
    if str(source) in _MOMENTS or str(target) in _MOMENTS:
        return _moment(value, source, target, wanted)
    return _in_range(_same_back(value, source, wanted), target)


def _of_text(text: Column, target: Leaf, wanted: T.DataType) -> Column:
    name = str(target)
    if name == "varchar":
        return text
    if name == "json":
        return F.when(F.try_parse_json(text).isNotNull(), text)
    if name == "date":
        return _date(text)
    if isinstance(wanted, T.DecimalType) or name in _INTEGERS:
        exact = text.try_cast(_WIDEST)
        found = text.try_cast(wanted)
        # Spark cuts digits after the point; nothing may be cut here.
        made = F.when(exact.isNull() | (found.cast(_WIDEST) == exact), found)
        if isinstance(wanted, T.IntegralType):
            # Without a point nothing is cut, which is most of what there is, at half the price.
            made = F.coalesce(F.when(~text.contains("."), found), made)
        return _in_range(made, target)
    return _stepped(text.try_cast(wanted), target)


def _date(text: Column) -> Column:
    found = F.lit(None).cast("date")
    for form, words in reversed(_DATES):
        read = F.try_to_timestamp(text, F.lit(words)).cast("date")
        found = F.when(text.rlike(f"^{form}$"), read).otherwise(found)
    # Spark casts ISO dates at half the price of parsing them, but takes other forms too: that the
    # hyphens are in their places and no T is behind excludes those. Bytes are quicker to look at
    # than characters, and what is no ASCII is no date.
    is_usual = (
        (F.octet_length(text) == len("yyyy-MM-dd"))
        & _has_hyphen(text, len("yyyy-"))
        & _has_hyphen(text, len("yyyy-MM-"))
        & (text >= "0001")
        & ~text.endswith("T")
    )
    return F.when(is_usual, text.try_cast("date")).otherwise(found)


def _has_hyphen(text: Column, at: int) -> Column:
    return F.substring(text.cast("binary"), at, 1) == F.lit(b"-")


def _to_text(value: Column, source: Leaf, target: Leaf) -> Column:
    if str(source) == "blob":
        return F.try_validate_utf8(value.cast("string"))
    if str(target) == "json" and str(source) in (*_MOMENTS, "uuid", "time", "timetz"):
        listed = F.to_json(F.array(value))
        return F.when(value.isNotNull(), listed.substr(F.lit(2), F.length(listed) - 2))
    text = value.cast("string")
    if str(target) == "json" and str(source) in FLOATS:
        return F.when(F.abs(value) < float("inf"), text)
    return text


def _moment(value: Column, source: Leaf, target: Leaf, wanted: T.DataType) -> Column:
    if str(source) in _INTEGERS:
        digits = F.lpad(value.cast("string"), 8, "0")
        return F.when(value >= 0, _date(F.when(F.length(digits) == 8, digits)))
    if str(target) == "date":
        return value.cast(wanted)
    if str(source) == "date":
        value = F.when(F.abs(F.unix_date(value)) < _MOST_DAYS, value)
    return _stepped(value.cast(wanted), target)


def _stepped(found: Column, target: Leaf) -> Column:
    step = _STEPS.get(str(target))
    if step is None:
        return found
    micros = F.unix_micros(found.cast("timestamp"))
    return F.when(micros % step == 0, found)


def _same_back(value: Column, source: Leaf, wanted: T.DataType) -> Column:
    """Return the value that a cast makes where the same value comes back from it."""
    if str(source) == "float64" and isinstance(wanted, T.DecimalType):
        return _of_double(value, wanted)
    return _cast_there_and_back(value, source, wanted)


def _of_double(value: Column, wanted: T.DecimalType) -> Column:
    """Return the decimal whose nearest double ``value`` is.

    Of numbers of up to 15 digits a double tells one from the other, so its digits are counted in
    doubles, exactly, and at a third of the price of Spark's cast.
    """
    scale = wanted.scale
    slow = _cast_there_and_back(value, Primitive("float64"), wanted)
    if scale > _EXACT_DIGITS:
        return slow
    digits = F.rint(value * float(10**scale))
    unit = F.expr(f"{dec.Decimal(1).scaleb(-scale):f}BD")
    made = (digits.try_cast("long").cast("decimal(18,0)") * unit).try_cast(wanted)
    is_exact = F.abs(value) < float(10 ** (_EXACT_DIGITS - scale))
    return F.when(is_exact, F.when(digits / float(10**scale) == value, made)).otherwise(slow)


def _cast_there_and_back(value: Column, source: Leaf, wanted: T.DataType) -> Column:
    found = value.try_cast(wanted)
    back = found.try_cast(spark_type(source))
    if str(source) in FLOATS:
        return F.when(back.eqNullSafe(value), found)
    return F.when(back == value, found)


def _in_range(found: Column, target: Leaf) -> Column:
    limits = integer_range(target)
    if isinstance(target, Decimal) or limits is None or str(target) in SIGNED:
        return found
    least, most = (F.lit(str(min(n, 10**38 - 1))).cast("decimal(38,0)") for n in limits)
    return F.when((found >= least) & (found <= most), found)
