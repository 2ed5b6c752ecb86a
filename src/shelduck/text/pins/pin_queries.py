"""The query of a pinned view: the rows of a table of today in its columns of an older snapshot.

Columns are found by their ids, so renames are undone. Columns that were dropped since show their
default, and newer columns are left out. Fields of structs inside lists and maps are, too.
Values are cast back and checked: whatever does not come back as the same value fails the query.
Pairs of types for which the two engines could give different values are Unsupported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shelduck.errors import Unsupported
from shelduck.model.tables.schema import Field, Kind, Path, Schema, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.view import Pin
from shelduck.model.text.names import backticked, double_quoted, quote_text, schema_names
from shelduck.model.types.data_types import (
    DUCKDB_NUMBERS,
    FLOATS,
    SIGNED,
    SPARK_WORDS,
    UNSIGNED,
    DataType,
    Decimal,
    Leaf,
    List,
    Map,
    Primitive,
    Struct,
    Text,
    type_text,
)
from shelduck.model.types.literals import blob_bytes, canonical_text
from shelduck.model.types.temporal import NANOSECONDS
from shelduck.text.query.translate import CATALOG

# ruff: noqa: D102 - `DuckDBWords` holds the contract of these methods.


_SPARK = {
    **SPARK_WORDS,
    **{name: name.upper() for name in ("boolean", "date", "variant")},
    "int128": "DECIMAL(38,0)",
    "uint8": "SMALLINT",
    "uint16": "INT",
    "uint32": "BIGINT",
    "uint64": "DECIMAL(20,0)",
    "uint128": "DECIMAL(38,0)",
    "timestamp_s": "TIMESTAMP_NTZ",
    "timestamp_ms": "TIMESTAMP_NTZ",
    **dict.fromkeys(NANOSECONDS, "BIGINT"),
    "geometry": "BINARY",
    **dict.fromkeys(("json", "uuid", "time", "timetz"), "STRING"),
}


class DuckDBWords:
    """How DuckDB writes each part of a pinned view.

    ``has_all_types`` is False if an engine stores unsigned numbers and timestamps of seconds in
    types that hold more.
    """

    has_all_types = True

    def name(self, name: str) -> str:
        """Return a quoted name."""
        return double_quoted(name)

    def type(self, data_type: DataType) -> str:
        """Return the name of a type; Unsupported if the engine has none."""
        match data_type:
            case Struct(members):
                inside = (f"{double_quoted(m.name)} {self.type(m.type)}" for m in members)
                return f"STRUCT({', '.join(inside)})"
            case List(element):
                return f"{self.type(element)}[]"
            case Map(key, value):
                return f"MAP({self.type(key)}, {self.type(value)})"
            case Decimal(precision, scale):
                return f"DECIMAL({precision},{scale})"
            case Primitive("null"):
                return '"NULL"'
            case Primitive(name):
                return DUCKDB_NUMBERS.get(name, name.upper())

    def constant(self, leaf: Leaf, text: str) -> str:
        """Return the value that DuckLake's text means."""
        return f"CAST({self.text(canonical_text(leaf, text))} AS {self.type(leaf)})"

    def text(self, text: str) -> str:
        """Return a text as a literal."""
        return "'" + text.replace("'", "''") + "'"

    def member(self, value: str, name: str) -> str:
        """Return a field of a struct."""
        return f"struct_extract({value}, {self.text(name)})"

    def struct(self, members: Sequence[tuple[str, str]]) -> str:
        """Return a struct of values by name."""
        return f"struct_pack({', '.join(f'{double_quoted(n)} := {v}' for n, v in members)})"

    def elements(self, value: str, variable: str, element: str) -> str:
        """Return a list in which each ``variable`` is replaced by ``element``."""
        return f"[{element} for {variable} in {value}]"

    def failure(self, told: str, value: str) -> str:
        """Return an expression that fails with a text and a value."""
        return f"error({self.text(told)} || CAST({value} AS VARCHAR))"

    def matches(self, value: str, pattern: str) -> str:
        """Return whether the whole of a text matches a pattern without backslashes."""
        return f"regexp_full_match({value}, {self.text(pattern)})"


class SparkWords:
    """How Spark writes the same; see `DuckDBWords`."""

    has_all_types = False

    def name(self, name: str) -> str:
        return backticked(name)

    def type(self, data_type: DataType) -> str:
        match data_type:
            case Struct(members):
                inside = (f"{backticked(m.name)}: {self.type(m.type)}" for m in members)
                return f"STRUCT<{', '.join(inside)}>"
            case List(element):
                return f"ARRAY<{self.type(element)}>"
            case Map(key, value):
                return f"MAP<{self.type(key)}, {self.type(value)}>"
            case Decimal(precision, scale):
                return f"DECIMAL({precision},{scale})"
            case Primitive(name):
                if name not in _SPARK:
                    raise Unsupported(f"Spark has no type {name}")
                return _SPARK[name]

    def constant(self, leaf: Leaf, text: str) -> str:
        found, name = canonical_text(leaf, text), str(leaf)
        if name == "blob":
            return f"X'{(blob_bytes(found) or b'').hex()}'"
        if name == "timestamptz":
            return f"TIMESTAMP '{found}:00'"
        if name in NANOSECONDS:
            raise Unsupported(f"Spark has no constants of type {name}")
        return f"CAST({quote_text(found)} AS {self.type(leaf)})"

    def text(self, text: str) -> str:
        return quote_text(text)

    def member(self, value: str, name: str) -> str:
        return f"{value}.{backticked(name)}"

    def struct(self, members: Sequence[tuple[str, str]]) -> str:
        return f"named_struct({', '.join(f'{quote_text(n)}, {v}' for n, v in members)})"

    def elements(self, value: str, variable: str, element: str) -> str:
        return f"transform({value}, {variable} -> {element})"

    def failure(self, told: str, value: str) -> str:
        return f"raise_error(concat({quote_text(told)}, CAST({value} AS STRING)))"

    def matches(self, value: str, pattern: str) -> str:
        # Java's $ also matches in front of a last line break, and the pattern is ASCII only.
        return f"({value} RLIKE '^({pattern})$' AND NOT contains({value}, char(10)))"


Words = DuckDBWords | SparkWords
DUCKDB, SPARK = DuckDBWords(), SparkWords()


_ROWS = "pinned"
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


@dataclass(frozen=True, slots=True)
class PinTexts:
    """The query of a pinned view in the SQL of both engines."""

    duckdb: str
    spark: str


def pin_texts(pin: Pin, shape: Schema, now: TableVersion) -> PinTexts:
    """Return the query that shows a table in another shape, whose ids are those of today.

    Raises Unsupported if SQL cannot express it with the same meaning in both engines.
    """
    return PinTexts(*(_Query(pin, now, words).text(shape) for words in (DUCKDB, SPARK)))


@dataclass(frozen=True, slots=True)
class _Query:
    pin: Pin
    now: TableVersion
    words: Words

    def text(self, shape: Schema) -> str:
        words = self.words
        shown = ", ".join(f"{self._column(f)} AS {words.name(f.name)}" for f in shape)
        table = ".".join(map(words.name, (*schema_names(self.now.schema.name), self.now.name)))
        catalog = f"{CATALOG}." if words is DUCKDB else ""
        return f"SELECT {shown} FROM {catalog}{table} AS {_ROWS}"

    def _column(self, then: Field) -> str:
        now = next((f for f in self.now.columns if f.id == then.id), None)
        if now is None:
            return self._missing(then)
        return self._value(f"{_ROWS}.{self.words.name(now.name)}", now, then, (then.name,))

    def _missing(self, then: Field) -> str:
        """Return what a column shows that the table does not have any more."""
        default = then.default.text if then.default and then.default.literal else None
        text = default if then.initial_default is None else then.initial_default
        if text is None or isinstance(then.shape, Kind):
            return f"CAST(NULL AS {self.words.type(then.type)})"
        return self.words.constant(then.shape, text)

    def _value(self, value: str, now: Field, then: Field, path: Path) -> str:
        if _is_same(now, then):
            return value
        if not isinstance(now.shape, Kind) and not isinstance(then.shape, Kind):
            told = (
                f"{path_text(path)} of {self.now.full_name} was {type_text(then.shape)} in snapshot"
                f" {self.pin.snapshot}, which does not hold "
            )
            try:
                return cast_back(self.words, value, now.shape, then.shape, told)
            except Unsupported as error:
                raise Unsupported(f"{path_text(path)} of {self.now.full_name}: {error}") from None
        if now.shape is not then.shape:
            raise Unsupported(
                f"{path_text(path)} of {self.now.full_name}: {type_text(now.type)} cannot be shown"
                f" as {type_text(then.type)}"
            )
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE {self._parts(value, now, then, path)} END"

    def _parts(self, value: str, now: Field, then: Field, path: Path) -> str:
        words, variable = self.words, f"e{len(path)}"
        if then.shape is Kind.STRUCT:
            return words.struct(
                [(c.name, self._member(value, now, c, path)) for c in then.children]
            )
        if then.shape is Kind.LIST:
            [old], [new] = then.children, now.children
            return words.elements(
                value, variable, self._value(variable, new, old, (*path, "element"))
            )
        (key, item), (new_key, new_item) = then.children, now.children
        if _has_more(new_key, key):
            raise Unsupported(
                f"{path_text(path)} of {self.now.full_name}: keys of the map have more fields now,"
                " and keys that differ only in these would become equal"
            )
        return _entries(
            words,
            value,
            variable,
            self._value(words.member(variable, "key"), new_key, key, (*path, "key")),
            self._value(words.member(variable, "value"), new_item, item, (*path, "value")),
        )

    def _member(self, value: str, now: Field, then: Field, path: Path) -> str:
        found = next((c for c in now.children if c.id == then.id), None)
        if found is None:
            return self._missing(then)
        below = self.words.member(value, found.name)
        return self._value(below, found, then, (*path, then.name))


def _entries(words: Words, value: str, variable: str, key: str, item: str) -> str:
    """Return a map; ``key`` and ``item`` refer to fields of the entry ``variable``."""
    entry = words.struct((("key", key), ("value", item)))
    return f"map_from_entries({words.elements(f'map_entries({value})', variable, entry)})"


def _is_same(now: Field, then: Field) -> bool:
    """Return whether values are the same, down to the names and the order of fields."""
    if not isinstance(now.shape, Kind) and not isinstance(then.shape, Kind):
        return now.shape == then.shape and not is_shorter(now.shape, then.shape)
    if now.shape != then.shape or len(now.children) != len(then.children):
        return False
    pairs = zip(now.children, then.children, strict=True)
    return all(a.id == b.id and a.name == b.name and _is_same(a, b) for a, b in pairs)


def _has_more(now: Field, then: Field) -> bool:
    """Return whether a struct has fields that an older version of it has not, at any depth."""
    known = {f.id for f in then.walk()}
    return any(f.id not in known for f in now.walk())


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
