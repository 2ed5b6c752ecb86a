"""Files that no snapshot needs any more: scheduled for deletion, or released to their owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.queries import IDS, chunks, present_tables
from shelduck.catalog.read.views_and_macros import resolve
from shelduck.catalog.running.rollup_homes import rollup_homes
from shelduck.catalog.schema import own_tables
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.ducklake import tables
from shelduck.errors import CorruptLake
from shelduck.model.files.place import Place, place_below, place_in
from shelduck.model.tables.rollup import rollup_table
from shelduck.model.text.names import directory

_s, _r = tables.files_scheduled_for_deletion.c, own_tables.released_file.c
_INSERT = sa.insert(tables.files_scheduled_for_deletion)
_RELEASE = sa.insert(own_tables.released_file)
_SCHEDULED = sa.select(_s.data_file_id, _s.path, _s.path_is_relative, _s.schedule_start)
_RELEASED = sa.select(_r.data_file_id, _r.path, _r.released)
_DELETE_SCHEDULED = sa.delete(tables.files_scheduled_for_deletion).where(_s.data_file_id.in_(IDS))
_DELETE_RELEASED = sa.delete(own_tables.released_file).where(_r.data_file_id.in_(IDS))


@dataclass(frozen=True, slots=True)
class GoneFile:
    """A data or delete file that left the catalog; ``path`` is absolute.

    ``is_adopted``: the lake did not write it, ``add_files`` adopted it. Everything outside the data
    path counts as adopted.
    """

    id: int
    path: str
    is_adopted: bool = False


@dataclass(frozen=True, slots=True)
class ScheduledFile:
    """A file that waits for its deletion since ``since``; ``path`` is absolute.

    ``place`` is where the lake put it, or None for an adopted file, which is deleted only on
    explicit request. ``is_released`` says that it waits in Shelduck's own table.
    """

    id: int
    path: str
    since: datetime
    place: Place | None = None
    is_released: bool = False

    @property
    def is_adopted(self) -> bool:
        """True if the lake did not write the file."""
        return self.place is None


def schedule(
    store: Store, connection: sa.Connection, lake: LakeInfo, gone: Iterable[GoneFile], now: datetime
) -> None:
    """Record that files are no longer needed; two statements at most."""
    schedule_placed(store, connection, [(f, place_of(lake, f)) for f in gone], now)


def place_of(lake: LakeInfo, gone: GoneFile) -> Place | None:
    """Return where the lake put a file, None for an adopted one."""
    return None if gone.is_adopted else place_in(lake.data_path, gone.path)


def schedule_placed(
    store: Store,
    connection: sa.Connection,
    gone: Iterable[tuple[GoneFile, Place | None]],
    now: datetime,
) -> None:
    """Do what `schedule` does, with the results of `place_of`."""
    rows: list[dict[str, Any]] = []
    released: list[dict[str, Any]] = []
    for file, place in gone:
        if place is None:
            released.append({"data_file_id": file.id, "path": file.path, "released": now})
            continue
        row = {"data_file_id": file.id, "path": place.key, "path_is_relative": True}
        rows.append(row | {"schedule_start": now})
    if rows:
        connection.execute(_INSERT, rows)
    if released:
        if not present_tables(connection, [own_tables.released_file.name]):
            own_tables.ensure_own_tables(store, connection)
        connection.execute(_RELEASE, released)


def scheduled_files(
    connection: sa.Connection,
    lake: LakeInfo,
    before: datetime | None,
    *,
    after: int = -1,
    most: int | None = None,
) -> list[ScheduledFile]:
    """Return the files that wait for deletion since before a time, by id; three statements.

    Only those with greater ids than ``after``, and at most ``most`` of them.
    Raises CorruptLake for a row that names no file below the data path.
    """
    query = _SCHEDULED.where(_s.data_file_id > after).order_by(_s.data_file_id).limit(most)
    released = _RELEASED.where(_r.data_file_id > after).order_by(_r.data_file_id).limit(most)
    if before is not None:
        query, released = (
            query.where(_s.schedule_start < before),
            released.where(_r.released < before),
        )
    found = [_scheduled(lake, row) for row in connection.execute(query)]
    if present_tables(connection, [own_tables.released_file.name]):
        found += [
            ScheduledFile(row.data_file_id, row.path, row.released, is_released=True)
            for row in connection.execute(released)
        ]
    return sorted(found, key=lambda f: f.id)[:most]


def _scheduled(lake: LakeInfo, row: Any) -> ScheduledFile:
    if not row.path_is_relative:
        # DuckDB schedules adopted files, and only these, by their absolute path.
        return ScheduledFile(row.data_file_id, row.path, row.schedule_start)
    try:
        place = place_below(lake.data_path, row.path)
    except CorruptLake as error:
        raise CorruptLake(
            f"ducklake_files_scheduled_for_deletion names {row.path!r} as file {row.data_file_id},"
            f" which is not a file below {lake.data_path}; nothing is deleted. Delete that row"
        ) from error
    return ScheduledFile(row.data_file_id, str(place), row.schedule_start, place)


def forget_scheduled(connection: sa.Connection, files: Sequence[ScheduledFile]) -> None:
    """Delete the rows of files that are gone; two statements."""
    for ids in chunks(f.id for f in files if not f.is_released):
        connection.execute(_DELETE_SCHEDULED, {"ids": ids})
    for ids in chunks(f.id for f in files if f.is_released):
        connection.execute(_DELETE_RELEASED, {"ids": ids})


def table_directories(connection: sa.Connection, lake: LakeInfo) -> dict[str, set[int]]:
    """Return the directories of all tables that any snapshot shows, with the ids of the tables."""
    s, t = tables.schema.c, tables.table.c
    query = (
        sa.select(
            *(t.table_id, t.path, t.path_is_relative),
            s.path.label("schema_path"),
            s.path_is_relative.label("schema_is_relative"),
        )
        .join_from(tables.table, tables.schema, t.schema_id == s.schema_id)
        .where(sa.or_(t.path.is_not(None), s.path.is_not(None)))
        .distinct()
    )
    found: dict[str, set[int]] = {}
    for row in connection.execute(query):
        try:
            home = resolve(lake.data_path, row.schema_path, row.schema_is_relative)
            place = resolve(home, row.path, row.path_is_relative)
        except CorruptLake as error:
            raise CorruptLake(f"the directory of table {row.table_id}: {error}") from error
        found.setdefault(place, set()).add(row.table_id)
    return found


def directory_by_table(directories: Mapping[str, Iterable[int]]) -> dict[int, str]:
    """Return the result of `table_directories` by the tables' ids."""
    return {number: place for place, ids in directories.items() for number in ids}


def owned_directories(connection: sa.Connection, lake: LakeInfo) -> dict[str, set[str]]:
    """Return the directories of all tables that the catalog knows, with the tables' uuids.

    Also those of rollups that may have been written, and never landed.
    """
    t = tables.table.c
    rows = connection.execute(sa.select(t.table_id, t.table_uuid).distinct())
    uuids = {row.table_id: str(row.table_uuid) for row in rows}
    directories = table_directories(connection, lake)
    found = {place: {uuids[n] for n in ids} for place, ids in directories.items()}
    homes = _schemas_of_tables(connection, lake)
    for rollup in rollup_homes(connection):
        for home in homes.get(rollup.base, ()):
            place = home + directory(rollup_table("", ""), rollup.uuid)
            found.setdefault(place, set()).add(rollup.uuid)
    return found


def _schemas_of_tables(connection: sa.Connection, lake: LakeInfo) -> dict[str, set[str]]:
    """Return the directories of the schemas in which each table was, by the table's uuid."""
    s, t = tables.schema.c, tables.table.c
    query = (
        sa.select(t.table_uuid, s.path, s.path_is_relative)
        .join_from(tables.table, tables.schema, t.schema_id == s.schema_id)
        .where(s.path.is_not(None))
        .distinct()
    )
    found: dict[str, set[str]] = {}
    for uuid, path, relative in connection.execute(query):
        found.setdefault(str(uuid), set()).add(resolve(lake.data_path, path, relative))
    return found
