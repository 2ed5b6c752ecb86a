"""The bases of all verbs, and names, snapshots and times resolved to tables, the same for each.

Whoever derives from `TellsOfSpark` needs nothing else: each public method tells of failures.

Constraints are declared if the rows that are there satisfy them.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from types import FunctionType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from shelduck import clock
from shelduck.catalog.databases.store import Store
from shelduck.catalog.read import read
from shelduck.catalog.read.overview.table_files import stored_rows
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.catalog.running.job_rows import open_job, published_conversions, speeds
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.catalog.schema.own_tables import if_known
from shelduck.engine.failures import SparkFailure, told_of_spark
from shelduck.engine.rows.assign import Assigning, telling_failures
from shelduck.engine.rows.table_rules import first_wrong, refusal, ruled, wrong
from shelduck.engine.session import DataFrame
from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.lake.branch_names import twin_named
from shelduck.lake.evolution.alter_plan import AlterPlan, Speed
from shelduck.lake.results import TableName, table_name
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, view_of
from shelduck.model.changes.change import AlterTable
from shelduck.model.changes.job import Job, successors
from shelduck.model.changes.staged_rows import StagedRows
from shelduck.model.changes.stream import Following, followings
from shelduck.model.files.data_file import NewDataFile
from shelduck.model.tables.computed import COMPUTED
from shelduck.model.tables.constraints import CONSTRAINTS, constraints_of
from shelduck.model.tables.properties import FOLLOWS
from shelduck.model.tables.schema import Field, FieldId, TableId, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.view import ViewVersion
from shelduck.model.text.intervals import Interval, parse_interval
from shelduck.model.text.names import backticked, split_name
from shelduck.read.table_rows import TableRows, table_rows


def rows_of(
    unit: UnitOfWork,
    name: TableName,
    *,
    writes: bool = False,
    deletes: bool = False,
    needs_all: bool = True,
) -> TableRows:
    """Return where a table's rows are, as the unit sees them.

    ``writes``: it will write some; ``deletes``: it may delete some.
    Unless somebody ``needs_all`` files, those of a large table are looked up when they are needed.
    """
    found = unit.workspace.table(name)
    staged = unit.workspace.staged_rows(found)
    if writes:
        found = unit.writer.register(found)
    lists = None if needs_all else unit.state.lists
    state = unit.state

    def look(has_own_tables: bool) -> TableRows:
        return table_rows(
            *(state.store, found, state.layouts, staged, lists),
            memory=state.inlined,
            at_once=has_own_tables and (writes or deletes),
        )

    # Whoever has registered as a writer knows them.
    return if_known(state.store, look)


def version_at(
    state: LakeState, name: TableName, version: int | None, timestamp: str | datetime | None
) -> TableVersion:
    """Return a table at a snapshot: an id, the last at or before an instant, or the newest."""
    when = None if timestamp is None else instant(timestamp, state.time_zone)
    try:
        with state.store.read() as connection:
            at = None
            if version is not None or when is not None:
                at = read.snapshot(connection, version=version, timestamp=when)
            return state.tables.table(connection, name.home, name.name, at)
    except NotFound:
        twin = twin_named(UnitOfWork(state).workspace, name, state.current.schema)
        if twin is None:
            raise
        return version_at(state, twin, version, timestamp)


def table_then(
    connection: read.Connection, number: TableId, snapshot: int, lake: LakeInfo
) -> TableVersion | None:
    """Return a table at a snapshot by its id, None if one of both is not there."""
    with suppress(NotFound):
        at = read.snapshot(connection, version=snapshot)
        return read.table_by_id(connection, number, at, lake)
    return None


def as_of_today(unit: UnitOfWork, then: TableVersion) -> TableVersion:
    """Return a table of an older snapshot with its current columns.

    Raises Unsupported if a job has converted one since: the older files have the old values.
    """
    now = table_of_id(unit, then)
    younger = {f.id for f in now.columns if then.columns.by_id(f.id) is None}
    for job in _jobs_of(unit, now) if younger else ():
        converted = next((c for c in job.work.conversions if c.shadow_id in younger), None)
        if converted is not None:
            column = now.columns.by_id(converted.shadow_id)
            assert column is not None
            raise Unsupported(
                f"{path_text((column.name,))} of {now.full_name} was converted from"
                f" {converted.source} to {column.type} by job {job.id}, after snapshot"
                f" {then.snapshot.id}; read that snapshot with its own schema, and cast the column"
            )
    return replace(now, snapshot=then.snapshot)


def replaced_columns(
    unit: UnitOfWork, then: TableVersion, now: TableVersion
) -> dict[FieldId, FieldId]:
    """Return the columns of an older version that jobs have converted, with their replacements.

    Columns that a job computed with USING are left out: rows that are written again would miss it.
    No statement if the table still has all of its columns.
    """
    gone = [f.id for f in then.columns if now.columns.by_id(f.id) is None]
    if not gone:
        return {}
    done = published_conversions(_jobs_of(unit, now), now.id, then.snapshot.id)
    last = successors(c for c in done if c.using is None)
    return {number: last[number] for number in gone if number in last}


def _jobs_of(unit: UnitOfWork, table: TableVersion) -> list[Job]:
    return [job for job in unit.state.store.ask(catalog_jobs.jobs) if job.table_id == table.id]


def table_of_id(unit: UnitOfWork, known: TableVersion) -> TableVersion:
    """Return a table as the unit sees it, under its current name.

    Raises Conflict if it was dropped.
    """
    name = TableName.of(known)
    found = _same_table(unit, name, known)
    if found is None and known.id >= 0:
        with unit.workspace.reading() as connection:
            other = read.name_at(connection, known.id, unit.workspace.base)
            found = None if other is None else _same_table(unit, TableName(*other), known)
    if found is None:
        raise Conflict(
            f"table {known.full_name} was dropped by another commit; nothing was changed"
        )
    return found


def _same_table(unit: UnitOfWork, name: TableName, known: TableVersion) -> TableVersion | None:
    found = unit.workspace.find_table(name)
    return found if found is not None and found.id == known.id else None


def require_checked(unit: UnitOfWork, table: TableVersion, plan: AlterPlan) -> None:
    """Raise InvalidRequest if a column that becomes NOT NULL holds a NULL.

    If every file has statistics that count no NULL, they answer; otherwise a Spark query does.
    """
    state, staged = unit.state, unit.workspace.staged_rows(table)
    suspects = _suspects(state.store, table, plan.checks_null, staged) if plan.checks_null else []
    if not suspects:
        return
    names = [field.name for field in suspects]
    found = table_rows(state.store, table, state.layouts, staged)
    rows = found.frame(state.spark, names)
    for field in suspects:
        if rows.where(f"{backticked(field.name)} IS NULL").limit(1).count():
            raise InvalidRequest(
                f"column {field.name!r} of {table.full_name} contains NULL and cannot become NOT"
                " NULL; fill or delete these rows first"
            )


def _suspects(
    store: Store, table: TableVersion, column_ids: Collection[FieldId], staged: StagedRows | None
) -> list[Field]:
    """Return the columns that statistics do not prove to be free of NULL."""
    columns = [f for f in table.columns if f.id in column_ids]
    if staged is not None and staged.has_changes:
        return columns
    with store.read() as connection:
        if any(rows.rows for rows in read.inlined_rows(connection, table)):
            return columns
        files = read.data_files(connection, table)
        stats = read.file_bounds(connection, table, [f.id for f in columns])
    return [
        column
        for column in columns
        if not all(
            f.id in stats[column.id] and stats[column.id][f.id].null_count == 0 for f in files
        )
    ]


def with_cost(state: LakeState, table: TableVersion, plan: AlterPlan) -> AlterPlan:
    """Return the plan with the files, rows and bytes of its job, from the catalog alone."""
    if not plan.is_heavy:
        return plan
    with state.store.read() as connection:
        stored = stored_rows(connection, table)
        # Only a rewrite of older files leaves alone what the catalog keeps.
        reads_all = plan.shadows or plan.refolds or plan.remakes
        inlined = read.inlined_rows(connection, table) if reads_all else ()
    flushed = [len(part.rows) for part in inlined if part.rows]
    files, rows = stored.files + len(flushed), stored.rows + sum(flushed)
    cores = os.cpu_count() or 1
    found = (files, rows, stored.bytes, cores, _speed(state))
    return plan.rewriting(*found, in_catalog=sum(flushed))


def _speed(state: LakeState) -> Speed:
    """Return how fast earlier jobs of this lake were."""
    known = state.store.ask(speeds).values()
    spent = sum(s.milliseconds * s.cores for s in known) / 1000
    size = sum(s.bytes for s in known)
    return Speed(size / spent, len(known)) if spent and size else Speed()


def view_named(unit: UnitOfWork, name: TableName) -> ViewVersion:
    """Return a view as the unit sees it; NotFound, with similar names, if there is none."""
    found = unit.workspace.view(name)
    if found is not None:
        return found
    if unit.workspace.has_table(name):
        raise InvalidRequest(f"{name} is a table, not a view")
    schema = unit.workspace.schema(name.home)
    known = unit.workspace.view_names(schema)
    raise NotFound.named("view", name.name, known, where=f"schema {schema.text!r}")


Zone = Callable[[], tzinfo | None]
"""Tells the time zone of times without an offset, None for the machine's; asked only for those."""


def instant(value: str | datetime, zone: Zone) -> datetime:
    """Return the instant of ``value``; without an offset it is a local time of ``zone``.

    A time that the zone has twice is the earlier one; one that it never has is as much later as the
    clocks are set forward, as in Spark.

    >>> from datetime import timezone
    >>> instant("2026-01-01", lambda: timezone(timedelta(hours=2))).isoformat()
    '2026-01-01T00:00:00+02:00'
    >>> instant("2026-01-01 12:00Z", lambda: timezone(timedelta(hours=2))).isoformat()
    '2026-01-01T12:00:00+00:00'
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise InvalidRequest(
                f"{value!r} is not a timestamp; write 2026-01-31 or 2026-01-31 12:30:00+00:00"
            ) from error
    if not isinstance(value, datetime):
        raise InvalidRequest(f"{value!r} is not a timestamp; pass text or a datetime")
    if value.tzinfo is not None:
        return value
    local = value.replace(tzinfo=zone(), fold=0)
    # The way over UTC gives a time that the zone never has its true offset.
    return local.astimezone(UTC).astimezone(local.tzinfo)


def earlier(value: str | datetime | timedelta | Interval, zone: Zone) -> datetime:
    """Return a point in time as `instant` does, or a span such as ``"7 days"`` before now."""
    now = clock.now()
    if isinstance(value, timedelta):
        return now - value
    if isinstance(value, str):
        value = parse_interval(value) or value
    return value.before(now) if isinstance(value, Interval) else instant(value, zone)


def seconds_of(name: str, value: str | timedelta) -> float:
    """Return the seconds of a span such as ``"10 minutes"``; InvalidRequest names the argument."""
    found = parse_interval(value) if isinstance(value, str) else value
    if isinstance(found, Interval):
        now = clock.now()
        found = now - found.before(now)
    if not isinstance(found, timedelta) or found <= timedelta(0):
        raise InvalidRequest(
            f"{name} does not accept {value!r}; give a time above zero, such as '10 minutes'"
        )
    return found.total_seconds()


def require_satisfied(unit: UnitOfWork, name: TableName, constraints: Iterable[str]) -> None:
    """Raise InvalidRequest if a row of a table, as the unit sees it, does not satisfy one of these.

    A table without rows needs no Spark; if it runs, it says whether it can compute them.
    """
    rows = rows_of(unit, name, needs_all=False)
    if rows.is_empty and not unit.state.has_spark:
        return
    _require(unit.state, rows, constraints, is_empty=rows.is_empty)


def require_unconverted(unit: UnitOfWork, change: AlterTable) -> None:
    """Raise AlreadyExists if a new constraint uses a column that a job converts; else it would end.

    No statement if there is no new constraint, otherwise two.
    """
    table = change.table
    known = constraints_of(table.properties, table.full_name)
    text = change.properties.get(CONSTRAINTS)
    found = constraints_of({} if text is None else {CONSTRAINTS: text}, table.full_name)
    used = {n for one in found if known.find(one.name) is None for n in one.uses}
    if not used:
        return
    job = unit.state.store.ask(open_job, table.id)
    if job is not None and used.intersection(n for c in job.work.conversions for n in c.parts):
        raise AlreadyExists(
            f"cannot add a constraint to {table.full_name}: job {job.id} ({job.state.value})"
            f" converts a column of it; wait for the job, or use CANCEL ALTER TABLE COLUMN FROM"
            f" {table.full_name}",
            about="job",
        )


def require_satisfied_in(
    state: LakeState, table: TableVersion, files: Sequence[NewDataFile]
) -> None:
    """Raise InvalidRequest if a row in new files does not satisfy a constraint of its table."""
    own = StagedRows(files=list(files))
    written = TableRows(state.store, table, tuple(own.over(table, [])), own.mappings(), ())
    checks = constraints_of(table.properties, table.full_name).checks
    _require(state, written, [one.name for one in checks], is_empty=False)


def _require(
    state: LakeState, rows: TableRows, constraints: Iterable[str], *, is_empty: bool
) -> None:
    table = rows.table
    known = constraints_of(table.properties, table.full_name)
    frame = rows.frame(state.spark)
    if is_empty and COMPUTED in table.properties:
        ruled(frame, table, lambda _: False, Assigning.into(table).fitting)
    # One that the same ALTER drops again is not among them.
    for constraint in filter(None, map(known.find, constraints)):
        if is_empty:
            wrong(frame, table, constraint)
            continue
        with telling_failures():
            found = first_wrong(frame, table, constraint)
        if found is not None:
            raise refusal(table, constraint, found)


def streams_into(unit: UnitOfWork) -> Iterator[tuple[TableVersion, Following]]:
    """Yield the tables that follow others, with each of their streams; one read for each."""
    workspace = unit.workspace
    with workspace.reading() as connection:
        found = read.names_with_tag(connection, FOLLOWS)
    for name in found:
        table = workspace.table(TableName(*name))
        for one in followings(table.properties, table.uuid, table.full_name):
            yield table, one


class TellsOfSpark:
    """Provides verbs, which are public methods, with the telling of Spark's failures."""

    def __init_subclass__(cls, *, in_parts: bool = False, **more: Any) -> None:
        """Let each verb that a class adds tell; those ``in_parts`` commit more than once."""
        super().__init_subclass__(**more)
        for name, verb in list(vars(cls).items()):
            if isinstance(verb, FunctionType) and not name.startswith("_"):
                setattr(cls, name, _telling(verb, in_parts=in_parts))

    def _subject(self) -> str:
        """Return the name of what the verbs work on."""
        return "the lake"


_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _telling(verb: Callable[..., Any], *, in_parts: bool) -> Callable[..., Any]:
    @functools.wraps(verb)
    def telling(self: TellsOfSpark, *args: Any, **kwargs: Any) -> Any:
        try:
            return verb(self, *args, **kwargs)
        except SparkFailure as error:
            name = f"{verb.__name__}() of "
            told = told_of_spark(error, lambda: name + self._subject(), in_parts=in_parts)
            if told is None:
                raise
            raise told from error
        except (TypeError, AttributeError) as error:
            wrong = _misfit(verb, self, *args, **kwargs)
            if wrong is None:
                raise
            raise InvalidRequest(f"{verb.__name__}() of {self._subject()}: {wrong}") from error

    return telling


def _misfit(verb: Callable[..., Any], *args: Any, **kwargs: Any) -> str | None:
    """Return which argument of a call that failed is of another type than its verb takes."""
    with suppress(TypeError, NameError):
        signature, hints = inspect.signature(verb), get_type_hints(verb)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            wanted = hints.get(name, object)
            options = get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
            kinds = tuple(get_origin(kind) or kind for kind in options)
            is_several = signature.parameters[name].kind in _SEVERAL
            if not is_several and not isinstance(value, (*kinds, int) if float in kinds else kinds):
                return f"{name} must be {verb.__annotations__[name]}, not {value!r}"
    return None


class LakeHandle(TellsOfSpark):
    """One lake, or one open transaction."""

    def __init__(self, state: LakeState, unit: UnitOfWork | None) -> None:
        self._state = state
        self._unit = unit

    def _name(self, text: str | TableName) -> TableName:
        if isinstance(text, TableName):
            return text
        return table_name(split_name(text), self._state.current.schema)


class TableHandle(TellsOfSpark):
    """One table by name, on a lake or inside an open transaction."""

    def __init__(self, state: LakeState, name: TableName, unit: UnitOfWork | None = None) -> None:
        self._state = state
        self._unit = unit
        self.name = name

    def __repr__(self) -> str:
        return f"Table({str(self.name)!r})"

    def _subject(self) -> str:
        return str(self.name)

    def _version(self) -> TableVersion:
        if self._unit is not None:
            self._unit.require_open()
            return self._unit.workspace.table(self.name)
        return version_at(self._state, self.name, None, None)

    def _view(self) -> UnitOfWork:
        """Return the open unit, or a new one that is only read from."""
        return view_of(self._state, self._unit)

    def _require_frame(self, given: object, verb: str) -> None:
        if not isinstance(given, DataFrame):
            raise InvalidRequest(
                f"cannot {verb} {self.name}: expected a Spark DataFrame, got"
                f" {type(given).__name__}; create one with spark.createDataFrame(...)"
            )
