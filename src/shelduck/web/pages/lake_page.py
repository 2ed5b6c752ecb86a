"""The lake: its tables and views, and how many commits there were each day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from shelduck.catalog.read.overview.commits import commits_between, count_snapshots, times_of
from shelduck.catalog.read.overview.lake_tables import (
    RowsInCatalog,
    TableNumbers,
    kept_rows,
    named_views,
    newest_changes,
    tables_at,
)
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.views_and_macros import views
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.errors import ShelduckError
from shelduck.model.tables.table_version import Snapshot
from shelduck.model.tables.view import ViewVersion
from shelduck.web.site import Bar, Site, asked_number, bars, day

PAGE = 50
DAYS = 30


@dataclass(frozen=True, slots=True)
class TableLine:
    """A table as the list shows it; ``touched`` is the newest snapshot that changed it."""

    table: TableNumbers
    kept: RowsInCatalog
    touched: int | None
    time: datetime | None
    open_jobs: int

    @property
    def rows(self) -> int:
        """The rows that a reader sees."""
        return self.table.rows - self.deleted + self.kept.rows

    @property
    def deleted(self) -> int:
        """The rows of files that are deleted."""
        return self.table.deleted + self.kept.deleted


_ORDERS: dict[str, Callable[[TableNumbers], object]] = {
    "name": lambda t: (t.schema.lower(), t.name.lower()),
    "bytes": lambda t: -t.bytes,
    "files": lambda t: -t.files,
}
NEWEST = "newest"


def show(site: Site, request: Request) -> Response:
    """Return the first page."""
    search = request.query_params.get("q", "").strip()
    order = request.query_params.get("sort", "name")
    page = max(1, asked_number(request, "page") or 1)
    with site.reading() as (connection, head):
        found = tables_at(connection, head.id, search)
        total = tables_at(connection, head.id) if search else found
        newest: dict[int, int] = {}
        if order == NEWEST:
            newest = newest_changes(connection, [t.id for t in found])
            found.sort(key=lambda t: -newest.get(t.id, -1))
        else:
            found.sort(key=_ORDERS.get(order, _ORDERS["name"]))  # type: ignore[arg-type]
        pages = max(1, -(-len(found) // PAGE))
        page = min(page, pages)
        commits = _commits(connection)
        snapshots = count_snapshots(connection)
        kept = kept_rows(connection, [t.id for t in total])
        lines = _lines(connection, found[(page - 1) * PAGE : page * PAGE], newest, kept)
        shown, hidden, views_fail = _views(connection, head, search, site.state.info)
    return site.render(
        request,
        "lake.html",
        lines=lines,
        views=shown,
        hidden_views=hidden,
        views_fail=views_fail,
        found=len(found),
        tables=len(total),
        files=sum(t.files for t in total),
        bytes=sum(t.bytes for t in total),
        kept_rows=sum(k.rows for k in kept.values()),
        snapshots=snapshots,
        head=head,
        commits=commits,
        page=page,
        pages=pages,
        search=search,
        sort=order if order in _ORDERS or order == NEWEST else "name",
    )


def _lines(
    connection: Connection,
    chosen: list[TableNumbers],
    newest: dict[int, int],
    kept: Mapping[int, RowsInCatalog],
) -> list[TableLine]:
    ids = [t.id for t in chosen]
    newest = newest or newest_changes(connection, ids)
    times = times_of(connection, (newest[n] for n in ids if n in newest))
    open_jobs = Counter(j.table_id for j in catalog_jobs.jobs(connection) if j.is_open)
    return [
        TableLine(
            *(t, kept.get(t.id, RowsInCatalog()), newest.get(t.id)),
            *(times.get(newest.get(t.id, -1)), open_jobs[t.id]),
        )
        for t in chosen
    ]


def _views(
    connection: Connection, head: Snapshot, search: str, info: LakeInfo
) -> tuple[list[ViewVersion], int, str]:
    """Return the first views whose name contains a text, how many more, and which fail, and why."""
    names = named_views(connection, head.id)
    found = [number for number, name in names.items() if search.lower() in name.lower()]
    shown, failed = list[ViewVersion](), list[str]()
    try:
        shown = views(connection, head, found[:PAGE], info) if found else []
    except ShelduckError:
        for number in found[:PAGE]:
            try:
                shown += views(connection, head, [number], info)
            except ShelduckError as error:
                failed.append(f"{names[number]}: {error}")
    return shown, len(found) - len(shown) - len(failed), "; ".join(failed)


def _commits(connection: Connection) -> list[Bar]:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    edges = [midnight + timedelta(days=n) for n in range(1 - DAYS, 2)]
    counts = commits_between(connection, edges)
    return bars([(day(edge), n) for edge, n in zip(edges, counts, strict=False)])
