"""Which Spark values a leaf column accepts, and how each is checked on its way in.

The table is in docs/types.md. Nothing is cut or rounded without an error: a value that a type
cannot hold is either refused by its type before a job runs, or fails the write at the first such
value.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Sql
from shelduck.engine.types import literal, literal_text, spark_type
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.table_version import is_writable
from shelduck.model.text.names import quote_text
from shelduck.model.types.data_types import UNSIGNED, DataType, Decimal, Leaf, Text
from shelduck.model.types.literals import canonical_text, integer_range
from shelduck.model.types.temporal import MICROSECONDS, NANOSECONDS

MARK = "shelduck: "
"""What a message of ours begins with in an error of a job, of which Spark keeps the text alone."""
NEW_TYPE, UNHELD = "new type", "unheld"
"""What such a message may be about, between the two words of the mark."""
_MARKED = re.compile(rf"shelduck(?: ({NEW_TYPE}|{UNHELD}))?: (.*)")
TEXTS = frozenset({"varchar", "json", "uuid", "time", "timetz"})
"""Types whose values Spark holds as text."""
Conversion = Callable[[Column], Column]

_TEXT = (T.StringType, T.CharType, T.VarcharType)
_FRACTIONAL = (T.FloatType, T.DoubleType)
_CLOCK = r"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?|24:00:00)"
FORMS = {
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "time": _CLOCK,
    "timetz": _CLOCK + r"[+-](0\d|1[0-5])(:[0-5]\d){0,2}",
}
_STEPS = {"timestamp_s": 1, "timestamp_ms": 1000}
_WIDTHS: dict[type[T.DataType], int] = {
    T.ByteType: 8,
    T.ShortType: 16,
    T.IntegerType: 32,
    T.LongType: 64,
}
# No infinity, no year before Christ or beyond 9999.
_USUAL_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}( [^(]*)?")
_CAST_YOURSELF = "cast it explicitly if that is what you want"


def fail(message: str | Column, data_type: T.DataType, about: str = "") -> Column:
    """Return a column of ``data_type`` whose every value fails the write with ``message``."""
    mark = f"shelduck {about}: " if about else MARK
    if isinstance(message, Sql):
        text: Column = F.expr(f"concat({quote_text(mark)}, {message})")
    else:
        text = F.lit(mark + message) if isinstance(message, str) else F.concat(F.lit(mark), message)
    return F.raise_error(text).cast(data_type)


def failed(error: BaseException) -> tuple[str, str] | None:
    """Return what the message of `fail` in an error is about, and the message; None without one."""
    found = _MARKED.search(str(error))
    return found and (found[1] or "", found[2].split(" SQLSTATE:", 1)[0])


def within(
    leaf: Text, convert: Callable[[Column], Column] | None, place: str
) -> Callable[[Column], Column]:
    """Return a conversion after which a text that is longer than its type takes fails the write."""

    def checked(value: Column) -> Column:
        text = convert(value) if convert else value
        got = F.concat(
            F.lit(f"column {place} is VARCHAR({leaf.length}), got a text of "),
            F.length(text).cast(T.StringType()),
            F.lit(" characters"),
        )
        return F.when(F.length(text) > leaf.length, fail(got, T.StringType())).otherwise(text)

    return checked


def default_value(leaf: Leaf, text: str, column: str) -> Column:
    """Return the value that the text of a default means, as it is stored.

    Raises InvalidRequest if the type cannot hold it, Unsupported for a timestamp that Spark cannot
    hold.
    """
    return literal(_stored_text(leaf, text, column), leaf)


def default_text(leaf: Leaf, text: str, column: str) -> str:
    """Return Spark SQL for what `default_value` returns, and raise what it raises."""
    return literal_text(leaf, _stored_text(leaf, text, column))


def _stored_text(leaf: Leaf, text: str, column: str) -> str:
    canonical = canonical_text(leaf, text)
    is_odd = str(leaf) in ("date", *MICROSECONDS) and not _USUAL_MOMENT.fullmatch(canonical)
    if is_odd or not is_writable(leaf):
        raise Unsupported(
            f"the default of column {column!r} is {canonical!r} ({leaf}), which Spark cannot write"
        )
    return canonical


def require_text(kind: DataType, text: str, place: str) -> None:
    """Raise InvalidRequest if a cast of a text to a type would lose a part of it.

    Texts and bytes are checked when they are stored; ``place`` is where the value goes.
    """
    if not isinstance(kind, Leaf) or str(kind) in {*TEXTS, "blob"}:
        return
    try:
        canonical_text(kind, text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{place}: {error}") from error


def refusal(source: T.DataType, leaf: Leaf) -> str | None:
    """Return why no value of ``source`` may be stored as ``leaf``, None if some may."""
    if isinstance(source, T.NullType) or _is_taken(source, leaf):
        return None
    return f"{source.simpleString()} cannot be stored as {leaf}; {_CAST_YOURSELF}"


def conversion(source: T.DataType, leaf: Leaf, column: str) -> Conversion | None:
    """Return how a value of ``source`` becomes one of ``leaf``; None if nothing has to be done.

    Errors of single values name the column ``column``. The types must be allowed by `refusal`.
    """
    target = spark_type(leaf, column)
    name = str(leaf)
    if isinstance(source, T.NullType):
        return lambda value: value.cast(target)
    if name in FORMS:
        return _formed(leaf, column)
    if name in _STEPS:
        return _stepped(leaf, column, target)
    if name in UNSIGNED:
        # Every Spark number type has negative values, so a narrower type proves nothing.
        greatest = min(2 ** UNSIGNED[name], 10**38) - 1
        return _ranged(leaf, column, target, (0, greatest))
    if source == target:
        return None
    if _needs_check(source, target):
        if isinstance(target, _FRACTIONAL):
            limit = 2 ** (24 if isinstance(target, T.FloatType) else 53)
            return _ranged(leaf, column, target, (-limit, limit))
        return _round_trip(leaf, column, source, target)
    return lambda value: value.cast(target)


def is_plain_cast(source: T.DataType, leaf: Leaf) -> bool:
    """Return whether the conversion is a cast that cannot fail, so it works on whole arrays."""
    name = str(leaf)
    if isinstance(source, T.NullType):
        return True
    if name in FORMS or name in _STEPS or name in UNSIGNED:
        return False
    return not _needs_check(source, spark_type(leaf))


def _is_taken(source: T.DataType, leaf: Leaf) -> bool:
    target = spark_type(leaf)
    name = str(leaf)
    if isinstance(source, _TEXT):
        plain = not isinstance(source, T.StringType) or source.collation == "UTF8_BINARY"
        return isinstance(target, T.StringType) and plain
    if isinstance(source, T.DecimalType) and isinstance(target, _FRACTIONAL):
        return True
    if integer_range(leaf) is not None:
        return isinstance(source, T.IntegralType) or (
            isinstance(source, T.DecimalType) and source.scale == 0
        )
    if isinstance(leaf, Decimal):
        return isinstance(source, T.IntegralType | T.DecimalType)
    if isinstance(target, _FRACTIONAL):
        return isinstance(source, T.IntegralType | T.FloatType) or source == target
    if name.startswith("timestamp") and name not in NANOSECONDS:
        return isinstance(source, T.DateType | T.TimestampType | T.TimestampNTZType)
    return source == target


def _needs_check(source: T.DataType, target: T.DataType) -> bool:
    width = _WIDTHS.get(type(source))
    if width is not None and type(target) in _WIDTHS:
        return width > _WIDTHS[type(target)]
    if isinstance(target, T.DecimalType):
        digits = target.precision - target.scale
        if isinstance(source, T.DecimalType):
            return source.scale > target.scale or source.precision - source.scale > digits
        return len(str(2 ** (width - 1))) > digits if width is not None else False
    if isinstance(source, T.DecimalType):
        return type(target) in _WIDTHS
    if isinstance(target, T.FloatType):
        return width is not None and width > 16
    if isinstance(target, T.DoubleType):
        return width == 64
    return False


def _checked(good: Column, value: Column, stored: Column, why: str, target: T.DataType) -> Column:
    message = F.concat(F.lit(MARK + why), F.lit(", got "), F.left(value.cast("string"), F.lit(200)))
    return F.when(value.isNull() | good, stored).otherwise(F.raise_error(message).cast(target))


def _round_trip(leaf: Leaf, column: str, source: T.DataType, target: T.DataType) -> Conversion:
    why = f"column {column} is {leaf}, which must hold every value exactly"

    def convert(value: Column) -> Column:
        stored = value.try_cast(target)
        back = stored.try_cast(source)
        return _checked(F.coalesce(back == value, F.lit(False)), value, stored, why, target)

    return convert


def _ranged(leaf: Leaf, column: str, target: T.DataType, limits: tuple[int, int]) -> Conversion:
    holds = "is exact only for whole" if isinstance(target, _FRACTIONAL) else "holds"
    why = f"column {column} is {leaf}, which {holds} numbers from {limits[0]} to {limits[1]}"

    def convert(value: Column) -> Column:
        good = value.between(_exact(limits[0]), _exact(limits[1]))
        return _checked(good, value, value.try_cast(target), why, target)

    return convert


def _exact(number: int) -> Column:
    if number < 2**63:
        return F.lit(number)
    return F.lit(str(number)).cast(T.DecimalType(38, 0))


def _formed(leaf: Leaf, column: str) -> Conversion:
    why = f"column {column} is {leaf}"

    def convert(value: Column) -> Column:
        text = value.cast("string")
        stored = F.lower(text) if str(leaf) == "uuid" else text
        good = stored.rlike(f"\\A{FORMS[str(leaf)]}\\z")
        return _checked(good, text, stored, why, T.StringType())

    return convert


def _stepped(leaf: Leaf, column: str, target: T.DataType) -> Conversion:
    why = f"column {column} is {leaf}, which cannot hold a finer fraction of a second"

    def convert(value: Column) -> Column:
        stored = value.cast(target)
        good = (F.extract(F.lit("second"), stored) * _STEPS[str(leaf)]) % 1 == 0
        return _checked(good, value, stored, why, target)

    return convert
