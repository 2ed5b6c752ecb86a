"""The survey of an export to Iceberg: what it shows, what is lost, and which files to rewrite.

Iceberg's readers find a column of a file only by its field id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.formats.iceberg.iceberg_types import (
    FIRST_VERSION,
    LAST_VERSION,
    ShownColumns,
    ShownType,
    choose,
    initial_default,
    shown_columns,
    write_default,
)
from shelduck.formats.report import (
    ExportReport,
    LayoutFindings,
    Loss,
    column_of,
    layout_of,
    listed,
    lost_default,
    lost_of_table,
    rewrites_of,
    rows_report,
)
from shelduck.model.files.data_file import DataFile, Layout, MappedName, NameMapping, PhysicalField
from shelduck.model.tables.schema import Field, FieldId, Kind, with_paths
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.table_rows import TableRows

FORMAT = "Iceberg"
# What Iceberg's reader for Spark has no type for, and how a table is shown without it.
_NOT_IN_SPARK = {
    "timestamp_ns": ("nanoseconds", "format_version=2 leaves out the column"),
    "time": ("times", "table.rewrite([{files}]) stores them as text"),
}
_NULL_AS_EMPTY = {Kind.LIST: "list of structs", Kind.MAP: "map to structs"}
_PARTS = {Kind.LIST: ("element",), Kind.MAP: ("key", "value")}
# Parquet's names of the repeated groups; files of old writers have other names or no group.
_GROUPS = {Kind.LIST: "list", Kind.MAP: "key_value"}


@dataclass(frozen=True)
class IcebergSurvey:
    """A table as Iceberg will show it.

    ``stored`` has what a file holds, by data file id; files of one layout share it.
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
    every = {leaf.id: choose(leaf.leaf, (), LAST_VERSION) for leaf in table.columns.leaves()}
    fields = shown_columns(columns, every).fields
    paths = {f.id: column_of(path) for path, f in with_paths(columns)}
    found = _Findings(
        *rows.by_layout(lambda f, m: IcebergFindings(paths).look(f, fields, columns, m))
    )
    version = format_version or (LAST_VERSION if _needs_last(found, every) else FIRST_VERSION)
    types = {
        leaf.id: choose(leaf.leaf, found.forms(leaf.id), version) for leaf in table.columns.leaves()
    }
    shown = shown_columns(columns, types)
    if not shown.fields:
        raise Unsupported(f"{table.full_name} has no column with an Iceberg type")
    names, clashes = found.merged_names()
    reasons = {
        number: (
            *one.reasons,
            *_wrong_types(one, shown),
            *_unsaid(one, shown, version),
            *clashes.get(number, ()),
        )
        for number, one in found.by_layout.items()
    }
    rewrites = rewrites_of(rows.files, lambda f: reasons[found.layout_of[f.id]])
    losses = (
        *shown.losses,
        *_of_defaults(shown, version, paths),
        *_of_readers(rows.files, found, shown, paths),
        *lost_of_table(table),
    )
    report = rows_report(FORMAT, rows, losses, rewrites)
    stored = {f: found.by_layout[number].held for f, number in found.layout_of.items()}
    return IcebergSurvey(rows, version, shown, stored, names, report)


@dataclass
class _Findings:
    """Findings by the number of a layout, and which layout each file has."""

    by_layout: dict[int, IcebergFindings]
    layout_of: dict[int, int]

    def forms(self, leaf: FieldId) -> list[PhysicalField]:
        """Return how files hold a leaf."""
        return [f for one in self.by_layout.values() if (f := one.held.get(leaf)) is not None]

    def layouts_with(self, leaf: FieldId, name: str) -> set[int]:
        """Return the layouts that hold a leaf in a type with that name."""
        found = ((n, one.held.get(leaf)) for n, one in self.by_layout.items())
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


def _needs_last(found: _Findings, types: Mapping[FieldId, ShownType | None]) -> bool:
    if any(s is not None and s.version == LAST_VERSION for s in types.values()):
        return True
    return any(one.defaults() for one in found.by_layout.values())


def _wrong_types(one: IcebergFindings, shown: ShownColumns) -> Iterator[str]:
    for field_id, stored in one.held.items():
        kind = shown.types.get(field_id)
        if kind is not None and not kind.holds(stored):
            yield one.unlike(field_id, kind.type, " (annotated)" if stored.is_annotated else "")


def _unsaid(one: IcebergFindings, shown: ShownColumns, version: int) -> Iterator[str]:
    """Yield the defaults that rows of a layout need and the metadata cannot express."""
    for leaf in one.defaults():
        if leaf.id not in shown.types:
            continue
        if version < LAST_VERSION or initial_default(leaf, shown.types) is None:
            yield one.unsaid(leaf, f"version {version}" if version < LAST_VERSION else "Iceberg")


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
        if leaf.shape in _NULL_AS_EMPTY and leaf.children[-1].shape is Kind.STRUCT:
            what = f"PyIceberg 0.12 shows a NULL {_NULL_AS_EMPTY[leaf.shape]} as an empty one"
            losses.append(Loss(paths[leaf.id], what))
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


# The parent of a name: a field id, None for the columns themselves.
NamedBelow = tuple[int | None, str]


def name_mapping_json(names: Mapping[NamedBelow, int]) -> list[dict[str, object]]:
    """Return names in the form of the table property ``schema.name-mapping.default``."""
    below: dict[int | None, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for (parent, name), field_id in sorted(names.items(), key=str):
        below[parent][field_id].append(name)

    def listed(parent: int | None) -> list[dict[str, object]]:
        made = []
        for field_id, called in below[parent].items():
            entry: dict[str, object] = {"field-id": field_id, "names": called}
            if field_id in below:
                entry["fields"] = listed(field_id)
            made.append(entry)
        return made

    return listed(None)


@dataclass
class IcebergFindings(LayoutFindings):
    """The findings in a layout; ``names`` are those of a file without field ids."""

    names: dict[NamedBelow, int] = field(default_factory=dict)

    def look(
        self,
        file: DataFile,
        fields: Sequence[Field],
        columns: Sequence[Field],
        mapping: NameMapping | None,
    ) -> Self:
        """Find the exported ``fields`` as Iceberg's readers do: by ids, or all by their names."""
        layout = layout_of(file)
        if mapping is None and any(f.id is None for f in layout.fields):
            self.reasons.append("its columns have no field ids and are found by position")
            return self
        if mapping is not None and any(f.id is not None for f in layout.walk()):
            self.reasons.append("it has its own field ids, not those of the table")
            return self
        super().look(file, fields, columns, mapping)
        for number, part in self.held.items():
            if part.shape in _GROUPS and (part.encoding or part.group != _GROUPS[part.shape]):
                here = self.paths[number]
                self.reasons.append(f"{here} is a {part.shape} in the layout of old writers")
        if mapping is None:
            self.reasons += _unfit_ids(layout, columns)
        else:
            self.name(layout.fields, mapping.names, None)
        return self

    def defaults(self) -> list[Field]:
        """Return what the file lacks, although rows have a value there: their initial default."""
        return [f for f, _ in self.lacks if f.initial_default is not None]

    def name(
        self, stored: Sequence[PhysicalField], mapped: Sequence[MappedName], parent: int | None
    ) -> None:
        """Learn the names of a file without field ids; each must mean a column, live or dropped."""
        for found in stored:
            meant = next(
                (
                    m
                    for m in mapped
                    if not m.is_partition and m.source_name.lower() == found.name.lower()
                ),
                None,
            )
            if meant is None:
                self.reasons.append(
                    f"{found.name!r} has no field id and is not a column of the table"
                )
                continue
            self.names[parent, found.name] = meant.field_id
            self._name_parts(found, meant)

    def _name_parts(self, found: PhysicalField, meant: MappedName) -> None:
        if found.shape is Kind.STRUCT:
            self.name(found.children, meant.children, meant.field_id)
            return
        if not isinstance(found.shape, Kind):
            return
        parts = _PARTS[found.shape]
        if len(meant.children) != len(parts):
            self.reasons.append(f"parts of {found.name!r} have no field ids")
            return
        for part, child, inside in zip(parts, found.children, meant.children, strict=True):
            self.names[meant.field_id, part] = inside.field_id
            self._name_parts(child, inside)


def _unfit_ids(layout: Layout, columns: Sequence[Field]) -> list[str]:
    """Report parts without ids: because of one, readers treat the file as one without any ids."""
    bare = next((f.name for f in layout.walk() if f.id is None), None)
    if bare is not None:
        return [f"{bare!r} has no field id"]
    live = {c.id for top in columns for c in top.walk()}
    # For an existing column, the report says that it is left out; a new file has it too.
    gone = (f for f in layout.walk() if f.id not in live and str(f.shape) == "variant")
    return [
        f"the dropped column {f.name!r} is a variant whose parts have no field ids" for f in gone
    ]
