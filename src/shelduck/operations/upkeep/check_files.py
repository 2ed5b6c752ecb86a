"""Files of a table as the storage has them, compared with the catalog; no row is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from shelduck.errors import ShelduckError
from shelduck.model.files.data_files import DataFile
from shelduck.model.files.layout import Layout
from shelduck.model.tables.problem import Problem
from shelduck.spark.files.existence import absent_files
from shelduck.spark.files.layouts import layout_of
from shelduck.spark.files.parquet_files import metadata_of

_THREADS = 16
_RESTORE = "restore the file, or correct its row in the catalog"


def wrong_files(table: str, files: Sequence[DataFile], deletes: dict[str, int]) -> list[Problem]:
    """Return what is wrong with data files and delete files, these by path and size.

    One request for each file, and one footer for each data file.
    """
    sizes = [(f.path, f.file_size_bytes) for f in files] + list(deletes.items())
    gone = absent_files(sizes)
    found = []
    for told in gone:
        path, _, wrong = told.rpartition(" has ") if " has " in told else told.rpartition(" is ")
        verb = "has" if " has " in told else "is"
        found.append(Problem(table, "file", path, f"it {verb} {wrong}", _RESTORE))
    absent = {problem.object for problem in found}
    there = [f for f in files if f.path not in absent]
    with ThreadPoolExecutor(_THREADS) as pool:
        for file, wrongs in zip(there, pool.map(_footer_faults, there), strict=True):
            found += [Problem(table, "footer", file.path, wrong, _RESTORE) for wrong in wrongs]
    return found


def _footer_faults(file: DataFile) -> list[str]:
    try:
        metadata = metadata_of(file.path, "data file")
        return list(_differences(file, metadata.num_rows, layout_of(metadata)))
    except (OSError, ValueError, ShelduckError) as error:
        return [f"its footer cannot be read ({error})"]


def _differences(file: DataFile, rows: int, layout: Layout) -> Iterator[str]:
    if file.record_count is not None and file.record_count != rows:
        yield f"it has {rows} rows, and the catalog says {file.record_count}"
    if file.layout is not None and file.layout != layout:
        yield "its columns are not those of its layout in shelduck_layout"
