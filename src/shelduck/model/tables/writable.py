"""Whether Spark can write files of a type: one answer for all writers; and shadow columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shelduck.errors import Unsupported
from shelduck.model.tables.schema import Field, FieldId, Path, path_text
from shelduck.model.types.data_types import DataType, Leaf, List, Map, Primitive, Struct
from shelduck.model.types.promotions import NOT_WRITTEN

_MOST_TOLD = 3


def is_writable(leaf: Leaf) -> bool:
    """Return whether Spark can store the type so that every DuckLake reader can read it."""
    return str(leaf) not in NOT_WRITTEN


def unwritable_parts(data_type: DataType, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the parts of a type whose values Spark cannot write, and why."""
    match data_type:
        case Primitive():
            if str(data_type) == "null":
                yield path, "Spark writes no VOID; give the column a type (ALTER COLUMN … TYPE)"
            elif not is_writable(data_type):
                yield path, f"Spark has no data type that preserves the values of {data_type}"
        case Struct(members):
            for member in members:
                yield from unwritable_parts(member.type, (*path, member.name))
        case List(element):
            yield from unwritable_parts(element, (*path, "element"))
        case Map(key, value):
            if holds_map(key):
                yield (*path, "key"), "Spark does not support maps in the keys of a map"
            yield from unwritable_parts(key, (*path, "key"))
            yield from unwritable_parts(value, (*path, "value"))
        case _:
            pass


def why_not_written(columns: Iterable[Field], table: str) -> str | None:
    """Return why files of these columns cannot be written, naming columns; None if they can."""
    found = [part for f in columns for part in unwritable_parts(f.type, (f.name,))]
    if not found:
        return None
    told = "; ".join(f"{path_text(path)}: {reason}" for path, reason in found[:_MOST_TOLD])
    more = f"; and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
    return (
        f"Shelduck cannot write files of {table}: {told}{more}; drop the column, or write to this"
        " table with DuckDB"
    )


def require_writable(columns: Iterable[Field], table: str, what: str) -> None:
    """Raise Unsupported, saying ``what`` it is for, if files of the columns cannot be written."""
    why = why_not_written(columns, table)
    if why is not None:
        raise Unsupported(f"{what}: {why}")


def holds_map(data_type: DataType) -> bool:
    """Return whether a type is a map, or contains one."""
    match data_type:
        case Map():
            return True
        case List(element):
            return holds_map(element)
        case Struct(members):
            return any(holds_map(m.type) for m in members)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Conversion:
    """One top-level column that gets another type: ``shadow_id`` is the id of its replacement.

    ``source`` is the current type of the column, ``target`` the new one as people write it.
    ``using`` is a Spark SQL expression over the table's columns, None for the conversion by the
    types. ``on_error_null``: values that cannot be converted become NULL instead of an error.
    ``clause`` is the index of the clause of the job that asks for it.

    ``parts`` are the ids of the column and of everything in it. ``named`` is what names meant when
    the job began, as paths with ids, for everything that ``using`` may name. ``may_be_null``:
    values that are not NULL may become NULL, and the column accepts this.

    An undo gives a column its older ids back: ``shadow_parts`` are those of the replacement and of
    everything in it, empty if they count from ``shadow_id``. ``recalls``: rows whose files hold no
    older value get that of an older snapshot, by their row ids.
    """

    column_id: FieldId
    shadow_id: FieldId
    source: str
    target: str
    using: str | None = None
    on_error_null: bool = False
    clause: int = 0
    parts: tuple[FieldId, ...] = ()
    named: tuple[tuple[Path, FieldId], ...] = ()
    may_be_null: bool = False
    shadow_parts: tuple[FieldId, ...] = ()
    recalls: bool = False


def shadow_name(field: Field) -> str:
    """Return the name of a replacement in rows that are being written, by its id."""
    return f"__shelduck_shadow_{field.id}"


def is_shadow(field: Field) -> bool:
    """Return whether a column of rows that are being written is a replacement."""
    return field.name == shadow_name(field)
