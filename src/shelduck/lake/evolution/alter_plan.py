"""The plan of an ALTER TABLE: its steps, which of them are light or heavy, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shelduck.model.changes.change import AlterTable
from shelduck.model.changes.constraining import ConstraintChange
from shelduck.model.changes.definition import Weight
from shelduck.model.changes.modify import CLAUSES, ArrangementChange, RewriteOlderFiles
from shelduck.model.changes.schema_change import ChangeType, SchemaChange, SetNullable
from shelduck.model.changes.storing import StorageChange
from shelduck.model.shadows.shadows import Shadow, verdict_on
from shelduck.model.tables.partition import SortKey
from shelduck.model.tables.properties import SetProperties, UnsetProperties
from shelduck.model.tables.schema import Field, FieldId
from shelduck.model.text.names import html_table
from shelduck.model.types.promotions import Verdict, promotion

Simple = (
    SchemaChange
    | ArrangementChange
    | SetProperties
    | UnsetProperties
    | ConstraintChange
    | StorageChange
    | RewriteOlderFiles
)


@dataclass(frozen=True, slots=True)
class Speed:
    """Bytes per second that a core rewrites, as ``jobs`` earlier jobs did; 0 jobs are a guess."""

    bytes_per_second: float = 10 << 20  # two thirds of benchmarks/jobs.py
    jobs: int = 0

    def __str__(self) -> str:
        return f"as fast as {self.jobs} earlier job(s)" if self.jobs else "a guess before any job"


@dataclass(frozen=True, slots=True)
class AlterStep:
    """One schema change of a plan: its text, why it is light or heavy, and what it touches.

    ``rows_in_catalog`` of the rows are in the catalog itself: a job moves them into files first,
    which count here, without bytes. ``note`` says what is done in another way than the text says,
    ``proof`` what is proven about the values.
    """

    change: str
    weight: str
    reason: str
    files_to_rewrite: int = 0
    rows_to_rewrite: int = 0
    bytes_to_rewrite: int = 0
    note: str = ""
    rows_in_catalog: int = 0
    proof: str = ""

    @property
    def rows_text(self) -> str:
        """The number of rows, and how many of them have no bytes yet."""
        kept = f" ({self.rows_in_catalog} in the catalog)" if self.rows_in_catalog else ""
        return f"{self.rows_to_rewrite}{kept}"

    @property
    def cost(self) -> str:
        """Its rewrites, as text."""
        if self.rows_in_catalog and self.rows_in_catalog == self.rows_to_rewrite:
            return f"rows to move from the catalog into new files: {self.rows_to_rewrite}"
        return (
            f"files to rewrite: {self.files_to_rewrite}, rows: {self.rows_text},"
            f" bytes: {self.bytes_to_rewrite}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class AlterPlan:
    """The effect of an ALTER; printing it shows every step.

    ``change`` is None if nothing changes. ``checks_null`` are columns whose rows must be checked
    for NULL before the commit. ``shadows`` are the columns that a job must fill before ``change``,
    which has them in position; ``rewrites`` says that a job must follow it, which writes only the
    columns that it ``renews`` again, if there are some. ``cores`` are the cores
    that would do it, at ``speed`` each. ``refolds``: a job must combine rows, because a key is
    dropped. ``remakes``: a job must rebuild rollups of the table. ``proven`` says why columns
    become narrower by metadata. ``checks_rows`` are constraints that all rows must satisfy.
    ``meeting`` are the new columns of keys that may become equal, whose rows a job then folds, if
    it ``folds``, and refuses otherwise. ``views`` says what happens to views of the table.
    """

    table: str
    steps: tuple[AlterStep, ...]
    change: AlterTable | None
    checks_null: frozenset[FieldId]
    shadows: tuple[Shadow, ...] = ()
    rewrites: bool = False
    cores: int = 1
    speed: Speed = Speed()
    refolds: bool = False
    remakes: bool = False
    proven: tuple[str, ...] = ()
    checks_rows: tuple[str, ...] = ()
    renews: tuple[FieldId, ...] = ()
    meeting: tuple[Shadow, ...] = ()
    folds: bool = False
    views: tuple[str, ...] = ()

    @property
    def is_heavy(self) -> bool:
        """True if a job is needed."""
        return bool(self.shadows) or self.rewrites or self.refolds or self.remakes

    @property
    def estimated_seconds(self) -> float:
        """A rough estimate of the job's time, 0 without a job: one write serves all steps."""
        size = max(step.bytes_to_rewrite for step in self.steps)
        return size / self.speed.bytes_per_second / self.cores

    @property
    def note(self) -> str:
        """The notes of the steps, and what is proven."""
        told = [step.note for step in self.steps if step.note]
        return "; ".join(dict.fromkeys([*told, *self.proven]))

    def __str__(self) -> str:
        how = "by a job, published in one snapshot" if self.is_heavy else "in one snapshot"
        lines = [f"ALTER TABLE {self.table}: {len(self.steps)} change(s) {how}"]
        for number, step in enumerate(self.steps, 1):
            lines.append(f"  {number}. {step.change}")
            lines.append(f"     {step.weight}: {step.reason}")
            lines += [f"     note: {step.note}"] if step.note else []
            lines += [f"     values: {step.proof}"] if step.proof else []
            lines.append(f"     {step.cost}")
        if self.is_heavy:
            told = f"{self.estimated_seconds:.0f} s on {self.cores} core(s), {self.speed}"
            lines.append(f"  estimate: {told}")
        lines += [f"  {view}" for view in self.views]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        names = ("change", "weight", "reason", "files", "rows", "bytes", "note")
        rows = [
            (
                *(s.change, s.weight, "; ".join(filter(None, (s.reason, s.proof)))),
                *(s.files_to_rewrite, s.rows_text, s.bytes_to_rewrite, s.note),
            )
            for s in self.steps
        ]
        return html_table(names, rows, f"ALTER TABLE {self.table}")

    def telling(self, keys: str) -> AlterPlan:
        """Return the plan whose conversions of keys say which ``keys`` become equal."""
        clauses = {s.conversion.clause for s in self.meeting}
        steps = (
            replace(s, proof="; ".join(filter(None, (s.proof, keys)))) if n in clauses else s
            for n, s in enumerate(self.steps)
        )
        return replace(self, steps=tuple(steps))

    def rewriting(
        self, files: int, rows: int, size: int, cores: int, speed: Speed, *, in_catalog: int
    ) -> AlterPlan:
        """Return the plan with what its heavy steps rewrite, and how fast."""
        steps = tuple(
            replace(
                s,
                files_to_rewrite=files,
                rows_to_rewrite=rows,
                bytes_to_rewrite=size,
                rows_in_catalog=in_catalog,
            )
            if s.weight == "heavy"
            else s
            for s in self.steps
        )
        return replace(self, steps=steps, cores=max(1, cores), speed=speed)


_NOT_NULL = Weight(False, "metadata only, after a check that no row holds NULL")

REFOLDING = Weight(True, "rows that differ only in this key become one; a job combines them")

REMAKING = Weight(
    True, "its types, values or rows would change; a job rebuilds it for the same snapshot"
)


def weight_of(change: Simple) -> Weight:
    """Return the weight of a change other than a type change."""
    if isinstance(change, SetNullable) and not change.nullable:
        return _NOT_NULL
    weight = CLAUSES[type(change)].weight
    assert weight is not None  # a type change has its own
    return weight


def weight_of_conversion(change: ChangeType, column: Field) -> Weight | None:
    """Return the weight of a type change, None if old values may stay as they are.

    ``column`` is the whole column that changes, or that contains the change.
    """
    if change.using is not None:
        return converting("an expression computes the values")
    found = verdict_on(column, change)
    return converting(found.reason) if found.verdict is Verdict.CONVERT else None


def converting(why: str) -> Weight:
    """Return the weight of a conversion by a job."""
    return Weight(
        True,
        f"{why}; a job rewrites the files, for all converted columns at once, while the table"
        " stays in use",
    )


def sorting_again(weight: Weight, keys: Sequence[SortKey]) -> Weight:
    """Return the weight of a conversion whose files cannot be copied: their rows move."""
    told = ", ".join(key.expression for key in keys)
    return Weight(True, f"{weight.reason}; files are written whole, sorted again by {told}")


def weight_of_promotion(old: Field, new: Field) -> Weight:
    """Return what happens to the values, by the table of facts about promotions."""
    known = {leaf.id: leaf.type for leaf in old.leaves()}
    found = (promotion(known[leaf.id], leaf.type) for leaf in new.leaves() if leaf.id in known)
    told = dict.fromkeys(
        f"{one.verdict.value}: {one.reason}" for one in found if one.verdict is not Verdict.SAME
    )
    return Weight(False, "; ".join(told) or "no type changes")
