"""The names, ids and types of a table's columns in files.

A column has the first name that its id ever had, whatever its current name is, so that a rename
does not change the files and filters on them stay correct. If another id had that name first,
``_<id>`` makes it unique.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named
from shelduck.engine.types import spark_type
from shelduck.model.files.data_file import (
    ROW_ID_COLUMN,
    ROW_ID_FIELD,
    SNAPSHOT_COLUMN,
    SNAPSHOT_FIELD,
)
from shelduck.model.tables.schema import Field, FieldId, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.model.types.data_types import Primitive

FIELD_ID = "parquet.field.id"
_LINEAGE_FIELDS = {ROW_ID_COLUMN: ROW_ID_FIELD, SNAPSHOT_COLUMN: SNAPSHOT_FIELD}
# Parquet's names of what is between a list or a map and its parts.
_GROUPS: Mapping[object, tuple[str, ...]] = {Kind.LIST: ("list",), Kind.MAP: ("key_value",)}
BatchFunction = Callable[[Iterator[Any]], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class PhysicalSchema:
    """A table's columns with their names in files.

    ``names`` has the name of every top-level column and struct member; parts of lists and maps have
    Parquet's own names.
    """

    fields: tuple[Field, ...]
    names: dict[FieldId, str]

    @property
    def ids(self) -> dict[tuple[str, ...], int]:
        """Return every node's id by its path of names in the Parquet schema."""
        found: dict[tuple[str, ...], int] = {}
        for f in self.fields:
            self._collect(f, (self.names[f.id],), found)
        return found

    @property
    def has_repeated(self) -> bool:
        """True if there are lists or maps among the columns, at any depth."""
        return any(f.shape in (Kind.LIST, Kind.MAP) for top in self.fields for f in top.walk())

    def columns(self, *, with_ids: bool) -> list[Named]:
        """Return the columns to select from a DataFrame of the table's columns, in order.

        ``with_ids`` puts the ids of columns and struct members into the metadata of their fields.
        """
        return [
            Named(
                self.names[f.id],
                backticked(f.name),
                self.spark_type(f, with_ids=with_ids),
                _metadata(f, with_ids=with_ids),
            )
            for f in self.fields
        ]

    def spark_type(self, field: Field, *, with_ids: bool) -> T.DataType:
        """Return the Spark type of a field with the names of the file."""
        if field.shape is Kind.LIST:
            return T.ArrayType(self.spark_type(field.children[0], with_ids=with_ids))
        if field.shape is Kind.MAP:
            key, value = (self.spark_type(c, with_ids=with_ids) for c in field.children)
            return T.MapType(key, value)
        if field.shape is Kind.STRUCT:
            return T.StructType(
                [
                    T.StructField(
                        self.names[c.id],
                        self.spark_type(c, with_ids=with_ids),
                        metadata=_metadata(c, with_ids=with_ids),
                    )
                    for c in field.children
                ]
            )
        return spark_type(field.type, field.name)

    def _collect(self, f: Field, path: tuple[str, ...], found: dict[tuple[str, ...], int]) -> None:
        found[path] = f.id
        for child in f.children:
            name = self.names[child.id] if f.shape is Kind.STRUCT else child.name
            self._collect(child, (*path, *_GROUPS.get(f.shape, ()), name), found)


def physical_schema(table: TableVersion, lineage: Sequence[str] = ()) -> PhysicalSchema:
    """Return the names of a table's columns in new files, ``lineage`` columns last."""
    live = {f.id for f in table.columns.walk()}
    ended = {i: name.lower() for i, name in table.first_names.items() if i not in live}
    names: dict[FieldId, str] = {}
    _name(table.columns.fields, table.first_names, ended, names)
    extra = tuple(Field(FieldId(_LINEAGE_FIELDS[n]), n, Primitive("int64")) for n in lineage)
    names.update({f.id: f.name for f in extra})
    return PhysicalSchema((*table.columns.fields, *extra), names)


def _name(
    siblings: Iterable[Field],
    first_names: dict[FieldId, str],
    ended: dict[FieldId, str],
    names: dict[FieldId, str],
) -> None:
    taken: set[str] = set()
    for f in sorted(siblings, key=lambda f: f.id):
        name = first_names.get(f.id, f.name)
        # The previous parent of an ended column is unknown, so its names count too.
        while name.lower() in taken or any(
            i < f.id and n == name.lower() for i, n in ended.items()
        ):
            name = f"{name}_{f.id}"
        taken.add(name.lower())
        names[f.id] = name
        if f.shape is Kind.STRUCT:
            _name(f.children, first_names, ended, names)
        elif f.shape in (Kind.LIST, Kind.MAP):
            for child in f.children:
                _name(child.children, first_names, ended, names)
                names.setdefault(child.id, child.name)


def _metadata(field: Field, *, with_ids: bool) -> dict[str, int]:
    return {FIELD_ID: int(field.id)} if with_ids else {}


def map_batches(rows: DataFrame, function: BatchFunction, schema: str) -> DataFrame:
    """Return the results of ``function`` on the Arrow batches of ``rows``, one call for each task.

    ``function`` should be a nested function that uses nothing of Shelduck. It is then sent to the
    executors by value, and they need pyarrow but not this package.
    """
    with warnings.catch_warnings():
        # PySpark warns about pandas 3 here, although no pandas is used.
        warnings.simplefilter("ignore", FutureWarning)
        return rows.mapInArrow(function, schema)
