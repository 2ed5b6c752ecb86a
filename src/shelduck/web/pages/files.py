"""The files of a table: sizes, deletes, partitions, overlap, and what compaction would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from shelduck.catalog.read import metadata, read
from shelduck.catalog.read.overview.lake_tables import KeptRows, kept_rows
from shelduck.catalog.read.overview.table_files import (
    FileSums,
    by_layout,
    deletes,
    live_files,
    sizes,
)
from shelduck.catalog.read.read import Connection
from shelduck.errors import ShelduckError
from shelduck.model.tables.table import TableVersion
from shelduck.model.tables.writable import why_not_written
from shelduck.operations.upkeep.compact import survey
from shelduck.planning.upkeep.compaction import Bin, SmallFiles
from shelduck.web.bars import bars
from shelduck.web.overlap import Overlap, overlap, sort_column
from shelduck.web.site import Site

_KB, _MB, _GB = 10**3, 10**6, 10**9
EDGES = (
    *(10 * _KB, 100 * _KB, _MB, 4 * _MB, 16 * _MB, 64 * _MB),
    *(128 * _MB, 256 * _MB, 512 * _MB, _GB),
)
_NAMES = (
    *("below 10 kB", "10 to 100 kB", "0.1 to 1 MB", "1 to 4 MB", "4 to 16 MB", "16 to 64 MB"),
    *("64 to 128 MB", "128 to 256 MB", "256 to 512 MB", "0.5 to 1 GB", "from 1 GB"),
)
LISTED = 100


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """One partition: its keys with their values, and its numbers."""

    keys: tuple[tuple[str, str | None], ...]
    spec: int | None
    rows: int
    files: int
    bytes: int
    deleted: int


def show(site: Site, request: Request) -> Response:
    """Return the page of the files of a table."""
    number = int(request.path_params["table"])
    with site.reading() as (connection, head):
        table = site.table(connection, head, number)
        sized = sizes(connection, number, EDGES)
        deleted = deletes(connection, number)
        kept = kept_rows(connection, [number]).get(number, KeptRows())
        partitions = _partitions(connection, table)
        overlapping = _overlap(connection, table)
        is_known = all(g.layout is not None for g in by_layout(connection, number))
    total = FileSums(*(sum(getattr(s, n) for s in sized) for n in ("files", "rows", "bytes")))
    compaction, why = None, ""
    if is_known or "plan" in request.query_params:
        try:
            compaction = _compaction(site, table)
        except ShelduckError as error:
            why = str(error)
    return site.render(
        request,
        "files.html",
        table=table,
        tab="files",
        total=total,
        histogram=bars([(name, s.files) for name, s in zip(_NAMES, sized, strict=True)]),
        sizes=[(name, s) for name, s in zip(_NAMES, sized, strict=True) if s.files],
        deletes=deleted,
        kept=kept,
        partitions=partitions[:LISTED],
        hidden_partitions=max(0, len(partitions) - LISTED),
        overlap=overlapping,
        compaction=compaction,
        why=why,
    )


def _partitions(connection: Connection, table: TableVersion) -> Sequence[PartitionLine]:
    """Return the partitions of a table, the largest first; none if it never had any."""
    if not table.partition:
        return []
    rows: list[tuple[Any, ...]] = metadata.partition_rows(metadata.file_rows(connection, table))
    found = [PartitionLine(*row[:6]) for row in rows]
    return sorted(found, key=lambda p: -p.bytes)


def _overlap(connection: Connection, table: TableVersion) -> Overlap | None:
    field = sort_column(table)
    if field is None:
        return None
    stats = read.file_bounds(connection, table, [field.id])[field.id]
    return overlap(field, stats, live_files(connection, table.id))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Files that would become fewer or smaller ones; ``note`` says why they cannot."""

    files: int
    bytes: int
    new_files: int
    note: str = ""


def _compaction(site: Site, table: TableVersion) -> tuple[Rewrite, Rewrite]:
    """Return what compacting small files would do, and rewriting those with many deletes."""
    found = survey(site.state.store, table, site.state.layouts)
    options = table.options
    small = found.small(SmallFiles(options.target_file_size))
    dead = found.dead(options.rewrite_delete_threshold, options.target_file_size)
    return _rewrite(table, small), _rewrite(table, dead)


def _rewrite(table: TableVersion, bins: Sequence[Bin]) -> Rewrite:
    why = why_not_written(table.columns, table.full_name) if bins else None
    files, size = sum(len(b.files) for b in bins), sum(b.bytes for b in bins)
    return Rewrite(files, size, len(bins), why or "")
