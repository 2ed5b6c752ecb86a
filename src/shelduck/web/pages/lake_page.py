"""The lake: its tables and views, its branches, the log of snapshots, and two of them compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from shelduck.branches.verb import BranchVerbs
from shelduck.catalog.read import read
from shelduck.catalog.read.overview.commits import (
    ENTRY_KINDS,
    FileChanges,
    LogFilter,
    authors,
    commits_between,
    count_snapshots,
    log,
    names_of_tables,
    row_changes,
    times_of,
)
from shelduck.catalog.read.overview.lake_tables import (
    RowsInCatalog,
    TableNumbers,
    column_history,
    kept_rows,
    named_tables,
    named_views,
    newest_changes,
    tables_at,
    tables_with_other_columns,
)
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.views_and_macros import views
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.catalog.running.job_rows import followed_by
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.errors import InvalidRequest, ShelduckError
from shelduck.model.changes.change import Entry, Verb
from shelduck.model.tables.table_version import Snapshot
from shelduck.model.tables.view import ViewVersion
from shelduck.web.history.lanes import ColumnChange, column_changes, order_changes
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


LISTED = 300

_WORDS = {
    Verb.INSERTED_INTO_TABLE: "added rows to",
    Verb.INLINED_INSERT: "added rows to",
    Verb.DELETED_FROM_TABLE: "deleted rows from",
    Verb.INLINED_DELETE: "deleted rows from",
    Verb.INLINE_FLUSH: "flushed",
    Verb.MERGE_ADJACENT: "merged files of",
    Verb.REWRITE_DELETE: "rewrote files of",
    Verb.COMPACTED_TABLE: "compacted",
}


@dataclass(frozen=True, slots=True)
class Deed:
    """The change of a snapshot to one object; ``table`` is the id of a table, None for others."""

    words: str
    name: str
    table: int | None = None


def show_log(site: Site, request: Request) -> Response:
    """Return the log, the newest snapshots first."""
    query = request.query_params
    wanted = LogFilter(
        asked_number(request, "table"),
        query.get("author", "").strip(),
        query.get("kind", "").strip(),
        asked_number(request, "before"),
    )
    if wanted.kind and wanted.kind not in ENTRY_KINDS:
        raise InvalidRequest(f"the kind {wanted.kind!r} is unknown; use {', '.join(ENTRY_KINDS)}")
    with site.reading() as (connection, head):
        found = log(connection, wanted, PAGE + 1)
        people = authors(connection)
        tables = named_tables(connection, head.id)
        ids = {e.id for _, entries in found for e in entries if e.id is not None}
        names = names_of_tables(connection, ids)
    lines = [(s, list(_deeds(entries, names))) for s, entries in found[:PAGE]]
    return site.render(
        request,
        "snapshots.html",
        lines=lines,
        older=lines[-1][0].id if len(found) > PAGE else None,
        wanted=wanted,
        people=people,
        tables=tables,
        kinds=list(ENTRY_KINDS),
        head=head,
    )


def _deeds(entries: Iterable[Entry], names: Mapping[int, str]) -> Iterable[Deed]:
    for entry in entries:
        words = _WORDS.get(entry.verb) or entry.verb.value.replace("_", " ").removesuffix(" table")
        if entry.id is None:
            what = entry.verb.value.partition("_")[2].replace("_", " ")
            yield Deed(f"{entry.verb.value.partition('_')[0]} {what}", ".".join(entry.parts))
        else:
            is_table = entry.id in names
            name = names.get(entry.id, f"{entry.verb.value.rpartition('_')[2]} {entry.id}")
            yield Deed(words, name, entry.id if is_table else None)


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """A table in two snapshots: its names, None where it is not there, and what differs."""

    id: int
    before: str | None
    after: str | None
    files: FileChanges
    changes: tuple[ColumnChange, ...]

    @property
    def name(self) -> str:
        """Its name in the second snapshot, or else in the first."""
        return self.after or self.before or ""


def compare(site: Site, request: Request) -> Response:
    """Return what differs between two snapshots: schemas and counts."""
    first, second = asked_number(request, "a"), asked_number(request, "b")
    with site.reading() as (connection, head):
        b = head if second is None else read.snapshot(connection, version=second)
        a = read.snapshot(connection, version=max(0, b.id - 1) if first is None else first)
        found = _differences(connection, a.id, b.id)
    return site.render(
        request,
        "compare.html",
        a=a,
        b=b,
        differences=found[:LISTED],
        hidden=max(0, len(found) - LISTED),
        head=head,
    )


def _differences(connection: Connection, a: int, b: int) -> list[ShownDifference]:
    old, new = named_tables(connection, a), named_tables(connection, b)
    files = row_changes(connection, old.keys() | new.keys(), a, b)
    changed = tables_with_other_columns(connection, a, b)
    found = []
    for number in sorted(old.keys() | new.keys()):
        before, after = old.get(number), new.get(number)
        is_there = before is not None and after is not None
        changes = _columns(connection, number, a, b) if is_there and number in changed else ()
        if before != after or changes or number in files:
            differs = files.get(number, FileChanges())
            found.append(ShownDifference(number, before, after, differs, changes))
    return sorted(found, key=lambda d: d.name.lower())


def _columns(connection: Connection, table: int, a: int, b: int) -> tuple[ColumnChange, ...]:
    history = column_history(connection, table)
    before, after = ([s for s in history if s.is_at(at)] for at in (a, b))
    found = column_changes(before, after, followed_by(connection, table))
    return (*found, *order_changes(before, after))


def show_branches(site: Site, request: Request) -> Response:
    """Return the list of branches."""
    return site.render(request, "branches.html", branches=BranchVerbs(site.state, None).branches())


def show_branch(site: Site, request: Request) -> Response:
    """Return how a branch differs from its base, and what a merge would refuse."""
    name = request.query_params.get("branch", "")
    return site.render(request, "branch.html", diff=BranchVerbs(site.state, None).branch_diff(name))
