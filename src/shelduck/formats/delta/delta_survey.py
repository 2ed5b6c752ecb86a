"""The survey of an export to Delta: what it shows, what is lost, and which files to rewrite.

Delta's readers find a column by its name or id in the files, so each layout is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.engine.files.physical import physical_schema
from shelduck.errors import Unsupported
from shelduck.formats.delta.delta_rules import ShownRules, shown_rules
from shelduck.formats.delta.delta_schema import DeltaType, shown_as, told_default
from shelduck.formats.report import (
    ExportReport,
    LayoutFindings,
    Loss,
    column_of,
    listed,
    lost_default,
    lost_partitioning,
    rewrites_of,
    rows_report,
    shown_parts,
)
from shelduck.model.tables.schema import Field, FieldId, Kind, Path, with_paths
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.table_rows import TableRows

FORMAT = "Delta"
_WHY_NOT = "Delta has defaults of top-level columns, in Spark's SQL"


@dataclass(frozen=True)
class DeltaSurvey:
    """A table as Delta will show it.

    ``fields`` are the columns with the parts for which Delta has types, ``types`` the exported type
    of each leaf, ``names`` the files' names for columns and struct members. ``narrow`` are the
    narrower Delta types in which files hold a leaf. ``mode`` is that of column mapping. ``earlier``
    are the Delta types that a leaf had before.
    """

    rows: TableRows
    fields: tuple[Field, ...]
    types: Mapping[FieldId, DeltaType]
    names: Mapping[FieldId, str]
    narrow: Mapping[FieldId, tuple[str, ...]]
    mode: str
    report: ExportReport
    earlier: Mapping[FieldId, tuple[str, ...]] = field(default_factory=dict)
    rules: ShownRules = field(default_factory=ShownRules)

    @property
    def table(self) -> TableVersion:
        """The table version of the survey."""
        return self.rows.table


def survey_for_delta(rows: TableRows, mode: str | None = None) -> DeltaSurvey:
    """Check the files of a table; nothing is written.

    ``mode`` is that of column mapping, if the Delta table already has one, which it keeps. Raises
    Unsupported if nothing of the table can be shown.
    """
    table = rows.table
    losses: list[Loss] = []

    def look(leaf: Field, path: Path) -> bool:
        here, shown = column_of(path), shown_as(leaf.leaf)
        if shown is None:
            losses.append(Loss(here, f"left out: Delta has no type for {leaf.shape}"))
            return False
        if shown.loss:
            losses.append(Loss(here, shown.loss))
        if leaf.default is not None and (len(path) > 1 or told_default(leaf) is None):
            losses.append(lost_default(here, leaf.default, _WHY_NOT))
        return True

    fields = tuple(shown_parts(table.columns, look, losses))
    if not fields:
        raise Unsupported(f"{table.full_name} has no column with a Delta type")
    types = {
        leaf.id: s for f in fields for leaf in f.leaves() if (s := shown_as(leaf.leaf)) is not None
    }
    columns = table.columns.fields
    paths = {f.id: column_of(path) for path, f in with_paths(columns)}
    found = _Found(
        *rows.by_layout(lambda f, m: LayoutFindings(paths).look(f, fields, columns, m)), types
    )
    names = found.names(table, fields)
    has_ids = all(_has_ids(one, fields) for one in found.by_layout.values())
    mode = mode or ("id" if has_ids else "name")
    why = {
        n: (*one.reasons, *found.misread(one), *_misnamed(one, fields, names, mode))
        for n, one in found.by_layout.items()
    }
    rewrites = rewrites_of(rows.files, lambda f: why[found.layout_of[f.id]])
    again = {r.file_id for r in rewrites}
    narrow = found.narrow(f.id for f in rows.files if f.id not in again)
    rules = shown_rules(rows, types)
    losses += [*_of_readers(fields, narrow), *lost_partitioning(table), *rules.losses]
    report = rows_report(FORMAT, rows, losses, rewrites)
    kinds = {number: tuple(sorted(files)) for number, files in narrow.items()}
    return DeltaSurvey(rows, fields, types, names, kinds, mode, report, rules=rules)


@dataclass
class _Found:
    """Findings by the number of a layout, which layout each file has, and the exported types."""

    by_layout: dict[int, LayoutFindings]
    layout_of: dict[int, int]
    types: Mapping[FieldId, DeltaType]

    def names(self, table: TableVersion, fields: Sequence[Field]) -> dict[FieldId, str]:
        """Return the physical names: those that all files use, or else those of new files."""
        ours = physical_schema(table).names
        names: dict[FieldId, str] = {}
        for siblings in named(fields):
            agreed = {f.id: self._agreed(f.id) or ours[f.id] for f in siblings}
            clashes = len({n.lower() for n in agreed.values()}) < len(agreed)
            names |= {f.id: ours[f.id] for f in siblings} if clashes else agreed
        return names

    def _agreed(self, number: FieldId) -> str | None:
        held = (one.held.get(number) for one in self.by_layout.values())
        found = {part.name for part in held if part is not None}
        return found.pop() if len(found) == 1 else None

    def _others(self, one: LayoutFindings) -> Iterator[tuple[FieldId, str | None]]:
        """Yield leaves of another type in a layout, with the Delta type if it is a narrower one."""
        for number, shown in self.types.items():
            stored = one.held.get(number)
            if stored is not None and not shown.holds(stored):
                yield number, shown.narrower(stored)

    def misread(self, one: LayoutFindings) -> Iterator[str]:
        """Yield which leaves readers would misread, and which values they would not know."""
        for number, narrow in self._others(one):
            if narrow is None:
                yield one.unlike(number, self.types[number].type)
        for lacking, _ in one.lacks:
            if lacking.initial_default is not None:
                yield one.unsaid(lacking, "Delta")

    def narrow(self, files: Iterable[int]) -> dict[FieldId, dict[str, list[int]]]:
        """Return the files that hold leaves narrower, by leaf and Delta type."""
        found: dict[FieldId, dict[str, list[int]]] = {}
        for file in files:
            for number, kind in self._others(self.by_layout[self.layout_of[file]]):
                if kind is not None:
                    found.setdefault(number, {}).setdefault(kind, []).append(file)
        return found


def _has_ids(one: LayoutFindings, fields: Sequence[Field]) -> bool:
    """Return whether columns and members of structs have their field ids in a file."""
    ids = [f.id for siblings in named(fields) for f in siblings]
    return all(one.held[number].id == number for number in ids if number in one.held)


def _misnamed(
    one: LayoutFindings, fields: Sequence[Field], names: Mapping[FieldId, str], mode: str
) -> Iterator[str]:
    """Yield why readers would not find columns in files of a layout, or find others."""
    if mode == "id" and not _has_ids(one, fields):
        yield "its columns have no field ids, by which readers of this Delta table find them"
    others = {f.id: beside for f, beside in one.lacks}
    for siblings in named(fields):
        for f in siblings:
            part, wanted = one.held.get(f.id), names[f.id]
            if part is not None and part.name != wanted:
                yield f"column {f.name!r} is called {part.name!r} in the file, not {wanted!r}"
            elif wanted.lower() in others.get(f.id, ()):
                yield (
                    f"{wanted!r} is another column in the file than {f.name!r}, which the file"
                    " does not have"
                )


def _of_readers(
    fields: Sequence[Field], narrow: Mapping[FieldId, Mapping[str, Sequence[int]]]
) -> Iterator[Loss]:
    """Yield what type widening means for readers."""
    for top in fields:
        for leaf in top.leaves():
            kinds = narrow.get(leaf.id)
            if not kinds:
                continue
            files = [number for held in kinds.values() for number in held]
            where = top.name if leaf is top else f"{top.name} ({leaf.name})"
            yield Loss(
                f"column {where!r}",
                f"{len(files)} file(s) hold {', '.join(sorted(kinds))}; readers need the feature"
                " typeWidening, which deltalake 1.6 refuses, and DuckDB 1.5 may filter such rows"
                f" wrongly; table.rewrite([{listed(files)}]) fixes it",
            )


def named(fields: Sequence[Field]) -> Iterator[Sequence[Field]]:
    """Yield sibling fields by their names: columns, members of structs."""
    yield fields
    for f in fields:
        for parent in f.walk():
            if parent.shape is Kind.STRUCT:
                yield parent.children
