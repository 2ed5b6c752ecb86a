"""One served lake: its state, its guard, the pace of jobs, and templates made into responses.

And numbers, sizes, times, addresses and bars as people read them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.filesize import decimal
from starlette.requests import Request
from starlette.responses import HTMLResponse

from shelduck.catalog.read import read
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.views_and_macros import views
from shelduck.errors import InvalidRequest, NotFound, ShelduckError
from shelduck.lake.state import LakeState
from shelduck.model.changes.job import Job
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.model.tables.view import ViewVersion
from shelduck.model.text.intervals import whole_number
from shelduck.web.guard import Guard

T = TypeVar("T")
HERE = Path(__file__).parent
ASSETS = HERE / "assets"
_KEPT = 500
_ENOUGH = 5.0
"""Seconds after which what was seen says more than the time since the job was made."""
_STEPS = ((60, "second"), (60, "minute"), (24, "hour"), (30, "day"), (12, "month"), (0, "year"))
_LEAST = 2.0
"""The height of a bar that is not zero, in percent, so that it can be seen."""


def attempted(act: Callable[[], T]) -> tuple[T | None, str]:
    """Return what ``act`` returns, or why it cannot, for a page that shows either."""
    try:
        return act(), ""
    except ShelduckError as error:
        return None, str(error)


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
        words = (*(number, plural, size, share), *(day, short_day, moment, ago, lasting))
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


def number(value: float) -> str:
    """Return a whole number with thousands apart: ``1,234,567``."""
    return f"{value:,.0f}"


def plural(count: int, noun: str, more: str = "") -> str:
    """Return a count with its noun: ``1 file``, ``2 files``; ``more`` is an unusual plural."""
    return f"{number(count)} {noun if count == 1 else more or noun + 's'}"


def size(count: float) -> str:
    """Return bytes in the unit that suits them: ``1.4 MB``."""
    return decimal(round(count))


def share(part: float, whole: float) -> str:
    """Return a part in percent; ``<0.1%`` rather than nothing for something."""
    if not whole or not part:
        return "0%"
    percent = 100 * part / whole
    if percent < 0.1:
        return "<0.1%"
    if 99.9 < percent < 100:
        return ">99.9%"
    return f"{percent:.1f}%" if percent < 10 else f"{percent:.0f}%"


def day(time: datetime) -> str:
    """Return the date of an instant, in UTC: ``3 Mar 2026``."""
    told = time.astimezone(UTC)
    return f"{told.day} {told:%b %Y}"


def short_day(time: datetime) -> str:
    """Return day and month of an instant, in UTC: ``3 Mar``."""
    told = time.astimezone(UTC)
    return f"{told.day} {told:%b}"


def moment(time: datetime) -> str:
    """Return an instant to the second, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def ago(time: datetime, now: datetime | None = None) -> str:
    """Return how long ago an instant was: ``3 days ago``."""
    return f"{lasting((now or datetime.now(UTC)) - time)} ago"


def lasting(span: timedelta) -> str:
    """Return a length of time in its largest unit: ``3 days``."""
    left = max(0.0, span.total_seconds())
    for length, noun in _STEPS:
        if not length or left < length:
            return plural(int(left), noun)
        left /= length
    raise AssertionError("years have no length")


class Here:
    """The address of a page: its path and the query that was asked for, with one value each."""

    def __init__(self, path: str, query: Mapping[str, str]) -> None:
        self.path = path
        self.query = dict(query)

    def but(self, **changed: object) -> str:
        """Return the address with other values; None and "" remove a value."""
        query = self.query | {name: str(value) for name, value in changed.items()}
        gone = {name for name, value in changed.items() if value is None or value == ""}
        left = sorted((name, value) for name, value in query.items() if name not in gone)
        return f"{self.path}?{urlencode(left)}" if left else self.path


def here(request: Request) -> Here:
    """Return where a request is."""
    return Here(request.url.path, {k: v for k, v in request.query_params.items() if v})


def asked_number(request: Request, name: str) -> int | None:
    """Return a whole number of the query, None without it; InvalidRequest for text."""
    text = request.query_params.get(name, "").strip()
    if not text:
        return None
    number = whole_number(text)
    if number is None:
        raise InvalidRequest(f"{name} must be a whole number from 0, not {text[:40]!r}")
    return number


@dataclass(frozen=True, slots=True)
class BarPart:
    """One part of a bar that lies: its place and width in percent."""

    label: str
    value: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Bar(BarPart):
    """One upright bar: its place and size in percent; ``y`` is its upper edge."""

    y: float
    height: float


def bars(values: Sequence[tuple[str, int]], gap: float = 0.25) -> list[Bar]:
    """Return a bar for each label and value; ``gap`` is the part of a place that stays empty."""
    most = max((value for _, value in values), default=0)
    step = 100 / max(1, len(values))
    found = []
    for at, (label, value) in enumerate(values):
        height = max(_LEAST, 100 * value / most) if value else 0.0
        x = round(at * step + step * gap / 2, 4)
        found.append(
            Bar(
                label,
                value,
                x,
                round(step * (1 - gap), 4),
                round(100 - height, 4),
                round(height, 4),
            )
        )
    return found


def parts(values: Sequence[tuple[str, int]]) -> list[BarPart]:
    """Return what each value is of their sum, side by side; nothing if the sum is 0."""
    total = sum(value for _, value in values)
    if not total:
        return []
    found, at = [], 0
    for label, value in values:
        start, end = round(100 * at / total, 4), round(100 * (at + value) / total, 4)
        found.append(BarPart(label, value, start, round(end - start, 4)))
        at += value
    return found
