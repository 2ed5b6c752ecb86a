"""Taking back the conversions of a published job: the same columns in the other direction.

The files of the job hold the old columns beside the new ones. An undo shows the old ones again,
under their ids, and converts back only what has been written since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.job import Job, JobState
from shelduck.model.changes.retype import conversion_verdict
from shelduck.model.changes.schema_change import ChangeTypeBack
from shelduck.model.shadows.shadows import kept_parts, named_columns, require_usable
from shelduck.model.tables.schema import Field, Kind, Schema, path_text
from shelduck.model.tables.table_version import Conversion, TableVersion
from shelduck.model.types.data_types import FLOATS, type_text
from shelduck.model.types.promotions import Verdict

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
