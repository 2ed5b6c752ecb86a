"""Data files of a Delta table as files of a lake: names, statistics and partition values.

Files are matched to columns as Delta says: by name, by physical name, or by the field ids in their
footers. The result becomes a name mapping, so that every reader of DuckLake finds the same columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow.fs

from shelduck.catalog.read.views_and_macros import hive_parts
from shelduck.engine.files.foreign import ForeignFile, column_places, foreign_stats, read_foreign
from shelduck.engine.files.listing import FoundFile
from shelduck.engine.files.storage import filesystem, in_threads
from shelduck.engine.session import SparkSession
from shelduck.errors import InvalidRequest
from shelduck.formats.adopt import constant_stats
from shelduck.formats.delta.delta_columns import Columns
from shelduck.formats.delta.log import Added
from shelduck.model.files.adoption import Adopted, holds_widened, match_file
from shelduck.model.files.data_file import (
    ColumnStats,
    Layout,
    MappedName,
    NewDataFile,
    PhysicalField,
)
from shelduck.model.tables.schema import Field, FieldId, Kind, Schema
from shelduck.model.types.literals import blob_text, canonical_text
from shelduck.model.types.promotions import Verdict, promotion
from shelduck.write.progress import counted

_INSTANTS = ("timestamp", "timestamptz")
# DuckDB parses these values in a path by its session's settings, or they are not text.
_NEVER_TOLD = ("timestamptz", "blob")


@dataclass(frozen=True, slots=True)
class Fit:
    """How files of one layout, with similar partition values, fit the columns of a version."""

    adopted: Adopted
    names: tuple[MappedName, ...]
    places: Mapping[str, int]
    layout: Layout
    by_session: bool
    narrow: frozenset[str]
    """Leaves stored in a type whose widened values DuckDB may filter wrongly."""


def sizes_of(paths: Sequence[str]) -> dict[str, int | None]:
    """Return the size of each file, None for a file that does not exist; several in parallel."""
    return dict(zip(paths, in_threads(_size, paths), strict=True))


def _size(path: str) -> int | None:
    files, name = filesystem(path)
    info = files.get_file_info(name)
    return info.size if info.type == pyarrow.fs.FileType.File else None


def partition_text(leaf: Field, text: str | None) -> str | None:
    """Return a partition value of the log as DuckLake writes it; an empty text is NULL.

    A timestamp without an offset is UTC. Raises InvalidRequest for a text that is not a value of
    the type.
    """
    if text is None or text == "":
        return None
    if str(leaf.leaf) == "blob":
        return blob_text(text.encode())
    return canonical_text(leaf.leaf, text)


@dataclass
class DeltaFiles:
    """The data files of an import, their footers read once; ``problems`` say what does not fit."""

    foreign: dict[str, ForeignFile]
    problems: dict[str, None] = field(default_factory=dict)
    untold: set[str] = field(default_factory=set)
    """Files with a partition value that their path does not contain."""
    by_session: set[str] = field(default_factory=set)
    """Files with timestamps that DuckDB reads in the time zone of its session."""
    narrow: dict[str, set[str]] = field(default_factory=dict)
    """Files by leaves in narrower types that DuckDB may filter wrongly."""
    unnumbered: set[str] = field(default_factory=set)
    """Files with NULL in an identity, which Delta allows."""
    _fits: dict[tuple[int, int, tuple[str | None, ...]], tuple[Fit, Columns]] = field(
        default_factory=dict
    )

    @classmethod
    def read(
        cls, spark: SparkSession, sizes: Mapping[str, int], *, show: bool | None = None
    ) -> DeltaFiles:
        """Read the footers of these files, in parallel."""
        found = [FoundFile(path, size) for path, size in sizes.items()]
        told = "reading files of the Delta table"
        foreign = counted(read_foreign(spark, found), told, len(found), show=show)
        return cls({file.path: file for file in foreign})

    def rows(self, path: str) -> int:
        """Return how many rows a file holds, including deleted ones."""
        return int(self.foreign[path].footer.metadata.num_rows)

    def fit(self, file: Added, columns: Columns) -> Fit:
        """Return how a file fits the columns, and add what does not fit to the problems."""
        told = tuple(_told(file, columns, key) for key in columns.keys)
        layout = self.foreign[file.path].layout
        known = self._fits.get((id(layout), id(columns), told))
        if known is None:
            # Both are kept so that their ids stay unique.
            known = self._fit(self.foreign[file.path], columns, told), columns
            self._fits[id(layout), id(columns), told] = known
        fit = known[0]
        for problem in fit.adopted.problems:
            self.problems[f"{file.path}: {problem}"] = None
        if fit.by_session:
            self.by_session.add(file.path)
        if None in told:
            self.untold.add(file.path)
        for name in fit.narrow:
            self.narrow.setdefault(name, set()).add(file.path)
        return fit

    def _fit(self, file: ForeignFile, columns: Columns, told: Sequence[str | None]) -> Fit:
        keys = {key.id for key in columns.keys}
        stored = [f for f in columns.schema if f.id not in keys]
        names = _names_in_file(file.layout, columns, stored)
        adopted = match_file(
            file.layout,
            Schema(tuple(stored)),
            allow_missing=True,
            ignore_extra=True,
            called=lambda f: names.get(f.id),
            holds=holds_widened,
        )
        if columns.delta.mode == "id" and all(f.id is None for f in file.layout.fields):
            why = "it has no field ids, which this Delta table needs to find its columns (mode id)"
            adopted = replace(adopted, problems=(why,))
        constants = [
            MappedName(_source(columns.origin[key.id].physical, name), key.id, is_partition=True)
            for key, name in zip(columns.keys, told, strict=True)
        ]
        return Fit(
            adopted,
            (*adopted.names, *constants),
            column_places(file.footer.metadata),
            file.layout,
            any(_goes_by_session(part, leaf) for leaf, part, _ in adopted.leaves),
            frozenset(leaf.name for leaf, part, _ in adopted.leaves if _is_narrow(part, leaf)),
        )

    def new_file(self, file: Added, columns: Columns) -> NewDataFile | None:
        """Return a file as one that the table adopts; None if it does not fit.

        Its partition is that of the columns; its id is filled in later.
        """
        fit, foreign = self.fit(file, columns), self.foreign[file.path]
        texts = self._texts(file, columns)
        if fit.adopted.problems or texts is None:
            return None
        rows = self.rows(file.path)
        stats = foreign_stats(foreign.footer.metadata, fit.adopted.leaves, fit.places)
        self._check_null(file, columns, stats, texts)
        tops = {f.id for f in columns.schema}
        absent = [ColumnStats(f.id, 0, 0, rows) for f in fit.adopted.missing if f.id in tops]
        constants = [
            constant_stats(key, text, rows) for key, text in zip(columns.keys, texts, strict=True)
        ]
        made = foreign.adopted((*stats, *absent, *constants), fit.names)
        return replace(made, partition_values=texts, path_values=texts)

    def _texts(self, file: Added, columns: Columns) -> tuple[str | None, ...] | None:
        found = []
        for key in columns.keys:
            try:
                found.append(partition_text(key, _value(file, columns, key)))
            except InvalidRequest as error:
                self.problems[f"{file.path}: partition column {key.name!r}: {error}"] = None
                return None
        return tuple(found)

    def _check_null(
        self,
        file: Added,
        columns: Columns,
        stats: Sequence[ColumnStats],
        texts: Sequence[str | None],
    ) -> None:
        nulls = {s.column_id: s.null_count for s in stats}
        nulls |= {k.id: int(t is None) for k, t in zip(columns.keys, texts, strict=True)}
        for column in columns.schema:
            if column.nullable or not nulls.get(column.id):
                continue
            if columns.origin[column.id].nullable:
                self.unnumbered.add(file.path)
            else:
                self.problems[
                    f"{file.path}: column {column.name!r} is NOT NULL, but the file contains NULL"
                ] = None


def same_where_known(one: Fit, other: Fit, columns: Columns) -> bool:
    """Return whether two mappings of a file find the same parts for all of these columns."""
    ids = {f.id for f in columns.schema.walk()}
    return _restricted(one.names, ids) == _restricted(other.names, ids)


def _restricted(names: Sequence[MappedName], ids: set[FieldId]) -> frozenset[object]:
    return frozenset(
        (n.source_name, n.field_id, n.is_partition, _restricted(n.children, ids))
        for n in names
        if n.field_id in ids
    )


def _value(file: Added, columns: Columns, key: Field) -> str | None:
    """Return the log's value: by physical name, or by name if a writer used that by mistake."""
    origin = columns.origin[key.id]
    values = file.partition_values
    return values[origin.physical] if origin.physical in values else values.get(origin.name)


def _told(file: Added, columns: Columns, key: Field) -> str | None:
    """Return the name under which DuckDB finds the log's value in the file's path, if it does."""
    if str(key.shape) in _NEVER_TOLD:
        return None
    origin = columns.origin[key.id]
    wanted = {origin.physical.lower(), origin.name.lower()}
    found = next(((n, v) for n, v in hive_parts(file.path) if n.lower() in wanted), None)
    if found is None:
        return None
    name, value = found
    try:
        text = partition_text(key, _value(file, columns, key))
        told = None if value is None else canonical_text(key.leaf, value)
    except InvalidRequest:
        return None
    return name if told == text else None


def _source(physical: str, told: str | None) -> str:
    """Return the source name of a partition column.

    DuckDB takes the value from the directory with that name, and refuses a file without one.
    """
    return told if told is not None else f"{physical}, in the catalog"


def _names_in_file(layout: Layout, columns: Columns, stored: Sequence[Field]) -> dict[FieldId, str]:
    """Return a file's names for its columns and struct fields."""
    if columns.delta.mode != "id":
        return {number: origin.physical for number, origin in columns.origin.items()}
    found: dict[FieldId, str] = {}
    _name_by_id(layout.fields, stored, columns, found)
    return found


def _name_by_id(
    stored: Sequence[PhysicalField],
    fields: Sequence[Field],
    columns: Columns,
    found: dict[FieldId, str],
) -> None:
    by_id = {part.id: part for part in stored if part.id is not None}
    for f in fields:
        part = by_id.get(columns.origin[f.id].mapping_id or -1)
        if part is not None:
            found[f.id] = part.name
            _name_parts(part, f, columns, found)


def _name_parts(part: PhysicalField, f: Field, columns: Columns, found: dict[FieldId, str]) -> None:
    if f.shape is Kind.STRUCT and part.shape is Kind.STRUCT:
        _name_by_id(part.children, f.children, columns, found)
    elif part.shape is f.shape:
        for inside, child in zip(part.children, f.children, strict=True):
            _name_parts(inside, child, columns, found)


def _goes_by_session(stored: PhysicalField, leaf: Field) -> bool:
    kept = str(stored.shape)
    return kept in _INSTANTS and str(leaf.shape) in _INSTANTS and kept != str(leaf.shape)


def _is_narrow(stored: PhysicalField, leaf: Field) -> bool:
    if isinstance(stored.shape, Kind) or isinstance(leaf.shape, Kind):
        return False
    if _goes_by_session(stored, leaf):
        return False
    return promotion(stored.shape, leaf.shape).verdict not in (Verdict.SAME, Verdict.SAFE)
