"""Files of a table as the storage has them, compared with the catalog; no row is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pyarrow import parquet

from shelduck.errors import ShelduckError
from shelduck.model.files.data_files import ColumnStats, DataFile
from shelduck.model.files.layout import Layout, PhysicalField
from shelduck.model.tables.problem import Problem
from shelduck.model.tables.schema import Field, Kind, Schema
from shelduck.model.types.bounds import bound
from shelduck.spark.files.existence import absent_files
from shelduck.spark.files.layouts import layout_of
from shelduck.spark.files.parquet_files import metadata_of
from shelduck.spark.files.stats import column_stats

Bounds = Mapping[int, Mapping[int, ColumnStats]]

_THREADS = 16
_RESTORE = "restore the file, or correct its row in the catalog"
_WIDEN = "correct the row in ducklake_file_column_stats, or delete it"
_TEXTS = frozenset({"varchar", "json", "blob"})
# Writers may cut longer texts in a footer.
_UNCUT = 8


def wrong_files(
    table: str, columns: Schema, files: Sequence[DataFile], deletes: dict[str, int], bounds: Bounds
) -> list[Problem]:
    """Return what is wrong with data files and delete files, these by path and size.

    ``bounds`` are the statistics of the catalog, per column by data file. One request for each
    file, and one footer for each data file.
    """
    sizes = [(f.path, f.file_size_bytes) for f in files] + list(deletes.items())
    found = absences(table, sizes)
    absent = {problem.object for problem in found}
    there = [f for f in files if f.path not in absent]
    leaves = {int(f.id): f for f in columns.leaves()}
    look = partial(_faults, table, leaves, bounds)
    with ThreadPoolExecutor(_THREADS) as pool:
        for problems in pool.map(look, there):
            found += problems
    return found


def absences(table: str, sizes: Sequence[tuple[str, int]]) -> list[Problem]:
    """Return the files, by path and size, that are missing or have another size."""
    found = []
    for told in absent_files(sizes):
        path, _, wrong = told.rpartition(" has ") if " has " in told else told.rpartition(" is ")
        verb = "has" if " has " in told else "is"
        found.append(Problem(table, "file", path, f"it {verb} {wrong}", _RESTORE))
    return found


def _faults(
    table: str, leaves: Mapping[int, Field], bounds: Bounds, file: DataFile
) -> list[Problem]:
    try:
        metadata = metadata_of(file.path, "data file")
        layout = layout_of(metadata)
        wrongs = list(_differences(file, metadata.num_rows, layout))
        contradictions = list(_contradictions(file, metadata, layout, leaves, bounds))
    except (OSError, ValueError, ShelduckError) as error:
        wrongs, contradictions = [f"its footer cannot be read ({error})"], []
    found = [Problem(table, "footer", file.path, wrong, _RESTORE) for wrong in wrongs]
    return found + [Problem(table, "statistics", file.path, w, _WIDEN) for w in contradictions]


def _differences(file: DataFile, rows: int, layout: Layout) -> Iterator[str]:
    if file.record_count is not None and file.record_count != rows:
        yield f"it has {rows} rows, and the catalog says {file.record_count}"
    if file.layout is not None and file.layout != layout:
        yield "its columns are not those of its layout in shelduck_layout"


def _contradictions(
    file: DataFile,
    metadata: parquet.FileMetaData,
    layout: Layout,
    leaves: Mapping[int, Field],
    bounds: Bounds,
) -> Iterator[str]:
    """Find statistics of the catalog that a footer contradicts, by columns of the same type."""
    stored = list(_leaves(layout.fields))
    if len(stored) != metadata.num_columns:
        # A variant has several columns.
        return
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    for place, (part, is_top) in enumerate(stored):
        field = leaves.get(part.id) if part.id is not None else None
        known = bounds.get(part.id, {}).get(file.id) if part.id is not None else None
        if field is None or known is None or str(field.shape) != str(part.shape) or part.encoding:
            continue
        told = column_stats(field, [g.column(place) for g in groups])
        if told is not None:
            yield from _narrower(field, known, told, counts=is_top)


def _leaves(
    fields: Sequence[PhysicalField], *, is_top: bool = True
) -> Iterator[tuple[PhysicalField, bool]]:
    for field in fields:
        if isinstance(field.shape, Kind):
            yield from _leaves(field.children, is_top=False)
        else:
            yield field, is_top


def _narrower(
    field: Field, known: ColumnStats, told: ColumnStats, *, counts: bool
) -> Iterator[str]:
    """Tell of statistics by which a filter would skip rows that the file has."""
    assert not isinstance(field.shape, Kind)
    if counts and known.null_count != told.null_count:
        yield (
            f"the catalog says that {field.name} is NULL in {known.null_count} rows, and its footer"
            f" {told.null_count}"
        )
    ends = (
        ("less", known.min_value, told.min_value),
        ("more", known.max_value, told.max_value),
    )
    for which, mine, theirs in ends:
        one, other = bound(field.shape, mine), bound(field.shape, theirs)
        if one is None or other is None or _may_be_cut(field, theirs):
            continue
        if (other < one) if which == "less" else (other > one):  # type: ignore[operator]
            end = "least" if which == "less" else "greatest"
            yield f"its footer has {theirs} as the {end} {field.name}, and the catalog {mine}"


def _may_be_cut(field: Field, text: str | None) -> bool:
    return str(field.shape) in _TEXTS and len(text or "") >= _UNCUT
