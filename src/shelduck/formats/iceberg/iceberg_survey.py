"""The survey of an export to Iceberg: what it shows, what is lost, and which files to rewrite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.formats.iceberg.iceberg_layouts import IcebergFindings, NamedBelow, layout_findings
from shelduck.formats.iceberg.iceberg_types import (
    FIRST_VERSION,
    LAST_VERSION,
    ShownColumns,
    ShownType,
    choose,
    initial_default,
    shown_as,
    shown_columns,
    write_default,
)
from shelduck.formats.report import (
    ExportReport,
    FileRewrite,
    Loss,
    column_of,
    listed,
    lost_default,
    lost_of_table,
    unknown_rows,
)
from shelduck.model.files.data_file import DataFile
from shelduck.model.files.layout import PhysicalField
from shelduck.model.tables.schema import Field, FieldId, Kind, with_paths
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.table_rows import TableRows

FORMAT = "Iceberg"
# What Iceberg's reader for Spark has no type for, and how a table is shown without it.
_NOT_IN_SPARK = {
    "timestamp_ns": ("nanoseconds", "format_version=2 leaves out the column"),
    "time": ("times", "table.rewrite([{files}]) stores them as text"),
}


@dataclass(frozen=True)
class IcebergSurvey:
    """A table as Iceberg will show it.

    ``stored`` has the leaves that a file holds, by data file id; files of one layout share them.
    ``names`` are the columns of files without field ids.
    """

    rows: TableRows
    version: int
    shown: ShownColumns
    stored: Mapping[int, Mapping[FieldId, PhysicalField]]
    names: Mapping[NamedBelow, int]
    report: ExportReport

    @property
    def table(self) -> TableVersion:
        """The table version of the survey."""
        return self.rows.table


def survey_for_iceberg(rows: TableRows, format_version: int | None = None) -> IcebergSurvey:
    """Check the files of a table; nothing is written.

    ``format_version`` None means the lowest one that shows the whole table: 3 for defaults that
    files lack and for nanoseconds, otherwise 2. Raises InvalidRequest for another version,
    Unsupported if no column of the table can be shown.
    """
    if format_version not in (None, FIRST_VERSION, LAST_VERSION):
        raise InvalidRequest(
            f"Iceberg's format version must be 2 or 3, not {format_version!r}; leave it out to get"
            " the lowest one that shows the whole table"
        )
    table, columns = rows.table, rows.table.columns.fields
    every = {leaf.id: _any_type(leaf) for leaf in table.columns.leaves()}
    found = _Findings.of(rows, shown_columns(columns, every).fields)
    version = format_version or (LAST_VERSION if _needs_last(found, every) else FIRST_VERSION)
    types = {
        leaf.id: choose(leaf.leaf, found.forms(leaf.id), version) for leaf in table.columns.leaves()
    }
    shown = shown_columns(columns, types)
    if not shown.fields:
        raise Unsupported(f"{table.full_name} has no column with an Iceberg type")
    names, clashes = found.merged_names()
    paths = {f.id: column_of(path) for path, f in with_paths(columns)}
    reasons = {
        number: (
            *one.reasons,
            *_wrong_types(one, shown, paths),
            *_unsaid(one, shown, version, paths),
        )
        for number, one in found.by_layout.items()
    }
    rewrites = []
    for file in rows.files:
        number = found.layout_of[file.id]
        why = (*reasons[number], *clashes.get(number, ()), *unknown_rows(file))
        if why:
            rewrites.append(FileRewrite(file.path, file.file_size_bytes, why, file.id))
    losses = (
        *shown.losses,
        *_of_defaults(shown, version, paths),
        *_of_readers(rows.files, found, shown, paths),
        *lost_of_table(table),
    )
    inlined = sum(len(part.rows) for part in rows.inlined)
    report = ExportReport(
        FORMAT, table.full_name, table.snapshot.id, losses, tuple(rewrites), inlined
    )
    stored = {f: found.by_layout[number].stored for f, number in found.layout_of.items()}
    return IcebergSurvey(rows, version, shown, stored, names, report)


@dataclass
class _Findings:
    """Findings by the number of a layout, and which layout each file has."""

    by_layout: dict[int, IcebergFindings]
    layout_of: dict[int, int]

    @classmethod
    def of(cls, rows: TableRows, fields: Sequence[Field]) -> _Findings:
        """Check each layout once."""
        columns = rows.table.columns.fields
        return cls(
            *rows.by_layout(lambda file, mapping: layout_findings(file, fields, columns, mapping))
        )

    def forms(self, leaf: FieldId) -> list[PhysicalField]:
        """Return how files hold a leaf."""
        return [f for one in self.by_layout.values() if (f := one.stored.get(leaf)) is not None]

    def layouts_with(self, leaf: FieldId, name: str) -> set[int]:
        """Return the layouts that hold a leaf in a type with that name."""
        found = ((n, one.stored.get(leaf)) for n, one in self.by_layout.items())
        return {n for n, stored in found if stored is not None and str(stored.shape) == name}

    def merged_names(self) -> tuple[dict[NamedBelow, int], dict[int, tuple[str, ...]]]:
        """Return one name mapping, and what contradicts it, by layout."""
        merged: dict[NamedBelow, int] = {}
        clashes: dict[int, tuple[str, ...]] = {}
        for number, one in self.by_layout.items():
            if one.reasons:
                continue
            other = sorted(n for (p, n), i in one.names.items() if merged.get((p, n), i) != i)
            if other:
                called = ", ".join(map(repr, other))
                why = (
                    "it has no field ids, and other files without field ids use"
                    f" {called} for a different column"
                )
                clashes[number] = (why,)
            else:
                merged |= one.names
        return merged, clashes


def _any_type(leaf: Field) -> ShownType | None:
    known = shown_as(leaf.leaf)
    return known[-1] if known else None


def _needs_last(found: _Findings, types: Mapping[FieldId, ShownType | None]) -> bool:
    if any(s is not None and s.version == LAST_VERSION for s in types.values()):
        return True
    return any(one.lacks for one in found.by_layout.values())


def _wrong_types(
    one: IcebergFindings, shown: ShownColumns, paths: Mapping[FieldId, str]
) -> list[str]:
    reasons = []
    for field_id, stored in one.stored.items():
        kind = shown.types.get(field_id)
        if kind is not None and not kind.holds(stored):
            mark = " (annotated)" if stored.is_annotated else ""
            reasons.append(
                f"{paths[field_id]} is {stored.stored_as}{mark} in the file, not {kind.type}"
            )
    return reasons


def _unsaid(
    one: IcebergFindings, shown: ShownColumns, version: int, paths: Mapping[FieldId, str]
) -> list[str]:
    """Return the defaults that rows of a layout need and the metadata cannot express."""
    reasons = []
    for leaf in one.lacks:
        if leaf.id not in shown.types:
            continue
        who = f"version {version}" if version < LAST_VERSION else "Iceberg"
        if version < LAST_VERSION or initial_default(leaf, shown.types) is None:
            reasons.append(
                f"{paths[leaf.id]} is missing, and {who} cannot express that its rows have"
                f" {leaf.initial_default!r}"
            )
    return reasons


def _of_defaults(shown: ShownColumns, version: int, paths: Mapping[FieldId, str]) -> Iterator[Loss]:
    """Yield the defaults for new rows that the metadata does not express."""
    why = (
        "version 2 does not support defaults"
        if version < LAST_VERSION
        else "Iceberg supports only constants"
    )
    for _, leaf in with_paths(shown.fields):
        if leaf.default is not None and write_default(leaf, shown.types, version) is None:
            yield lost_default(paths[leaf.id], leaf.default, why)


def _of_readers(
    files: Sequence[DataFile], found: _Findings, shown: ShownColumns, paths: Mapping[FieldId, str]
) -> list[Loss]:
    """Return in which points known readers of Iceberg differ from the specification."""
    losses = []
    for _, leaf in with_paths(shown.fields):
        if leaf.shape is Kind.LIST and leaf.children[0].shape is Kind.STRUCT:
            losses.append(
                Loss(paths[leaf.id], "PyIceberg 0.12 shows a NULL list of structs as an empty one")
            )
        elif leaf.shape is Kind.MAP and leaf.children[1].shape is Kind.STRUCT:
            losses.append(
                Loss(paths[leaf.id], "PyIceberg 0.12 shows a NULL map to structs as an empty one")
            )
        elif leaf.is_leaf and shown.types[leaf.id].type in _NOT_IN_SPARK:
            what, remedy = _NOT_IN_SPARK[shown.types[leaf.id].type]
            told = remedy.format(files=listed([f.id for f in files]))
            why = f"Iceberg 1.12 for Spark does not support {what} and cannot open the table"
            losses.append(Loss(paths[leaf.id], f"{why}; {told}"))
        elif str(leaf.shape) == "float64":
            narrow = found.layouts_with(leaf.id, "float32")
            numbers = [f.id for f in files if found.layout_of[f.id] in narrow]
            if numbers:
                losses.append(Loss(paths[leaf.id], _narrow(numbers)))
    return losses


def _narrow(numbers: Sequence[int]) -> str:
    return (
        f"{len(numbers)} file(s) hold float32; PyIceberg 0.12 and DuckDB 1.5 compare the constants"
        f" of filters as float32, too, and may miss rows; table.rewrite([{listed(numbers)}])"
        " fixes it"
    )
