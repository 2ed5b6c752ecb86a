"""What ANALYZE TABLE computed of columns: kept in a property, by the ids of columns.

Rows, bounds and sizes are known without it. An older Shelduck ignores the property.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from shelduck.errors import CorruptLake, NewerFormat
from shelduck.model.tables.schema import Field, FieldId, Schema
from shelduck.model.text.stored import Stored, each, record

ANALYZED = "shelduck.hint.analyzed"
"""The property that holds them."""


@dataclass(frozen=True, slots=True)
class AnalyzedColumn:
    """A column of ``type`` as it was at a snapshot, with so many rows.

    ``distinct`` is an estimate. Texts and blobs have an average and a greatest length.
    """

    column: FieldId
    type: str
    snapshot: int
    rows: int
    distinct: int
    nulls: int
    average: int | None = None
    longest: int | None = None

    def distinct_of(self, rows: int) -> int:
        """Return how many values so many rows of the table have.

        A column that nearly identified rows goes on to do so; others have the same values.
        """
        found = self.distinct
        if found and 10 * found >= 9 * (self.rows - self.nulls):
            found = found * rows // self.rows
        return min(found, rows)

    def nulls_of(self, rows: int) -> int:
        """Return how many NULLs so many rows of the table have."""
        return self.nulls * rows // self.rows if self.rows else 0


@dataclass(frozen=True, slots=True)
class _Analyzed:
    columns: tuple[AnalyzedColumn, ...] = ()


_STORED: Stored[_Analyzed] = Stored(
    "statistics", record(_Analyzed, columns=each(record(AnalyzedColumn), by="column"))
)


def analyzed_columns(
    properties: Mapping[str, str], columns: Schema
) -> dict[FieldId, AnalyzedColumn]:
    """Return what is known of columns, by id; nothing of those that have another type since."""
    if ANALYZED not in properties:
        return {}
    try:
        known = _STORED.known(properties[ANALYZED], "").columns
    except (CorruptLake, NewerFormat):
        # Nobody needs it to read or to write a row.
        return {}
    types = {one.column: _type_of(columns.by_id(one.column)) for one in known}
    return {one.column: one for one in known if types[one.column] == one.type}


def with_analyzed(
    properties: Mapping[str, str], columns: Schema, found: Iterable[AnalyzedColumn]
) -> dict[str, str]:
    """Return the properties of a table of which these columns were analyzed.

    They are the same if all that differs is the snapshot.
    """
    known = analyzed_columns(properties, columns)
    new = {one.column: one for one in found if _type_of(columns.by_id(one.column)) == one.type}
    if all(_same(known.get(column), one) for column, one in new.items()):
        return dict(properties)
    made = _Analyzed(tuple(one for _, one in sorted((known | new).items())))
    return {**properties, ANALYZED: _STORED.write(made)}


def _same(known: AnalyzedColumn | None, new: AnalyzedColumn) -> bool:
    return known is not None and replace(known, snapshot=new.snapshot) == new


def _type_of(field: Field | None) -> str | None:
    return None if field is None else str(field.type)
