"""Columns that replace others of another type: how they are planned and found again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.change import AlterTable
from shelduck.model.changes.retype import conversion_verdict
from shelduck.model.changes.schema_change import ChangeType
from shelduck.model.tables.column_storage import COLUMN_STORAGE, moved_storage
from shelduck.model.tables.schema import (
    Default,
    Field,
    FieldId,
    Kind,
    Path,
    Schema,
    in_places,
    new_field,
    path_text,
    with_paths,
)
from shelduck.model.tables.table_version import Conversion, Snapshot, TableVersion, shadow_name
from shelduck.model.types.accepted import TEMPORAL
from shelduck.model.types.data_types import (
    FLOATS,
    SIGNED,
    UNSIGNED,
    DataType,
    Decimal,
    Leaf,
    Member,
    Primitive,
    Text,
    parse_type,
    type_text,
)
from shelduck.model.types.literals import as_float32, blob_bytes, blob_text, canonical_text
from shelduck.model.types.promotions import Promotion, Verdict, is_number, promotion

_ANY_TEXT = Primitive("varchar")
# Without a time zone: hours that happen twice have no order there.
_OF_CALENDAR = TEMPORAL - {"timestamptz"}
_IN_DICTIONARIES = frozenset({"varchar", "json", *FLOATS})


@dataclass(frozen=True, slots=True)
class Shadow:
    """A column that replaces another one: ``field`` has its id, its type and the old name."""

    old: Field
    field: Field
    conversion: Conversion


def verdict_on(column: Field, change: ChangeType) -> Promotion:
    """Return what a type change of a top-level column, or of a part of it, needs.

    The column is judged as a whole: a change in a map's key affects the whole map, and the whole
    column is rewritten.
    """
    return conversion_verdict(column.type, _with_type(column, change.path[1:], change.type))


def plan_shadow(
    table: TableVersion, columns: Schema, change: ChangeType, number: int, clause: int
) -> Shadow:
    """Return the column that a heavy change needs, with ids from ``number`` on.

    ``columns`` are the table's columns after the clauses before. A change below a top-level column
    replaces the whole column. Raises Unsupported for types to which values cannot be converted.
    """
    name = table.full_name
    old = columns.get(change.path[:1], name)
    below = columns.get(change.path, name)
    told = f"cannot change {path_text(change.path)} of {name} from {below.type} to {change.type}"
    if change.using is not None:
        require_usable(change, told)
    target = _with_type(old, change.path[1:], change.type)
    conversion = Conversion(
        old.id,
        FieldId(number),
        str(old.type),
        type_text(target),
        change.using,
        change.on_error_null,
        clause,
        tuple(f.id for f in old.walk()),
        () if change.using is None else named_columns(table.columns.fields),
        old.nullable and (change.on_error_null or change.using is not None),
    )
    return Shadow(old, _field(old, target, number, name), conversion)


def known_shadow(old: Field, conversion: Conversion, table: str) -> Shadow:
    """Return a shadow again, for the current state of its column."""
    made = _field(old, parse_type(conversion.target), conversion.shadow_id, table)
    if conversion.shadow_parts:
        made = replace(_with_ids(made, iter(conversion.shadow_parts)), order=old.order)
    return Shadow(old, made, conversion)


def _with_ids(field: Field, ids: Iterator[FieldId]) -> Field:
    """Return a column with the ids that it and its parts had before, in pre-order."""
    number = next(ids)
    children = tuple(_with_ids(child, ids) for child in field.children)
    return replace(field, id=number, order=number, children=in_places(children))


def known_shadows(
    table: TableVersion, conversions: Sequence[Conversion]
) -> tuple[Shadow, ...] | str:
    """Return the shadows of a job on the current table, or why the job cannot continue."""
    found = []
    for c in conversions:
        old = table.columns.by_id(c.column_id)
        if old is None:
            return f"column {c.column_id} was dropped"
        told = _changed(table, old, c)
        if told is not None:
            return told
        try:
            found.append(known_shadow(old, c, table.full_name))
        except Unsupported as error:
            return str(error)
    return tuple(found)


def of_numbers(shadows: Sequence[Shadow]) -> tuple[Shadow, ...]:
    """Return conversions of numbers to numbers by their types: bounds of files may prove them."""
    return tuple(
        s
        for s in shadows
        if s.conversion.using is None and is_number(s.old.type) and is_number(s.field.type)
    )


def keeps_order(shadow: Shadow) -> bool:
    """Return whether rows in the order of the old column are in that of the new one as well."""
    if shadow.conversion.using is not None or shadow.conversion.on_error_null:
        return False
    kinds = shadow.old.type, shadow.field.type
    return all(map(is_number, kinds)) or {*map(str, kinds)} <= _OF_CALENDAR


def keeps_apart(shadow: Shadow) -> bool:
    """Return whether different values of the old column always become different ones.

    Nothing is rounded. But texts have many forms, and time zones decide about instants.
    """
    how, old, new = shadow.conversion, shadow.old.type, shadow.field.type
    if how.using is not None or how.on_error_null or how.recalls:
        return False
    is_text = str(new) == "varchar"
    if is_number(old):
        return is_text or is_number(new)
    if str(old) == "date":
        return is_text or str(new) in ("timestamp_s", "timestamp_ms", "timestamp")
    return is_text and str(old) in ("uuid", "boolean")


def of_dictionaries(shadows: Sequence[Shadow]) -> tuple[Shadow, ...]:
    """Return conversions of texts and floats that may fail: dictionaries of files may prove them.

    Bounds prove nothing about these. A column that is NOT NULL and gets NULL for errors is left
    out: its job fails where others write NULL.
    """
    return tuple(s for s in shadows if _has_dictionary(s) and _may_fail(s))


def _has_dictionary(shadow: Shadow) -> bool:
    return str(shadow.old.type) in _IN_DICTIONARIES and shadow.field.is_leaf


def _may_fail(shadow: Shadow) -> bool:
    conversion, target = shadow.conversion, shadow.field.type
    if conversion.on_error_null and not shadow.old.nullable:
        return False
    is_text = str(target) == "varchar" and not isinstance(target, Text)
    always = is_text or (str(target) == "blob" and str(shadow.old.type) not in FLOATS)
    return conversion.using is not None or not always


def _changed(table: TableVersion, old: Field, conversion: Conversion) -> str | None:
    """Return what others changed during the job that files converted before do not reflect."""
    if str(old.type) != conversion.source:
        return f"the type of {old.name!r} changed to {old.type} while the job ran"
    if conversion.parts and tuple(f.id for f in old.walk()) != conversion.parts:
        return f"a field of {old.name!r} was dropped and added again while the job ran"
    for path, number in conversion.named:
        found = table.columns.find(path)
        if found is not None and found.id != number:
            return (
                f"{path_text(path)} became another column while the job ran, and USING may refer"
                " to it"
            )
    if conversion.may_be_null and not old.nullable:
        return f"{old.name!r} became NOT NULL while the job ran, and the job may produce NULL"
    return None


def named_columns(fields: Sequence[Field]) -> tuple[tuple[Path, FieldId], ...]:
    """Return what expressions may name: columns and everything in them, with their ids."""
    return tuple((path, field.id) for path, field in with_paths(fields))


def reservation(table: TableVersion, shadows: Sequence[Shadow]) -> AlterTable:
    """Return the change that takes the ids of shadows; nobody sees the columns."""
    fields = tuple(s.field for s in shadows)
    return AlterTable(table, table.columns, reserved=fields)


def with_reserved(
    table: TableVersion, shadows: Sequence[Shadow], snapshot: Snapshot
) -> TableVersion:
    """Return the table as of the snapshot that took the ids of shadows, and did nothing else."""
    taken = {f.id: f.name for f in Schema(tuple(s.field for s in shadows)).walk()}
    return replace(
        table,
        snapshot=snapshot,
        max_column_id=max(table.max_column_id, *taken),
        first_names={**taken, **table.first_names},
        has_reserved=True,
    )


def with_shadows(table: TableVersion, shadows: Sequence[Shadow]) -> TableVersion:
    """Return the table as in files while it changes: shadows after its own columns.

    Shadows get other names, because sibling columns cannot share a name.
    """
    fields = tuple(replace(s.field, name=shadow_name(s.field)) for s in shadows)
    first = {s.field.id: table.first_names.get(s.field.id, s.old.name) for s in shadows}
    properties = table.properties
    if COLUMN_STORAGE in properties:
        ids: dict[FieldId | None, FieldId] = {
            o.id: n.id for s in shadows for o, n in kept_parts(s.old, s.field)
        }
        properties = moved_storage(properties, ids, table.full_name, both=True)
    return replace(
        table,
        properties=properties,
        columns=Schema((*table.columns.fields, *fields)),
        first_names=table.first_names | first,
    )


def require_usable(change: ChangeType, told: str) -> None:
    """Raise Unsupported if the values of an expression cannot be written; text may be any type."""
    if len(change.path) > 1:
        raise Unsupported(f"{told}: USING applies only to whole columns; use it on the column")
    if change.on_error_null and not isinstance(change.type, Primitive | Decimal):
        raise Unsupported(f"{told}: USING … ON ERROR NULL supports only primitive types")
    for leaf in new_field("c", change.type, 0).leaves():
        found = promotion(_ANY_TEXT, leaf.type)
        if found.verdict is Verdict.REFUSED:
            raise Unsupported(f"{told}: {found.reason}")


def _with_type(field: Field, below: Path, wanted: DataType) -> DataType:
    """Return the type of a column in which the part at ``below`` has another type."""
    if not below:
        return wanted
    name = below[0].lower()
    assert isinstance(field.shape, Kind)
    return field.shape.type_of(
        Member(c.name, _with_type(c, below[1:], wanted) if c.name.lower() == name else c.type)
        for c in field.children
    )


def kept_parts(old: Field, new: Field) -> Iterator[tuple[Field, Field]]:
    """Yield a column with its replacement, and each part with the one of the same name."""
    yield old, new
    for child in old.children:
        twin = new.child(child.name) if old.shape is new.shape else None
        if twin is not None:
            yield from kept_parts(child, twin)


def _field(old: Field, target: DataType, number: int, table: str) -> Field:
    made = new_field(old.name, target, number, nullable=old.nullable)
    found = _with_defaults(old, made, table, (old.name,))
    return replace(found, order=old.order)


def _with_defaults(old: Field, new: Field, table: str, path: Path) -> Field:
    """Return a replacement with the defaults of the column and its parts."""
    before = {twin.id: child for child, twin in kept_parts(old, new)}
    children = tuple(
        _with_defaults(before[c.id], c, table, (*path, c.name)) if c.id in before else c
        for c in new.children
    )
    default = old.default
    if default is not None:
        default = _default(old, default, new.type, table, path)
    return replace(new, children=children, default=default)


def _default(old: Field, default: Default, target: DataType, table: str, path: Path) -> Default:
    if target == old.type:
        return default
    try:
        if default.literal and isinstance(target, Primitive | Decimal):
            made = canonical_text(target, _literal(old.type, default.text, target))
            if _is_same_number(old.type, default.text, target, made):
                return Default(made)
    except InvalidRequest:
        pass
    raise Unsupported(
        f"the default {default.text} of {path_text(path)!r} of {table} has no equal {target}; use"
        f" ALTER TABLE {table} ALTER COLUMN {path_text(path)} DROP DEFAULT first"
    )


def _is_same_number(source: DataType, text: str, target: Leaf, made: str) -> bool:
    """Return whether a default keeps its number, as values must; other types always do."""
    given, kept = _number(source, text), _number(target, made)
    return given is None or kept is None or given == kept


def _number(kind: DataType, text: str) -> Fraction | None:
    """Return the number that a canonical text means, None for other types and non-finite floats.

    For a FLOAT, it is the number of the DOUBLE with its value; for a DOUBLE, the shortest text.
    """
    name = str(kind)
    if isinstance(kind, Decimal) or name in (*SIGNED, *UNSIGNED):
        return Fraction(text)
    if name not in FLOATS:
        return None
    found = as_float32(float(text)) if name == "float32" else float(text)
    return None if found is None or not isfinite(found) else Fraction(repr(found))


def _literal(source: DataType, text: str, target: Leaf) -> str:
    """Return a default in the form of the target's literals: bytes and texts differ."""
    is_bytes = str(target) == "blob"
    if is_bytes is (str(source) == "blob"):
        return text
    if is_bytes and str(source) == "uuid":
        return blob_text(bytes.fromhex(text.replace("-", "")))
    if is_bytes:
        return blob_text(text.encode())
    try:
        return (blob_bytes(text) or b"").decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{text} is not valid UTF-8") from error
