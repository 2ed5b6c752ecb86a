"""One served lake: its state, its guard, the pace of jobs, and templates made into responses."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from shelduck.catalog.read import read
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.views_and_macros import views
from shelduck.errors import NotFound
from shelduck.lake.state import LakeState
from shelduck.model.changes.job import Job
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.model.tables.view import ViewVersion
from shelduck.web import wording
from shelduck.web.guard import Guard
from shelduck.web.wording import here

HERE = Path(__file__).parent
ASSETS = HERE / "assets"
_KEPT = 500
_ENOUGH = 5.0
"""Seconds after which what was seen says more than the time since the job was made."""


class Pace:
    """When each job was first seen, and how many files were done then; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[int, tuple[datetime, int]] = OrderedDict()

    def first_seen(self, job: Job, now: datetime) -> tuple[datetime, int]:
        """Return when a job was first seen, and what was done; now, if this is the first time."""
        with self._lock:
            found = self._seen.setdefault(job.id, (now, job.done))
            if found[1] > job.done:
                # A job that begins again counts from zero.
                found = self._seen[job.id] = (now, job.done)
            while len(self._seen) > _KEPT:
                self._seen.popitem(last=False)
            return found


@dataclass(frozen=True)
class Site:
    """A lake and who may see it; ``version`` is part of the addresses of assets.

    ``rows_from`` is the address of the catalog, which may have secrets, if rows may be shown.
    """

    state: LakeState
    guard: Guard
    version: str = field(default="")
    rows_from: str | None = field(default=None, repr=False)
    _door: threading.Lock = field(default_factory=threading.Lock, repr=False)
    pace: Pace = field(default_factory=Pace, repr=False)

    @cached_property
    def _templates(self) -> Environment:
        made = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        words = (
            *(wording.number, wording.plural, wording.size, wording.share),
            *(wording.day, wording.short_day, wording.moment, wording.ago, wording.lasting),
        )
        made.filters.update({word.__name__: word for word in words})
        return made

    def render(
        self, request: Request, template: str, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """Return a page; every value is escaped."""
        text = self._templates.get_template(template).render(
            values
            | {
                "catalog": self.state.store.where,
                "here": here(request),
                "may_change": self.guard.may_change(request),
                "shows_rows": self.rows_from is not None,
                "version": self.version,
            }
        )
        return HTMLResponse(text, status)

    @property
    def is_shared(self) -> bool:
        """Whether pages may have the catalog open while DuckDB reads rows: not in its own file."""
        return self.rows_from is None or self.state.store.kind != "duckdb"

    def door(self) -> AbstractContextManager[object]:
        """Let in one page at a time if they do not share the catalog with DuckDB."""
        return nullcontext() if self.is_shared else self._door

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open a DuckDB file once for all that a page asks; nothing to do on other databases.

        Raises CatalogUnavailable if another process keeps the file.
        """
        with ExitStack() as stack:
            # A session does not wait until another process closes the file, but a read does.
            with self.state.store.read():
                stack.enter_context(self.state.store.session())
            yield

    @contextmanager
    def reading(self) -> Iterator[tuple[Connection, Snapshot]]:
        """Provide one state of the catalog, and its newest snapshot."""
        with self.state.store.read() as connection:
            yield connection, read.snapshot(connection)

    def table(self, connection: Connection, at: Snapshot, number: int) -> TableVersion:
        """Return a table at a snapshot by its id; NotFound if it is not there."""
        found = read.table_by_id(connection, number, at, self.state.info)
        if found is None:
            raise NotFound(
                f"table {number} does not exist at snapshot {at.id}; look for it on the first page",
                about="table",
            )
        return found

    def view(self, connection: Connection, at: Snapshot, number: int) -> ViewVersion:
        """Return a view at a snapshot by its id; NotFound if it is not there."""
        for found in views(connection, at, [number], self.state.info):
            return found
        raise NotFound(
            f"view {number} does not exist at snapshot {at.id}; look for it on the first page",
            about="view",
        )


def pace_of(pace: Pace, job: Job, now: datetime) -> float | None:
    """Return files per second: since the job was first seen, or else since it was made."""
    since, done = pace.first_seen(job, now)
    seen = (now - since).total_seconds()
    if seen >= _ENOUGH and job.done > done:
        return (job.done - done) / seen
    life = (now - job.created).total_seconds()
    return job.done / life if job.done and life > 0 else None
