"""Fitting rows that were written for older columns of a table to its current columns.

Files know columns by id. So a file that was written before an ALTER and committed after it reads
like a file that was committed just before the ALTER: renames and wider types are followed, and
added columns read as their initial default. This module finds the cases in which this is wrong, and
tells apart those in which the same rows, computed again for the current table, fit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from shelduck.errors import Conflict
from shelduck.model.files.data_file import NewDataFile, without_bounds
from shelduck.model.files.fitted import InlinedBatch, fitted_batch
from shelduck.model.shadows.proof import is_narrower
from shelduck.model.shadows.shadows import known_shadows
from shelduck.model.tables.constraints import CONSTRAINTS
from shelduck.model.tables.keys import KEYS
from shelduck.model.tables.rollup import ROLLUPS
from shelduck.model.tables.schema import Field, FieldId, Kind, Path, Schema, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.promotions import promotion

_MOST_TOLD = 20
_NOTHING_REPLACED: Mapping[FieldId, FieldId] = MappingProxyType({})


@dataclass
class Moved:
    """How the columns of a table changed since a writer read them.

    ``problems`` are changes to which the rows cannot be fitted. ``outdated`` are changes to which
    only written files cannot be fitted: the same rows fit if they are computed again. ``checked``
    are columns that no longer accept NULL, and ``unsafe_bounds`` are leaves whose bounds are no
    longer valid.
    """

    written: TableVersion
    now: TableVersion
    problems: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    checked: set[FieldId] = field(default_factory=set)
    unsafe_bounds: set[FieldId] = field(default_factory=set)

    @property
    def must_repeat(self) -> bool:
        """Whether the rows fit, but only if they are computed again."""
        return bool(self.outdated) and not self.problems

    def refuse(self) -> None:
        """Raise Conflict, with both schemas, if the rows do not fit even if computed again."""
        self._refuse(self.problems)

    def files(self, files: Sequence[NewDataFile]) -> tuple[NewDataFile, ...]:
        """Return files as files of the current table; the bytes stay.

        Raises Conflict if they do not fit, or if they must be computed again.
        """
        self._refuse((*self.problems, *self.outdated))
        for number in self.checked:
            column = self.now.columns.by_id(number)
            assert column is not None
            if not all(_holds_no_null(file, column) for file in files):
                self._refuse([_no_null(column)])
        return tuple(without_bounds(file, self.unsafe_bounds) for file in files)

    def batch(self, batch: InlinedBatch) -> InlinedBatch:
        """Return rows for the catalog as rows of the current table.

        Raises Conflict if they do not fit, or if they must be computed again.
        """
        self._refuse((*self.problems, *self.outdated))
        found = fitted_batch(batch, self.now.columns)
        for number in self.checked:
            place = [f.id for f in self.now.columns].index(number)
            if any(row[place] is None for row in found.rows):
                self._refuse([_no_null(self.now.columns.fields[place])])
        return found

    def _refuse(self, problems: Sequence[str]) -> None:
        if not problems:
            return
        listed = "".join(f"\n  - {problem}" for problem in problems[:_MOST_TOLD])
        raise Conflict(
            f"the columns of {self.now.full_name} changed while rows were written, and the rows no"
            " longer fit; nothing was changed, repeat it with the current"
            f" columns{listed}\nwritten"
            f" for:{_listed(self.written.columns)}\nnow:{_listed(self.now.columns)}"
        )


def moved(
    written: TableVersion,
    now: TableVersion,
    given: Collection[FieldId] | None = None,
    replaced: Mapping[FieldId, FieldId] = _NOTHING_REPLACED,
) -> Moved:
    """Compare the columns for which rows were written with the current columns.

    ``given`` are the top-level columns that the writer's client named, None for all. If another
    column was dropped, no values are lost. ``replaced`` are the columns that jobs have converted
    since, with the columns that replace them.
    """
    found = _Comparing(written, now, given=given, replaced=replaced)
    found.compare()
    return found


@dataclass
class _Comparing(Moved):
    """One comparison and its results so far."""

    given: Collection[FieldId] | None = None
    replaced: Mapping[FieldId, FieldId] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shadows = known_shadows(self.written, self.written.conversions)
        served = () if isinstance(shadows, str) else shadows
        self._held = {f.id: f for f in self.written.columns} | {s.field.id: s.field for s in served}
        # What a job has converted in the meantime, for which the writer wrote both columns.
        self._served = {s.old.id for s in served if self._is_there(s.field.id)}

    def compare(self) -> None:
        """Compare every column."""
        # Rows were written without their values for a new rollup.
        for key, what in ((KEYS, "keys"), (CONSTRAINTS, "constraints"), (ROLLUPS, "rollups")):
            if self.written.properties.get(key) != self.now.properties.get(key):
                self.outdated.append(f"the {what} of the table changed")
        for column in self.written.columns:
            is_given = self.given is None or column.id in self.given
            if column.id not in self._served and is_given:
                self._kept(column, (column.name,))
        converted = {*self.replaced.values()}
        for column in self.now.columns:
            path = (column.name,)
            before = self._held.get(column.id)
            if before is None:
                if column.id not in converted:
                    self._added(column, path)
                continue
            if before.nullable and not column.nullable:
                self.checked.add(column.id)
            self._same(before, column, path)

    def _is_there(self, column: FieldId | None) -> bool:
        return column is not None and self.now.columns.by_id(column) is not None

    def _kept(self, field: Field, path: Path) -> None:
        if not self._is_there(field.id):
            if self._is_there(self.replaced.get(field.id)):
                self.outdated.append(f"column {path_text(path)} was converted")
            else:
                self.problems.append(f"column {path_text(path)} was dropped")
            return
        for child in field.children:
            self._kept(child, (*path, child.name))

    def _added(self, field: Field, path: Path) -> None:
        text = path_text(path)
        if field.default is None and not field.nullable:
            self.problems.append(f"column {text} was added as NOT NULL without a default")
            return
        default = field.default
        written = None if default is None else default.text
        is_value = default is None or default.literal
        if not is_value or written != field.initial_default:
            self.outdated.append(f"column {text} was added, and its default changed")

    def _same(self, before: Field, after: Field, path: Path) -> None:
        if isinstance(before.shape, Kind) or isinstance(after.shape, Kind):
            if before.shape is not after.shape:
                self._other_type(before, after, path)
                return
            known = {child.id: child for child in before.children}
            for child in after.children:
                below = (*path, child.name)
                if child.id in known:
                    self._same(known[child.id], child, below)
                else:
                    self._added(child, below)
            return
        found = promotion(before.type, after.type)
        if not found.is_light:
            self._other_type(before, after, path)
        elif not found.bounds_hold:
            self.unsafe_bounds.add(after.id)

    def _other_type(self, before: Field, after: Field, path: Path) -> None:
        told = f"the type of {path_text(path)} changed from {before.type} to {after.type}"
        # Rows that are computed again are checked again.
        is_checked = is_narrower(before.type, after.type)
        (self.outdated if is_checked else self.problems).append(told)


def _holds_no_null(file: NewDataFile, column: Field) -> bool:
    leaves = {leaf.id for leaf in column.leaves()}
    return any(s.column_id in leaves and s.null_count == 0 for s in file.stats)


def _no_null(column: Field) -> str:
    return f"column {path_text((column.name,))} is NOT NULL now, but some rows hold NULL"


def _listed(columns: Schema) -> str:
    return "".join(f"\n  {line}" for line in str(columns).splitlines())
