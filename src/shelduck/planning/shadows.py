"""Which type changes need new bytes, and what columns they make: planned, nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.change import AlterTable
from shelduck.model.job import Conversion
from shelduck.model.literals import canonical_text
from shelduck.model.promotions import Verdict, promotion
from shelduck.model.schema import Default, Field, FieldId, Kind, Schema, path_text
from shelduck.model.schema_change import ChangeType
from shelduck.model.table import TableVersion
from shelduck.model.table_change import TableChange
from shelduck.model.types import Decimal, Leaf, Primitive, ducklake_type


@dataclass(frozen=True, slots=True)
class Shadow:
    """A column that takes another's place: ``field`` has its id, its type and the old name."""

    old: Field
    field: Field
    conversion: Conversion

    @property
    def source(self) -> Leaf:
        """The type that values come from."""
        assert not isinstance(self.old.shape, Kind)
        return self.old.shape

    @property
    def target(self) -> Leaf:
        """The type that they get."""
        assert not isinstance(self.field.shape, Kind)
        return self.field.shape


def is_heavy(table: TableVersion, change: TableChange) -> bool:
    """Tell whether a change needs new bytes: a type that old values are not stored as."""
    if not isinstance(change, ChangeType):
        return False
    if change.using is not None:
        return True
    old = table.columns.find(change.path)
    if old is None or isinstance(old.shape, Kind) or not _is_leaf(change):
        return False
    return promotion(old.type, change.type).verdict is Verdict.CONVERT


def plan_shadows(table: TableVersion, changes: Sequence[TableChange]) -> tuple[Shadow, ...]:
    """Return the columns that heavy changes need, with ids that the table never used.

    Raises Unsupported for light changes among them, nested columns, partition keys and types that
    values cannot be made into; NotFound for a column that is not there.
    """
    name = table.full_name
    found: list[Shadow] = []
    for change in changes:
        if not isinstance(change, ChangeType) or not is_heavy(table, change):
            raise Unsupported(
                f"ALTER TABLE {name}: {change} changes metadata only, and others of the statement"
                " need new bytes; write two statements"
            )
        number = FieldId(table.max_column_id + 1 + len(found))
        shadow = _shadow(table, change, number)
        if any(s.old.id == shadow.old.id for s in found):
            raise InvalidRequest(f"the type of {path_text(change.path)} of {name} changes twice")
        found.append(shadow)
    return tuple(found)


def known_shadows(
    table: TableVersion, conversions: Sequence[Conversion]
) -> tuple[Shadow, ...] | str:
    """Return the shadows of a job on a table as it is by now, or why it cannot go on."""
    found = []
    for c in conversions:
        old = table.columns.by_id(c.column_id)
        if old is None:
            return f"column {c.column_id} was dropped"
        if str(old.shape) != c.source:
            return f"the type of {old.name!r} was changed to {old.type} meanwhile"
        target = ducklake_type(c.target)
        found.append(Shadow(old, _field(old, target, c.shadow_id, table.full_name), c))
    return tuple(found)


def reservation(table: TableVersion, shadows: Sequence[Shadow]) -> AlterTable:
    """Return the change that takes the ids of shadows; nobody sees the columns."""
    fields = tuple(s.field for s in shadows)
    return AlterTable(table, table.columns, table.comments, reserved=fields)


def publication(
    table: TableVersion, shadows: Sequence[Shadow], files: frozenset[int]
) -> AlterTable:
    """Return the change that puts shadows in their places, right where ``files`` are all files."""
    by_old = {s.old.id: s.field for s in shadows}
    columns = Schema(tuple(by_old.get(f.id, f) for f in table.columns))
    comments = {
        by_old[k].id if k is not None and k in by_old else k: text
        for k, text in table.comments.items()
    }
    return AlterTable(table, columns, comments, only_files=files)


def with_shadows(table: TableVersion, shadows: Sequence[Shadow]) -> TableVersion:
    """Return the table as files hold it while it changes: shadows behind its own columns.

    Their fields have names of their own, since two columns of one name cannot stand side by side.
    """
    fields = tuple(replace(s.field, name=shadow_name(s)) for s in shadows)
    first = {s.field.id: table.first_names.get(s.field.id, s.old.name) for s in shadows}
    return replace(
        table,
        columns=Schema((*table.columns.fields, *fields)),
        first_names=table.first_names | first,
    )


def shadow_name(shadow: Shadow) -> str:
    """Return what rows call a shadow while they are written."""
    return f"__shelduck_shadow_{shadow.field.id}"


def _is_leaf(change: ChangeType) -> bool:
    return isinstance(change.type, Primitive | Decimal)


def _shadow(table: TableVersion, change: ChangeType, number: FieldId) -> Shadow:
    name = table.full_name
    old = table.columns.get(change.path, name)
    here = path_text(change.path)
    told = f"cannot change {here} of {name} from {old.type} to {change.type}"
    if len(change.path) > 1 or isinstance(old.shape, Kind):
        raise Unsupported(
            f"{told}: {promotion(old.type, change.type).reason}, and only values of top-level"
            " columns are converted; add a field of the new type, fill it and drop the old one"
        )
    if not isinstance(change.type, Primitive | Decimal):
        raise Unsupported(f"{told}: values are converted to single values, not to nested ones")
    found = promotion(old.type, change.type)
    if found.verdict is Verdict.REFUSED and (change.using is None or "DuckDB" in found.reason):
        raise Unsupported(f"{told}: {found.reason}")
    if any(key.column_id == old.id for key in table.partition):
        raise Unsupported(
            f"{told}: the table is partitioned by it; ALTER TABLE {name} RESET PARTITIONED BY first"
        )
    conversion = Conversion(
        old.id, number, str(old.shape), str(change.type), change.using, change.on_error_null
    )
    return Shadow(old, _field(old, change.type, number, name), conversion)


def _field(old: Field, target: Leaf, number: FieldId, table: str) -> Field:
    default = old.default
    if default is not None:
        default = _default(old, default, target, table)
    return replace(old, id=number, shape=target, initial_default=None, default=default)


def _default(old: Field, default: Default, target: Leaf, table: str) -> Default:
    try:
        if default.literal:
            return Default(canonical_text(target, default.text))
    except InvalidRequest:
        pass
    raise Unsupported(
        f"the default {default.text} of {old.name!r} of {table} is no {target}; ALTER TABLE {table}"
        f" ALTER COLUMN {path_text((old.name,))} DROP DEFAULT first"
    )
