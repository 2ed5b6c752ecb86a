"""What a Parquet file physically holds: names, field ids and types of every node.

The catalog cannot tell this for files that other writers made, merged or adopted; a footer can.
`shelduck.spark.files.layouts` reads it, `shelduck_file_layout` remembers it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from shelduck.model.tables.schema import Kind
from shelduck.model.types.data_types import Leaf, Primitive, ducklake_type

ROW_ID_FIELD = 2147483540
SNAPSHOT_FIELD = 2147483539


@dataclass(frozen=True, slots=True)
class PhysicalField:
    """One column or nested node of a file.

    ``shape`` is the DuckLake leaf type that the physical and logical type amount to, the nested
    kind, or a Primitive named ``parquet:...`` for what no DuckLake type describes. ``encoding``
    tells apart what one DuckLake type can be stored as and readers treat differently (``fixed`` for
    UUID bytes, ``int96``, ``utf8``, ``float64`` for DuckDB's int128 ...); empty for the usual one.
    ``group`` is the name of a list's or map's repeated group, needed for paths in the footer.
    ``is_annotated`` is True for an int32 or int64 whose footer says so, as DuckDB's do and Spark's
    do not: some readers refuse to widen it.
    """

    name: str
    id: int | None
    shape: Leaf | Kind
    children: tuple[PhysicalField, ...] = ()
    encoding: str = ""
    group: str = ""
    is_annotated: bool = False

    @property
    def stored_as(self) -> str:
        """How the file holds it, in words for people."""
        return f"{self.shape} ({self.encoding})" if self.encoding else str(self.shape)


@dataclass(frozen=True, slots=True)
class Layout:
    """The top-level nodes of a file, in file order."""

    fields: tuple[PhysicalField, ...]

    def has_field(self, field_id: int) -> bool:
        """Tell whether a top-level node has this field id."""
        return any(f.id == field_id for f in self.fields)

    def to_json(self) -> str:
        """Return a stable text form."""
        return json.dumps([_dump(f) for f in self.fields], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Layout | None:
        """Read back `to_json`; None for another text, such as that of a newer Shelduck.

        The footer says the same.
        """
        try:
            return cls(tuple(_load(f) for f in _list(json.loads(text))))
        except (TypeError, ValueError):
            return None

    def digest(self) -> str:
        """Return a short name of the layout: equal layouts, equal digests."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:32]


# The places of a row are the format that is kept: new ones stand behind them, and what older code
# must not pass over makes another text than a list of rows (docs/decisions/0034).
def _dump(f: PhysicalField) -> list[Any]:
    shape = str(f.shape)
    made = [f.name, f.id, shape, f.encoding, f.group, [_dump(c) for c in f.children]]
    # A text without the mark is that of a file without it.
    return [*made, True] if f.is_annotated else made


def _load(row: Any) -> PhysicalField:
    name, number, text, encoding, group, children, *marks = _list(row)
    shape: Leaf | Kind
    if text in ("struct", "list", "map"):
        shape = Kind(text)
    elif str(text).startswith("parquet:"):
        shape = Primitive(text)
    else:
        shape = ducklake_type(str(text))
    parts = tuple(_load(c) for c in _list(children))
    return PhysicalField(name, number, shape, parts, encoding, group, marks[:1] == [True])


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise TypeError(f"{found!r} is no list")
    return found
