"""Which files one read schema serves: shapes are merged while every reading stays correct.

Columns of a table are computed from those that were read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shelduck.errors import InvalidRequest
from shelduck.model.files.readable import How
from shelduck.model.files.resolve import Node, Resolved
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.types.data_types import DataType, Decimal, Leaf
from shelduck.model.types.literals import canonical_text

ReadItem = tuple[str, DataType, str | None]
ConstantItem = tuple[str, int, Field]

# Both of Spark's readers fill in these defaults in files that lack the column.
_NATIVE_DEFAULTS = frozenset(
    """boolean int8 int16 int32 int64 uint8 uint16 uint32 float32 float64 date
    timestamp timestamp_s timestamp_ms timestamptz timestamp_ns timestamptz_ns varchar
    json""".split()
)

# Beyond this, the vectorized reader of Spark 4.3 fails with "BigInteger out of long range".
_NATIVE_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Shape:
    """What the files of a group share; ``path`` is the first of them."""

    resolved: Resolved
    with_deletes: bool
    path: str

    def merged(self, other: Shape) -> Shape | None:
        """Return the shape that reads the files of both correctly, or None."""
        one, two = self.resolved, other.resolved
        if one.snapshot_column != two.snapshot_column or not _row_ids_agree(one, two):
            return None
        nodes: list[Node] = []
        for a, b in zip(one.nodes, two.nodes, strict=True):
            found = _merged(a, b, one.names, two.names, top=True)
            if found is None:
                return None
            nodes.append(found)
        resolved = replace(
            one,
            nodes=tuple(nodes),
            names=one.names | two.names,
            row_id_column=one.row_id_column or two.row_id_column,
        )
        # One scan costs less than a union, which hands over its rows one by one.
        with_deletes = self.with_deletes or other.with_deletes
        return replace(self, resolved=resolved, with_deletes=with_deletes)


def _row_ids_agree(one: Resolved, two: Resolved) -> bool:
    """Return whether one name reads the stored row ids of both, NULL where there are none."""
    a, b = one.row_id_column, two.row_id_column
    if a is None or b is None:
        return (a or b or "").lower() not in (one.names if a is None else two.names)
    return a == b


def _merged(
    a: Node, b: Node, a_names: frozenset[str], b_names: frozenset[str], *, top: bool
) -> Node | None:
    if a == b:
        return a
    if a.null or b.null or a.constant is not None or b.constant is not None:
        return None
    if a.name is None or b.name is None:
        there, other_names = (b, a_names) if a.name is None else (a, b_names)
        assert there.name is not None
        is_free = there.name.lower() not in other_names
        return there if is_free and _absence_reads_right(there, top=top) else None
    alike = (a.name, a.read, a.how, a.witness) == (b.name, b.read, b.how, b.witness)
    if not alike or a.witness is not None:
        return None
    children: list[Node] = []
    for one, two in zip(a.children, b.children, strict=True):
        found = _merged(one, two, a.names, b.names, top=False)
        if found is None:
            return None
        children.append(found)
    return replace(a, children=tuple(children), names=a.names | b.names)


def _absence_reads_right(node: Node, *, top: bool) -> bool:
    """Return whether Spark alone reads a file without this node's column as the table says."""
    field = node.field
    if field.initial_default is None:
        return True
    if not top or not field.is_leaf or node.how is not None or node.read != field.shape:
        return False
    return default_is_native(field)


def default_is_native(field: Field) -> bool:
    """Return whether Spark can fill in the field's initial default in files that lack it."""
    if isinstance(field.shape, Decimal):
        return field.shape.precision <= _NATIVE_DIGITS
    name = str(field.shape)
    text = field.initial_default or ""
    plain = text.isascii() and "infinity" not in text.lower() and "(BC)" not in text
    return name in _NATIVE_DEFAULTS and (plain or name in ("varchar", "json"))


def group_of(
    shape: Shape,
) -> tuple[tuple[ReadItem, ...], tuple[Expression, ...], tuple[ConstantItem, ...]]:
    """Return a shape's read schema, one expression per column, and its constants."""
    read: list[ReadItem] = []
    outputs: list[Expression] = []
    constants: list[ConstantItem] = []
    for node in shape.resolved.nodes:
        if node.constant is not None:
            name = f"__shelduck_partition_{node.field.id}"
            constants.append((name, node.constant, node.field))
            outputs.append(Constant(name, node.field.leaf))
            continue
        if node.is_read:
            assert node.name is not None
            read.append((node.name, node.read_type, _native_default(node)))
            outputs.append(_value(node, Column(node.name), f"{shape.path}: {node.field.name}", 0))
        else:
            outputs.append(_absent(node))
    return tuple(read), tuple(outputs), tuple(constants)


def _native_default(node: Node) -> str | None:
    field = node.field
    is_direct = field.is_leaf and node.how is None and node.read == field.shape
    if field.initial_default is None or not is_direct or not default_is_native(field):
        return None
    return _canonical(field)


def _canonical(field: Field) -> str | None:
    """Return the initial default in its canonical text, or unchanged if it has none."""
    if field.initial_default is None:
        return None
    try:
        return canonical_text(field.leaf, field.initial_default)
    except InvalidRequest:
        return field.initial_default


def _absent(node: Node) -> Expression:
    if node.null or not node.field.is_leaf:
        return Literal(None, node.field.type)
    return Literal(_canonical(node.field), node.field.type)


def _value(node: Node, source: Expression, where: str, depth: int) -> Expression:
    """Return how to compute the field's value from ``source``, the node as it was read."""
    field = node.field
    if field.is_leaf:
        if node.how is None:
            return source
        return Convert(source, field.leaf, node.how, where)
    if node.is_read and node.read_type == _without_nulls(node.field) and _is_plain(node):
        return source
    if _is_castable(node):
        return Recast(source, field.type)
    if field.shape is Kind.STRUCT:
        return _built(node, source, where, depth)
    if field.shape is Kind.LIST:
        variable = Variable(f"x{depth}")
        return Each(source, variable, _part(node.children[0], variable, where, depth + 1))
    key, value = Variable(f"k{depth}"), Variable(f"v{depth}")
    return Entries(
        source,
        key,
        value,
        _part(node.children[0], key, where, depth + 1),
        _part(node.children[1], value, where, depth + 1),
    )


def _part(node: Node, source: Expression, where: str, depth: int) -> Expression:
    return _value(node, source, where, depth) if node.is_read else _absent(node)


def _built(node: Node, source: Expression, where: str, depth: int) -> Expression:
    members: list[tuple[str, Expression]] = []
    for child in node.children:
        made = _absent(child)
        if child.is_read:
            assert child.name is not None
            made = _value(child, Part(source, child.name), where, depth)
        members.append((child.field.name, made))
    return Build(source, tuple(members))


def _without_nulls(field: Field) -> DataType:
    """Return the field's type as `Node.read_type` writes types: every part nullable."""
    bare = replace(
        field, children=tuple(replace(c, nullable=True) for c in map(_nullable, field.children))
    )
    return bare.type


def _nullable(field: Field) -> Field:
    return replace(field, nullable=True, children=tuple(map(_nullable, field.children)))


def _is_plain(node: Node) -> bool:
    """Return whether no leaf below needs more than its reading."""
    return node.is_read and node.how is None and all(_is_plain(c) for c in node.children)


def _is_castable(node: Node) -> bool:
    """Return whether Spark's cast by position gives the field: all parts, plain casts only."""
    if not node.is_read or node.witness is not None:
        return False
    if node.field.is_leaf:
        return node.how in (None, How.CAST)
    return all(_is_castable(c) for c in node.children)


@dataclass(frozen=True, slots=True)
class Column:
    """A top-level column of the read schema."""

    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """A member of a struct."""

    source: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """The element, key or value over which an enclosing `Each` or `Entries` runs."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A per-file constant, by its name: text that is read as a value of ``type``."""

    name: str
    type: Leaf


@dataclass(frozen=True, slots=True)
class Literal:
    """A value of ``type`` by its DuckLake text; None is NULL, the only value of nested types."""

    text: str | None
    type: DataType


@dataclass(frozen=True, slots=True)
class Convert:
    """A leaf converted from another type; ``where`` names file and column in a check's error."""

    source: Expression
    target: Leaf
    how: How
    where: str = ""


@dataclass(frozen=True, slots=True)
class Recast:
    """A nested value of the same shape with other names and wider leaves, matched by position."""

    source: Expression
    target: DataType


@dataclass(frozen=True, slots=True)
class Build:
    """A struct with new members; NULL if ``source`` is NULL."""

    source: Expression
    members: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Each:
    """A list with a new value for each element."""

    source: Expression
    variable: Variable
    element: Expression


@dataclass(frozen=True, slots=True)
class Entries:
    """A map with new keys and values."""

    source: Expression
    key_variable: Variable
    value_variable: Variable
    key: Expression
    value: Expression


Expression = (
    Column | Part | Variable | Constant | Literal | Convert | Recast | Build | Each | Entries
)
