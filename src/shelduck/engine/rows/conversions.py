"""Converting values of one type to another, and finding values that have no equivalent.

Nothing is rounded or cut: a value is kept if it converts back to the same value. Otherwise it is
NULL here, and the caller decides whether that is allowed. Casts are Spark's; timestamps without an
offset are in the session's time zone.
"""

from __future__ import annotations

import decimal as dec
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.rows.store_rules import FORMS
from shelduck.engine.types import spark_type
from shelduck.model.types.data_types import (
    FLOATS,
    SIGNED,
    UNSIGNED,
    DataType,
    Decimal,
    Leaf,
    List,
    Map,
    Primitive,
    Struct,
    Text,
    members_of,
    shared_parts,
)
from shelduck.model.types.literals import integer_range
from shelduck.model.types.promotions import promotion

_INTEGERS = frozenset({*SIGNED, *UNSIGNED})
# Integers that are decimals in Spark.
_WIDE = frozenset({"int128", "uint64", "uint128"})
_TEXTS = frozenset({"varchar", "json"})
_MOMENTS = frozenset({"date", "timestamp_s", "timestamp_ms", "timestamp", "timestamptz"})
# The number of digits with which a double identifies each number.
_EXACT_DIGITS = 15
_FLOAT_DIGITS = {"float32": 6, "float64": _EXACT_DIGITS}
# Days from 1970 that microseconds can count.
_MOST_DAYS = 106_751_990
_STEPS = {"timestamp_s": 1_000_000, "timestamp_ms": 1000}
_DAY_OF_NUMBER = 8
# Dates as Doris reads them: the form of the text, and Spark's pattern for it. There is no year 0.
_DATES = (
    (r"(?!0000)\d{4}-\d{1,2}-\d{1,2}", "y-M-d"),
    (r"(?!0000)\d{8}", "yyyyMMdd"),
    (r"(?!0000)\d{4}/\d{1,2}/\d{1,2}", "y/M/d"),
)
# The first year that two digits mean is 1970, as in MySQL.
_SHORT_YEAR = r"^\d{2}(-\d{1,2}-|/\d{1,2}/|\d{2}(?=\d{2}$))\d{1,2}$"
# The texts that Spark's casts read correctly. The casts accept more: control characters and digits
# of other scripts, 1d and 0x1p3, a time without a day, an offset that is then ignored. Values of
# types without blanks may have blanks around them; texts and bytes keep theirs.
_INTEGER = r"[+-]?\d+"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?"
_NO_NUMBER = r"(?i)[+-]?inf(inity)?|nan"
_BOOLEAN = r"[A-Za-z]+|[01]"
_LOCAL = r"(?!0000)\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{1,2}(:\d{1,2}(\.(?=\d)\d{0,6}0*)?)?)?"
_OFFSET = r" ?(Z|UTC|GMT|[+-]\d{1,2}(:?\d{2})?)"
_LIMITS: dict[type[T.DataType], float] = {
    T.ByteType: 2.0**7,
    T.ShortType: 2.0**15,
    T.IntegerType: 2.0**31,
    T.LongType: 2.0**63,
}
_MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
LeafRule = Callable[[Column, Leaf, Leaf], Column]
"""Converts a value; NULL if it is lost."""


def converted(value: Column, source: DataType, target: DataType) -> Column:
    """Return ``value`` as the target's Spark type; NULL if it has no equivalent.

    Inside nested values, the leaf is NULL, or a map if its keys cannot be converted. The pair must
    be one that `shelduck.model.changes.job` does not refuse.
    """
    if isinstance(source, Primitive | Decimal) and isinstance(target, Primitive | Decimal):
        return _leaf(value, source, target)
    return converted_parts(value, source, target, _leaf)


def lost(value: Column, source: DataType, target: DataType) -> Column:
    """Return whether ``value``, or any part of it, is lost in the conversion; never NULL."""
    if isinstance(source, Primitive | Decimal) and isinstance(target, Primitive | Decimal):
        return _leaf(value, source, target).isNull() & value.isNotNull()
    return lost_parts(value, source, target, _leaf)


def needs_fit(target: Leaf) -> bool:
    """Return whether Spark's type has values that the target does not allow: see `fitted`."""
    name = str(target)
    if isinstance(target, Text):
        return True
    return name in FORMS or name == "json" or name in UNSIGNED or name in _STEPS


def fitted(value: Column, target: Leaf) -> Column:
    """Return a value of the target's Spark type; NULL if the target does not allow it.

    Spark's types hold more than some of DuckLake's: any text for a UUID, negative numbers,
    fractions of a second, texts of any length.
    """
    if isinstance(target, Text):
        return F.when(F.length(value) <= target.length, value)
    name = str(target)
    if name in FORMS or name == "json":
        return _leaf(value, Primitive("varchar"), target)
    return _in_range(_stepped(value, target), target)


def _leaf(value: Column, source: Leaf, target: Leaf) -> Column:
    wanted = spark_type(target)
    if str(target) in FORMS:
        text = F.lower(F.trim(value.cast("string"))) if str(target) == "uuid" else F.trim(value)
        return F.when(text.rlike(rf"\A{FORMS[str(target)]}\z"), text)
    if str(source) in _TEXTS:
        return _of_text(value, target, wanted)
    if str(target) in _TEXTS:
        return _to_text(value, source, target)
    if (str(source), str(target)) == ("uuid", "blob"):
        return _bytes_of_uuid(value)
    if str(source) in _MOMENTS or str(target) in _MOMENTS:
        return _moment(value, source, target, wanted)
    return _in_range(_same_back(value, source, target, wanted), target)


def _of_text(text: Column, target: Leaf, wanted: T.DataType) -> Column:
    name = str(target)
    if name == "varchar":
        return text
    if name == "json":
        return _if_json(text)
    if name == "blob":
        return text.cast("binary")
    if name == "date":
        return _date(F.trim(text))
    if name in _INTEGERS:
        found = text.try_cast(wanted)
        # Most texts are those that Spark writes, and to compare takes less time than to match.
        same = F.when(found.cast("string") == text, found)
        return _in_range(same.when(_has_form(text, _INTEGER), found), target)
    if isinstance(wanted, T.DecimalType):
        plain = rf"[+-]?\d*\.?\d{{0,{wanted.scale}}}"
        return _number(text, wanted, _has_form(text, plain))
    if name in FLOATS:
        few = rf"[+-]?(?=[\d.]{{1,{_FLOAT_DIGITS[name]}}}\s*\z)\d*\.?\d*"
        plain = rf"{few}|{_NO_NUMBER}"
        return _number(text, wanted, _has_form(text, plain))
    if name == "boolean":
        return F.when(_has_form(text, _BOOLEAN), text.try_cast(wanted))
    return _stepped(_moment_of_text(text, target, wanted), target)


def _has_form(text: Column, form: str) -> Column:
    return text.rlike(rf"\A\s*({form})\s*\z")


def _if_json(text: Column) -> Column:
    # Spark's parsers stop after the first value, so both closing brackets are checked.
    is_one = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    is_valid = F.try_parse_json(F.concat(F.lit('{"v":'), text, F.lit("}"))).isNotNull()
    return F.when(is_valid & is_one, text)


def _number(text: Column, wanted: T.DataType, is_exact: Column) -> Column:
    """Return the number that a text means, if no digit of it is lost.

    ``is_exact`` selects texts for which that is known, which saves the comparison of digits.
    """
    found = text.try_cast(wanted)
    same = _has_form(text, _NUMBER) & _says_all(found, text, wanted)
    return F.when(is_exact, found).when(same, found)


def _says_all(found: Column, text: Column, kind: T.DataType) -> Column:
    """Return whether a number has the digits of the text from which it was rounded."""
    same = _digits(text) == _digits(found.cast("string"))
    if isinstance(kind, T.FloatType):
        same |= _digits(text) == _digits(found.cast("double").cast("string"))
    return same


def _digits(number: Column) -> Column:
    """Return the significant digits of a number's text, without its magnitude."""
    return F.btrim(F.regexp_replace(number, r"(?s)[eE].*|[^0-9]", ""), F.lit("0"))


def _moment_of_text(text: Column, target: Leaf, wanted: T.DataType) -> Column:
    if str(target) != "timestamptz":
        return F.when(_has_form(text, _LOCAL), text.try_cast(wanted))
    local = _there_and_back(text.try_cast("timestamp_ntz"), wanted, "timestamp_ntz")
    found = F.when(_has_form(text, _LOCAL), local)
    return found.when(_has_form(text, _LOCAL + _OFFSET), text.try_cast(wanted))


def _date(text: Column) -> Column:
    found = F.lit(None).cast("date")
    century = F.when(text < "70", "20").otherwise("19")
    whole = F.when(text.rlike(_SHORT_YEAR), F.concat(century, text)).otherwise(text)
    for form, words in reversed(_DATES):
        read = F.try_to_timestamp(whole, F.lit(words)).cast("date")
        found = F.when(whole.rlike(f"^{form}$"), read).otherwise(found)
    # A cast of an ISO date takes half the time of parsing it in Spark, but accepts other forms too.
    # These are excluded: the hyphens must be in position, with no T at the end. Bytes are faster to
    # check than characters, and a text that is not ASCII is not a date.
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
        text = F.try_validate_utf8(value.cast("string"))
        return _if_json(text) if str(target) == "json" else text
    if str(target) == "json" and str(source) in (*_MOMENTS, "uuid", "time", "timetz"):
        return _json_text(value, source)
    text = value.cast("string")
    if str(target) == "json" and str(source) in FLOATS:
        return F.when(F.abs(value) < float("inf"), text)
    if str(source) == "timestamptz":
        # An hour that a time zone repeats has the same text twice.
        return F.when(text.try_cast("timestamp") == value, text)
    return text


def _json_text(value: Column, source: Leaf) -> Column:
    listed = F.to_json(F.array(value))
    if str(source) in ("timestamp", "timestamptz"):
        # By default, Spark writes milliseconds.
        known = ("timestampFormat", "timestampNTZFormat")
        zone = {"timestampFormat": "XXX", "timestampNTZFormat": ""}
        finer = F.to_json(F.array(value), {k: _MICROSECONDS + zone[k] for k in known})
        micros = F.extract(F.lit("second"), value) * 1000 % 1
        listed = F.when(micros == 0, listed).otherwise(finer)
    return F.when(value.isNotNull(), listed.substr(F.lit(2), F.length(listed) - 2))


def _bytes_of_uuid(value: Column) -> Column:
    digits = F.replace(value, F.lit("-"), F.lit(""))
    return F.when(F.lower(value).rlike(rf"\A{FORMS['uuid']}\z"), F.unhex(digits))


def _moment(value: Column, source: Leaf, target: Leaf, wanted: T.DataType) -> Column:
    if str(source) in _INTEGERS:
        digits = F.lpad(value.cast("string"), _DAY_OF_NUMBER, "0")
        return _date(F.when(value.between(0, 10**_DAY_OF_NUMBER - 1), digits))
    if str(target) == "date":
        return value.cast(wanted)
    if str(source) == "date":
        value = F.when(F.abs(F.unix_date(value)) < _MOST_DAYS, value)
    if "timestamptz" in (str(source), str(target)):
        return _stepped(_there_and_back(value, wanted, spark_type(source)), target)
    return _stepped(value.cast(wanted), target)


def _there_and_back(value: Column, wanted: T.DataType, own: T.DataType | str) -> Column:
    """Return a timestamp in another kind of time; time zones skip and repeat local times."""
    found = value.cast(wanted)
    return F.when(found.cast(own) == value, found)


def _stepped(found: Column, target: Leaf) -> Column:
    step = _STEPS.get(str(target))
    if step is None:
        return found
    micros = F.unix_micros(found.cast("timestamp"))
    return F.when(micros % step == 0, found)


def _same_back(value: Column, source: Leaf, target: Leaf, wanted: T.DataType) -> Column:
    """Return the value of a cast if it converts back to the same value."""
    if str(source) in FLOATS and str(target) in _INTEGERS:
        # By way of an integer, no digit is added, unlike on the way to Spark's decimals.
        whole = wanted if isinstance(wanted, T.IntegralType) else T.LongType()
        return _cast_there_and_back(value, source, whole).cast(wanted)
    if str(source) in _WIDE and str(target) in FLOATS:
        # Decimals come back from a float with the digits that it prints: 4294967300 for 2**32.
        return _cast_there_and_back(value.try_cast("long"), Primitive("int64"), wanted)
    if str(source) == "float64" and isinstance(wanted, T.DecimalType):
        return _of_double(value, wanted)
    return _cast_there_and_back(value, source, wanted)


def _of_double(value: Column, wanted: T.DecimalType) -> Column:
    """Return the decimal whose nearest double ``value`` is.

    A double identifies numbers of up to 15 digits. So doubles can count the digits exactly, in a
    third of the time of Spark's cast.
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
    if isinstance(wanted, T.FloatType) and isinstance(spark_type(source), T.DecimalType):
        # When a float is converted back, it gets digits of a double, which may round to what was
        # lost.
        return F.when(_says_all(found, value.cast("string"), wanted), found)
    back = found.try_cast(spark_type(source))
    if str(source) in FLOATS:
        same, number, whole = back.eqNullSafe(value), value, wanted
    else:
        same, number, whole = back == value, found, spark_type(source)
    # Spark converts a larger float to the largest integer, and that integer to the same float.
    limit = _LIMITS.get(type(whole))
    if limit is not None and isinstance(wanted, T.NumericType):
        same &= number < limit
    return F.when(same, found)


def _in_range(found: Column, target: Leaf) -> Column:
    limits = integer_range(target)
    if isinstance(target, Decimal) or limits is None or str(target) in SIGNED:
        return found
    least, most = (F.lit(str(min(n, 10**38 - 1))).cast("decimal(38,0)") for n in limits)
    return F.when((found >= least) & (found <= most), found)


def converted_parts(value: Column, source: DataType, target: DataType, leaf: LeafRule) -> Column:
    """Return ``value`` as the target's Spark type; lost leaves are NULL in it.

    If a key of a map is lost, or two of its keys become equal, the whole map is NULL.
    """
    if is_cast(source, target):
        return value.cast(spark_type(target))
    match source, target:
        case Struct(), Struct():
            return _struct(value, source, target, leaf)
        case List(old), List(new):
            return F.transform(value, lambda x: converted_parts(x, old, new, leaf))
        case Map(), Map():
            return _map(value, source, target, leaf)
        case ((Primitive() | Decimal()), (Primitive() | Decimal())):
            return leaf(value, source, target)
        case _:
            raise AssertionError(f"{source} to {target} is refused")


def lost_parts(value: Column, source: DataType, target: DataType, leaf: LeafRule) -> Column:
    """Return whether ``value`` or a leaf inside it is lost; never NULL.

    Members that the target does not have are dropped, not lost.
    """
    if not _may_lose(source, target):
        return F.lit(False)
    match source, target:
        case Struct(), Struct():
            found = F.lit(False)
            for old, new in shared_parts(source, target) or ():
                if _may_lose(old.type, new.type):
                    found |= lost_parts(value.getField(old.name), old.type, new.type, leaf)
            return found
        case List(old_element), List(new_element):
            some = F.exists(value, lambda x: lost_parts(x, old_element, new_element, leaf))
            return F.coalesce(some, F.lit(False))
        case Map(), Map():
            below = List(source.value), List(target.value)
            found = lost_parts(F.map_values(value), *below, leaf)
            if is_cast(source.key, target.key):
                return found
            return _bad_keys(value, source, target, leaf) | found
        case ((Primitive() | Decimal()), (Primitive() | Decimal())):
            return leaf(value, source, target).isNull() & value.isNotNull()
        case _:
            raise AssertionError(f"{source} to {target} is refused")


def is_cast(source: DataType, target: DataType) -> bool:
    """Return whether Spark's cast, which is by position, gives the target without a loss."""
    pairs = shared_parts(source, target)
    if pairs is None:
        return promotion(source, target).is_light
    in_place = tuple(old for old, _ in pairs) == members_of(source)
    is_all = in_place and len(pairs) == len(members_of(target))
    return is_all and all(is_cast(old.type, new.type) for old, new in pairs)


def _may_lose(source: DataType, target: DataType) -> bool:
    pairs = shared_parts(source, target)
    if pairs is None:
        return not is_cast(source, target)
    if isinstance(source, Map) and not is_cast(*(one.type for one in pairs[0])):
        # Converted keys may become equal.
        return True
    return any(_may_lose(old.type, new.type) for old, new in pairs)


def _struct(value: Column, source: Struct, target: Struct, leaf: LeafRule) -> Column:
    known = {new.name: old for old, new in shared_parts(source, target) or ()}
    made = []
    for new in target.members:
        old = known.get(new.name)
        if old is None:
            part = F.lit(None).cast(spark_type(new.type))
        else:
            part = converted_parts(value.getField(old.name), old.type, new.type, leaf)
        made.append(part.alias(new.name))
    return F.when(value.isNotNull(), F.struct(*made))


def _map(value: Column, source: Map, target: Map, leaf: LeafRule) -> Column:
    old, new = source.value, target.value
    if is_cast(source.key, target.key):
        cast = value.cast(T.MapType(spark_type(target.key), spark_type(old)))
        return F.transform_values(cast, lambda _, v: converted_parts(v, old, new, leaf))
    keys = converted_parts(F.map_keys(value), List(source.key), List(target.key), leaf)
    values = converted_parts(F.map_values(value), List(old), List(new), leaf)
    # If a key is NULL or exists twice, Spark fails or takes one of the two.
    return F.when(~_bad_keys(value, source, target, leaf), F.map_from_arrays(keys, values))


def _bad_keys(value: Column, source: Map, target: Map, leaf: LeafRule) -> Column:
    """Return whether a key of a map is lost or becomes equal to another; never NULL."""
    keys, old, new = F.map_keys(value), List(source.key), List(target.key)
    made = converted_parts(keys, old, new, leaf)
    if str(target.key) in FLOATS:
        # To Spark 4.0, 0.0 and -0.0 are distinct, but they are one key of a map.
        made = F.transform(made, lambda key: key + F.lit(0.0))
    fewer = F.size(F.array_distinct(made)) < F.size(keys)
    return F.coalesce(fewer, F.lit(False)) | lost_parts(keys, old, new, leaf)
