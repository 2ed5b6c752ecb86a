"""What the catalog proves about values before a job converts them; no file is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shelduck.catalog.read.files.numbers import deletes_of_files
from shelduck.catalog.read.files.outside import UnprovenFile, files_unproven
from shelduck.catalog.read.holdings import Holdings, holdings_of
from shelduck.catalog.read.inlined_rows import inlined_history
from shelduck.catalog.read.read import Connection
from shelduck.catalog.read.table_facts import column_versions
from shelduck.errors import InvalidRequest
from shelduck.lake.evolution.alter_plan import AlterPlan, AlterStep
from shelduck.lake.unit import UnitOfWork
from shelduck.model.files.compaction import ColumnVersion
from shelduck.model.files.data_file import InlinedHistory
from shelduck.model.files.resolve import is_own
from shelduck.model.shadows.proof import (
    FileBounds,
    Fitting,
    Proof,
    fitting,
    is_narrower,
    reads_alike,
)
from shelduck.model.shadows.shadows import Shadow, keeps_apart, of_numbers
from shelduck.model.tables.properties import narrows_by_metadata
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.data_types import ducklake_type

MOST_TOLD = 3
"""How many files with a failing value a proof names."""


@dataclass(frozen=True, slots=True)
class ColumnProof:
    """What is known about the values of one column that a job would convert.

    Of all ``files``, ``proven`` hold only values that fit, and ``failing`` a value that does not.
    ``examples`` are paths of some of these, with such a value. Of all ``rows`` in the catalog,
    deleted ones included where numbers change, ``fitting_rows`` do, and ``failing_rows`` are values
    of rows that the table has. ``reads_right``: every reader reads the files right in the new type
    if all fit. ``told`` is the error of an expression that fails. ``apart``: the values were
    converted, and different ones stayed different.
    """

    shadow: Shadow
    files: int
    proven: int
    failing: int = 0
    examples: Sequence[tuple[str, str]] = ()
    rows: int = 0
    fitting_rows: int = 0
    failing_rows: Sequence[str] = ()
    reads_right: bool = False
    told: str = ""
    apart: bool = False

    @property
    def is_apart(self) -> bool:
        """Whether different values certainly become different ones."""
        if self.apart or not self.is_proven:
            return self.apart
        # If all values fit, none becomes NULL.
        how = replace(self.shadow.conversion, on_error_null=False)
        return keeps_apart(replace(self.shadow, conversion=how))

    @property
    def is_proven(self) -> bool:
        """Whether all values fit, and the catalog alone says so."""
        return self.proven == self.files and self.fitting_rows == self.rows

    @property
    def may_be_null(self) -> bool:
        """Whether a value that does not fit becomes NULL."""
        return self.shadow.conversion.on_error_null and not self.told

    def __str__(self) -> str:
        parts = [f"{self.proven} of {self.files} file(s)"] if self.files or not self.rows else []
        parts += [f"{self.fitting_rows} of {self.rows} row(s) in the catalog"] if self.rows else []
        told = [f"proven for {' and '.join(parts)}"]
        left = self.files - self.proven - self.failing
        told += [f"{left} file(s) must be read"] if left else []
        if self.failing or self.failing_rows:
            what = "become NULL" if self.may_be_null else "fail"
            told.append(f"these values would {what}: {self._values()}")
        return "; ".join(told)

    @property
    def reason(self) -> str:
        """Why the type can change by metadata."""
        by = [f"the bounds of {self.files} file(s)"] if self.files or not self.rows else []
        by += [f"{self.rows} row(s) in the catalog"] if self.rows else []
        return f"metadata only: {' and '.join(by)} prove that every value fits"

    def refusal(self, table: TableVersion) -> InvalidRequest | None:
        """Return the error for values that certainly fail, None if none does."""
        if self.may_be_null or not (self.failing or self.failing_rows):
            return None
        if self.told:
            return InvalidRequest(self.told)
        old, new = self.shadow.old, self.shadow.field
        value = (*(value for _, value in self.examples), *self.failing_rows)[0]
        return InvalidRequest(
            f"values of column {old.name!r} of {table.full_name} cannot be converted to"
            f" {new.type}, such as {value!r}, in {self._places()}; correct them, give"
            " a conversion with USING, or allow NULL with ON ERROR NULL"
        )

    def _places(self) -> str:
        told = ", ".join(path for path, _ in self.examples)
        return " and ".join(filter(None, (told, *self._others())))

    def _values(self) -> str:
        told = [f"{value!r} in {path}" for path, value in self.examples]
        if len(self.failing_rows) == 1 and not told:
            return f"{self.failing_rows[0]!r} in the catalog"
        return " and ".join(filter(None, (", ".join(told), *self._others())))

    def _others(self) -> list[str]:
        """Return in words where else such values are."""
        more, rows = self.failing - len(self.examples), len(self.failing_rows)
        told = [f"{more} more file(s)"] if more else []
        return told + ([f"{rows} row(s) in the catalog"] if rows else [])


@dataclass(frozen=True, slots=True)
class Preflight:
    """What is proven about the values that a plan converts."""

    table: TableVersion
    columns: Sequence[ColumnProof]
    is_whole: bool

    @property
    def is_refused(self) -> bool:
        """Whether a value certainly cannot be converted."""
        return any(column.refusal(self.table) is not None for column in self.columns)

    @property
    def narrows(self) -> dict[FieldId, str]:
        """The columns that get their type by metadata, and why: all that a job converts, or none.

        Keys and rollups compare values of files, so tables that have some are left to the job.
        """
        if not self.is_whole or self.table.features:
            return {}
        if not narrows_by_metadata(self.table.properties):
            return {}
        if not all(column.is_proven and column.reads_right for column in self.columns):
            return {}
        return {column.shadow.old.id: column.reason for column in self.columns}

    def is_apart(self, shadows: Sequence[Shadow]) -> bool:
        """Return whether different values of these columns certainly become different ones."""
        proven = {column.shadow.old.id for column in self.columns if column.is_apart}
        return proven.issuperset(s.old.id for s in shadows)

    def refuse(self) -> None:
        """Raise InvalidRequest, as the job would, if a value certainly cannot be converted."""
        for column in self.columns:
            error = column.refusal(self.table)
            if error is not None:
                raise error

    def told(self, plan: AlterPlan) -> AlterPlan:
        """Return a plan whose steps say what is proven."""
        by_clause: Mapping[int, ColumnProof] = {
            column.shadow.conversion.clause: column for column in self.columns
        }

        def with_proof(number: int, step: AlterStep) -> AlterStep:
            found = by_clause.get(number)
            return step if found is None else replace(step, proof=str(found))

        return replace(plan, steps=tuple(with_proof(n, s) for n, s in enumerate(plan.steps)))


def preflight(unit: UnitOfWork, table: TableVersion, plan: AlterPlan) -> Preflight | None:
    """Return what the catalog proves about the conversions of a plan; None if bounds prove nothing.

    Four statements, and two more for each further column; more if the catalog keeps rows.
    """
    judged = [(s, f) for s in of_numbers(plan.shadows) if (f := fitting(s.old.type, s.field.type))]
    staged = unit.workspace.staged_rows(table)
    if not judged or table.id < 0 or (staged is not None and staged.has_changes):
        return None
    with unit.state.store.read() as connection:
        looking = _Looking(connection, table, holdings_of(connection, table.id))
        columns = [looking.proof(*each) for each in judged]
    needs_more = plan.rewrites or plan.refolds or plan.remakes
    return Preflight(table, columns, len(columns) == len(plan.shadows) and not needs_more)


@dataclass
class _Looking:
    """One look at the catalog for several columns."""

    connection: Connection
    table: TableVersion
    known: Holdings

    def proof(self, shadow: Shadow, fits: Fitting) -> ColumnProof:
        """Return what is proven about one column."""
        span = None if fits.needs_own_bounds else fits.span
        count, unproven = files_unproven(
            self.connection, self.table, shadow.old.id, span, fits.scale
        )
        found: dict[int, Proof] = {}
        for file in unproven:
            # Two rows of statistics contradict each other.
            is_first = file.id not in found
            found[file.id] = fits.proof(self._bounds(file, fits)) if is_first else Proof.UNKNOWN
        proven = count - sum(each is not Proof.PROVEN for each in found.values())
        failing = [file for file in unproven if found[file.id] is Proof.FAILS]
        certain = [f for f in failing if f.id not in self.dead] if failing else []
        examples = [
            (f.place(self.table), fits.failing(self._bounds(f, fits)) or "")
            for f in certain[:MOST_TOLD]
        ]
        rows, held, bad = self._rows(shadow, fits)
        made = ColumnProof(shadow, count, proven, len(certain), examples, rows, held, bad)
        return (
            replace(made, reads_right=self._reads_right(shadow, fits)) if made.is_proven else made
        )

    def _reads_right(self, shadow: Shadow, fits: Fitting) -> bool:
        """Return whether files of every type that the column had are read right in the new one."""
        first = shadow.old.initial_default
        if not is_narrower(fits.source, fits.target) or not (first is None or fits.holds(first)):
            return False
        had = {v.type for v in self.versions if v.id == shadow.old.id}
        return all(reads_alike(ducklake_type(text), fits.target) for text in had)

    @cached_property
    def dead(self) -> set[int]:
        """The files with deleted rows: a bound may be one of them."""
        return set(deletes_of_files(self.connection, self.table, self.known))

    @cached_property
    def histories(self) -> list[InlinedHistory]:
        """The rows that the catalog has, those that ended too."""
        return inlined_history(self.connection, self.table, self.known)

    @cached_property
    def versions(self) -> list[ColumnVersion]:
        """Every version of the table's columns."""
        return column_versions(self.connection, self.table.id)

    def _bounds(self, file: UnprovenFile, fits: Fitting) -> FileBounds:
        if not (file.bounds.is_trusted and fits.needs_own_bounds):
            return file.bounds
        return file.bounds._replace(is_trusted=is_own(self.table, file.place(self.table)))

    def _rows(self, shadow: Shadow, fits: Fitting) -> tuple[int, int, list[str]]:
        """Return how many rows the catalog has, how many fit, and live values that do not."""
        count, held, bad = 0, 0, list[str]()
        for history in self.histories:
            place = next(
                (n for n, f in enumerate(history.rows.columns) if f.id == shadow.old.id), None
            )
            for row, end in zip(history.rows.rows, history.end_snapshots, strict=True):
                value = shadow.old.initial_default if place is None else row[place]
                found = True if value is None else fits.holds(str(value))
                count += 1
                held += found is True
                bad += [str(value)] if found is False and end is None else []
        return count, held, bad
