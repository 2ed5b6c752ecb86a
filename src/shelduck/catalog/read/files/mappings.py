"""Name mappings: by which names adopted files know their columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection

from shelduck.catalog.read import queries
from shelduck.ducklake import tables
from shelduck.ducklake.checked import RESTORE, refuse_row
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.data_files import MappedName, NameMapping
from shelduck.model.tables.schema import FieldId


def name_mappings(connection: Connection, ids: Collection[int]) -> dict[int, NameMapping]:
    """Return name mappings by id; at most one statement. CorruptLake if one is missing."""
    if not ids:
        return {}
    nodes: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(queries.mapping_rows(ids)):
        if row.column_id is not None or row.source_name is not None:
            refuse_row(tables.name_mapping, {n: getattr(row, n) for n in _NODE})
        if row.type != "map_by_name":
            raise Unsupported(f"column mapping {row.mapping_id} has the unknown type {row.type!r}")
        nodes[row.mapping_id].append(row)
    missing = sorted(set(ids) - set(nodes))
    if missing:
        raise CorruptLake(f"data files refer to column mapping {missing[0]}, which does not exist")
    for number, rows in nodes.items():
        places = {row.column_id for row in rows}
        if len(places) < len(rows) or any(
            row.parent_column not in places | {None} or row.parent_column == row.column_id
            for row in rows
            if row.column_id is not None
        ):
            raise CorruptLake(
                f"ducklake_name_mapping has a node of column mapping {number} twice, or below one"
                f" that does not exist; {RESTORE}"
            )
    return {number: NameMapping(number, _names(rows, None)) for number, rows in nodes.items()}


_NODE = ("mapping_id", "column_id", "source_name", "target_field_id", "parent_column")


def _names(rows: Iterable[Any], parent: int | None) -> tuple[MappedName, ...]:
    rows = list(rows)
    return tuple(
        MappedName(
            row.source_name,
            FieldId(row.target_field_id),
            bool(row.is_partition),
            _names(rows, row.column_id),
        )
        for row in rows
        if row.column_id is not None and row.parent_column == parent
    )
