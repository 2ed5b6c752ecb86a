"""The columns of a Delta table from version to version, as columns of the lake with stable ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from shelduck.errors import InvalidRequest
from shelduck.formats.delta.delta_rules import DeltaRules, carried, delta_rules
from shelduck.formats.delta.delta_schema import (
    DeltaField,
    DeltaSchema,
    default_of,
    delta_schema,
    shape_of,
)
from shelduck.formats.delta.log import Metadata
from shelduck.model.files.adoption import holds_widened
from shelduck.model.files.data_file import PhysicalField
from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.lengths import with_lengths
from shelduck.model.tables.partition import IDENTITY
from shelduck.model.tables.properties import TYPE_WIDENING
from shelduck.model.tables.schema import Field, FieldId, Kind, Schema, in_places, require_free_name
from shelduck.model.tables.table_version import PartitionColumn, TableVersion
from shelduck.model.types.data_types import FLOATS
from shelduck.model.types.promotions import promotion


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one Delta version: ``origin`` has the Delta field of each column, by id.

    ``next_id`` is the first id that was never used; ``unsafe_bounds`` are leaves whose bounds are
    no longer valid after a type change.
    """

    schema: Schema
    delta: DeltaSchema
    origin: Mapping[FieldId, DeltaField]
    comments: dict[FieldId | None, str]
    partition: tuple[PartitionColumn, ...]
    next_id: int
    unsafe_bounds: frozenset[FieldId] = frozenset()
    properties: dict[str, str] = field(default_factory=dict)
    rules: DeltaRules = field(default_factory=DeltaRules)

    @property
    def keys(self) -> list[Field]:
        """The partition columns in order."""
        found = [self.schema.by_id(key.column_id) for key in self.partition]
        return [f for f in found if f is not None]

    def is_same(self, other: Columns) -> bool:
        """Return whether a change from one to the other needs no new metadata."""
        return (
            self.schema == other.schema
            and self.comments == other.comments
            and self.partition == other.partition
            and self.properties == other.properties
        )


NO_COLUMNS = Columns(Schema(()), DeltaSchema((), "none", ()), {}, {}, (), 1)
"""What is there before the version with which an import begins."""


def next_columns(
    before: Columns, metadata: Metadata, zone: str = "", *, has_nulls: bool = False
) -> Columns:
    """Return the columns of a version after another.

    A column is the previous column with its mapping id or, if columns are not mapped, with its
    name. If the previous values are not valid in its new type, it is another column. Its rules get
    a time ``zone``; ``has_nulls`` as for `delta_rules`.
    """
    build = _Build(before.schema.fields, before.origin, before.next_id)
    made = build.columns(metadata, before.properties)
    rules = delta_rules(metadata, made.schema, made.origin, zone, has_nulls=has_nulls)
    properties, columns = carried(made.properties, before.rules, rules), made.schema
    numbers = computed_of(properties, "the Delta table").identity
    field = None if numbers is None else columns.by_id(numbers.column)
    if field is not None:
        columns = columns.replace((field.name,), replace(field, nullable=False))
    return replace(made, schema=columns, properties=properties, rules=rules)


def known_columns(table: TableVersion, metadata: Metadata, zone: str = "") -> Columns | None:
    """Return the columns of a version that a table has now, None if it has others."""
    fresh = next_columns(NO_COLUMNS, metadata)
    pairs = list(zip(fresh.schema.walk(), table.columns.walk(), strict=False))
    same = len(pairs) == sum(1 for _ in table.columns.walk()) == len(fresh.origin)
    if not same or any(not _is_same(new, old) for new, old in pairs):
        return None
    ids = {new.id: old.id for new, old in pairs}
    partition = tuple(PartitionColumn(ids[k.column_id], IDENTITY) for k in fresh.partition)
    if partition != table.partition:
        return None
    origin = {ids[number]: found for number, found in fresh.origin.items()}
    return Columns(
        *(table.columns, fresh.delta, origin, dict(table.comments), partition),
        table.max_column_id + 1,
        properties=dict(table.properties),
        rules=delta_rules(metadata, table.columns, origin, zone),
    )


def _is_same(new: Field, old: Field) -> bool:
    return (new.name, new.shape, len(new.children)) == (old.name, old.shape, len(old.children))


@dataclass(eq=False)
class _Build:
    """One version's columns, based on those of the version before."""

    old: Sequence[Field]
    known: Mapping[FieldId, DeltaField]
    next_id: int
    keys: frozenset[str] = frozenset()
    origin: dict[FieldId, DeltaField] = field(default_factory=dict)
    comments: dict[FieldId | None, str] = field(default_factory=dict)
    unsafe: set[FieldId] = field(default_factory=set)

    def columns(self, metadata: Metadata, properties: Mapping[str, str]) -> Columns:
        delta = delta_schema(metadata)
        self.keys = frozenset(name.lower() for name in delta.partition_columns)
        schema = Schema(self._level(delta.fields, self.old, is_top=True))
        if metadata.description:
            self.comments[None] = metadata.description
        keys = []
        for name in delta.partition_columns:
            found = schema.find((name,))
            if found is None:
                raise InvalidRequest(f"partition column {name!r} is not a column of the table")
            keys.append(PartitionColumn(found.id, IDENTITY))
        kept = {k: v for k, v in properties.items() if k != TYPE_WIDENING}
        widening = metadata.configuration.get(TYPE_WIDENING)
        if widening in ("true", "false"):
            kept[TYPE_WIDENING] = widening
        kept = with_lengths(kept, schema)
        return Columns(
            *(schema, delta, self.origin, self.comments, tuple(keys), self.next_id),
            frozenset(self.unsafe),
            kept,
        )

    def _level(
        self, new: Sequence[DeltaField], old: Sequence[Field], *, is_top: bool = False
    ) -> tuple[Field, ...]:
        """Return sibling fields; each keeps its id if it is one of ``old``."""
        made: list[Field] = []
        for part in new:
            found = self._find(part, old)
            if is_top and found is not None and self._reads_anew(part, found):
                found = None
            made.append(self._field(part, found, is_top=is_top))
        return in_places(made)

    def _find(self, part: DeltaField, old: Sequence[Field]) -> Field | None:
        for f in old:
            before = self.known[f.id]
            if part.mapping_id is not None and before.mapping_id is not None:
                same = part.mapping_id == before.mapping_id
            else:
                # If column mapping is new, existing columns keep their names as physical names.
                same = part.physical.lower() == before.physical.lower()
            if same:
                return f if _can_be(f, part) else None
        return None

    def _reads_anew(self, part: DeltaField, old: Field) -> bool:
        """Return whether a partition column of floats becomes one of doubles.

        Its values are texts in the log, which Delta parses again as doubles: other numbers. So it
        is another column.
        """
        is_key = part.name.lower() in self.keys
        return is_key and (str(old.shape), str(part.shape)) == FLOATS

    def _field(self, part: DeltaField, old: Field | None, *, is_top: bool = False) -> Field:
        require_free_name(part.name)
        nullable = part.nullable or not is_top
        if old is None:
            made = Field(FieldId(self.next_id), part.name, shape_of(part), nullable=nullable)
            made = replace(made, order=made.id)
            self.next_id += 1
        else:
            self._note_promotion(old, part)
            made = replace(old, name=part.name, shape=shape_of(part), nullable=nullable)
        made = replace(made, default=default_of(part, made) if is_top else None)
        self.origin[made.id] = part
        comment = part.metadata.get("comment")
        if comment:
            self.comments[made.id] = comment
        below = old.children if old is not None else ()
        if part.shape is Kind.STRUCT:
            return replace(made, children=self._level(part.children, below))
        parts = zip(part.children, below or (None,) * len(part.children), strict=True)
        return replace(made, children=tuple(self._field(p, o) for p, o in parts))

    def _note_promotion(self, old: Field, part: DeltaField) -> None:
        if isinstance(part.shape, Kind) or isinstance(old.shape, Kind):
            return
        found = promotion(old.shape, part.shape)
        if not (found.is_light and found.bounds_hold):
            self.unsafe.add(old.id)


def _can_be(old: Field, new: DeltaField) -> bool:
    """Return whether all values of the old type are valid values of the new type."""
    if old.shape is Kind.STRUCT or new.shape is Kind.STRUCT:
        return old.shape is new.shape
    if isinstance(old.shape, Kind) or isinstance(new.shape, Kind):
        parts = zip(old.children, new.children, strict=False)
        return old.shape is new.shape and all(_can_be(o, n) for o, n in parts)
    return old.shape == new.shape or holds_widened(
        PhysicalField(old.name, None, old.shape), new.shape
    )
