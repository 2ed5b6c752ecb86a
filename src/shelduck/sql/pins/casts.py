"""Values of a column's type of today as values of an older type, checked: SQL for both engines.

Whatever does not come back as the same value fails the query. Pairs of types for which the two
engines could give different values are Unsupported.
"""

from __future__ import annotations

from shelduck.errors import Unsupported
from shelduck.model.types.data_types import (
    FLOATS,
    SIGNED,
    UNSIGNED,
    Decimal,
    Leaf,
    Primitive,
    Text,
    type_text,
)
from shelduck.sql.pins.words import Words

_INTEGERS = frozenset({*SIGNED, *UNSIGNED})
_LOCAL = ("date", "timestamp_s", "timestamp_ms", "timestamp")
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_PATTERNS = {
    "boolean": "true|false",
    "date": _DAY,
    "timestamp": f"{_DAY} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?",
    "uuid": "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    **dict.fromkeys(FLOATS, "[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?"),
    **dict.fromkeys(_INTEGERS, "[+-]?[0-9]+"),
}
# Spark writes smaller numbers with an exponent.
_MOST_SCALE = 6
# Whole numbers up to these are exact in a float; the engines convert larger ones in their own way.
_WHOLE = {"float32": 2**24, "float64": 2**53}
# So are decimals of up to so many digits.
_DIGITS = {"float32": 6, "float64": 15}


def cast_back(words: Words, value: str, now: Leaf, then: Leaf, told: str) -> str:
    """Return ``value``, whose type is ``now``, as a value of ``then``.

    ``told`` begins the message of a query that fails; the value follows. Raises Unsupported for a
    pair that cannot be written so that it means the same in both engines.
    """
    if now == then:
        return (
            value
            if not is_shorter(now, then)
            else _checked(words, value, value, told, [f"length({value}) <= {_length(then)}"])
        )
    source = _moment(words, value) if str(now) in _LOCAL and str(then) in _LOCAL else value
    made = f"TRY_CAST({source} AS {words.type(then)})"
    return _checked(words, value, made, told, _conditions(words, value, made, now, then))


def is_shorter(now: Leaf, then: Leaf) -> bool:
    """Return whether texts of the type of today may be longer than the older type allows."""
    if not isinstance(then, Text):
        return False
    return not isinstance(now, Text) or now.length > then.length


def _length(leaf: Leaf) -> int:
    return leaf.length if isinstance(leaf, Text) else 0


def _checked(words: Words, value: str, made: str, told: str, conditions: list[str]) -> str:
    good = " AND ".join(conditions)
    failure = words.failure(told, value)
    return f"CASE WHEN {value} IS NULL THEN NULL WHEN {good} THEN {made} ELSE {failure} END"


def _conditions(words: Words, value: str, made: str, now: Leaf, then: Leaf) -> list[str]:
    source, target = str(now), str(then)
    if source == "varchar":
        return _of_text(words, value, made, then)
    if target == "varchar":
        return _to_text(value, made, now, then)
    if _is_number(now) and _is_number(then):
        return _of_number(words, value, made, now, then)
    if source in _LOCAL and target in _LOCAL:
        return _of_moment(words, value, made, then)
    raise _unsupported(now, then)


def _of_text(words: Words, value: str, made: str, then: Leaf) -> list[str]:
    pattern = _PATTERNS.get(str(then))
    if isinstance(then, Decimal):
        pattern = f"[+-]?[0-9]+([.][0-9]{{0,{then.scale}}})?" if then.scale else "[+-]?[0-9]+"
    if pattern is None:
        raise Unsupported(
            f"texts cannot be shown as {type_text(then)} with the same meaning in Spark and DuckDB"
        )
    found = [words.matches(value, pattern), f"{made} IS NOT NULL"]
    if str(then) in FLOATS:
        found.append(f"abs({made}) < CAST('Infinity' AS {words.type(then)})")
    return [*found, *_within(words, made, then)]


def _to_text(value: str, made: str, now: Leaf, then: Leaf) -> list[str]:
    source = str(now)
    found = [f"length({made}) <= {then.length}"] if isinstance(then, Text) else []
    if source in _INTEGERS or source in ("boolean", "uuid"):
        return found or ["true"]
    if isinstance(now, Decimal) and now.scale <= _MOST_SCALE:
        return found or ["true"]
    if source == "date":
        return [f"{value} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'", *found]
    raise _unsupported(now, then)


def _of_number(words: Words, value: str, made: str, now: Leaf, then: Leaf) -> list[str]:
    found = [f"TRY_CAST({made} AS {words.type(now)}) = {value}", *_within(words, made, then)]
    source, target = str(now), str(then)
    if source in FLOATS and target in _INTEGERS:
        found.append(_between(value, _WHOLE["float64"]))
    if source in _INTEGERS and target in FLOATS:
        found.append(_between(value, _WHOLE[target]))
    for one, other in ((now, then), (then, now)):
        if isinstance(one, Decimal) and str(other) in FLOATS:
            digits = _DIGITS[str(other)] - one.scale
            if digits < 0:
                raise _unsupported(now, then)
            found.append(_between(value, 10**digits))
    return found


def _between(value: str, most: int) -> str:
    return f"{value} BETWEEN -{most} AND {most}"


def _within(words: Words, made: str, then: Leaf) -> list[str]:
    """Return that a number is in the range of an unsigned type, if the engine has none."""
    bits = UNSIGNED.get(str(then))
    if bits is None or words.has_all_types:
        return []
    return [f"{made} BETWEEN 0 AND {min(2**bits, 10**38) - 1}"]


def _of_moment(words: Words, value: str, made: str, then: Leaf) -> list[str]:
    steps = {"timestamp_s": 1, "timestamp_ms": 1000}.get(str(then))
    if steps is not None and not words.has_all_types:
        return [f"(extract(SECOND FROM {made}) * {steps}) % 1 = 0"]
    return [f"{_moment(words, made)} = {_moment(words, value)}"]


def _moment(words: Words, value: str) -> str:
    """Return a date or time as a timestamp: DuckDB loses milliseconds as seconds."""
    return f"TRY_CAST({value} AS {words.type(Primitive('timestamp'))})"


def _is_number(leaf: Leaf) -> bool:
    return isinstance(leaf, Decimal) or str(leaf) in (*_INTEGERS, *FLOATS, "boolean")


def _unsupported(now: Leaf, then: Leaf) -> Unsupported:
    return Unsupported(
        f"{type_text(now)} cannot be shown as {type_text(then)} with the same meaning in Spark and"
        " DuckDB"
    )
