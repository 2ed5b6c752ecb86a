"""Files of a table as the storage has them, compared with the catalog; no row is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from pyarrow import parquet

from shelduck.engine.files.footers import column_stats, metadata_of
from shelduck.engine.files.layouts import layout_of
from shelduck.engine.files.listing import absent_files
from shelduck.errors import ShelduckError
from shelduck.model.changes.problem import CorrectedStats, Problem
from shelduck.model.files.data_file import ColumnStats, DataFile, Layout, PhysicalField
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.data_types import Leaf
from shelduck.model.types.literals import bound, widen
from shelduck.write.progress import counted

Bounds = Mapping[int, Mapping[int, ColumnStats]]

_THREADS = 16
_RESTORE = "restore the file, or correct its row in the catalog"
_WIDEN = "correct the row in ducklake_file_column_stats, or delete it"
_TEXTS = frozenset({"varchar", "json", "blob"})
# Writers may cut longer texts in a footer.
_UNCUT = 8


@dataclass(slots=True)
class FileFaults:
    """The faults of files, and the statistics that their footers correct."""

    problems: list[Problem] = field(default_factory=list)
    corrected: list[CorrectedStats] = field(default_factory=list)


def wrong_files(
    table: TableVersion,
    files: Sequence[DataFile],
    deletes: dict[str, int],
    bounds: Bounds,
    *,
    show: bool | None = None,
) -> FileFaults:
    """Return what is wrong with data files and delete files, these by path and size.

    ``bounds`` are the statistics of the catalog, per column by data file. One request for each
    file, and one footer for each data file. ``show`` is as in `counted`.
    """
    name = table.full_name
    sizes = [(f.path, f.file_size_bytes) for f in files] + list(deletes.items())
    found = FileFaults(absences(name, sizes))
    absent = {problem.object for problem in found.problems}
    there = [f for f in files if f.path not in absent]
    leaves = {int(f.id): f for f in table.columns.leaves()}
    look = partial(_faults, table, leaves, bounds)
    pool = ThreadPoolExecutor(_THREADS)
    try:
        looks = counted(pool.map(look, there), f"checking {name}", len(there), show=show)
        for faults in looks:
            found.problems += faults.problems
            found.corrected += faults.corrected
    finally:
        # After Ctrl-C, the files that wait for a thread are not looked at.
        pool.shutdown(cancel_futures=True)
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
    table: TableVersion, leaves: Mapping[int, Field], bounds: Bounds, file: DataFile
) -> FileFaults:
    name = table.full_name
    try:
        metadata = metadata_of(file.path, "data file")
        layout = layout_of(metadata)
        wrongs = list(_differences(file, metadata.num_rows, layout))
        compared = list(_compared(file, metadata, layout, leaves, bounds))
    except (OSError, ValueError, ShelduckError) as error:
        wrongs, compared = [f"its footer cannot be read ({error})"], []
    found = FileFaults([Problem(name, "footer", file.path, wrong, _RESTORE) for wrong in wrongs])
    for column, known, told, counts in compared:
        contradictions = list(_narrower(column, known, told, counts=counts))
        assert not isinstance(column.shape, Kind)
        true = _wider(column.shape, known, told, counts=counts)
        # The footer of another file tells nothing.
        is_mendable = not wrongs and not list(_narrower(column, true, told, counts=counts))
        repair = "takes them from the footer" if is_mendable else ""
        found.problems += [
            Problem(name, "statistics", file.path, w, _WIDEN, repair) for w in contradictions
        ]
        if contradictions and is_mendable:
            found.corrected.append(CorrectedStats(table.id, file.id, column.shape, known, true))
    return found


def _differences(file: DataFile, rows: int, layout: Layout) -> Iterator[str]:
    if file.record_count is not None and file.record_count != rows:
        yield f"it has {rows} rows, and the catalog says {file.record_count}"
    if file.layout is not None and file.layout != layout:
        yield "its columns are not those of its layout in shelduck_layout"


def _compared(
    file: DataFile,
    metadata: parquet.FileMetaData,
    layout: Layout,
    leaves: Mapping[int, Field],
    bounds: Bounds,
) -> Iterator[tuple[Field, ColumnStats, ColumnStats, bool]]:
    """Yield the columns that have the type of the file, with statistics of catalog and footer.

    Also whether the numbers of NULLs can be compared.
    """
    stored = list(_leaves(layout.fields))
    if len(stored) != metadata.num_columns:
        # A variant has several columns.
        return
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    for place, (part, is_top) in enumerate(stored):
        column = leaves.get(part.id) if part.id is not None else None
        known = bounds.get(part.id, {}).get(file.id) if part.id is not None else None
        if column is None or known is None or str(column.shape) != str(part.shape) or part.encoding:
            continue
        told = column_stats(column, [g.column(place) for g in groups])
        if told is not None:
            yield column, known, told, is_top


def _leaves(
    fields: Sequence[PhysicalField], *, is_top: bool = True
) -> Iterator[tuple[PhysicalField, bool]]:
    for part in fields:
        if isinstance(part.shape, Kind):
            yield from _leaves(part.children, is_top=False)
        else:
            yield part, is_top


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
    ends = (("less", known.min_value, told.min_value), ("more", known.max_value, told.max_value))
    for which, mine, theirs in ends:
        one, other = bound(field.shape, mine), bound(field.shape, theirs)
        if one is None or other is None or _may_be_cut(field, theirs):
            continue
        if (other < one) if which == "less" else (other > one):  # type: ignore[operator]
            end = "least" if which == "less" else "greatest"
            yield f"its footer has {theirs} as the {end} {field.name}, and the catalog {mine}"


def _wider(leaf: Leaf, known: ColumnStats, told: ColumnStats, *, counts: bool) -> ColumnStats:
    """Return the statistics of the catalog, so wide that the footer agrees."""
    mine, theirs = (known.min_value, known.max_value), (told.min_value, told.max_value)
    low, high = widen(leaf, mine, theirs)
    return known._replace(
        null_count=told.null_count if counts else known.null_count,
        min_value=known.min_value if low is None else low,
        max_value=known.max_value if high is None else high,
    )


def _may_be_cut(field: Field, text: str | None) -> bool:
    return str(field.shape) in _TEXTS and len(text or "") >= _UNCUT
