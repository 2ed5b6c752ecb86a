"""The survey of an export to Iceberg: what it shows, what is lost, and which files to rewrite.

Iceberg's readers find a column of a file only by its field id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
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
    Loss,
    column_of,
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
    fields = shown_columns(columns, every).fields
    found = _Findings(*rows.by_layout(lambda f, m: layout_findings(f, fields, columns, m)))
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
    stored = {f: found.by_layout[number].stored for f, number in found.layout_of.items()}
    return IcebergSurvey(rows, version, shown, stored, names, report)


@dataclass
class _Findings:
    """Findings by the number of a layout, and which layout each file has."""

    by_layout: dict[int, IcebergFindings]
    layout_of: dict[int, int]

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
# The names of a file's columns by field id; None if the file has ids.
Names = Sequence[MappedName] | None


def layout_findings(
    file: DataFile, fields: Sequence[Field], columns: Sequence[Field], mapping: NameMapping | None
) -> IcebergFindings:
    """Return what readers find in a file with a known layout.

    ``fields`` are the exported columns, ``columns`` all columns of the table.
    """
    layout = file.layout
    if layout is None:
        raise CorruptLake(f"the layout of data file {file.path} is unknown")
    if mapping is None and any(f.id is None for f in layout.fields):
        return IcebergFindings(["its columns have no field ids and are found by position"])
    if mapping is not None and any(f.id is not None for f in layout.walk()):
        return IcebergFindings(["it has its own field ids, not those of the table"])
    found = IcebergFindings()
    names = None if mapping is None else mapping.names
    found.siblings(fields, layout.fields, names, ())
    if names is None:
        found.reasons += _unfit_ids(layout, columns)
    else:
        found.name(layout.fields, names, None)
    return found


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
class IcebergFindings:
    """The findings of a walk over the fields of the table and those of a layout together.

    ``stored`` are the leaves of the table that the file has, by field id. ``lacks`` are leaves that
    it lacks, although rows have a value there: their initial default. ``names`` are those of a file
    without field ids.
    """

    reasons: list[str] = field(default_factory=list)
    stored: dict[FieldId, PhysicalField] = field(default_factory=dict)
    lacks: list[Field] = field(default_factory=list)
    names: dict[NamedBelow, int] = field(default_factory=dict)

    def siblings(
        self,
        fields: Iterable[Field],
        stored: Sequence[PhysicalField],
        mapped: Names,
        path: tuple[str, ...],
    ) -> None:
        """Check the columns, or a struct's members; if ``mapped`` is None, they are found by id."""
        for wanted in fields:
            below = (*path, wanted.name)
            meant = _meant(wanted, mapped)
            if meant is not None and meant.is_partition:
                self.reasons.append(f"{column_of(below)} is in the path, not in the file")
                continue
            if mapped is None:
                found = [s for s in stored if s.id == wanted.id]
            else:
                name = None if meant is None else meant.source_name.lower()
                found = [s for s in stored if s.name.lower() == name]
            if len(found) > 1:
                self.reasons.append(f"{column_of(below)} is {len(found)} times in the file")
            elif found:
                self._node(wanted, found[0], None if meant is None else meant.children, below)
            elif wanted.is_leaf and wanted.initial_default is not None:
                self.lacks.append(wanted)

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

    def _node(
        self, wanted: Field, found: PhysicalField, mapped: Names, path: tuple[str, ...]
    ) -> None:
        if str(found.shape) == "unknown":
            self.reasons.append(f"{column_of(path)} has untyped NULLs in the file")
        elif wanted.is_leaf:
            self.stored[wanted.id] = found
        elif found.shape is not wanted.shape:
            self.reasons.append(
                f"{column_of(path)} is {found.shape} in the file, not {wanted.shape}"
            )
        elif wanted.shape is Kind.STRUCT:
            before = len(self.stored)
            self.siblings(wanted.children, found.children, mapped, path)
            if len(self.stored) == before:
                self.reasons.append(f"no field of the struct {column_of(path)} is in the file")
        else:
            self._parts(wanted, found, mapped, path)

    def _parts(
        self, wanted: Field, found: PhysicalField, mapped: Names, path: tuple[str, ...]
    ) -> None:
        """Check the parts of a list or map, which are found by position."""
        assert isinstance(wanted.shape, Kind)
        if found.encoding or found.group != _GROUPS[wanted.shape]:
            self.reasons.append(
                f"{column_of(path)} is a {wanted.shape} in the layout of old writers"
            )
        for part, child in zip(wanted.children, found.children, strict=True):
            meant = _meant(part, mapped)
            if (child.id != part.id) if mapped is None else meant is None:
                self.reasons.append(
                    f"the {part.name} of {column_of(path)} is another field in the file"
                )
                continue
            below = None if meant is None else meant.children
            self._node(part, child, below, (*path, part.name))


def _meant(wanted: Field, mapped: Names) -> MappedName | None:
    return next((m for m in mapped or () if m.field_id == wanted.id), None)


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
