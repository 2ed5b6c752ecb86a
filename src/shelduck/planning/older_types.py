"""Which files hold values in another type than the current type of their column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shelduck.model.files.layout import PhysicalField
from shelduck.model.tables.schema import Field, Kind, Path
from shelduck.model.types.data_types import Leaf
from shelduck.model.types.temporal import TIMESTAMP_NAMES
from shelduck.planning.resolve import Node

# Other types as which Shelduck or DuckDB stores the values of a type.
_STORED_AS = {
    "int128": ("decimal(38,0)", "float64"),
    "uint8": ("int16",),
    "uint16": ("int32",),
    "uint32": ("int64",),
    "uint64": ("decimal(20,0)",),
    "uint128": ("decimal(38,0)", "float64"),
    "timestamp_s": ("timestamp", "timestamp_ms"),
    "timestamp_ms": ("timestamp",),
    "time": ("varchar",),
    "timetz": ("varchar", "time"),
    "json": ("varchar",),
    "uuid": ("varchar",),
    "geometry": ("blob",),
}


@dataclass(frozen=True, slots=True)
class OlderType:
    """A leaf of a file: its path in the table, the type in the file, and that of the column."""

    path: Path
    stored: Leaf
    column: Leaf


def stored_leaves(
    nodes: Sequence[Node], stored: Sequence[PhysicalField]
) -> Iterator[tuple[Path, Field, PhysicalField]]:
    """Yield each leaf that a file holds: its path, its field, and the node of the file's layout.

    ``nodes`` are what `resolve` found in the layout whose top-level nodes are ``stored``.
    """
    by_name = {s.name: s for s in stored}
    for node in nodes:
        if node.is_read:
            assert node.name is not None
            yield from _below(node, by_name[node.name], (node.field.name,))


def _below(
    node: Node, stored: PhysicalField, path: Path
) -> Iterator[tuple[Path, Field, PhysicalField]]:
    if node.field.is_leaf:
        yield path, node.field, stored
        return
    by_name = {s.name: s for s in stored.children}
    for at, child in enumerate(node.children):
        if child.is_read:
            assert child.name is not None
            # Parts of lists and maps are found by position, whatever their names in the file.
            is_member = node.field.shape is Kind.STRUCT
            part = by_name[child.name] if is_member else stored.children[at]
            yield from _below(child, part, (*path, child.field.name))


def older_types(nodes: Sequence[Node], stored: Sequence[PhysicalField]) -> tuple[OlderType, ...]:
    """Return the leaves of a file that are stored in another type than the column's."""
    found = []
    for path, field, leaf in stored_leaves(nodes, stored):
        assert not isinstance(field.shape, Kind)
        assert not isinstance(leaf.shape, Kind)
        known = (str(field.shape), *_STORED_AS.get(str(field.shape), ()))
        # Old writers store instants and local times as the same timestamps.
        is_old_timestamp = leaf.encoding == "int96" and str(field.shape) in TIMESTAMP_NAMES
        if str(leaf.shape) not in known and not is_old_timestamp:
            found.append(OlderType(path, leaf.shape, field.shape))
    return tuple(found)
