"""Rows by the names that their columns had when the rows were described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.tables.table import TableVersion


@dataclass(frozen=True)
class NamedRows:
    """Rows for a table, and the version of it to whose columns they refer.

    Columns are found by position or, without case, by name; ``apart`` may be a column of ``df``
    that is not a column of the table.
    """

    df: DataFrame
    planned: TableVersion
    by_position: bool = False
    apart: str | None = None

    @property
    def given(self) -> frozenset[FieldId]:
        """Return the columns of the table that have values."""
        return frozenset(f.id for f in self._meant().values())

    def under(self, now: TableVersion, replaced: Mapping[FieldId, FieldId]) -> NamedRows:
        """Return the rows under the names that their columns have in a later version.

        ``replaced`` are columns that others have replaced since then. Columns that no longer exist
        keep their names.
        """
        if now.columns == self.planned.columns:
            return replace(self, planned=now)
        meant, found = self._meant(), []
        for place, given in enumerate(self.df.schema):
            # By a unique name: rows whose columns are found by position may have a name twice.
            column, name = F.col(f"c{place}"), given.name
            before = meant.get(place)
            number = None if before is None else replaced.get(before.id, before.id)
            after = None if number is None else now.columns.by_id(number)
            if before is not None and after is not None:
                wanted, name = _renamed(given.dataType, before, after), after.name
                column = column if wanted == given.dataType else column.cast(wanted)
            found.append(column.alias(name))
        numbered = self.df.toDF(*(f"c{n}" for n in range(len(found))))
        return NamedRows(numbered.select(*found), now, apart=self.apart)

    def _meant(self) -> dict[int, Field]:
        """Return the columns of the table by the positions of the rows' columns."""
        columns = self.planned.columns
        apart = (self.apart or "").lower()
        own = [(n, c) for n, c in enumerate(self.df.columns) if c.lower() != apart]
        if self.by_position:
            return {n: f for (n, _), f in zip(own, columns.fields, strict=False)}
        return {n: f for n, c in own if (f := columns.find((c,))) is not None}


def _renamed(kind: T.DataType, before: Field, after: Field) -> T.DataType:
    """Return a type with the current names of its struct fields; a cast uses their positions."""
    if isinstance(kind, T.StructType):
        members = []
        for member in kind.fields:
            old = before.child(member.name)
            new = None if old is None else next((c for c in after.children if c.id == old.id), None)
            if old is not None and new is not None:
                inner = _renamed(member.dataType, old, new)
                members.append(T.StructField(new.name, inner, member.nullable))
            else:
                members.append(member)
        return T.StructType(members)
    parts = list(zip(before.children, after.children, strict=False))
    if isinstance(kind, T.ArrayType) and len(parts) == 1:
        return T.ArrayType(_renamed(kind.elementType, *parts[0]), kind.containsNull)
    if isinstance(kind, T.MapType) and len(parts) == 2:
        key, value = (
            _renamed(k, *p) for k, p in zip((kind.keyType, kind.valueType), parts, strict=True)
        )
        return T.MapType(key, value, kind.valueContainsNull)
    return kind
