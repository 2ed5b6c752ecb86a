"""A table as a list of rows in memory that is changed as SQL changes a lake: what must be read.

Rows keep their values by column *identity*, never by name or place, so that renames, drops, columns
that come again under an old name, and swaps cannot be confused with each other. A value of a column
that was added later is simply missing from a row, and reads as the column's initial default.
"""

from __future__ import annotations

import copy
import datetime as dt
import itertools
import math
import struct
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_identities = itertools.count()

WIDER = {
    "smallint": ("int", "bigint", "double"),
    "int": ("bigint", "double", "decimal(20,2)"),
    "float": ("double",),
    "decimal(5,2)": ("decimal(9,2)", "decimal(20,2)"),
    "decimal(9,2)": ("decimal(20,2)",),
}


def float32(value: float) -> float:
    """The nearest float of 32 bits."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _noon(day: int) -> dt.datetime:
    return dt.datetime(2024, 2, day, 12, 30, 0, 123456)  # noqa: DTZ001 - a local time


# Values of each type that sit at the seams: limits, and what lies between two representable ones.
VALUES: dict[str, list[Any]] = {
    "smallint": [0, -1, 32767],
    "int": [0, -1, 7, 2147483647, -2147483648],
    "bigint": [0, 7, 2147483648, -(2**62)],
    "float": [float32(v) for v in (0.0, 1.1, -0.5, 16777216.0, math.inf, math.nan)],
    "double": [0.0, 1.1, float32(1.1), -0.5, 1e300, -math.inf, math.nan],
    "decimal(5,2)": [Decimal("1.10"), Decimal("-999.99")],
    "decimal(9,2)": [Decimal("1.10"), Decimal("1000.00")],
    "decimal(20,2)": [Decimal("1.10"), Decimal("999999999999999999.99")],
    "string": ["", "a", "it's", "größe", "??", "\\"],
    "boolean": [True, False],
    "date": [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "timestamp_ntz": [_noon(1), _noon(29)],
    "binary": [b"", b"\x00\xff", b"a'\\"],
}


@dataclass
class Column:
    """A node of the schema. ``kind`` is a leaf's type in Spark's words, or struct, array, map."""

    name: str
    kind: str
    children: list[Column] = field(default_factory=list)
    initial: Any = None
    default: Any = None
    identity: int = field(default_factory=lambda: next(_identities))

    @property
    def is_leaf(self) -> bool:
        return self.kind not in ("struct", "array", "map")

    def type(self, left_out: frozenset[int] = frozenset()) -> str:
        """The type as Spark names it, without the struct fields that are left out."""
        if self.kind == "struct":
            kept = [c for c in self.children if c.identity not in left_out]
            return f"struct<{', '.join(f'{quoted(c.name)}: {c.type(left_out)}' for c in kept)}>"
        if self.is_leaf:
            return self.kind
        return f"{self.kind}<{', '.join(c.type(left_out) for c in self.children)}>"

    def walk(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Column]]:
        """This node and all below it, each with its path."""
        path = (*above, self.name)
        yield path, self
        for child in self.children:
            yield from child.walk(path)

    def read(self, value: Any) -> Any:
        """A stored value as a reader sees it: structs as tuples, NaN as text that equals itself."""
        if value is None:
            return None
        if self.kind == "struct":
            return tuple(c.read_from(value) for c in self.children)
        if self.kind == "array":
            return [self.children[0].read(v) for v in value]
        if self.kind == "map":
            key, item = self.children
            return {key.read(k): item.read(v) for k, v in value}
        return "nan" if _is_nan(value) else value

    def read_from(self, row: dict[int, Any]) -> Any:
        """What this column is in a row or struct, which may be older than the column."""
        return self.read(row.get(self.identity, self.initial))

    def normal(self, value: Any) -> Any:
        """What Spark or DuckDB returned, in the form in which `read` gives it."""
        if value is None:
            return None
        if self.kind == "struct":
            values = value.values() if isinstance(value, dict) else value
            return tuple(c.normal(v) for c, v in zip(self.children, values, strict=True))
        if self.kind == "array":
            return [self.children[0].normal(v) for v in value]
        if self.kind == "map":
            key, item = self.children
            return {key.normal(k): item.normal(v) for k, v in value.items()}
        if isinstance(value, bytearray):
            return bytes(value)
        return "nan" if _is_nan(value) else value


@dataclass
class Version:
    """The table at one snapshot."""

    columns: list[Column]
    rows: list[dict[int, Any]]

    def expected(self) -> list[tuple[Any, ...]]:
        return [tuple(c.read_from(row) for c in self.columns) for row in self.rows]

    def normal(self, rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
        return [tuple(c.normal(v) for c, v in zip(self.columns, row, strict=True)) for row in rows]

    def leaves(self) -> list[list[Column]]:
        """The chain of columns to each leaf that a filter can name: through structs only."""
        return [chain for top in self.columns for chain in _chains(top)]

    def ids_where(self, chain: list[Column], holds: Callable[[Any], bool]) -> list[int]:
        """The ids of the rows whose leaf passes; NULL is up to ``holds``."""
        found = []
        for row in self.rows:
            value: Any = row
            for column in chain:
                value = value.get(column.identity, column.initial) if value is not None else None
            if holds(value):
                found.append(row[self.columns_by_name["id"].identity])
        return sorted(found)

    @property
    def columns_by_name(self) -> dict[str, Column]:
        return {c.name: c for c in self.columns}


class EvolvingTable:
    """The table, its statements so far, and itself at every snapshot of the lake."""

    def __init__(self, columns: list[Column]) -> None:
        self.columns = columns
        self.rows: list[dict[int, Any]] = []
        self.versions: dict[int, Version] = {}

    def remember(self, snapshot: int) -> None:
        """Note what a snapshot of the lake holds."""
        self.versions[snapshot] = Version(copy.deepcopy(self.columns), list(self.rows))

    def create_statement(self) -> str:
        listed = ", ".join(f"{quoted(c.name)} {c.type()}" for c in self.columns)
        return f"CREATE TABLE t ({listed}) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"

    def siblings(self, path: tuple[str, ...]) -> list[Column]:
        """The columns among which a path stands, or would stand."""
        found = self.columns
        for name in path[:-1]:
            found = next(c for c in found if c.name == name).children
        return found

    def find(self, path: tuple[str, ...]) -> Column:
        return next(c for c in self.siblings(path) if c.name == path[-1])

    def nodes(self) -> list[tuple[tuple[str, ...], Column]]:
        """Every node but the id, with its path."""
        return [n for c in self.columns if c.name != "id" for n in c.walk()]

    def places(self) -> list[tuple[tuple[str, ...], list[Column]]]:
        """Where columns can be added: at the top, and in every struct."""
        return [((), self.columns)] + [
            (path, node.children) for path, node in self.nodes() if node.kind == "struct"
        ]

    def named(self) -> list[tuple[str, ...]]:
        """The paths of the nodes that have a name of their own."""
        return [
            (*path, c.name) for path, columns in self.places() for c in columns if c.name != "id"
        ]

    # Each change returns its SQL.

    def add(self, above: tuple[str, ...], column: Column, after: str | None = None) -> str:
        siblings = self.siblings((*above, ""))
        at = len(siblings)
        where = ""
        if after is not None:
            at = 0
            where = " FIRST"
            if after:
                at = [c.name for c in siblings].index(after) + 1
                where = f" AFTER {quoted(after)}"
        column.initial = column.default
        siblings.insert(at, column)
        default = "" if column.default is None else f" DEFAULT {literal(column.default)}"
        return f"ADD COLUMN {dotted((*above, column.name))} {column.type()}{default}{where}"

    def drop(self, path: tuple[str, ...]) -> str:
        self.siblings(path).remove(self.find(path))
        return f"DROP COLUMN {dotted(path)}"

    def rename(self, path: tuple[str, ...], name: str) -> str:
        self.find(path).name = name
        return f"RENAME COLUMN {dotted(path)} TO {quoted(name)}"

    def widen(self, path: tuple[str, ...], kind: str) -> str:
        column = self.find(path)
        column.kind = kind
        if kind == "double" and column.default == float32(1.1):
            # Rows that exist keep the float; the default of new rows is the text that was written.
            column.default = 1.1
        return f"ALTER COLUMN {dotted(path)} TYPE {kind}"

    def set_default(self, path: tuple[str, ...], value: Any) -> str:
        self.find(path).default = value
        change = "DROP DEFAULT" if value is None else f"SET DEFAULT {literal(value)}"
        return f"ALTER COLUMN {dotted(path)} {change}"

    def move_first(self, path: tuple[str, ...]) -> str:
        siblings = self.siblings(path)
        column = self.find(path)
        siblings.remove(column)
        siblings.insert(0, column)
        return f"ALTER COLUMN {dotted(path)} FIRST"

    def insert(self, given: list[Column], rows: list[list[Any]], left_out: frozenset[int]) -> str:
        """Rows with a value for each given column; struct values lack the fields left out."""
        cells = []
        for values in rows:
            at = {c.identity: self._stored(c, v) for c, v in zip(given, values, strict=True)}
            self.rows.append({c.identity: at.get(c.identity, c.default) for c in self.columns})
            row = [sql_value(c, v, left_out) for c, v in zip(given, values, strict=True)]
            cells.append(f"({', '.join(row)})")
        names = ", ".join(quoted(c.name) for c in given)
        return f"INSERT INTO t ({names}) VALUES {', '.join(cells)}"

    def _stored(self, column: Column, value: Any) -> Any:
        """A drawn value with the defaults of the struct fields that it lacks."""
        if value is None or column.is_leaf:
            return value
        if column.kind == "struct":
            return {
                c.identity: self._stored(c, value[c.identity]) if c.identity in value else c.default
                for c in column.children
            }
        if column.kind == "array":
            return [self._stored(column.children[0], v) for v in value]
        key, item = column.children
        return [(self._stored(key, k), self._stored(item, v)) for k, v in value]


def sql_value(column: Column, value: Any, left_out: frozenset[int]) -> str:
    """A value as Spark SQL, of exactly the column's type."""
    kind = column.type(left_out)
    if value is None:
        return f"CAST(NULL AS {kind})"
    if column.kind == "struct":
        kept = [c for c in column.children if c.identity not in left_out]
        parts = [f"{literal(c.name)}, {sql_value(c, value[c.identity], left_out)}" for c in kept]
        return f"named_struct({', '.join(parts)})"
    if column.kind == "array":
        inside = [sql_value(column.children[0], v, left_out) for v in value]
        return f"CAST(array({', '.join(inside)}) AS {kind})"
    if column.kind == "map":
        key, item = column.children
        inside = [
            f"{sql_value(key, k, left_out)}, {sql_value(item, v, left_out)}" for k, v in value
        ]
        return f"CAST(map({', '.join(inside)}) AS {kind})"
    return f"CAST({literal(value)} AS {kind})"


def literal(value: Any) -> str:
    """A leaf's value as a literal of Spark SQL."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, float):
        return f"'{value!r}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def dotted(path: tuple[str, ...]) -> str:
    return ".".join(quoted(p) for p in path)


def order_key(value: Any) -> tuple[int, Any]:
    """What values are compared by: NaN is the greatest float, as in Spark and DuckDB."""
    return (1, 0) if _is_nan(value) else (0, value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _chains(column: Column) -> list[list[Column]]:
    if column.is_leaf:
        return [[column]]
    if column.kind != "struct":
        return []
    return [[column, *rest] for child in column.children for rest in _chains(child)]
