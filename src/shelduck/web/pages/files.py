"""The files of a table: sizes, deletes, partitions, overlap, and what compaction would do."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from shelduck.catalog.read import read
from shelduck.catalog.read.overview.lake_tables import KeptRows, kept_rows
from shelduck.catalog.read.overview.partitions import (
    PartitionSums,
    inlined_partitions,
    largest_partitions,
)
from shelduck.catalog.read.overview.table_files import (
    FileSums,
    deletes,
    newest_files,
    sizes,
)
from shelduck.catalog.read.read import Connection
from shelduck.errors import ShelduckError
from shelduck.model.tables.table import TableVersion
from shelduck.model.tables.writable import why_not_written
from shelduck.rewrite.candidates import LOOKED_UP, outlook
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


def show(site: Site, request: Request) -> Response:
    """Return the page of the files of a table."""
    number = int(request.path_params["table"])
    with site.reading() as (connection, head):
        table = site.table(connection, head, number)
        sized = sizes(connection, number, EDGES)
        deleted = deletes(connection, number)
        kept = kept_rows(connection, [number]).get(number, KeptRows())
        partitions, partitioned = _partitions(connection, table)
        in_catalog = _kept_partitions(connection, table) if kept.rows else []
        overlapping = _overlap(connection, table)
    total = FileSums(*(sum(getattr(s, n) for s in sized) for n in ("files", "rows", "bytes")))
    compaction, why = None, ""
    reads = "plan" in request.query_params
    try:
        compaction = outlook(site.state.store, table, site.state.layouts, reads_footers=reads)
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
        partitions=partitions,
        hidden_partitions=partitioned - len(partitions),
        kept_partitions=in_catalog[:LISTED],
        hidden_kept=max(0, len(in_catalog) - LISTED),
        overlap=overlapping,
        compaction=compaction,
        why_not=why_not_written(table.columns, table.full_name),
        why=why,
    )


def _partitions(connection: Connection, table: TableVersion) -> tuple[Sequence[PartitionSums], int]:
    """Return the largest partitions of a table, and how many there are; none if it has no keys."""
    return largest_partitions(connection, table, LISTED) if table.partition else ((), 0)


def _kept_partitions(connection: Connection, table: TableVersion) -> list[PartitionSums]:
    """Return the partitions of the rows in the catalog, those of most rows first."""
    if not table.partition:
        return []
    return sorted(inlined_partitions(connection, table), key=lambda one: -one.rows)


def _overlap(connection: Connection, table: TableVersion) -> Overlap | None:
    field = sort_column(table)
    if field is None:
        return None
    ids = newest_files(connection, table.id, LOOKED_UP)
    stats = read.file_bounds(connection, table, [field.id], ids)[field.id]
    return overlap(field, stats, ids)
