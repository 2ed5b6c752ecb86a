"""Table columns found in one file: by field id, by a name mapping, or by position.

The rules are DuckLake's. Ids count if every top-level column of the file has one; a nested node
without an id is then absent. A name mapping replaces ids. A file with any top-level column without
an id is matched by position, and its nested parts are absent.

Writers differ in what their statistics say about NaN and wide decimals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.data_file import (
    ROW_ID_FIELD,
    SNAPSHOT_FIELD,
    DataFile,
    Layout,
    MappedName,
    NameMapping,
    PhysicalField,
)
from shelduck.model.files.readable import How, reading, reads_right
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import is_write_directory
from shelduck.model.types.data_types import FLOATS, DataType, Decimal, Leaf, Member, Primitive

_NO_VALUES = ("interval", "time_ns", "unknown")


@dataclass(frozen=True, slots=True)
class Node:
    """A table field in a file: ``name`` is its name in the file, None if the file lacks it.

    A leaf in the file is read as ``read``, and ``how`` converts it to the column's value. ``names``
    are all names (lower case) that the file has below a struct. If the file has no part of the
    field itself, ``witness`` is a part that is read only to tell null from not null. A ``constant``
    is the index of the column among the file's partition values; ``null`` marks a column without
    values.
    """

    field: Field
    name: str | None = None
    read: Leaf | None = None
    how: How | None = None
    children: tuple[Node, ...] = ()
    names: frozenset[str] = frozenset()
    witness: tuple[str, DataType] | None = None
    constant: int | None = None
    null: bool = False

    @property
    def read_type(self) -> DataType:
        """Return the type with which this node's column is read; the node must be in the file."""
        if not isinstance(self.field.shape, Kind):
            assert self.read is not None
            return self.read
        members = [Member(c.name or "", c.read_type) for c in self.children if c.is_read]
        if self.witness is not None:
            members.append(Member(*self.witness))
        return self.field.shape.type_of(members)

    @property
    def is_read(self) -> bool:
        """True if a column of the file, or a part of one, is read for this field."""
        return self.name is not None and not self.null


@dataclass(frozen=True, slots=True)
class Resolved:
    """A whole file: its top-level nodes in the table's order, and all its top-level names."""

    nodes: tuple[Node, ...]
    names: frozenset[str]
    row_id_column: str | None = None
    snapshot_column: str | None = None


def resolve(
    layout: Layout, fields: Sequence[Field], mapping: NameMapping | None, columns: Sequence[Field]
) -> Resolved:
    """Return where each of ``fields`` is in a file of that layout.

    ``columns`` are all columns of the table in order, by which a match by position counts. Raises
    Unsupported or CorruptLake, naming the column and both types, if there is no correct reading.
    """
    stored = _Siblings(layout.fields)
    names = frozenset(stored.by_name)
    if mapping is not None:
        mapped = _Mapped(mapping.names)
        nodes = tuple(_by_name(f, stored, mapped, ()) for f in fields)
        return Resolved(nodes, names)
    if any(f.id is None for f in layout.fields):
        place = {c.id: n for n, c in enumerate(columns)}
        nodes = tuple(_by_position(f, stored, place[f.id]) for f in fields)
        return Resolved(nodes, names)
    nodes = tuple(_by_id(f, stored, ()) for f in fields)
    return Resolved(
        nodes,
        names,
        row_id_column=_name_of(layout, ROW_ID_FIELD),
        snapshot_column=_name_of(layout, SNAPSHOT_FIELD),
    )


class _Siblings:
    """The columns of a file, or the parts of one, by id and by lower-case name."""

    def __init__(self, fields: Sequence[PhysicalField]) -> None:
        self.fields = fields
        self.by_id: dict[int | None, list[PhysicalField]] = {}
        self.by_name: dict[str, list[PhysicalField]] = {}
        for field in fields:
            self.by_id.setdefault(field.id, []).append(field)
            self.by_name.setdefault(field.name.lower(), []).append(field)


class _Mapped:
    """The names that files without ids have, by the id of the field."""

    def __init__(self, names: Sequence[MappedName]) -> None:
        self.by_id = {m.field_id: m for m in reversed(names)}
        self.keys = {m.field_id: n for n, m in enumerate(m for m in names if m.is_partition)}


def _name_of(layout: Layout, field_id: int) -> str | None:
    return next((f.name for f in layout.fields if f.id == field_id), None)


def _by_id(field: Field, siblings: _Siblings, path: tuple[str, ...]) -> Node:
    stored = siblings.by_id.get(field.id, [])
    if len(stored) > 1:
        raise CorruptLake(
            f"two columns in the file have the field id {field.id} of {_at(field, path)}"
        )
    if not stored:
        return Node(field)
    below = (*path, field.name)
    found = _node(field, stored[0], siblings, path)
    if field.is_leaf or found.null:
        return found
    parts = _Siblings(stored[0].children)
    children = tuple(_by_id(c, parts, below) for c in field.children)
    return _nested(found, children, stored[0], path)


def _by_position(field: Field, siblings: _Siblings, at: int) -> Node:
    if at >= len(siblings.fields):
        return Node(field)
    stored = siblings.fields[at]
    found = _node(field, stored, siblings, ())
    if field.is_leaf or found.null:
        return found
    return _nested(found, tuple(Node(c) for c in field.children), stored, ())


def _by_name(field: Field, siblings: _Siblings, mapped: _Mapped, path: tuple[str, ...]) -> Node:
    match = mapped.by_id.get(field.id)
    if match is None:
        return Node(field)
    if match.is_partition:
        return Node(field, constant=mapped.keys[field.id])
    stored = siblings.by_name.get(match.source_name.lower())
    return Node(field) if stored is None else _mapped(field, stored[0], siblings, match, path)


def _mapped(
    field: Field,
    stored: PhysicalField,
    siblings: _Siblings,
    match: MappedName,
    path: tuple[str, ...],
) -> Node:
    found = _node(field, stored, siblings, path)
    if field.is_leaf or found.null:
        return found
    below = (*path, field.name)
    children: list[Node] = []
    parts, mapped = _Siblings(stored.children), _Mapped(match.children)
    for at, child in enumerate(field.children):
        if field.shape is Kind.STRUCT:
            children.append(_by_name(child, parts, mapped, below))
            continue
        # The parts of a list or map are known by position: names are list, item, element ...
        inside = mapped.by_id.get(child.id)
        part = stored.children[at]
        alone = _Siblings((part,))
        known = Node(child) if inside is None else _mapped(child, part, alone, inside, below)
        children.append(known)
    return _nested(found, tuple(children), stored, path)


def _node(field: Field, stored: PhysicalField, siblings: _Siblings, path: tuple[str, ...]) -> Node:
    """Return the node of a field that is in the file; its children are found later."""
    if str(stored.shape) == "unknown":
        return Node(field, stored.name, null=True)
    same = len(siblings.by_name[stored.name.lower()])
    if same > 1:
        raise Unsupported(
            f"cannot read {_at(field, path)}: the file has {same} columns named {stored.name!r} if"
            " case is ignored, which Spark cannot tell apart; rewrite the file"
        )
    shape = stored.shape
    if isinstance(field.shape, Kind) or isinstance(shape, Kind):
        if shape is not field.shape:
            raise CorruptLake(_no_way(field, stored, path))
        return Node(field, stored.name)
    found = reading(stored, field.shape)
    if found is None:
        raise Unsupported(_no_way(field, stored, path))
    return Node(field, stored.name, found.read, found.how)


def _nested(
    node: Node, children: tuple[Node, ...], stored: PhysicalField, path: tuple[str, ...]
) -> Node:
    names = frozenset(c.name.lower() for c in stored.children)
    if node.field.shape is not Kind.STRUCT:
        # Spark finds these parts by position, so files may use any names for them.
        children = tuple(replace(c, name=c.name and c.field.name) for c in children)
        names = frozenset()
    found = replace(node, children=children, names=names)
    is_map = node.field.shape is Kind.MAP
    if is_map and not (children[0].is_read and (children[1].is_read or children[1].null)):
        raise CorruptLake(_no_parts(node.field, path))
    if any(c.is_read for c in children) and not (is_map and children[1].null):
        return found
    for part in stored.children[is_map:]:
        own = _own_type(part)
        if own is not None:
            return replace(found, witness=(part.name, own))
    raise Unsupported(
        f"cannot read {_at(node.field, path)}: no part of it in the file can be read, so it is"
        " unknown which values are NULL; select other columns with columns=[...]"
    )


def _own_type(stored: PhysicalField) -> DataType | None:
    """Return the type as which a stored node reads correctly, whatever it means."""
    if not isinstance(stored.shape, Kind):
        if stored.encoding == "fixed":
            return Primitive("blob")
        if str(stored.shape) == "unknown":
            return Primitive(stored.encoding or "int32")
        return stored.shape if reads_right(stored, stored.shape) else None
    parts = [(c.name, _own_type(c)) for c in stored.children]
    known = [Member(name, kind) for name, kind in parts if kind is not None]
    if not known or (stored.shape is not Kind.STRUCT and len(known) < len(parts)):
        return None
    return stored.shape.type_of(known)


def refuse_unreadable(field: Field) -> None:
    """Raise Unsupported if a column or a part of it has a type without values in Spark."""
    for leaf in field.leaves():
        if str(leaf.shape) in _NO_VALUES:
            where = field.name if leaf is field else f"{field.name} ({leaf.name})"
            raise Unsupported(
                f"column {where!r} is {leaf.shape}, which Spark does not support; select other"
                " columns with columns=[...], or read it with DuckDB"
            )


def _at(field: Field, path: tuple[str, ...]) -> str:
    return f"column {'.'.join((*path, field.name))!r}"


def _no_way(field: Field, stored: PhysicalField, path: tuple[str, ...]) -> str:
    return (
        f"{_at(field, path)} is {field.shape} in the table but {stored.stored_as} (column"
        f" {stored.name!r}) in the file, and there is no correct conversion; rewrite the file with"
        " DuckDB (delete its rows and insert them again), or select other columns with"
        " columns=[...]"
    )


def _no_parts(field: Field, path: tuple[str, ...]) -> str:
    return (
        f"{_at(field, path)} is a map whose keys and values have no field ids in the file, so they"
        " cannot be matched; add the file again with ducklake_add_data_files, which maps columns"
        " by name, or select other columns with columns=[...]"
    )


# Whose statistics can be trusted: for Spark, NaN is greater than every number. If a writer leaves
# NaN out of its bounds, as pyarrow does, a row group looks as if it held nothing greater than its
# bounds. In the catalog, DuckDB 1.5 says of NaN only what is true of a file's last row group, and
# it has mixed up the bounds of wide decimals of several row groups.
_WRITE_LENGTH = 36
_SAFE_DIGITS = 18


def untrusted_columns(
    table: TableVersion, nodes: Iterable[Node], files: Iterable[DataFile]
) -> tuple[str, ...]:
    """Return the float columns that are read, if some file is not known to be Shelduck's.

    The name of a write shows this: only Shelduck ends it with the digits of the table's uuid.
    """
    floats = [n.name for n in nodes if n.is_read and n.name is not None and _holds_float(n)]
    if not floats or all(is_own(table, file.path) for file in files):
        return ()
    return tuple(floats)


def needs_own_bounds(written: Leaf) -> bool:
    """Return whether bounds of a type are certain to be right only if Shelduck wrote them."""
    return isinstance(written, Decimal) and written.precision > _SAFE_DIGITS


def is_trusted(table: TableVersion | None, path: str, written: Leaf) -> bool:
    """Return whether the catalog is certain to be right about values of a type in a file.

    If it is not, it may be wrong about NaN, and about the bounds of decimals.
    """
    if str(written) not in FLOATS and not needs_own_bounds(written):
        return True
    return table is not None and is_own(table, path)


def is_own(table: TableVersion, path: str) -> bool:
    """Return whether the path of a data file shows that Shelduck wrote it for this table."""
    if not path.startswith(table.path):
        return False
    below = path[len(table.path) :]
    starts = (below, below.rpartition("/")[2])
    return any(is_write_directory(start[:_WRITE_LENGTH], table.uuid) for start in starts)


def _holds_float(node: Node) -> bool:
    return any(str(leaf.read) in FLOATS for leaf in _leaves(node))


def _leaves(node: Node) -> Iterator[Node]:
    if node.read is not None:
        yield node
    for child in node.children:
        yield from _leaves(child)
