"""A column that is being replaced by one of another type, as the catalog remembers it."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.tables.schema import FieldId, Path


@dataclass(frozen=True, slots=True)
class Conversion:
    """One top-level column that gets another type: ``shadow_id`` is the id of its replacement.

    ``source`` is the type as the column has it, ``target`` as people write it. ``using`` is a Spark
    SQL expression over the table's columns, None for the conversion by the types.
    ``on_error_null``: values that do not survive become NULL instead of an error. ``clause`` is the
    place among the clauses of the job that asks for it.

    ``parts`` are the ids of the column and of all that is in it. ``named`` is what names meant when
    the job began, as paths with ids: of everything that ``using`` may name. ``may_be_null``: values
    that are no NULL may become one, which the column takes.
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
