"""The problems of a table in another format, found before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from rich.filesize import decimal

from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
from shelduck.model.files.data_file import DataFile, Layout, NameMapping, PhysicalField
from shelduck.model.files.resolve import Node, resolve
from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.constraints import constraints_of
from shelduck.model.tables.partition import named_keys
from shelduck.model.tables.schema import Default, Field, FieldId, Kind, Path, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.table_rows import TableRows

_MOST_LINES = 20


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that readers of the other format cannot show, or show differently.

    ``subject`` names it (``column 'a'``), ``what`` says what happens to it.
    """

    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}"


@dataclass(frozen=True, slots=True)
class FileRewrite:
    """A data file that readers of the other format would misread until it is rewritten.

    ``path`` is absolute; ``file_id`` is its id in the catalog and in `Table.rewrite`.
    """

    path: str
    bytes: int
    reasons: tuple[str, ...]
    file_id: int

    def __str__(self) -> str:
        return (
            f"file {self.file_id}, {self.path} ({decimal(self.bytes)}): {'; '.join(self.reasons)}"
        )


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The findings of an export of one table to ``format``; printed, it says what to do.

    ``table`` is the full name. ``inlined_rows`` are rows in the catalog itself, which readers of
    files find only after a flush.
    """

    format: str
    table: str
    snapshot: int
    losses: tuple[Loss, ...] = ()
    rewrites: tuple[FileRewrite, ...] = ()
    inlined_rows: int = 0

    @property
    def is_ready(self) -> bool:
        """True if an export needs no other change of the table first; losses do not count."""
        return not self.rewrites and not self.inlined_rows

    def require_ready(self) -> None:
        """Raise Unsupported, with the report as its text, if the table is not ready."""
        if not self.is_ready:
            raise Unsupported(str(self))

    def __str__(self) -> str:
        state = "ready" if self.is_ready else "not ready"
        lines = [f"{self.table} at snapshot {self.snapshot} is {state} for {self.format}"]
        if self.rewrites:
            size = decimal(sum(f.bytes for f in self.rewrites))
            lines.append(f"{len(self.rewrites)} file(s) ({size}) must be rewritten first:")
            lines += _listed(self.rewrites)
        if self.inlined_rows:
            lines.append(f"{self.inlined_rows} row(s) are in the catalog and must be flushed first")
        if not self.is_ready:
            lines.append(self._remedy())
        if self.losses:
            lines.append(f"readers of {self.format} will not see, or see differently:")
            lines += _listed(self.losses)
        return "\n".join(lines)

    def _remedy(self) -> str:
        steps = []
        if self.inlined_rows:
            steps.append("table.flush_inlined_data()")
        if self.rewrites:
            steps.append(f"table.rewrite([{listed([f.file_id for f in self.rewrites])}])")
        return f"export with rewrite=True, or run {' and '.join(steps)} and export again"


def rows_report(
    name: str, rows: TableRows, losses: Sequence[Loss], rewrites: Sequence[FileRewrite]
) -> ExportReport:
    """Return the report of an export of these rows to the format of a name."""
    table, inlined = rows.table, sum(len(part.rows) for part in rows.inlined)
    made = tuple(losses), tuple(rewrites), inlined
    return ExportReport(name, table.full_name, table.snapshot.id, *made)


def listed(numbers: Sequence[int]) -> str:
    """Return the first of the files that `Table.rewrite` has to rewrite."""
    more = ", …" if len(numbers) > _MOST_LINES else ""
    return ", ".join(map(str, numbers[:_MOST_LINES])) + more


def raise_problems(told: str, problems: Sequence[str]) -> None:
    """Raise InvalidRequest with a list of all problems, if there are any."""
    if problems:
        raise InvalidRequest("\n".join([told, *_listed(problems)]))


def column_of(path: Path) -> str:
    """Return a column, or a part of one, in the words of reports."""
    return f"column {path_text(path)!r}"


@dataclass
class LayoutFindings:
    """What readers find in files of one layout, and ``reasons`` why they would misread these.

    ``paths`` are the columns and their parts in words. ``held`` has what the file holds of them, by
    field id, and ``lacks`` those that it lacks, with the names of their siblings in the file.
    """

    paths: Mapping[FieldId, str]
    reasons: list[str] = field(default_factory=list)
    held: dict[FieldId, PhysicalField] = field(default_factory=dict)
    lacks: list[tuple[Field, frozenset[str]]] = field(default_factory=list)

    def look(
        self,
        file: DataFile,
        fields: Sequence[Field],
        columns: Sequence[Field],
        mapping: NameMapping | None,
    ) -> Self:
        """Find the exported ``fields`` in a file; ``columns`` are all columns of the table."""
        layout = layout_of(file)
        try:
            resolved = resolve(layout, fields, mapping, columns)
        except (Unsupported, CorruptLake) as error:
            self.reasons.append(str(error))
        else:
            self._siblings(resolved.nodes, layout.fields, resolved.names)
        return self

    def _siblings(
        self, nodes: Sequence[Node], stored: Sequence[PhysicalField], names: frozenset[str]
    ) -> None:
        """Check columns, or the members of a struct."""
        for node in nodes:
            here = self.paths[node.field.id]
            if node.constant is not None:
                self.reasons.append(f"{here} is in the path or the catalog, not in the file")
            elif node.null:
                self.reasons.append(f"{here} has untyped NULLs in the file")
            elif node.name is None:
                self.lacks.append((node.field, names))
            else:
                self._node(node, next(s for s in stored if s.name == node.name))

    def _node(self, node: Node, stored: PhysicalField) -> None:
        here = self.paths[node.field.id]
        self.held[node.field.id] = stored
        if node.field.shape is Kind.STRUCT:
            if not any(c.is_read for c in node.children):
                self.reasons.append(f"no field of the struct {here} is in the file")
            self._siblings(node.children, stored.children, node.names)
            return
        for child, part in zip(node.children, stored.children, strict=True):
            if child.is_read:
                self._node(child, part)
            else:
                self.reasons.append(
                    f"the {child.field.name} of {here} is another field in the file"
                )

    def unlike(self, number: FieldId, shown: str, mark: str = "") -> str:
        """Return the reason that a leaf has a type that readers do not expect."""
        stored = self.held[number].stored_as
        return f"{self.paths[number]} is {stored}{mark} in the file, not {shown}"

    def unsaid(self, lacking: Field, who: str) -> str:
        """Return the reason that the file lacks a leaf, in whose place rows have a default."""
        return (
            f"{self.paths[lacking.id]} is missing, and {who} cannot express that its rows have"
            f" {lacking.initial_default!r}"
        )


def layout_of(file: DataFile) -> Layout:
    """Return the layout of a file, which must be known."""
    if file.layout is None:
        raise CorruptLake(f"the layout of data file {file.path} is unknown")
    return file.layout


def shown_parts(
    fields: Iterable[Field],
    look: Callable[[Field, Path], bool],
    losses: list[Loss],
    above: Path = (),
) -> Iterator[Field]:
    """Yield fields without the parts that readers cannot show; `losses` gets what is left out.

    ``look`` tells whether readers can show a leaf. A list or map is left out with any part of it, a
    struct if all of its members are left out.
    """
    for made in fields:
        path = (*above, made.name)
        if not isinstance(made.shape, Kind):
            if look(made, path):
                yield made
            continue
        children = tuple(shown_parts(made.children, look, losses, path))
        if len(children) == len(made.children) or (made.shape is Kind.STRUCT and children):
            yield replace(made, children=children)
        else:
            why = f"left out, because a part of the {made.shape.value} is"
            losses.append(Loss(column_of(path), why))


@dataclass(frozen=True, slots=True)
class Exported:
    """A finished export: ``path`` is the metadata that readers open.

    ``snapshot`` is the lake's; ``files`` are the data files that it shows, where they are.
    """

    path: str
    snapshot: int
    files: int
    report: ExportReport

    def __str__(self) -> str:
        losses = f"; {len(self.report.losses)} loss(es) reported" if self.report.losses else ""
        return (
            f"{self.report.table} at snapshot {self.snapshot}: {self.files} file(s) in"
            f" {self.path}{losses}"
        )


def lost_partitioning(table: TableVersion) -> Iterator[Loss]:
    """Yield how a table is partitioned, which exports do not show."""
    keys = named_keys(table.partition, table.columns)
    if keys:
        by = ", ".join(map(str, keys))
        yield Loss(f"partitioning by {by}", "not shown; readers can skip files only by bounds")


def lost_of_table(table: TableVersion) -> Iterator[Loss]:
    """Yield what a table has beside its columns, for a format without rules."""
    yield from lost_partitioning(table)
    for rule in constraints_of(table.properties, table.full_name):
        keepers = "; only writers of this lake keep to it" if rule.expression else ""
        yield Loss(rule.text(table.columns), f"not shown{keepers}")
    for made in computed_of(table.properties, table.full_name):
        column = table.columns.by_id(made.column)
        # Another writer may have dropped it.
        if column is not None:
            told = f"{made.clause(table.columns)} is not shown; readers see its values"
            yield Loss(f"column {column.name!r}", told)


def lost_default(subject: str, default: Default, why: str) -> Loss:
    """Return the loss of the default for new rows; this does not concern existing files."""
    return Loss(subject, f"its default for new rows, {default}, is not shown: {why}")


def rewrites_of(
    files: Iterable[DataFile], why: Callable[[DataFile], Iterable[str]]
) -> list[FileRewrite]:
    """Return the files that must be rewritten; ``why`` tells for what a format has against one."""
    found = []
    for file in files:
        reasons = list(why(file))
        if file.record_count is None:
            reasons.append("the number of its rows is not in the catalog")
        if reasons:
            found.append(FileRewrite(file.path, file.file_size_bytes, tuple(reasons), file.id))
    return found


def _listed(entries: Sequence[object]) -> list[str]:
    lines = [f"  - {entry}" for entry in entries[:_MOST_LINES]]
    left = len(entries) - _MOST_LINES
    return [*lines, f"  - and {left} more"] if left > 0 else lines
