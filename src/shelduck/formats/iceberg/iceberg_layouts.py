"""How Iceberg's readers see one file layout: they find a column only by its field id.

A name mapping, the same for all files of the table, can serve files without field ids. A file must
be rewritten if readers would misread anything else in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shelduck.errors import CorruptLake
from shelduck.formats.report import column_of
from shelduck.model.files.data_file import DataFile, MappedName, NameMapping
from shelduck.model.files.layout import Layout, PhysicalField
from shelduck.model.tables.schema import Field, FieldId, Kind

# The parent of a name: a field id, None for the columns themselves.
NamedBelow = tuple[int | None, str]
# The names of a file's columns by field id; None if the file has ids.
Names = Sequence[MappedName] | None
_PARTS = {Kind.LIST: ("element",), Kind.MAP: ("key", "value")}
# Parquet's names of the repeated groups; files of old writers have other names or no group.
_GROUPS = {Kind.LIST: "list", Kind.MAP: "key_value"}


@dataclass(frozen=True)
class IcebergFindings:
    """The findings in a layout.

    ``stored`` are the leaves of the table that the file has, by field id. ``lacks`` are leaves that
    it lacks, although rows have a value there: their initial default. ``names`` are those of a file
    without field ids.
    """

    reasons: tuple[str, ...]
    stored: Mapping[FieldId, PhysicalField] = field(default_factory=dict)
    lacks: tuple[Field, ...] = ()
    names: Mapping[NamedBelow, int] = field(default_factory=dict)


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
        return IcebergFindings(("its columns have no field ids and are found by position",))
    if mapping is not None and any(f.id is not None for f in layout.walk()):
        return IcebergFindings(("it has its own field ids, not those of the table",))
    work = _IcebergWalk()
    names = None if mapping is None else mapping.names
    work.siblings(fields, layout.fields, names, ())
    if names is None:
        work.reasons += _unfit_ids(layout, columns)
    else:
        work.name(layout.fields, names, None)
    return IcebergFindings(tuple(work.reasons), work.stored, tuple(work.lacks), work.names)


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
class _IcebergWalk:
    """A walk over the fields of the table and those of a file together."""

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
