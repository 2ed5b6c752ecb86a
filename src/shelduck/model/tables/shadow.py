"""A column that is being replaced by a column of another type, as the catalog stores it."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.tables.schema import Field, FieldId, Path


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


def shadow_name(field: Field) -> str:
    """Return the name of a replacement in rows that are being written, by its id."""
    return f"__shelduck_shadow_{field.id}"


def is_shadow(field: Field) -> bool:
    """Return whether a column of rows that are being written is a replacement."""
    return field.name == shadow_name(field)
