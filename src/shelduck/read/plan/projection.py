"""How columns of a table are computed from columns that were read.

These are small values, which `shelduck.read.scan.scan_columns` turns into Spark columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.files.readable import How
from shelduck.model.text.names import quote_name
from shelduck.model.types.data_types import DataType, Leaf


@dataclass(frozen=True, slots=True)
class Column:
    """A top-level column of the read schema."""

    name: str

    def __str__(self) -> str:
        return quote_name(self.name)


@dataclass(frozen=True, slots=True)
class Part:
    """A member of a struct."""

    source: Expression
    name: str

    def __str__(self) -> str:
        return f"{self.source}.{quote_name(self.name)}"


@dataclass(frozen=True, slots=True)
class Variable:
    """The element, key or value over which an enclosing `Each` or `Entries` runs."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A per-file constant, by its name: text that is read as a value of ``type``."""

    name: str
    type: Leaf

    def __str__(self) -> str:
        return f"{self.type}({self.name})"


@dataclass(frozen=True, slots=True)
class Literal:
    """A value of ``type`` by its DuckLake text; None is NULL, the only value of nested types."""

    text: str | None
    type: DataType

    def __str__(self) -> str:
        return "NULL" if self.text is None else f"{self.type}({self.text!r})"


@dataclass(frozen=True, slots=True)
class Convert:
    """A leaf converted from another type; ``where`` names file and column in a check's error."""

    source: Expression
    target: Leaf
    how: How
    where: str = ""

    def __str__(self) -> str:
        return f"{self.how.value}({self.source} as {self.target})"


@dataclass(frozen=True, slots=True)
class Recast:
    """A nested value of the same shape with other names and wider leaves, matched by position."""

    source: Expression
    target: DataType

    def __str__(self) -> str:
        return f"cast({self.source} as {self.target})"


@dataclass(frozen=True, slots=True)
class Build:
    """A struct with new members; NULL if ``source`` is NULL."""

    source: Expression
    members: tuple[tuple[str, Expression], ...]

    def __str__(self) -> str:
        inside = ", ".join(f"{quote_name(n)}: {e}" for n, e in self.members)
        return f"struct({inside}) if {self.source} is not null"


@dataclass(frozen=True, slots=True)
class Each:
    """A list with a new value for each element."""

    source: Expression
    variable: Variable
    element: Expression

    def __str__(self) -> str:
        return f"[{self.element} for {self.variable} in {self.source}]"


@dataclass(frozen=True, slots=True)
class Entries:
    """A map with new keys and values."""

    source: Expression
    key_variable: Variable
    value_variable: Variable
    key: Expression
    value: Expression

    def __str__(self) -> str:
        pair = f"{self.key_variable}, {self.value_variable}"
        return f"{{{self.key}: {self.value} for {pair} in {self.source}}}"


Expression = (
    Column | Part | Variable | Constant | Literal | Convert | Recast | Build | Each | Entries
)
