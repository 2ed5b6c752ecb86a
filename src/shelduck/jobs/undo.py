"""What a published job changed: the undo that takes it back, and its comparison, row by row.

An undo converts the same columns in the other direction. The files of the job hold the old columns
beside the new ones. An undo shows the old ones again, under their ids, and converts back only what
has been written since.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shelduck.catalog.read import read
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.files.compact import Survey, survey
from shelduck.jobs.convert import OlderValues, held, unheld
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.evolution.plan import plan_alter
from shelduck.lake.lookup import table_then
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import view_of
from shelduck.model.changes.job import Job, JobIndex, JobState, Undone
from shelduck.model.changes.retype import conversion_verdict
from shelduck.model.changes.schema_change import ChangeTypeBack
from shelduck.model.shadows.shadows import (
    Shadow,
    kept_parts,
    known_shadow,
    named_columns,
    require_usable,
)
from shelduck.model.tables.schema import Field, Kind, Schema, SnapshotId, TableId, path_text
from shelduck.model.tables.table_version import Conversion, Feature, TableVersion
from shelduck.model.types.data_types import FLOATS, type_text
from shelduck.model.types.promotions import Verdict
from shelduck.read.table_rows import table_rows
from shelduck.rollups.altered_bases import parted
from shelduck.rollups.rollup_tables import rollups_of
from shelduck.write.shadow_rows import unlike_rows

_TEXTS = ("varchar", "json")


@dataclass(frozen=True, slots=True)
class WayBack:
    """What an undo is asked to do where the types say nothing else: see `ChangeType`."""

    using: str | None = None
    on_error_null: bool = False


@dataclass(frozen=True, slots=True)
class PublishedJob:
    """A published job, the jobs of its table, and the table before it, right after it and now."""

    job: Job
    jobs: Sequence[Job]
    before: TableVersion
    after: TableVersion
    now: TableVersion

    @property
    def undone(self) -> list[Job]:
        """The job, and if it is itself an undo, the jobs that it took back, one after the other."""
        found = [self.job]
        while (undoes := found[-1].work.undoes) is not None:
            found.append(next(job for job in self.jobs if job.id == undoes.job))
        return found


def refuse_not_published(job: Job) -> None:
    """Raise InvalidRequest for a job that has converted nothing, and so can't be undone."""
    told = f"cannot undo job {job.id} on {job.table_name}"
    if job.is_open:
        raise InvalidRequest(
            f"{told}: it is {job.state.value}; use CANCEL ALTER TABLE COLUMN FROM {job.table_name}"
        )
    if job.state is not JobState.FINISHED or job.published is None:
        raise InvalidRequest(f"{told}: it is {job.state.value}, and changed nothing")
    if not job.work.conversions:
        raise InvalidRequest(f"{told}: it converted no column; {_instead(job)}")
    if job.work.folded:
        raise InvalidRequest(
            f"{told}: it folded {job.work.folded} row(s) into others with equal keys;"
            f" {_instead(job)}"
        )


def _instead(job: Job) -> str:
    work = job.work
    if work.makes_rollups:
        return "use DROP ROLLUP"
    if work.rewrites:
        return "files have the same rows in every layout"
    return f"use RESTORE TABLE {job.table_name} TO VERSION AS OF {(job.published or 0) - 1}"


def plan_undo(past: PublishedJob, wanted: WayBack) -> tuple[list[ChangeTypeBack], list[Conversion]]:
    """Return the clauses and the conversions that take a job back.

    Raises InvalidRequest if the columns are no longer those that it published, or hold what the
    older ones cannot, and Unsupported if nothing says how new values are converted back.
    """
    done = past.job.work.conversions
    if len(done) > 1 and (wanted.using is not None or wanted.on_error_null):
        raise InvalidRequest(
            f"cannot undo job {past.job.id} with USING or ON ERROR NULL: it converted"
            f" {len(done)} columns; undo it without, or change the columns with ALTER COLUMN"
        )
    clauses, conversions = list[ChangeTypeBack](), list[Conversion]()
    for number, conversion in enumerate(done):
        old, then, now = _columns(past, conversion)
        how = _how(past, conversion, wanted)
        back = _renamed(old, then, now)
        clause = ChangeTypeBack((now.name,), back.type, how.using, how.on_error_null)
        _require_convertible(past, now, clause)
        _require_nulls(past, old, now)
        clauses.append(clause)
        conversions.append(_reverse(past, now, back, clause, number))
    return clauses, conversions


def _columns(past: PublishedJob, conversion: Conversion) -> tuple[Field, Field, Field]:
    """Return a column before the job, right after it, and now."""
    old = past.before.columns.by_id(conversion.column_id)
    then = past.after.columns.by_id(conversion.shadow_id)
    if old is None or then is None:
        raise InvalidRequest(
            f"cannot undo job {past.job.id}: the catalog no longer has the column that it converted"
        )
    now = past.now.columns.by_id(conversion.shadow_id)
    if now is None:
        raise InvalidRequest(_why_gone(past, conversion, then))
    ids = [{f.id for f in field.walk()} for field in (then, now)]
    if ids[0] != ids[1]:
        raise InvalidRequest(
            f"cannot undo job {past.job.id}: fields of {now.name!r} of {past.now.full_name} were"
            " added or dropped since; change the type with ALTER COLUMN"
        )
    return old, then, now


def _why_gone(past: PublishedJob, conversion: Conversion, then: Field) -> str:
    number, name = past.job.id, past.now.full_name
    later = [
        job
        for job in past.jobs
        if job.is_understood and (job.published or 0) > (past.job.published or 0)
        for c in job.work.conversions
        if c.column_id == conversion.shadow_id
    ]
    last = max(later, key=lambda job: job.published or 0, default=None)
    if last is None:
        column = path_text((then.name,))
        way = f"if it was dropped, use ALTER TABLE {name} UNDROP COLUMN {column} first"
        if (found := past.now.columns.find((then.name,))) is not None:
            way = f"{column} is another column of type {found.type}; use ALTER COLUMN to change it"
        return (
            f"cannot undo job {number}: {name} no longer has the column {then.name!r} that it made;"
            f" {way}"
        )
    undoes = last.work.undoes
    if undoes is not None and undoes.job == number:
        return (
            f"cannot undo job {number}: job {last.id} has undone it; to have its change again, undo"
            f" job {last.id}"
        )
    return (
        f"cannot undo job {number}: job {last.id} converted {then.name!r} of {name} again; undo job"
        f" {last.id} first"
    )


def _how(past: PublishedJob, conversion: Conversion, wanted: WayBack) -> WayBack:
    """Return how new values are converted back: as asked, or as the job that was taken back did."""
    if wanted.using is not None or wanted.on_error_null or past.job.work.undoes is None:
        return wanted
    first = past.undone[1].work.conversions
    same = (c for c in first if c.shadow_id == conversion.column_id)
    return next((WayBack(c.using, c.on_error_null) for c in same), wanted)


def _renamed(old: Field, then: Field, now: Field) -> Field:
    """Return the older column with the names that it and its parts have now."""
    names = {before.id: made.id for before, made in kept_parts(old, then)}
    known = Schema((now,))

    def renamed(field: Field) -> Field:
        found = known.by_id(names[field.id]) if field.id in names else None
        children = tuple(map(renamed, field.children))
        return replace(field, children=children, name=field.name if found is None else found.name)

    return renamed(old)


def _require_convertible(past: PublishedJob, now: Field, clause: ChangeTypeBack) -> None:
    table, number = past.now.full_name, past.job.id
    told = f"cannot undo job {number}: {path_text(clause.path)} of {table} is {now.type}"
    if clause.using is not None:
        require_usable(clause, told)
        return
    found = conversion_verdict(now.type, clause.type)
    if found.verdict is Verdict.REFUSED:
        raise Unsupported(
            f"{told}, and values written since cannot become {clause.type}:"
            f" {found.reason.partition(';')[0]}; give a conversion with ALTER TABLE {table} UNDO"
            f" JOB {number} USING <expression>"
        )


def _require_nulls(past: PublishedJob, old: Field, now: Field) -> None:
    """Refuse a column that is NOT NULL now, but whose older values may be NULL."""
    computed = any(c.using is not None for job in past.undone for c in job.work.conversions)
    if computed and old.nullable and not now.nullable:
        column = path_text((now.name,))
        raise InvalidRequest(
            f"cannot undo job {past.job.id}: {column} of {past.now.full_name} is NOT NULL, and may"
            f" have held NULL before; use ALTER COLUMN {column} DROP NOT NULL first"
        )


def _reverse(
    past: PublishedJob, now: Field, back: Field, clause: ChangeTypeBack, number: int
) -> Conversion:
    made = Conversion(
        now.id,
        back.id,
        str(now.type),
        type_text(back.type),
        clause.using,
        clause.on_error_null,
        number,
        tuple(f.id for f in now.walk()),
        () if clause.using is None else named_columns(past.now.columns.fields),
        shadow_parts=tuple(f.id for f in back.walk()),
    )
    is_exact = all(
        c.using is None and not c.on_error_null for job in past.undone for c in job.work.conversions
    ) and _is_exact(back, now)
    computed = clause.using is not None or clause.on_error_null or not is_exact
    return replace(made, may_be_null=now.nullable and computed, recalls=not is_exact)


def _is_exact(old: Field, new: Field) -> bool:
    """Return whether each value that has an equivalent comes back from it, text for text.

    Many texts mean the same number or date; a float has two zeros; and fields may be missing.
    """
    kept = list(kept_parts(old, new))
    if len(kept) < sum(1 for _ in old.walk()):
        return False
    return all(_is_exact_leaf(one, other) for one, other in kept)


def _is_exact_leaf(old: Field, new: Field) -> bool:
    if isinstance(old.shape, Kind) or isinstance(new.shape, Kind) or old.shape == new.shape:
        return True
    source, target = str(old.shape), str(new.shape)
    if source in _TEXTS:
        return target in (*_TEXTS, "blob")
    return source not in FLOATS or target in (*FLOATS, *_TEXTS)


def refuse_other_values(past: PublishedJob, conversions: Sequence[Conversion], newest: int) -> None:
    """Refuse other values than those that an earlier undo of the job has left in files.

    ``newest`` is the snapshot that added the newest file with the older columns.
    """
    for job in past.jobs:
        undoes = job.work.undoes if job.is_understood else None
        if undoes is None or undoes.job != past.job.id or newest <= job.base:
            continue
        for one, other in zip(job.work.conversions, conversions, strict=True):
            if one.using != other.using or one.on_error_null > other.on_error_null:
                how = "" if one.using is None else f" USING {one.using}"
                how += " ON ERROR NULL" if one.on_error_null else ""
                raise InvalidRequest(
                    f"cannot undo job {past.job.id} in another way than job {job.id} did, whose"
                    f" values are in files; use ALTER TABLE {past.now.full_name} UNDO JOB"
                    f" {past.job.id}{how}, or change the type with ALTER COLUMN"
                )


@dataclass(frozen=True, slots=True)
class Undo:
    """The job that takes another one back, ready to be submitted."""

    table: TableVersion
    plan: AlterPlan
    clauses: Sequence[ChangeTypeBack]
    indexes: tuple[JobIndex, ...]
    undone: Undone


def undo_of(state: LakeState, number: int, wanted: WayBack, *, of: TableName | None = None) -> Undo:
    """Return the job that takes a job back; nothing is changed yet.

    ``of`` is the table to which the job must belong. Raises what `plan_undo` and `plan_alter`
    raise, and NotFound if the job does not exist or its table was dropped.
    """
    past = _past(state, number, of)
    clauses, conversions = plan_undo(past, wanted)
    losses = ""
    if any(c.recalls for c in conversions):
        has_past = len(_versions_around(state, past.now.id, past.after.snapshot.id)) == 2
        conversions = [replace(c, recalls=c.recalls and has_past) for c in conversions]
        losses = _losses(past, has_past=has_past)
    plan = plan_alter(past.now, clauses, conversions)
    found = survey(state, past.now, for_job=True)
    newest = max((f.begin_snapshot for f in found.rows.files if held(f, plan.shadows)), default=0)
    refuse_other_values(past, conversions, newest)
    indexes: tuple[JobIndex, ...] = ()
    if Feature.HAS_ROLLUPS in past.now.features:
        view = view_of(state, None)
        table = view.workspace.table(TableName.of(past.now))
        indexes = parted(table, list(rollups_of(view, table)), clauses).indexes(plan)
    told = "; ".join(_told(found, past, plan, losses))
    undone = Undone(number, past.after.snapshot.id, told)
    return Undo(past.now, plan, clauses, indexes, undone)


def _past(state: LakeState, number: int, of: TableName | None) -> PublishedJob:
    with state.store.read() as connection:
        job = catalog_jobs.job(connection, number)
        # A job of a newer Shelduck raises here.
        _ = job.work
        if of is not None:
            _require_table(state, connection, job, of)
        refuse_not_published(job)
        now = state.tables.newest_of(connection, job.table_id)
        if now is None:
            raise NotFound(
                f"cannot undo job {number}: table {job.table_name} was dropped", about="table"
            )
        known = [j for j in catalog_jobs.jobs(connection) if j.table_id == job.table_id]
        published = job.published or 0
        before = _version(state, connection, now, published - 1)
        after = _version(state, connection, now, published)
    return PublishedJob(job, known, before, after, now)


def _require_table(state: LakeState, connection: read.Connection, job: Job, of: TableName) -> None:
    found = state.tables.table(connection, of.home, of.name)
    if found.id != job.table_id:
        other = "a table of this name that was dropped"
        its = other if job.table_name == found.full_name else job.table_name
        raise InvalidRequest(f"job {job.id} is not of {found.full_name}, but of {its}")


def _version(
    state: LakeState, connection: read.Connection, now: TableVersion, number: int
) -> TableVersion:
    """Return a version of a table with the columns of a snapshot, which may have expired."""
    at = replace(now.snapshot, id=SnapshotId(number))
    found = read.table_by_id(connection, now.id, at, state.info)
    if found is None:
        raise NotFound(f"{now.full_name} did not exist at snapshot {number}", about="table")
    return found


def older_values(state: LakeState, table: TableVersion, undone: Undone) -> OlderValues:
    """Return the rows around the snapshot that a job published; nothing is read yet.

    Raises InvalidRequest if they have expired since the undo began.
    """
    around = rows_around(state, table.id, undone.published)
    if around is None:
        raise InvalidRequest(
            f"snapshot {undone.published - 1}, from which rows of {table.full_name} get their older"
            f" values, has expired while the job ran; undo job {undone.job} again without it"
        )
    return around


def rows_around(state: LakeState, table: TableId, published: int) -> OlderValues | None:
    """Return the rows of a table just before and just after a job published it.

    None if one of the snapshots has expired. Nothing is read yet.
    """
    around = _versions_around(state, table, published)
    if len(around) < 2:
        return None
    return OlderValues(*(table_rows(state.store, found, state.layouts) for found in around))


def _versions_around(state: LakeState, table: TableId, published: int) -> list[TableVersion]:
    """Return a table before and after a job published it, without those of expired snapshots."""
    numbers = published - 1, published
    found = (state.store.ask(table_then, table, number, state.info) for number in numbers)
    return [version for version in found if version is not None]


def _told(found: Survey, past: PublishedJob, plan: AlterPlan, losses: str) -> list[str]:
    """Return what an undo brings back, and what it cannot."""
    lacking = len(unheld(found, plan.shadows))
    total = len(found.rows.files)
    told = [f"{total - lacking} of {total} file(s) hold the old values"]
    rows = sum(found.in_catalog)
    since = [f"{lacking} file(s)"] if lacking else []
    since += [f"{rows} row(s) in the catalog"] if rows else []
    if since:
        told.append(f"{' and '.join(since)} do not, and are converted back{losses}")
    converted = {c.clause for c in past.job.work.conversions}
    others = [str(c) for n, c in enumerate(past.job.work.clauses) if n not in converted]
    if others:
        told.append(f"what else job {past.job.id} did stays: {', '.join(others)}")
    return told


def _losses(past: PublishedJob, *, has_past: bool) -> str:
    published = past.after.snapshot.id
    if has_past:
        return f", except that unchanged rows get their values of snapshot {published - 1}"
    return (
        f"; snapshot {published - 1} has expired, so what job {past.job.id} changed in their values"
        " cannot come back"
    )


@dataclass(frozen=True, slots=True)
class ComparedJob:
    """A published job, and how many rows do not have the values into which it converts theirs."""

    job: Job
    columns: tuple[str, ...]
    unlike: int


def compared_jobs(state: LakeState, table: TableVersion) -> Iterator[ComparedJob]:
    """Compare the published jobs of a table whose snapshots still exist; a query of Spark for each.

    Columns that an expression made are left out, since it may be random, and so are those that
    an undo took from an older snapshot, or from files after that snapshot had expired. Jobs that
    folded rows have fewer of them, and are left out.
    """
    known = state.store.ask(catalog_jobs.jobs)
    for job in (j for j in known if j.table_id == table.id and j.published):
        if not job.is_understood or not job.work.conversions or job.work.folded:
            continue
        undone = job.work.undoes
        if undone is not None and rows_around(state, table.id, undone.published) is None:
            continue
        around = rows_around(state, table.id, job.published or 0)
        shadows = [] if around is None else _shadows(job, around)
        if around is not None and shadows:
            unlike = unlike_rows(*around.frames(state.spark, shadows), shadows)
            yield ComparedJob(job, tuple(s.old.name for s in shadows), unlike)


def _shadows(job: Job, around: OlderValues) -> list[Shadow]:
    """Return the columns to compare, as they were before the job."""
    table = around.before.table
    done = [c for c in job.work.conversions if c.using is None and not c.recalls]
    found = [(table.columns.by_id(c.column_id), c) for c in done]
    return [known_shadow(old, c, table.full_name) for old, c in found if old is not None]
