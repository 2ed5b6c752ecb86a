"""Which types the columns of a table have had: Delta's ``delta.typeChanges``, from the catalog.

DuckLake keeps every version of a column, so the history is not stored separately. A change belongs
to the nearest struct field, which is a column or a member. Inside maps and lists it has a path of
``key``, ``value`` and ``element`` from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shelduck.model.files.compaction import ColumnVersion
from shelduck.model.files.data_file import PhysicalField
from shelduck.model.files.resolve import Node
from shelduck.model.shadows.proof import is_narrower
from shelduck.model.tables.schema import Field, FieldId, Kind, Path, Schema
from shelduck.model.types.accepted import delta_word
from shelduck.model.types.data_types import Leaf, ducklake_type
from shelduck.model.types.temporal import TIMESTAMP_NAMES

# How types that Delta does not have are shown.
_SHOWN_AS = {
    "json": "string",
    "uuid": "string",
    "timestamp_s": "timestamp_ntz",
    "timestamp_ms": "timestamp_ntz",
}
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
class TypeChange:
    """One change of one leaf, in DuckLake's types; ``field_path`` is empty outside of collections.

    ``snapshot`` is the one that made the change.
    """

    source: Leaf
    target: Leaf
    snapshot: int
    field_path: Path = ()

    def as_delta(self) -> dict[str, str]:
        """Return the entry of ``delta.typeChanges``; a type unknown to Delta keeps its name."""
        told = {"fromType": delta_type(self.source), "toType": delta_type(self.target)}
        return told | ({"fieldPath": ".".join(self.field_path)} if self.field_path else {})


def delta_type(leaf: Leaf) -> str:
    """Return a type in Delta's words, or in DuckLake's if Delta does not have it."""
    return delta_word(leaf) or _SHOWN_AS.get(str(leaf), str(leaf))


def type_changes(
    columns: Schema, versions: Iterable[ColumnVersion], *, at: int, forgotten_at: int = 0
) -> dict[Path, tuple[TypeChange, ...]]:
    """Return the changes of every struct field that has some, in order, by its path.

    ``at`` is the snapshot of ``columns``; changes up to ``forgotten_at`` do not count. Changes that
    a later one reverted (RESTORE) are not included.
    """
    by_id = _by_id(versions, at)
    found: dict[Path, tuple[TypeChange, ...]] = {}
    for top in columns:
        _gather(top, (top.name,), by_id, forgotten_at, found)
    return found


def earlier_types(
    columns: Schema, versions: Iterable[ColumnVersion], *, at: int, forgotten_at: int = 0
) -> dict[FieldId, tuple[Leaf, ...]]:
    """Return the types that each leaf had before, oldest first, as `type_changes` finds them."""
    by_id = _by_id(versions, at)
    return {
        leaf.id: tuple(change.source for change in _of_leaf(by_id[leaf.id], (), forgotten_at))
        for top in columns
        for leaf in top.leaves()
    }


def first_narrowing(versions: Iterable[ColumnVersion], first: int, last: int) -> int | None:
    """Return the first snapshot after ``first``, by ``last``, that made a column narrower.

    Rows that were deleted before may not fit.
    """
    found = []
    for chain in _by_id(versions, last).values():
        for one, other in pairwise(sorted(chain, key=lambda v: v.begin)):
            is_later = other.begin > first and one.type != other.type and one.type and other.type
            if is_later and is_narrower(ducklake_type(one.type), ducklake_type(other.type)):
                found.append(other.begin)
    return min(found, default=None)


def _by_id(versions: Iterable[ColumnVersion], at: int) -> dict[FieldId, list[ColumnVersion]]:
    by_id: dict[FieldId, list[ColumnVersion]] = defaultdict(list)
    for version in versions:
        if version.begin <= at:
            by_id[version.id].append(version)
    return by_id


def _gather(
    field: Field,
    path: Path,
    versions: Mapping[FieldId, list[ColumnVersion]],
    forgotten_at: int,
    found: dict[Path, tuple[TypeChange, ...]],
) -> None:
    """Add the changes of one struct field, then those of the struct fields below it."""
    own: list[TypeChange] = []
    open_parts: list[tuple[Field, Path]] = [(field, ())]
    members: list[tuple[Field, Path]] = []
    while open_parts:
        part, inside = open_parts.pop(0)
        if part.is_leaf:
            own += _of_leaf(versions[part.id], inside, forgotten_at)
        elif part.shape is Kind.STRUCT:
            members += [(child, (*path, *inside, child.name)) for child in part.children]
        else:
            open_parts += [(child, (*inside, child.name)) for child in part.children]
    if own:
        found[path] = tuple(sorted(own, key=lambda change: change.snapshot))
    for member, below in members:
        _gather(member, below, versions, forgotten_at, found)


def _of_leaf(
    versions: Iterable[ColumnVersion], inside: Path, forgotten_at: int
) -> Iterable[TypeChange]:
    chain: list[tuple[Leaf, int]] = []
    for version in sorted(versions, key=lambda v: v.begin):
        leaf = ducklake_type(version.type)
        known = [n for n, (other, _) in enumerate(chain) if other == leaf]
        if version.begin <= forgotten_at:
            chain = [(leaf, version.begin)]
        elif known:
            chain = chain[: known[0] + 1]
        else:
            chain.append((leaf, version.begin))
    return [
        TypeChange(one, other, begin, inside)
        for (one, _), (other, begin) in pairwise(chain)
        if delta_type(one) != delta_type(other)
    ]


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
        assert not isinstance(leaf.shape, Kind)
        known = (str(field.leaf), *_STORED_AS.get(str(field.leaf), ()))
        # Old writers store instants and local times as the same timestamps.
        is_old_timestamp = leaf.encoding == "int96" and str(field.leaf) in TIMESTAMP_NAMES
        if str(leaf.shape) not in known and not is_old_timestamp:
            found.append(OlderType(path, leaf.shape, field.leaf))
    return tuple(found)
