"""The files of a table: sizes, deletes, partitions, overlap, and what compaction would do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from shelduck.catalog.read import read
from shelduck.catalog.read.overview.lake_tables import RowsInCatalog, kept_rows
from shelduck.catalog.read.overview.table_files import (
    PartitionSums,
    SizeSums,
    deletes,
    inlined_partitions,
    largest_partitions,
    newest_files,
    sizes,
)
from shelduck.catalog.read.read import Connection
from shelduck.files.candidates import LOOKED_UP, outlook
from shelduck.model.files.data_file import ColumnStats
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion, why_not_written
from shelduck.model.types.literals import bound
from shelduck.text.ddl.sorting import sort_key
from shelduck.web.site import BarPart, Site, attempted, bars

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
_DRAWN = 80
"""Files that the picture shows at most."""


def show(site: Site, request: Request) -> Response:
    """Return the page of the files of a table."""
    number = int(request.path_params["table"])
    with site.reading() as (connection, head):
        table = site.table(connection, head, number)
        sized = sizes(connection, number, EDGES)
        deleted = deletes(connection, number)
        kept = kept_rows(connection, [number]).get(number, RowsInCatalog())
        partitions, partitioned = _partitions(connection, table)
        in_catalog = _kept_partitions(connection, table) if kept.rows else []
        overlapping = _overlap(connection, table)
    total = SizeSums(*(sum(getattr(s, n) for s in sized) for n in ("files", "rows", "bytes")))
    reads = "plan" in request.query_params
    compaction, why = attempted(lambda: outlook(site.state, table, reads_footers=reads))
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


@dataclass(frozen=True, slots=True)
class Overlap:
    """Files with certain bounds of the key: how many, and how they overlap.

    ``deepest`` is the most files that one value can be in, ``mean`` the same over all ends of
    files. ``unknown`` files have no bounds.
    """

    column: str
    files: int
    unknown: int
    deepest: int
    mean: float
    spans: tuple[BarPart, ...]


def sort_column(table: TableVersion) -> Field | None:
    """Return the column that comes first in the sort order; None if it is an expression."""
    if not table.sort:
        return None
    name = sort_key(table.sort[0]).expression
    if len(name) > 1 and name[0] == name[-1] and name[0] in '"`':
        name = name[1:-1].replace(name[0] * 2, name[0])
    found = table.columns.find((name,))
    return found if found is not None and found.is_leaf else None


def overlap(field: Field, stats: Mapping[int, ColumnStats], live: Iterable[int]) -> Overlap:
    """Return how live files overlap in a column."""
    ids = list(live)
    known = sorted(
        (*pair, number)
        for number in ids
        if number in stats and (pair := _bounds(field, stats[number])) is not None
    )
    edges = sorted([(low, 0) for low, _, _ in known] + [(high, 1) for _, high, _ in known])
    depth, deepest, total = 0, 0, 0
    for _, is_end in edges:
        # Both ends of a file are in it: a file that begins where another ends overlaps it.
        if not is_end:
            depth += 1
            deepest = max(deepest, depth)
        total += depth
        if is_end:
            depth -= 1
    mean = total / len(edges) if edges else 0.0
    unknown = len(ids) - len(known)
    return Overlap(field.name, len(known), unknown, deepest, mean, _spans(known))


def _bounds(field: Field, stats: ColumnStats) -> tuple[Any, Any] | None:
    low, high = bound(field.leaf, stats.min_value), bound(field.leaf, stats.max_value)
    return None if low is None or high is None else (low, high)


def _spans(known: list[tuple[Any, Any, int]]) -> tuple[BarPart, ...]:
    """Return files by rank of their bounds, which exists for every type."""
    ranks = sorted({v for low, high, _ in known for v in (low, high)})
    width = max(1, len(ranks))
    step = max(1, -(-len(known) // _DRAWN))
    spans = []
    for low, high, number in known[::step]:
        start, end = bisect_left(ranks, low), bisect_left(ranks, high)
        x, last = round(100 * start / width, 4), 100 * (end + 1) / width
        label = f"file {number}: {low} to {high}"
        spans.append(BarPart(label, number, x, round(last - x, 4)))
    return tuple(spans)
