"""The physical contents of a Parquet file: names, field ids and types of every node.

For files that other writers made, merged or adopted, the catalog does not know this, but the footer
does. `shelduck.engine.files.layouts` reads it, `shelduck_layout` keeps it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shelduck.model.tables.schema import Kind
from shelduck.model.types.data_types import Leaf, Primitive, ducklake_type

ROW_ID_COLUMN = "_ducklake_internal_row_id"
SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"
ROW_ID_FIELD = 2147483540
SNAPSHOT_FIELD = 2147483539


@dataclass(frozen=True, slots=True)
class PhysicalField:
    """One column or nested node of a file.

    ``shape`` is the DuckLake leaf type that corresponds to the physical and logical type, the
    nested kind, or a Primitive named ``parquet:...`` if no DuckLake type corresponds. If one
    DuckLake type can be stored in several ways that readers treat differently, ``encoding`` tells
    them apart (``fixed`` for UUID bytes, ``int96``, ``utf8``, ``float64`` for DuckDB's int128 ...);
    it is empty for the usual one. ``group`` is the name of a list's or map's repeated group, needed
    for paths in the footer. ``is_annotated`` is True for an int32 or int64 with an annotation in
    the footer. DuckDB's integers have one and Spark's do not; some readers refuse to widen it.
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

    def walk(self) -> Iterator[PhysicalField]:
        """Yield this node and all below it in pre-order."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Layout:
    """The top-level nodes of a file, in file order."""

    fields: tuple[PhysicalField, ...]

    def has_field(self, field_id: int) -> bool:
        """Return whether a top-level node has this field id."""
        return any(f.id == field_id for f in self.fields)

    def walk(self) -> Iterator[PhysicalField]:
        """Yield every node, nested ones included, in pre-order."""
        return (f for top in self.fields for f in top.walk())

    def to_json(self) -> str:
        """Return a stable text form."""
        return json.dumps([_dump(f) for f in self.fields], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Layout | None:
        """Read back `to_json`; None for any other text, such as a newer Shelduck's.

        The footer contains the same information.
        """
        try:
            return cls(tuple(_load(f) for f in _list(json.loads(text))))
        except (TypeError, ValueError):
            return None

    def digest(self) -> str:
        """Return a short name of the layout: equal layouts have equal digests."""
        return text_digest(self.to_json())


def text_digest(text: str) -> str:
    """Return a short name of a text: equal texts have equal digests."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


# The positions in a row are the stored format. New positions come last. If older code must not
# ignore a change, the text is anything other than a list of rows (docs/decisions/0034).
def _dump(f: PhysicalField) -> list[Any]:
    shape = str(f.shape)
    made = [f.name, f.id, shape, f.encoding, f.group, [_dump(c) for c in f.children]]
    # A text without the mark belongs to a file without it.
    return [*made, True] if f.is_annotated else made


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise TypeError(f"{found!r} is not a list")
    return found


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
