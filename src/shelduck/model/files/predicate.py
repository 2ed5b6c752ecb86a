"""Conditions on columns, as far as they help to skip files.

A tree says exactly what the filter says or less, never more: every row that passes the filter
passes the tree. There is no NOT: when a tree is made, a negation moves down to the leaves, so that
"may match" is decided from the leaves up, and `Unknown` always means yes.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal as Number
from enum import Enum

from shelduck.model.tables.schema import Path
from shelduck.model.types.data_types import Leaf

Value = bool | int | float | Number | str | bytes


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A value that is not NULL, with the type that the filter gives it.

    Integers are int, decimals `decimal.Decimal`, floats float (of float32 rounded to it), texts
    str, binaries bytes, booleans bool; a date is days and a timestamp microseconds since 1970, in
    UTC for ``timestamptz`` and without a zone for ``timestamp``.
    """

    value: Value
    type: Leaf


class Operator(Enum):
    """The six comparisons. NaN equals itself and is greater than every number, as in Spark."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Comparison:
    """Column on the left, literal on the right; a NULL never matches."""

    operator: Operator
    path: Path
    literal: ComparedValue


@dataclass(frozen=True, slots=True)
class In:
    """The column equals one of the literals; an empty list matches nothing."""

    path: Path
    literals: tuple[ComparedValue, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column, or a struct above it, is NULL."""

    path: Path


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """The column is not NULL."""

    path: Path


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The text begins with ``prefix``."""

    path: Path
    prefix: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything: every row may match."""


@dataclass(frozen=True, slots=True)
class And:
    """All parts match."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part matches."""

    parts: tuple[Predicate, ...]


Predicate = Comparison | In | IsNull | IsNotNull | StartsWith | Unknown | And | Or
