"""A table in memory for the mirror story: rows by a unique key, columns by identities.

Whoever changes the lake and is told that it is done makes the same change here. A row holds a value
for every column, from the day on which the column came: what it reads then never changes by itself.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_RANGES = {"smallint": 2**15, "int": 2**31, "bigint": 2**63}
_WHOLE = [0, -3, 7, 40, 300]
_HUGE = {"smallint": [32767], "int": [2147483647, -2147483648], "bigint": [2**40, -(2**62)]}
_FRACTIONS = ["0.50", "-1.25", "40.00", "0.00"]
_WORDS = ["", "a", "it's", "größe", "b c"]

# What values a column holds besides its type: small whole numbers (as text, too), large ones,
# fractions of two digits, words.
WHOLE, HUGE, FRACTION, WORD = "whole", "huge", "fraction", "word"
NEW = [
    *[("smallint", WHOLE), ("int", WHOLE), ("int", HUGE), ("bigint", WHOLE), ("bigint", HUGE)],
    *[("float", FRACTION), ("double", FRACTION), ("decimal(9,2)", FRACTION)],
    *[("string", WHOLE), ("string", WHOLE), ("string", WORD)],
]
# What both engines widen without new bytes, and what Shelduck does where the table allows it.
WIDER = {"smallint": ["int", "bigint"], "int": ["bigint"], "float": ["double"]}
WIDER_STILL = {
    "smallint": ["double"],
    "int": ["double", "decimal(20,2)"],
    "decimal(9,2)": ["decimal(20,2)"],
    "decimal(12,2)": ["decimal(20,2)"],
}
# What a job converts.
HEAVY = {
    ("string", WHOLE): ["int", "bigint"],
    ("string", WORD): ["int"],
    ("smallint", WHOLE): ["string"],
    ("int", WHOLE): ["string", "smallint"],
    ("bigint", WHOLE): ["string", "int"],
    ("bigint", HUGE): ["int"],
    ("double", FRACTION): ["decimal(12,2)", "string"],
    ("double", WHOLE): ["decimal(12,2)"],
    ("decimal(9,2)", FRACTION): ["double", "string"],
    ("decimal(12,2)", FRACTION): ["double", "string"],
    ("decimal(20,2)", FRACTION): ["double"],
}
Cell = str | None


@dataclass
class Column:
    """A column; ``default`` is what rows get from now on that are written without a value.

    ``is_counted``: the table has statistics of it. DuckDB 1.5.5 makes none for a column that it
    adds to a table with rows, and refuses then to say that it is NOT NULL.
    """

    name: str
    kind: str
    family: str
    default: Any = None
    nullable: bool = True
    is_counted: bool = True
    identity: int = field(default_factory=itertools.count().__next__)

    def values(self, target: str | None = None) -> list[Any]:
        """Values that it may hold, and that survive in a type that a job gives it."""
        if self.kind in _RANGES:
            found: list[Any] = _HUGE[self.kind] + [7] if self.family == HUGE else _WHOLE
        elif self.kind == "string":
            texts = {WHOLE: [str(n) for n in _WHOLE], WORD: _WORDS, FRACTION: _FRACTIONS}
            found = list(texts[self.family])
        else:
            numbers = _FRACTIONS if self.family == FRACTION else [str(n) for n in _WHOLE]
            found = [converted(number, self.kind) for number in numbers]
        return [v for v in found if target is None or survives(v, target)]


@dataclass
class Mirror:
    """The rows and columns of one moment."""

    columns: list[Column] = field(default_factory=list)
    rows: dict[int, dict[int, Any]] = field(default_factory=dict)

    @property
    def key(self) -> Column:
        """The column that tells rows apart; it may be renamed, and nothing else."""
        return next(c for c in self.columns if c.family == "key")

    @property
    def others(self) -> list[Column]:
        """All columns but the key."""
        return [c for c in self.columns if c.family != "key"]

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]

    def column(self, identity: int) -> Column:
        return next(c for c in self.columns if c.identity == identity)

    def has(self, identity: int) -> bool:
        return any(c.identity == identity for c in self.columns)

    def copy(self) -> Mirror:
        return copy.deepcopy(self)

    # What happens to rows.

    def put(self, key: int, values: dict[int, Any]) -> None:
        """A new row; a column that is not given takes its default, one that is gone no value."""
        self.rows[key] = {
            c.identity: converted(values[c.identity], c.kind) if c.identity in values else c.default
            for c in self.others
        }

    def change(self, keys: Iterable[int], values: dict[int, Any]) -> None:
        for key in keys:
            self.rows[key].update(
                {c.identity: converted(values[c.identity], c.kind)
                 for c in self.others if c.identity in values}
            )  # fmt: skip

    def count_up(self, keys: Iterable[int], identity: int) -> None:
        for key in keys:
            value = self.rows[key][identity]
            self.rows[key][identity] = None if value is None else value + 1

    def remove(self, keys: Iterable[int]) -> None:
        for key in keys:
            del self.rows[key]

    # What happens to columns.

    def add(self, column: Column) -> None:
        self.columns.append(copy.deepcopy(column))
        for row in self.rows.values():
            row[column.identity] = column.default

    def drop(self, identity: int) -> None:
        self.columns.remove(self.column(identity))
        for row in self.rows.values():
            del row[identity]

    def move(self, identity: int, after: int | None) -> None:
        """To the place behind another column, or to the front."""
        column = self.column(identity)
        self.columns.remove(column)
        at = 0 if after is None else self.columns.index(self.column(after)) + 1
        self.columns.insert(at, column)

    def rename(self, identity: int, name: str) -> None:
        self.column(identity).name = name

    def set_default(self, identity: int, value: Any) -> None:
        column = self.column(identity)
        column.default = converted(value, column.kind)

    def set_nullable(self, identity: int, nullable: bool) -> None:
        self.column(identity).nullable = nullable

    def retype(self, identity: int, kind: str) -> None:
        """Every value in another type; which are drawn from now on follows."""
        column = self.column(identity)
        if kind == "string" and column.kind not in _RANGES:
            column.family = FRACTION
        elif column.family == WORD or (kind not in _RANGES and column.family == HUGE):
            column.family = WHOLE
        column.kind = kind
        column.default = converted(column.default, kind)
        for row in self.rows.values():
            row[identity] = converted(row[identity], kind)

    # What is asked.

    def can_become(self, identity: int, kind: str) -> bool:
        """Whether every value survives a change of type."""
        values = [row[identity] for row in self.rows.values()]
        return all(survives(v, kind) for v in [*values, self.column(identity).default])

    def has_null(self, identity: int) -> bool:
        return any(row[identity] is None for row in self.rows.values())

    def keys_with(self, identity: int, value: Any) -> list[int]:
        return [key for key, row in self.rows.items() if row[identity] == value]

    def expected(self) -> list[tuple[Cell, ...]]:
        """The rows as text, in an order of their own."""
        return in_order(
            [
                str(key) if c.family == "key" else told(row[c.identity])
                for c in self.columns
            ]
            for key, row in self.rows.items()
        )  # fmt: skip

    def shape(self) -> list[tuple[str, str]]:
        """Names and types in the order of the columns."""
        return [(c.name, c.kind) for c in self.columns]


def in_order(rows: Iterable[Collection[Cell]]) -> list[tuple[Cell, ...]]:
    """The same for the same rows, whoever sends them."""
    return sorted((tuple(row) for row in rows), key=repr)


def told(value: Any) -> Cell:
    """A value as text in which every digit counts."""
    if value is None:
        return None
    if isinstance(value, Decimal):
        return format(value, "f")
    return repr(value) if isinstance(value, float) else str(value)


def converted(value: Any, kind: str) -> Any:
    """A value in another type; raises ValueError where there is none."""
    if value is None:
        return None
    if kind in _RANGES:
        number = int(value)
        if not -_RANGES[kind] <= number < _RANGES[kind]:
            raise ValueError(f"{value} is no {kind}")
        return number
    if kind in ("float", "double"):
        return float(value)
    if kind.startswith("decimal"):
        return Decimal(str(value)).quantize(Decimal("0.01"))
    return told(value)


def survives(value: Any, kind: str) -> bool:
    """Whether a type has the value."""
    try:
        converted(value, kind)
    except ValueError:
        return False
    return True


def literal(value: Any, kind: str | None = None) -> str:
    """A value in the words of both engines: plain, or of exactly a type."""
    if value is None:
        text = "NULL"
    elif isinstance(value, str):
        text = "'" + value.replace("'", "''") + "'"
    else:
        text = told(value) or ""
    return text if kind is None else f"CAST({text} AS {kind})"
