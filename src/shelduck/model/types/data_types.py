"""Data types: DuckLake's names internally; Spark's and DuckDB's spellings are understood.

Internally, a type has the DuckLake name (``int64``, ``timestamptz``). Text that people write is
read as in Spark: ``TIMESTAMP`` is an instant (DuckLake ``timestamptz``), ``TIMESTAMP_NTZ`` is
DuckLake's ``timestamp``; see docs/decisions/0002. `ducklake_type` reads text from the catalog;
there, ``timestamp`` means DuckLake's type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.text.intervals import whole_number
from shelduck.model.text.names import quote_name, quote_text, unquoted_text

PRIMITIVES = frozenset(
    """boolean int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 float32 float64
    date time time_ns timetz timestamp timestamp_s timestamp_ms timestamp_ns timestamptz
    timestamptz_ns interval varchar json blob uuid geometry variant unknown null""".split()
)
_NOT_MADE = {"timestamptz_ns": "TIMESTAMP", "null": "the type of its values"}
"""Types that only other writers give to columns, because DuckDB 1.5 has none, and what to use."""
SIGNED = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "int128": 128}
UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "uint128": 128}
FLOATS = ("float32", "float64")
MOST_DIGITS = 38
"""How many digits a decimal can have."""
_CLOCKS = ("time", "timestamp_ntz", "datetime", "datetimev2")
_LIMITED = frozenset({"varchar", "char", "character"})
_LENGTH_IGNORED = _LIMITED | {"string", "text", "binary", "blob"}
_TOKEN = re.compile(
    r"""\s*(?:(`(?:[^`]|``)*`|"(?:[^"\\]|\\.|"")*"|'(?:[^'\\]|\\.|'')*')|([^\W\d]\w*)|(\d+)|(.))""",
    re.DOTALL,
)
_CLOSING = {"<": ">", "(": ")"}
_DEPTH = 100
_DIGITS = 9
# DuckDB's own word for a number comes first.
_SPELLED = {
    "boolean": "bool",
    "int8": "tinyint byte int1",
    "int16": "smallint short int2",
    "int32": "integer int int4",
    "int64": "bigint long",
    "int128": "hugeint",
    "uint8": "utinyint",
    "uint16": "usmallint",
    "uint32": "uinteger",
    "uint64": "ubigint",
    "uint128": "uhugeint",
    "float32": "float real float4",
    "float64": "double float8",
    "varchar": "string text char character",
    "blob": "binary bytea varbinary",
    "date": "datev2",
    "timestamp": "timestamp_ntz timestamp_us datetime datetimev2",
    "timestamptz": "timestamp timestamp_ltz",
    "null": "void",
}
SPELLINGS = {word: name for name, words in _SPELLED.items() for word in words.split()}
"""DuckLake's names of types that Spark, DuckDB and Doris call otherwise."""
SPARK_WORDS = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "varchar": "STRING",
    "blob": "BINARY",
    "timestamptz": "TIMESTAMP",
    "timestamp": "TIMESTAMP_NTZ",
    "null": "VOID",
}
"""Spark's words for types of DuckLake that it calls otherwise."""
DUCKDB_NUMBERS = {n: _SPELLED[n].split()[0].upper() for n in (*SIGNED, *UNSIGNED, *FLOATS)}
"""DuckDB's names of numbers."""


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parameters, by its DuckLake name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Text(Primitive):
    """``VARCHAR(n)``: ``varchar`` of at most ``length`` characters, and equal to it."""

    name: str = "varchar"
    length: int = 1

    def __post_init__(self) -> None:
        if self.length < 1:
            raise InvalidRequest("the length of VARCHAR must be at least 1")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Primitive) and self.name == other.name

    def __hash__(self) -> int:
        return hash(Primitive(self.name))


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number of ``precision`` digits, ``scale`` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Member:
    """One named field of a struct type; types that differ only in comments are equal."""

    name: str
    type: DataType
    nullable: bool = True
    comment: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        text = f"{quote_name(self.name)}: {type_text(self.type)}"
        text += "" if self.nullable else " NOT NULL"
        return text if self.comment is None else f"{text} COMMENT {quote_text(self.comment)}"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named members in order."""

    members: tuple[Member, ...]

    def __str__(self) -> str:
        inside = ", ".join(f"{quote_name(m.name)}: {m.type}" for m in self.members)
        return f"struct<{inside}>"


@dataclass(frozen=True, slots=True)
class List:
    """Values of one type, in order."""

    element: DataType

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Keys to values."""

    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


Leaf = Primitive | Decimal
DataType = Primitive | Decimal | Struct | List | Map


def members_of(data_type: DataType) -> tuple[Member, ...]:
    """Return the parts of a type, with DuckLake's names for those of lists and maps."""
    match data_type:
        case Struct(members):
            return members
        case List(element):
            return (Member("element", element),)
        case Map(key, value):
            return (Member("key", key), Member("value", value))
        case _:
            return ()


def shared_parts(source: DataType, target: DataType) -> list[tuple[Member, Member]] | None:
    """Return the parts that two nested types of one kind both have, in the target's order.

    Members of structs are found by name without case. None for leaves, and for other kinds.
    """
    if type(source) is not type(target) or isinstance(source, Primitive | Decimal):
        return None
    known = {m.name.lower(): m for m in members_of(source)}
    return [(known[m.name.lower()], m) for m in members_of(target) if m.name.lower() in known]


def ducklake_type(text: str) -> Leaf:
    """Return the leaf type that a ``ducklake_column.column_type`` names.

    Raises InvalidRequest for an unknown name; nested kinds are not leaves.
    """
    lowered = text.strip().lower()
    lowered = {"timestamp_us": "timestamp"}.get(lowered, lowered)
    if lowered in PRIMITIVES:
        return Primitive(lowered)
    match = re.fullmatch(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", lowered)
    if match:
        return Decimal(int(match[1]), int(match[2]))
    raise InvalidRequest(f"unknown DuckLake column type {text!r}")


def parse_type(text: str, *, ntz: bool = False) -> DataType:
    """Return the type that ``text`` means in Spark SQL, DuckDB SQL or DuckLake's own words.

    With ``ntz`` a bare TIMESTAMP is without a time zone, as DuckDB means it.

    >>> str(parse_type("array<struct<a: INT, b: STRING>>"))
    'array<struct<a: int32, b: varchar>>'
    >>> str(parse_type("MAP(VARCHAR, INTEGER[])"))
    'map<varchar, array<int32>>'
    """
    return _TypeParser(text, ntz=ntz).parse()


def declared_type(text: str, *, ntz: bool = False) -> DataType:
    """Return the type of a new column; ``ntz`` as for `parse_type`.

    Raises Unsupported for a field of a struct that is NOT NULL: DuckLake would forget it, and for
    a type that is only read.
    """
    found = parse_type(text, ntz=ntz)
    for part in _parts_of(found):
        if not isinstance(part, Member) and str(part) in _NOT_MADE:
            raise Unsupported(
                f"a column cannot be {type_text(part)} in {text!r}: Shelduck only reads this type;"
                f" use {_NOT_MADE[str(part)]}"
            )
        if isinstance(part, Member) and not part.nullable:
            raise Unsupported(
                f"field {part.name!r} of {text!r} cannot be NOT NULL: DuckLake supports NOT NULL"
                " only for top-level columns; leave it out"
            )
    return found


def _parts_of(data_type: DataType) -> Iterator[Member | DataType]:
    """Yield the members and the leaves at any depth."""
    members = members_of(data_type)
    for member in members:
        yield member
        yield from _parts_of(member.type)
    if not members:
        yield data_type


def type_text(data_type: DataType) -> str:
    """Return a type in Spark's words, or in DuckLake's if Spark has none."""
    match data_type:
        case Text(length=length):
            return f"VARCHAR({length})"
        case Primitive(name):
            return SPARK_WORDS.get(name, name.upper())
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case List(element):
            return f"ARRAY<{type_text(element)}>"
        case Map(key, value):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
        case Struct(members):
            return f"STRUCT<{', '.join(map(str, members))}>"


class _TypeParser:
    """Recursive descent over one type text, at most `_DEPTH` types deep."""

    def __init__(self, text: str, *, ntz: bool) -> None:
        self.text = text
        self.ntz = ntz
        self.tokens = [m.group(0).strip() for m in _TOKEN.finditer(text) if m.group(0).strip()]
        self.at = 0
        self.depth = 0

    def parse(self) -> DataType:
        found = self._type()
        if self.at != len(self.tokens):
            raise self._error()
        return found

    def _type(self) -> DataType:
        self._enter()
        found = self._base(self._take().lower())
        entered = 1
        while self._peek() == "[":
            self._enter()
            entered += 1
            self._take()
            if self._peek() != "]":
                raise InvalidRequest(
                    f"DuckLake does not support arrays of a fixed size: {self.text!r}; use"
                    " array<...>"
                )
            self._take()
            found = List(found)
        self.depth -= entered
        return found

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > _DEPTH:
            raise InvalidRequest(
                f"a data type has more than {_DEPTH} levels: {self.text[:40]!r}...; use fewer"
            )

    def _base(self, word: str) -> DataType:
        if word in ("array", "list") and self._peek() in _CLOSING:
            return List(self._inside(1)[0])
        if word == "map" and self._peek() in _CLOSING:
            key, value = self._inside(2)
            return Map(key, value)
        if word in ("struct", "row") and self._peek() in _CLOSING:
            return self._struct()
        if word in ("decimal", "numeric", "dec", "decimalv2", "decimalv3"):
            return self._decimal()
        if word == "largeint":
            # Doris' integer of 128 bits. DuckDB would store HUGEINT as a double.
            return Decimal(38, 0)
        return self._primitive(word)

    def _inside(self, count: int) -> list[DataType]:
        close = _CLOSING[self._take()]
        types = [self._type()]
        while len(types) < count:
            self._expect(",")
            types.append(self._type())
        self._expect(close)
        return types

    def _struct(self) -> Struct:
        close = _CLOSING[self._take()]
        members: list[Member] = []
        while True:
            name = _unquote(self._take())
            if self._peek() == ":":
                self._take()
            kind = self._type()
            nullable = True
            if self._peek().lower() == "not":
                self._take()
                self._expect("null")
                nullable = False
            members.append(Member(name, kind, nullable, self._comment()))
            if self._peek() != ",":
                break
            self._take()
        self._expect(close)
        names = [m.name.lower() for m in members]
        if len(set(names)) != len(names):
            raise InvalidRequest(f"two fields of a struct have the same name: {self.text!r}")
        return Struct(tuple(members))

    def _comment(self) -> str | None:
        if self._peek().lower() != "comment":
            return None
        self._take()
        text = self._take()
        if text[0] not in "'\"" or len(text) < 2:
            raise self._error()
        return unquoted_text(text)

    def _decimal(self) -> Decimal:
        precision, scale = (10, 0) if self._peek() != "(" else (0, 0)
        if self._peek() == "(":
            self._take()
            precision = self._number()
            if self._peek() == ",":
                self._take()
                scale = self._number()
            self._expect(")")
        if not 1 <= precision <= MOST_DIGITS or scale > precision:
            raise InvalidRequest(
                f"{self.text!r} is not a valid decimal: its precision is 1 to 38, and its scale at"
                " most the precision"
            )
        return Decimal(precision, scale)

    def _primitive(self, word: str) -> Primitive:
        zoned = self._zone_words() if word in ("time", "timestamp") else None
        if word == "double" and self._peek().lower() == "precision":
            self._take()
        if self._peek() == "(" and (word in _LENGTH_IGNORED or word in _CLOCKS):
            self._take()
            digits = self._number()
            self._expect(")")
            if word in _LIMITED:
                return Text(length=digits)
            if word in _CLOCKS and digits > 6:
                raise InvalidRequest(
                    f"{self.text!r} is too precise: times have microseconds, {word}(6) at most"
                )
        if zoned is not None:
            name = ("timestamptz" if zoned else "timestamp") if word == "timestamp" else "time"
            return Primitive("timetz" if word == "time" and zoned else name)
        name = SPELLINGS.get(word, word)
        if self.ntz and word == "timestamp":
            name = "timestamp"
        if name not in PRIMITIVES or name == "unknown":
            raise InvalidRequest(f"unknown data type {word!r} in {self.text!r}")
        return Primitive(name)

    def _zone_words(self) -> bool | None:
        if self._peek().lower() not in ("with", "without"):
            return None
        zoned = self._take().lower() == "with"
        self._expect("time")
        self._expect("zone")
        return zoned

    def _number(self) -> int:
        number = whole_number(self._take(), _DIGITS)
        if number is None:
            raise self._error()
        return number

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        if self.at >= len(self.tokens):
            raise self._error()
        self.at += 1
        return self.tokens[self.at - 1]

    def _expect(self, token: str) -> None:
        if self._take().lower() != token:
            raise self._error()

    def _error(self) -> InvalidRequest:
        return InvalidRequest(f"cannot parse the data type {self.text!r}", about="text")


def _unquote(token: str) -> str:
    if len(token) > 1 and token[0] in '`"' and token[-1] == token[0]:
        return token[1:-1].replace(token[0] * 2, token[0])
    if not re.fullmatch(r"\w+", token):
        raise InvalidRequest(f"{token!r} is not a valid field name; put it in backticks")
    return token
