"""Foreign files that a table adopts: their name mappings, and that each is adopted only once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.opening import TableWork
from shelduck.catalog.read.files.data_files import name_mappings
from shelduck.catalog.read.queries import IDS, OF_TABLE, live
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.ducklake import tables
from shelduck.errors import AlreadyExists, Unsupported
from shelduck.model.files.adoption import same_names
from shelduck.model.files.data_file import MappedName, NewDataFile
from shelduck.model.tables.schema import Field, FieldId, TableId
from shelduck.model.tables.table_version import TableVersion

Names = tuple[MappedName, ...]

_file, _mapping = tables.data_file.c, tables.column_mapping.c
_MAPPINGS_OF = sa.select(_mapping.mapping_id).where(_mapping.table_id == OF_TABLE)
_ADOPTED = sa.select(_file.path).where(
    _file.table_id == OF_TABLE, _file.path_is_relative.is_(sa.false()), live(tables.data_file)
)

_OF_PATHS = (
    sa.select(tables.name_mapping.c.target_field_id)
    .join_from(
        tables.name_mapping, tables.data_file, tables.name_mapping.c.mapping_id == _file.mapping_id
    )
    .where(
        _file.table_id == OF_TABLE,
        live(tables.data_file),
        tables.name_mapping.c.is_partition.is_(sa.true()),
        tables.name_mapping.c.target_field_id.in_(IDS),
    )
    .limit(1)
)
_PATHS = sa.select(_file.path, _file.path_is_relative).where(
    _file.table_id == OF_TABLE, live(tables.data_file)
)


def refuse_adopted(draft: Draft, table: TableId, files: Sequence[NewDataFile]) -> None:
    """Raise AlreadyExists if one of these files is part of the table; at most one statement."""
    paths = [f.path for f in files if f.names is not None]
    if not paths:
        return
    known = set(draft.connection.execute(_ADOPTED, {"of_table": table}).scalars())
    again = [path for path in paths if path in known]
    if again:
        more = f" and {len(again) - 1} more" if len(again) > 1 else ""
        raise AlreadyExists(
            f"the table with id {table} already contains file {again[0]}{more}; nothing was added",
            about="file",
        )


def refuse_other_numbers(draft: Draft, work: TableWork, doubled: Mapping[FieldId, Field]) -> None:
    """Raise Unsupported if numbers in paths of live files would change their value.

    ``doubled`` are floats that become doubles: the text of a float in a path is the shortest one
    that identifies it among floats, but is another number among doubles. One statement.
    """
    found = draft.connection.execute(_OF_PATHS, {"of_table": work.id, "ids": sorted(doubled)})
    first = found.scalar()
    if first is not None:
        name = doubled[FieldId(first)].name
        raise Unsupported(
            f"cannot change {name!r} of {work.name} from float32 to float64: files"
            " that were added have its values in their paths, which would be read as other"
            " numbers; rewrite those files first with Table.rewrite()"
        )


def live_paths(connection: sa.Connection, table: TableVersion) -> set[str]:
    """Return the absolute paths of the table's data files; one statement."""
    rows = connection.execute(_PATHS, {"of_table": table.id})
    return {resolve(table.path, path, relative) for path, relative in rows}


def mapping_ids(draft: Draft, table: TableId, files: Iterable[NewDataFile]) -> dict[int, int]:
    """Return the id of each name mapping by the ``id()`` of a file's names; equal ones are shared.

    No statement without such files, otherwise two, and two more for new mappings.
    """
    # Files of one kind share one object: ten thousand comparisons by value would take longer than
    # reading the footers.
    wanted = list({id(f.names): f.names for f in files if f.names is not None}.values())
    if not wanted:
        return {}
    numbers = list(draft.connection.execute(_MAPPINGS_OF, {"of_table": table}).scalars())
    known = [(m.names, m.id) for m in name_mappings(draft.connection, numbers).values()]
    found: dict[int, int] = {}
    rows: list[dict[str, Any]] = []
    for names in wanted:
        number = next((n for other, n in known if same_names(names, other)), None)
        if number is None:
            # Not from the catalog's counter, as the specification says, but from the files'
            # counter.
            [number] = draft.file_ids(1)
            known.append((names, number))
            rows.append({"mapping_id": number, "table_id": table, "type": "map_by_name"})
        found[id(names)] = number
    if rows:
        new = {row["mapping_id"] for row in rows}
        draft.insert(tables.column_mapping, rows)
        nodes = [row for names, number in known if number in new for row in _rows(number, names)]
        draft.insert(tables.name_mapping, nodes)
    return found


def _rows(mapping: int, names: Names) -> list[dict[str, Any]]:
    return [
        {
            "mapping_id": mapping,
            "column_id": ordinal,
            "source_name": name.source_name,
            "target_field_id": name.field_id,
            "parent_column": parent,
            "is_partition": name.is_partition,
        }
        for ordinal, parent, name in _numbered(names)
    ]


def _numbered(names: Names) -> Iterator[tuple[int, int | None, MappedName]]:
    """Yield each node with its index in the mapping and its parent's, parents first."""
    at = 0
    pending: list[tuple[int | None, MappedName]] = [(None, n) for n in reversed(names)]
    while pending:
        parent, name = pending.pop()
        yield at, parent, name
        pending += [(at, child) for child in reversed(name.children)]
        at += 1
