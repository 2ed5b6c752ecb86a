"""The survey of an export to Delta: what it shows, what is lost, and which files to rewrite.

Delta's readers find a column by its name or id in the files, so each layout is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.engine.files.physical import physical_schema
from shelduck.errors import CorruptLake, Unsupported
from shelduck.formats.delta.delta_rules import ShownRules, shown_rules
from shelduck.formats.delta.delta_schema import DeltaType, shown_as, told_default
from shelduck.formats.report import (
    ExportReport,
    Loss,
    column_of,
    listed,
    lost_default,
    lost_partitioning,
    rewrites_of,
    rows_report,
    shown_parts,
)
from shelduck.model.files.data_file import DataFile, NameMapping, PhysicalField
from shelduck.model.files.resolve import Node, resolve
from shelduck.model.tables.schema import Field, FieldId, Kind, Path
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
    found = _Found(*rows.by_layout(lambda f, m: layout_findings(f, fields, columns, m, types)))
    names = found.names(table, fields)
    mode = mode or ("id" if all(one.has_ids for one in found.by_layout.values()) else "name")
    why = {n: tuple(_reasons(one, fields, names, mode)) for n, one in found.by_layout.items()}
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
    """Findings by the number of a layout, and which layout each file has."""

    by_layout: dict[int, DeltaFindings]
    layout_of: dict[int, int]

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
        found = {one.called[number] for one in self.by_layout.values() if number in one.called}
        return found.pop() if len(found) == 1 else None

    def narrow(self, files: Iterable[int]) -> dict[FieldId, dict[str, list[int]]]:
        """Return the files that hold leaves narrower, by leaf and Delta type."""
        found: dict[FieldId, dict[str, list[int]]] = {}
        for file in files:
            for number, kind in self.by_layout[self.layout_of[file]].narrow.items():
                found.setdefault(number, {}).setdefault(kind, []).append(file)
        return found


def _reasons(
    one: DeltaFindings, fields: Sequence[Field], names: Mapping[FieldId, str], mode: str
) -> Iterator[str]:
    """Yield why readers would misread files of a layout."""
    yield from one.reasons
    if mode == "id" and not one.has_ids:
        yield "its columns have no field ids, by which readers of this Delta table find them"
    for siblings in named(fields):
        for f in siblings:
            called, wanted = one.called.get(f.id), names[f.id]
            if called is not None and called != wanted:
                yield f"column {f.name!r} is called {called!r} in the file, not {wanted!r}"
            elif called is None and wanted.lower() in one.others.get(f.id, ()):
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


@dataclass
class DeltaFindings:
    """The findings in a layout.

    ``called`` are the file's names for the columns and struct members that it has; ``narrow`` are
    the Delta types of leaves whose stored type is narrower than the exported one. ``has_ids`` is
    True if all of these have their field ids. ``others`` are, by the field id of a missing column
    or member, the names of its siblings in the file.
    """

    reasons: list[str] = field(default_factory=list)
    called: dict[FieldId, str] = field(default_factory=dict)
    narrow: dict[FieldId, str] = field(default_factory=dict)
    others: dict[FieldId, frozenset[str]] = field(default_factory=dict)
    has_ids: bool = True


def layout_findings(
    file: DataFile,
    fields: Sequence[Field],
    columns: Sequence[Field],
    mapping: NameMapping | None,
    types: Mapping[FieldId, DeltaType],
) -> DeltaFindings:
    """Return what is found in a file with a known layout.

    ``fields`` are the exported columns, ``columns`` all columns of the table.
    """
    layout = file.layout
    if layout is None:
        raise CorruptLake(f"the layout of data file {file.path} is unknown")
    found = DeltaFindings()
    try:
        resolved = resolve(layout, fields, mapping, columns)
    except (Unsupported, CorruptLake) as error:
        found.reasons.append(str(error))
        return found
    _DeltaWalk(found, types).siblings(resolved.nodes, layout.fields, resolved.names, ())
    return found


@dataclass
class _DeltaWalk:
    """A walk over columns and the nodes that a file has for them."""

    found: DeltaFindings
    types: Mapping[FieldId, DeltaType]

    def siblings(
        self,
        nodes: Sequence[Node],
        stored: Sequence[PhysicalField],
        names: frozenset[str],
        path: tuple[str, ...],
    ) -> None:
        """Check columns, or the members of a struct."""
        for node in nodes:
            below = (*path, node.field.name)
            here = column_of(below)
            if node.constant is not None:
                self.found.reasons.append(f"{here} is in the path or the catalog, not in the file")
            elif node.null:
                self.found.reasons.append(f"{here} has untyped NULLs in the file")
            elif node.name is None:
                self._missing(node.field, names, here)
            else:
                part = next(s for s in stored if s.name == node.name)
                self.found.called[node.field.id] = part.name
                self.found.has_ids &= part.id == node.field.id
                self._node(node, part, below)

    def _missing(self, wanted: Field, names: frozenset[str], here: str) -> None:
        self.found.others[wanted.id] = names
        if wanted.initial_default is not None:
            self.found.reasons.append(
                f"{here} is missing, and Delta cannot express that its rows have"
                f" {wanted.initial_default!r}"
            )

    def _node(self, node: Node, stored: PhysicalField, path: tuple[str, ...]) -> None:
        here = column_of(path)
        if node.field.is_leaf:
            self._leaf(node.field.id, stored, here)
        elif node.field.shape is Kind.STRUCT:
            if not any(c.is_read for c in node.children):
                self.found.reasons.append(f"no field of the struct {here} is in the file")
            self.siblings(node.children, stored.children, node.names, path)
        else:
            for child, part in zip(node.children, stored.children, strict=True):
                if child.is_read:
                    self._node(child, part, (*path, child.field.name))
                else:
                    self.found.reasons.append(
                        f"the {child.field.name} of {here} is another field in the file"
                    )

    def _leaf(self, number: FieldId, stored: PhysicalField, here: str) -> None:
        shown = self.types[number]
        if shown.holds(stored):
            return
        narrow = shown.narrower(stored)
        if narrow is None:
            self.found.reasons.append(f"{here} is {stored.stored_as} in the file, not {shown.type}")
        else:
            self.found.narrow[number] = narrow


def named(fields: Sequence[Field]) -> Iterator[Sequence[Field]]:
    """Yield sibling fields by their names: columns, members of structs."""
    yield fields
    for f in fields:
        for parent in f.walk():
            if parent.shape is Kind.STRUCT:
                yield parent.children
