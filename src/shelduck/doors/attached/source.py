"""``format("shelduck")``: a table of a lake as a data source of a session."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Iterable, Mapping

from shelduck.catalog.databases.address import parse_address
from shelduck.doors.attached.attached_catalog import AttachedLake
from shelduck.doors.attached.attached_table import AttachedTable
from shelduck.doors.connect import connect_existing
from shelduck.engine.bridge.lake_catalog import ON, given
from shelduck.engine.session import DataFrame, SparkSession, branch_of
from shelduck.errors import InvalidRequest, NotFound
from shelduck.lake.lookup import version_at
from shelduck.lake.results import table_name
from shelduck.lake.spark_options import (
    SPARKS_CHANGES,
    changes_asked,
    option_value,
    read_options,
    stream_options,
    without_options,
)
from shelduck.lake.state import LakeState
from shelduck.model.changes.stream import POSITION, StreamPosition
from shelduck.model.tables.table_version import DEFAULT_SCHEMA
from shelduck.model.text.names import split_name
from shelduck.streams.streamed import TableStream

_CATALOG, _TABLE, _PATH = "catalog", "table", "path"
Rows = Iterable[tuple[str, ...]]


class LakeSources:
    """The lakes and streams that one session reads with ``format("shelduck")``."""

    def __init__(self, spark: SparkSession, attached: Mapping[str, AttachedLake]) -> None:
        self._spark = spark
        self._attached = attached
        self._connected: dict[str, LakeState] = {}
        self._streams: dict[str, TableStream] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def answer(self, request: list[str], _: DataFrame | None) -> Rows:
        """Answer what `LakeProvider` and `LakeSource` ask."""
        asks, what, _namespace, _name, *more = request
        branch = asks.partition(ON)[2]
        if what in ("rows", "columns", "open"):
            made = more.pop(0) if what == "open" else None
            options = dict(zip(more[::2], more[1::2], strict=True))
            if what == "rows":
                return [given(self._spark, self.read(options, branch))]
            _require_no_secret(options)
            table, rest = self._table(options, branch)
            wanted = stream_options(rest, table.name)
            version = version_at(table.state, table.table, None, None)
            stream = TableStream(table.state, version, wanted, made)
            schema = stream.schema.json()
            if what == "columns":
                return [(schema, stream.made)]
            opened = str(next(self._numbers))
            self._streams[opened] = stream
            return [(opened, schema, str(wanted.max_files))]
        opened, *about = more
        return self._about_stream(what, opened, about)

    def read(self, options: Mapping[str, str], branch: str | None = None) -> DataFrame:
        """Return the rows of the table that the options of a reader name.

        ``branch`` is that of the session, which is asked if nobody knows it.
        """
        branch = branch_of(self._spark) if branch is None else branch
        table, rest = self._table(options, branch)
        if rest.pop(SPARKS_CHANGES, None) is not None:
            return table.spark_changes(
                changes_asked(rest, f"a reader of the changes of {table.name}")
            )
        return table.read_as(read_options(rest, table.name))

    def _about_stream(self, what: str, opened: str, about: list[str]) -> Rows:
        if what == "close":
            self._streams.pop(opened, None)
            return []
        stream = self._streams.get(opened)
        if stream is None:
            raise NotFound(
                "the Python that read this stream has ended; start its query again", about="stream"
            )
        if what == "stop at newest":
            stream.stop_at_newest()
            return []
        start = _position(about[0])
        if what == "latest":
            after = stream.latest(start, int(about[1]) if about[1] else None)
            return [] if after is None else [(POSITION.write(after),)]
        end = _position(about[1])
        assert end is not None
        return [given(self._spark, stream.batch(start, end))]

    def _table(
        self, options: Mapping[str, str], branch: str
    ) -> tuple[AttachedTable, dict[str, str]]:
        """Return the table that options name, and the other options."""
        own = (_CATALOG, _TABLE, _PATH)
        catalog, table, path = (option_value(options, name) for name in own)
        name = table or path
        if name is None or (table is not None and path is not None):
            raise InvalidRequest(
                'format("shelduck") needs the name of one table: .option("table", "main.events"),'
                ' or .load("main.events")',
                about="option",
            )
        state = copy.copy(self._lake(catalog))
        state.branch = branch
        found = table_name(split_name(name), DEFAULT_SCHEMA)
        return AttachedTable.meant(state, "", found), without_options(options, own)

    def _lake(self, catalog: str | None) -> LakeState:
        """Return the lake at an address, or the attached one of a name."""
        if catalog is None:
            raise InvalidRequest(
                'format("shelduck") needs the lake: .option("catalog", url), or the name of an'
                " attached lake",
                about="option",
            )
        known = self._attached.get(catalog.lower())
        if known is not None:
            state = copy.copy(known.state)
            state.given_spark = self._spark
            return state
        if "://" not in catalog:
            raise NotFound.named("catalog", catalog, list(self._attached))
        with self._lock:
            if catalog not in self._connected:
                state = connect_existing(catalog)._state  # noqa: SLF001 - the lake's other half
                state.given_spark = self._spark
                self._connected[catalog] = state
            return self._connected[catalog]


def _require_no_secret(options: Mapping[str, str]) -> None:
    """Refuse an address with a password in an option of a stream: Spark writes it into its log."""
    address = option_value(options, _CATALOG) or ""
    if "://" in address and parse_address(address).has_secret:
        raise InvalidRequest(
            "Spark logs the options of a stream, so its address must have no password; attach the"
            " lake and give its name, or keep the password in PGPASSWORD or ~/.pgpass",
            about="option",
        )


def _position(text: str) -> StreamPosition | None:
    return POSITION.read(text, "an offset of the stream") if text else None
