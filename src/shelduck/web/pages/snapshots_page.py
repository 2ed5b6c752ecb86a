"""The log of snapshots with filters, and two snapshots compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from shelduck.catalog.read import read
from shelduck.catalog.read.overview.commits import (
    ENTRY_KINDS,
    FileChanges,
    LogFilter,
    authors,
    log,
    names_of_tables,
    row_changes,
)
from shelduck.catalog.read.overview.lake_tables import (
    column_history,
    named_tables,
    tables_with_other_columns,
)
from shelduck.catalog.read.read import Connection
from shelduck.catalog.running.job_rows import followed_by
from shelduck.errors import InvalidRequest
from shelduck.model.changes.change import Entry, Verb
from shelduck.model.tables.table_version import Snapshot
from shelduck.web.history.lanes import ColumnChange, column_changes, order_changes
from shelduck.web.site import Site, asked_number

PAGE = 50
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


@dataclass(frozen=True, slots=True)
class SnapshotLine:
    """A snapshot of the log."""

    snapshot: Snapshot
    deeds: tuple[Deed, ...]


def show(site: Site, request: Request) -> Response:
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
    lines = [SnapshotLine(s, tuple(_deeds(entries, names))) for s, entries in found[:PAGE]]
    return site.render(
        request,
        "snapshots.html",
        lines=lines,
        older=lines[-1].snapshot.id if len(found) > PAGE else None,
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
