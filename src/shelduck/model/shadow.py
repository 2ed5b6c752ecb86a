"""A column that is being replaced by one of another type, as the catalog remembers it."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.schema import FieldId


@dataclass(frozen=True, slots=True)
class Conversion:
    """One top-level column that gets another type: ``shadow_id`` is the id of its replacement.

    ``source`` is the type as the column has it, ``target`` as people write it. ``using`` is a Spark
    SQL expression over the table's columns, None for the conversion by the types.
    ``on_error_null``: values that do not survive become NULL instead of an error. ``clause`` is the
    place among the clauses of the job that asks for it.
    """

    column_id: FieldId
    shadow_id: FieldId
    source: str
    target: str
    using: str | None = None
    on_error_null: bool = False
    clause: int = 0
