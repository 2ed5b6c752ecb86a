"""Files that no snapshot needs any more: scheduled for deletion, or given back to their owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, or_, select

from shelduck.catalog import own_tables, tables
from shelduck.catalog.chunks import chunks
from shelduck.catalog.create import LakeInfo
from shelduck.catalog.paths import resolve
from shelduck.catalog.queries import present_tables
from shelduck.catalog.store import Store

_s, _r = tables.files_scheduled_for_deletion.c, own_tables.released_file.c
_INSERT = insert(tables.files_scheduled_for_deletion)
_RELEASE = insert(own_tables.released_file)
_SCHEDULED = select(_s.data_file_id, _s.path, _s.path_is_relative, _s.schedule_start)
_RELEASED = select(_r.data_file_id, _r.path, _r.released)
_DELETE_SCHEDULED = delete(tables.files_scheduled_for_deletion).where(
    _s.data_file_id.in_(bindparam("ids", expanding=True))
)
_DELETE_RELEASED = delete(own_tables.released_file).where(
    _r.data_file_id.in_(bindparam("ids", expanding=True))
)


@dataclass(frozen=True, slots=True)
class GoneFile:
    """A data or delete file that left the catalog; ``path`` is absolute.

    ``is_adopted``: the lake did not write it, ``add_files`` took it over where it lay.
    """

    id: int
    path: str
    is_adopted: bool = False


def gone_data_file(lake: LakeInfo, number: int, path: str, mapping_id: int | None) -> GoneFile:
    """Return a data file that left; adopted is what has a name mapping or lies elsewhere."""
    is_adopted = mapping_id is not None or not path.startswith(lake.data_path)
    return GoneFile(number, path, is_adopted)


@dataclass(frozen=True, slots=True)
class ScheduledFile:
    """A file that waits for its deletion since ``since``; ``path`` is absolute.

    ``is_released``: it is adopted, and nobody may delete it who is not told to.
    """

    id: int
    path: str
    since: datetime
    is_adopted: bool
    is_released: bool = False


def schedule(
    store: Store, connection: Connection, lake: LakeInfo, gone: Iterable[GoneFile], now: datetime
) -> None:
    """Record that files are not needed any more; two statements at most."""
    rows: list[dict[str, Any]] = []
    released: list[dict[str, Any]] = []
    for file in gone:
        if file.is_adopted:
            released.append({"data_file_id": file.id, "path": file.path, "released": now})
            continue
        is_inside = file.path.startswith(lake.data_path)
        rows.append(
            {
                "data_file_id": file.id,
                "path": file.path.removeprefix(lake.data_path),
                "path_is_relative": is_inside,
                "schedule_start": now,
            }
        )
    if rows:
        connection.execute(_INSERT, rows)
    if released:
        if not present_tables(connection, [own_tables.released_file.name]):
            own_tables.ensure_own_tables(store, connection)
        connection.execute(_RELEASE, released)


def scheduled_files(
    connection: Connection, lake: LakeInfo, before: datetime | None
) -> list[ScheduledFile]:
    """Return what waits for its deletion since before a time, oldest first; three statements."""
    query, released = _SCHEDULED, _RELEASED
    if before is not None:
        query, released = (
            query.where(_s.schedule_start < before),
            released.where(_r.released < before),
        )
    found = [
        ScheduledFile(
            row.data_file_id,
            resolve(lake.data_path, row.path, row.path_is_relative),
            row.schedule_start,
            # DuckDB schedules what was adopted by its absolute path, and nothing else.
            not row.path_is_relative,
        )
        for row in connection.execute(query)
    ]
    if present_tables(connection, [own_tables.released_file.name]):
        found += [
            ScheduledFile(row.data_file_id, row.path, row.released, True, is_released=True)
            for row in connection.execute(released)
        ]
    return sorted(found, key=lambda f: (f.since, f.id))


def forget_scheduled(connection: Connection, files: Sequence[ScheduledFile]) -> None:
    """Delete the rows of files that are gone; two statements."""
    for ids in chunks(f.id for f in files if not f.is_released):
        connection.execute(_DELETE_SCHEDULED, {"ids": ids})
    for ids in chunks(f.id for f in files if f.is_released):
        connection.execute(_DELETE_RELEASED, {"ids": ids})


def paths_in_use(connection: Connection, lake: LakeInfo, wanted: Iterable[str]) -> set[str]:
    """Return which of these absolute paths a data or delete file of any snapshot has."""
    directories = table_directories(connection, lake)
    places: dict[str, set[str]] = {}
    for path in wanted:
        places.setdefault(path, set()).add(path)
        for directory in _prefixes(path):
            if directory in directories:
                places.setdefault(path[len(directory) :], set()).add(path)
    found: set[str] = set()
    by_table = directory_by_table(directories)
    for source in (tables.data_file, tables.delete_file):
        c = source.c
        for names in chunks(places):
            query = select(c.table_id, c.path, c.path_is_relative).where(c.path.in_(names))
            for row in connection.execute(query):
                base = by_table.get(row.table_id, "")
                found.add(resolve(base, row.path, row.path_is_relative))
    return found


def table_directories(connection: Connection, lake: LakeInfo) -> dict[str, set[int]]:
    """Return the directories of all tables that any snapshot shows, with the ids of the tables."""
    s, t = tables.schema.c, tables.table.c
    query = (
        select(
            *(t.table_id, t.path, t.path_is_relative),
            s.path.label("schema_path"),
            s.path_is_relative.label("schema_is_relative"),
        )
        .join_from(tables.table, tables.schema, t.schema_id == s.schema_id)
        .where(or_(t.path.is_not(None), s.path.is_not(None)))
        .distinct()
    )
    found: dict[str, set[int]] = {}
    for row in connection.execute(query):
        home = resolve(lake.data_path, row.schema_path, row.schema_is_relative)
        found.setdefault(resolve(home, row.path, row.path_is_relative), set()).add(row.table_id)
    return found


def directory_by_table(directories: Mapping[str, Iterable[int]]) -> dict[int, str]:
    """Return what `table_directories` found by the tables' ids."""
    return {number: place for place, ids in directories.items() for number in ids}


def _prefixes(path: str) -> Iterator[str]:
    at = path.rfind("/")
    while at > 0:
        yield path[: at + 1]
        at = path.rfind("/", 0, at)


def owned_directories(connection: Connection, lake: LakeInfo) -> dict[str, set[str]]:
    """Return the directories of all tables that the catalog knows, with the tables' uuids."""
    t = tables.table.c
    rows = connection.execute(select(t.table_id, t.table_uuid).distinct())
    uuids = {row.table_id: str(row.table_uuid) for row in rows}
    directories = table_directories(connection, lake)
    return {place: {uuids[n] for n in ids} for place, ids in directories.items()}


def known_paths(connection: Connection, lake: LakeInfo) -> set[str]:
    """Return the absolute paths of all files that any row of the catalog names."""
    by_table = directory_by_table(table_directories(connection, lake))
    found = {f.path for f in scheduled_files(connection, lake, None)}
    for source in (tables.data_file, tables.delete_file):
        c = source.c
        query = select(c.table_id, c.path, c.path_is_relative)
        for number, path, relative in connection.execute(query):
            found.add(resolve(by_table.get(number, ""), path, relative))
    return found
