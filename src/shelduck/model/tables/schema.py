"""A table's columns as a tree of fields with ids, and how to find one of them.

A nested column is a field with children: a struct's members by name, a list's ``element``, a map's
``key`` and ``value``. Every node has its own id (DuckLake's ``column_id``), never used again in the
table. Names are compared without case, as in Spark and DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, NewType

from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.text.names import quote_name, quote_text, require_storable
from shelduck.model.types.data_types import (
    DataType,
    Decimal,
    Leaf,
    List,
    Map,
    Member,
    Primitive,
    Struct,
    Text,
    members_of,
)

FieldId = NewType("FieldId", int)
TableId = NewType("TableId", int)
SchemaId = NewType("SchemaId", int)
SnapshotId = NewType("SnapshotId", int)

Path = tuple[str, ...]


class Kind(Enum):
    """The three nested kinds, by their ``column_type`` text."""

    STRUCT = "struct"
    LIST = "list"
    MAP = "map"

    def __str__(self) -> str:
        return self.value

    def type_of(self, members: Iterable[Member]) -> DataType:
        """Return the type of this kind with these members; only those of structs need names."""
        if self is Kind.STRUCT:
            return Struct(tuple(members))
        types = [member.type for member in members]
        return List(*types) if self is Kind.LIST else Map(*types)


_KINDS: dict[type, Kind] = {Struct: Kind.STRUCT, List: Kind.LIST, Map: Kind.MAP}
# Columns that scans, changes of rows and files have beside those of a table begin with these.
_RESERVED = ("__shelduck_", "_ducklake_internal_")
_SPENT = "__shelduck_spent"
NO_DEFAULT = "NULL"
"""The text that DuckLake writes if a column has no default, instead of SQL NULL."""


@dataclass(frozen=True, slots=True)
class Default:
    """The value that new rows get when a write leaves the column out.

    ``text`` is DuckDB text: of the value when ``literal``, else of a SQL expression.
    """

    text: str
    literal: bool = True

    def __str__(self) -> str:
        return quote_text(self.text) if self.literal else self.text


@dataclass(frozen=True, slots=True)
class Field:
    """One node of a schema; ``shape`` is a leaf type or the nested kind.

    ``initial_default`` is the value (DuckDB text) as which files without this id are read; None is
    NULL.
    """

    id: FieldId
    name: str
    shape: Leaf | Kind
    children: tuple[Field, ...] = ()
    nullable: bool = True
    initial_default: str | None = None
    default: Default | None = None
    order: int = 0

    @property
    def type(self) -> DataType:
        """The field's type without ids."""
        return self.commented({})

    def commented(self, comments: Mapping[FieldId | None, str]) -> DataType:
        """Return the type without ids, with the comments of the fields below."""
        if not isinstance(self.shape, Kind):
            return self.shape
        return self.shape.type_of(
            Member(c.name, c.commented(comments), c.nullable, comments.get(c.id))
            for c in self.children
        )

    @property
    def is_leaf(self) -> bool:
        """True for a leaf: below it are values, not other fields."""
        return not isinstance(self.shape, Kind)

    @property
    def leaf(self) -> Leaf:
        """The type of a leaf; a nested field has none."""
        assert not isinstance(self.shape, Kind)
        return self.shape

    def child(self, name: str) -> Field | None:
        """Return the child with that name, without regard to case."""
        lowered = name.lower()
        return next((c for c in self.children if c.name.lower() == lowered), None)

    def walk(self) -> Iterator[Field]:
        """Yield this field and all below it in pre-order, the order in which ids are assigned."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Field]:
        """Yield the leaves below this field, or itself."""
        return (f for f in self.walk() if f.is_leaf)


class ColumnRow(NamedTuple):
    """A field as one row of the catalog has it: without children, and with the parent's id."""

    field: Field
    parent: FieldId | None


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field before and after; ``before`` is None if it is new, and ``after`` if it goes."""

    before: ColumnRow | None
    after: ColumnRow | None

    @property
    def retyped(self) -> tuple[Field, Field] | None:
        """The field before and after, if it gets another type."""
        if self.before is None or self.after is None:
            return None
        old, new = self.before.field, self.after.field
        return None if old.shape == new.shape else (old, new)


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """Where columns are; nested ones are fields too, but have no place of their own."""

    by_id: dict[int, Field]
    places: dict[str, int]
    """The positions of columns, by their names in lower case."""
    moved: frozenset[int]
    """Fields whose order is not their id."""
    limited: frozenset[int]
    """Fields whose texts may have only so many characters."""

    @classmethod
    def of(cls, fields: Sequence[Field], first: int = 0) -> ColumnIndex:
        """Return the index of columns, the first of which is at this position."""
        every = list(walk(fields))
        return cls(
            {f.id: f for f in every},
            # The first of several with a name counts.
            {f.name.lower(): first + n for n, f in reversed(list(enumerate(fields)))},
            frozenset(f.id for f in every if f.order != f.id),
            frozenset(f.id for f in every if isinstance(f.shape, Text)),
        )

    def changed(self, old: tuple[Field, ...], new: tuple[Field, ...]) -> ColumnIndex:
        """Return the index of ``new``, given that this is the one of ``old``."""
        was, now = changed_part(old, new)
        if len(old) != len(new) and was.stop != len(old):
            # The columns behind it have other places.
            return ColumnIndex.of(new)
        added = ColumnIndex.of(new[now], now.start)
        by_id, places = self.by_id.copy(), self.places.copy()
        gone = [f.id for f in walk(old[was])]
        for number in gone:
            del by_id[number]
        for f in old[was]:
            del places[f.name.lower()]
        by_id.update(added.by_id)
        places.update(added.places)
        return ColumnIndex(
            by_id,
            places,
            self.moved.difference(gone) | added.moved,
            self.limited.difference(gone) | added.limited,
        )


def walk(fields: Iterable[Field]) -> Iterator[Field]:
    """Yield every field, nested ones included, in pre-order."""
    for top in fields:
        # Tables have thousands of columns without children.
        if top.children:
            yield from top.walk()
        else:
            yield top


def changed_part(old: tuple[Field, ...], new: tuple[Field, ...]) -> tuple[slice, slice]:
    """Return the smallest parts of two tuples of fields outside of which they are the same.

    A text of another length is another one here, though its type is equal. Fields that are the same
    objects are not looked into.
    """
    was, now, shorter = len(old), len(new), min(len(old), len(new))
    first = _equal(shorter, lambda a, b: _are_same(old[a:b], new[a:b]))
    last = _equal(
        shorter - first, lambda a, b: _are_same(old[was - b : was - a], new[now - b : now - a])
    )
    return slice(first, was - last), slice(first, now - last)


def _are_same(some: Sequence[Field], others: Sequence[Field]) -> bool:
    if some != others:
        return False
    pairs = [(a, b) for a, b in zip(some, others, strict=True) if a is not b]
    return all(_lengths(a) == _lengths(b) for a, b in pairs)


def _lengths(field: Field) -> list[int | None]:
    shapes = [f.shape for f in walk((field,))]
    return [s.length if isinstance(s, Text) else None for s in shapes]


def _equal(most: int, is_equal: Callable[[int, int], bool]) -> int:
    """Return how many items are equal, up to the first that is not."""
    if is_equal(0, most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if is_equal(low, middle):
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table at one snapshot, in order."""

    fields: tuple[Field, ...]
    _known: list[ColumnIndex] = field(
        default_factory=list, init=False, repr=False, compare=False, hash=False
    )

    @property
    def index(self) -> ColumnIndex:
        """Where the columns are; found at the first use."""
        if not self._known:
            self._known.append(ColumnIndex.of(self.fields))
        return self._known[0]

    @property
    def names(self) -> list[str]:
        """Top-level column names in order."""
        return [f.name for f in self.fields]

    def walk(self) -> Iterator[Field]:
        """Yield every field, nested ones included, in pre-order."""
        return walk(self.fields)

    def leaves(self) -> Iterator[Field]:
        """Yield every leaf in pre-order."""
        return (f for f in self.walk() if f.is_leaf)

    def by_id(self, field_id: int) -> Field | None:
        """Return the field with that id."""
        return self.index.by_id.get(field_id)

    def find(self, path: Path) -> Field | None:
        """Return the field at ``path``; its parts are ``element``, ``key``, ``value`` and names."""
        at = self.index.places.get(path[0].lower()) if path else None
        found = None if at is None else self.fields[at]
        for part in path[1:]:
            found = None if found is None else found.child(part)
        return found

    def with_fields(self, fields: Iterable[Field]) -> Schema:
        """Return a schema with these columns, most of which may be the same."""
        made = Schema(tuple(fields))
        if self._known:
            made._known.append(self.index.changed(self.fields, made.fields))
        return made

    def changes(self, new: Schema) -> tuple[FieldChange, ...]:
        """Return the fields that are not the same here and in ``new``, found by their ids."""
        was, now = changed_part(self.fields, new.fields)
        before, after = (
            {row.field.id: row for row in flattened(fields)}
            for fields in (self.fields[was], new.fields[now])
        )
        pairs = ((before.get(number), after.get(number)) for number in before | after)
        return tuple(FieldChange(old, made) for old, made in pairs if old != made)

    def get(self, path: Path, table: str = "the table") -> Field:
        """Return the field at ``path`` or raise NotFound naming similar ones."""
        found = self.find(path)
        if found is not None:
            return found
        parent = self.find(path[:-1])
        known = [path_text((*path[:-1], f.name)) for f in parent.children] if parent else self.names
        raise NotFound.named("column", path_text(path), known, where=table)

    def replace(self, path: Path, new: Field | None) -> Schema:
        """Return the schema with the field at ``path`` replaced or removed."""
        at = self.index.places.get(path[0].lower())
        if at is None:
            return self
        changed = _replaced((self.fields[at],), path, new)
        return self.with_fields((*self.fields[:at], *changed, *self.fields[at + 1 :]))

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __str__(self) -> str:
        return "\n".join(
            f"{quote_name(f.name)} {f.type}{'' if f.nullable else ' NOT NULL'}" for f in self.fields
        )


def flattened(fields: Iterable[Field], parent: FieldId | None = None) -> list[ColumnRow]:
    """Return what has a row of its own: every field without its children, in pre-order."""
    found: list[ColumnRow] = []
    for f in fields:
        found.append(ColumnRow(replace(f, children=()) if f.children else f, parent))
        found += flattened(f.children, f.id)
    return found


def with_paths(fields: Iterable[Field], above: Path = ()) -> Iterator[tuple[Path, Field]]:
    """Yield every field with its path, nested ones included, in pre-order."""
    for made in fields:
        path = (*above, made.name)
        yield path, made
        yield from with_paths(made.children, path)


def path_text(path: Path) -> str:
    """Return a path as it is written in a statement: ``s.f``, quoted where it must be."""
    return ".".join(quote_name(p) for p in path)


def new_field(name: str, data_type: DataType, next_id: int, *, nullable: bool = True) -> Field:
    """Return a field of ``data_type`` whose nodes get ids from ``next_id`` on, in pre-order.

    Raises InvalidRequest for an empty name, which SQL cannot write, and for a reserved name.
    """
    if not name:
        raise InvalidRequest("the name of a column is empty")
    require_storable("column", name)
    require_free_name(name)
    children: list[Field] = []
    below = next_id + 1
    for member in members_of(data_type):
        # DuckLake knows NOT NULL of columns only.
        child = new_field(member.name, member.type, below)
        below += sum(1 for _ in child.walk())
        children.append(child)
    shape = data_type if isinstance(data_type, Primitive | Decimal) else _KINDS[type(data_type)]
    return Field(FieldId(next_id), name, shape, tuple(children), nullable, order=next_id)


def comments_below(made: Field, data_type: DataType) -> dict[FieldId | None, str]:
    """Return the comments that a type has for its fields, by the ids of the fields below ``made``.

    Fields that only one of them has are left out.
    """
    pairs = [(made.child(member.name), member) for member in members_of(data_type)]
    both = [(child, member) for child, member in pairs if child is not None]
    return comments_of([child for child, _ in both], [member for _, member in both])


def comments_of(columns: Iterable[Field], members: Sequence[Member]) -> dict[FieldId | None, str]:
    """Return the comments of new columns, and of all fields in them."""
    found: dict[FieldId | None, str] = {}
    for made, member in zip(columns, members, strict=True):
        if member.comment is not None:
            found[made.id] = member.comment
        found |= comments_below(made, member.type)
    return found


def require_free_name(name: str, table: str | None = None) -> None:
    """Refuse a column's name that readers and writers of rows need for their own columns."""
    if is_reserved(name):
        where = "" if table is None else f" of {table}"
        raise InvalidRequest(
            f"column name {name!r}{where} is reserved, like all names that begin with"
            f" {' or '.join(_RESERVED)}; choose another name"
        )


def is_reserved(name: str) -> bool:
    """Return whether a column's name is one that only Shelduck and DuckLake give."""
    return name.lower().startswith(_RESERVED)


def in_places(fields: Sequence[Field]) -> tuple[Field, ...]:
    """Return sibling fields with increasing orders, with as few changes as possible.

    An order is the id of its own field, or a number that is the id of no sibling: DuckDB gives a
    column that it alters or adds the id as its order, which is then never the order of another
    column.
    """
    ids = {f.id for f in fields}
    found: list[Field] = []
    last = 1 + max(ids, default=0)
    for f in reversed(fields):
        wanted = (n for n in (f.id, f.order, last - 1) if n < last)
        order = next((n for n in wanted if n == f.id or n not in ids), min(last, 1) - 1)
        # Of many columns, a change touches few.
        found.append(f if f.order == order else replace(f, order=order))
        last = order
    return tuple(reversed(found))


def spent(columns: Schema, last: int, known: int = 0) -> tuple[Field, ...]:
    """Return what takes the ids up to ``last`` that ``columns`` leave free: nothing, or one field.

    Ids up to ``known`` are already taken. Files may contain a column even if it came and went
    before anybody saw it.
    """
    if last <= known or columns.by_id(last) or last <= max(columns.index.by_id):
        return ()
    return (Field(FieldId(last), _SPENT, Primitive("varchar"), order=last),)


def retyped(before: Schema, after: Schema) -> frozenset[FieldId]:
    """Return the leaves that both have, with another type."""
    types = {f.id: f.shape for f in before.leaves()}
    return frozenset(f.id for f in after.leaves() if types.get(f.id, f.shape) != f.shape)


def new_schema(columns: list[Member]) -> Schema:
    """Return a schema with ids from 1 on; refuse no columns, and names that differ only by case."""
    if not columns:
        raise InvalidRequest("a table needs at least one column")
    fields: list[Field] = []
    next_id = 1
    for column in columns:
        if any(f.name.lower() == column.name.lower() for f in fields):
            raise InvalidRequest(f"column {column.name!r} is listed twice")
        made = new_field(column.name, column.type, next_id, nullable=column.nullable)
        next_id += sum(1 for _ in made.walk())
        fields.append(made)
    return Schema(tuple(fields))


def _replaced(fields: tuple[Field, ...], path: Path, new: Field | None) -> tuple[Field, ...]:
    lowered = path[0].lower()
    out: list[Field] = []
    for f in fields:
        if f.name.lower() != lowered:
            out.append(f)
        elif len(path) > 1:
            out.append(replace(f, children=_replaced(f.children, path[1:], new)))
        elif new is not None:
            out.append(new)
    return tuple(out)
