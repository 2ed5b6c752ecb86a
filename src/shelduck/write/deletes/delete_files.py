"""Delete files: the deleted positions of data files, one Parquet file for each data file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from shelduck.engine.bridge import Named, select_named
from shelduck.engine.files.footers import metadata_of
from shelduck.engine.files.storage import delete_directory, in_threads
from shelduck.engine.session import is_local
from shelduck.engine.stores.store_errors import told_of_storage
from shelduck.errors import Conflict, CorruptLake
from shelduck.model.files.data_file import DataFile, NewDeleteFile
from shelduck.model.files.place import place_below
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.scan.deaths import may_be_later
from shelduck.read.scan.scan_frames import Origin
from shelduck.read.table_rows import TableRows
from shelduck.write.deletes.position_files import (
    FILE,
    PATH,
    POSITION,
    by_file,
    collected_positions,
    dead_positions,
    write_position_files,
    write_positions,
)
from shelduck.write.parquet.kept import keep
from shelduck.write.parquet.write import Register, fresh_name

# Positions that come to the driver: 16 bytes each.
_MOST_COLLECTED = 16_000_000
_IDS = {PATH: 2147483646, POSITION: 2147483645}


@dataclass(frozen=True, slots=True)
class DeadRows:
    """The rows of one data file that were deleted.

    ``rows`` counts the rows that were live before. If only few are deleted, ``positions`` lists
    them; otherwise a delete file lists them together with the older ones. Without both, no row of
    the file is left. ``takes_inlined``: the delete file also lists the positions that the catalog
    keeps.
    """

    rows: int
    delete_file: NewDeleteFile | None = None
    positions: tuple[int, ...] = ()
    takes_inlined: bool = False


def write_delete_files(
    spark: SparkSession,
    dead: DataFrame | pa.Table,
    files: TableRows,
    table: TableVersion,
    *,
    few: int = 0,
    most: int | None = None,
    register: Register | None = None,
) -> dict[int, DeadRows]:
    """Write delete files for rows of ``files`` and return them by data file id.

    ``dead`` are rows, each once and none that was already deleted: a DataFrame with the columns
    `Origin.FILE_ID` and `Origin.POSITION`, which is computed once, or a table with `FILE` and
    `POSITION`. Up to ``few`` rows in total are returned as positions instead, if
    the catalog knows every file. ``most`` is the number of rows in ``dead``, or a bound.
    ``register`` is called before files are written.

    One Spark job collects up to some millions of positions, which are written here, together with
    those of older delete files. If there may be more, Spark keeps and counts them first, and if
    there are, it writes them itself, in at most two jobs. Only files that lose rows are looked up.
    If anything fails, all written files are removed.

    Raises Conflict if a delete file holds deletes of snapshots later than the table's.
    """
    work = _Work(spark, table, files, few, register)
    try:
        with told_of_storage(table.path, f"delete from {table.full_name}"):
            if not isinstance(dead, DataFrame):
                return work.here(dead)
            columns = [Named(FILE, Origin.FILE_ID), Named(POSITION, Origin.POSITION)]
            positions = select_named(dead, columns)
            bounds = [n for n in (files.held, most) if n is not None]
            if min(bounds, default=_MOST_COLLECTED + 1) > _MOST_COLLECTED:
                kept = keep(positions)
                if kept.count > _MOST_COLLECTED:
                    return work.run(kept.rows)
                positions = kept.rows
            return work.here(_here(positions))
    except BaseException:
        # If the storage is what fails, remove_orphans finds the files later.
        with suppress(OSError):
            for directory in work.directories:
                delete_directory(place_below(table.path, directory))
        raise


@dataclass
class _Work:
    """One statement's delete files; ``directories`` are those that it has created."""

    spark: SparkSession
    table: TableVersion
    holder: TableRows
    few: int
    register: Register | None
    directories: list[str] = field(default_factory=list)
    files: Mapping[int, DataFile] = field(default_factory=dict)

    def here(self, dead: pa.Table) -> dict[int, DeadRows]:
        """Write positions that are in the driver."""
        new = by_file(dead)
        self.files = self.holder.files_of(new.keys())
        counts = {number: len(positions) for number, positions in new.items()}
        if len(dead) <= self.few and all(number >= 0 for number in counts):
            return self._few(counts, new)
        touched = self._touched(new)
        if sum(_stored(file) for file in touched) > _MOST_COLLECTED:
            return self.run(self._frame(new))
        total = self._merged(new, touched)
        found = self._ended(counts, {number: len(each) for number, each in total.items()})
        left = {number: each for number, each in total.items() if number not in found}
        return found | self._listed(counts, self._written_here(left))

    def _frame(self, positions: Mapping[int, pa.Array]) -> DataFrame:
        parts = [
            pa.table({FILE: pa.repeat(pa.scalar(number, pa.int64()), len(each)), POSITION: each})
            for number, each in positions.items()
        ]
        return self.spark.createDataFrame(pa.concat_tables(parts))

    def _merged(
        self, new: Mapping[int, pa.Array], touched: Sequence[DataFile]
    ) -> dict[int, pa.Array]:
        """Return positions together with those of the delete files that they replace."""
        if not touched:
            return dict(new)
        older = collected_positions(self.spark, touched, self.table)
        total = dict(new)
        for file in touched:
            both = pa.concat_arrays([new[file.id], older.get(file.id, new[file.id].slice(0, 0))])
            self._require_known(file, len(both), len(new[file.id]))
            if _takes_inlined(file):
                both = pa.concat_arrays([both, pa.array(file.inlined_deletes, pa.int64())])
            total[file.id] = both.sort()
        return total

    def _written_here(self, positions: Mapping[int, pa.Array]) -> dict[int, NewDeleteFile]:
        if not positions:
            return {}
        table, directory = self.table, self._directory()

        def write(number: int) -> NewDeleteFile:
            name = f"{directory}/{FILE}={number}.parquet"
            return write_positions(table, name, self.files[number].path, positions[number])

        return dict(zip(positions, in_threads(write, positions), strict=True))

    def run(self, dead: DataFrame) -> dict[int, DeadRows]:
        """Let Spark write the positions, which are computed already."""
        counts = dict(map(tuple, dead.groupBy(FILE).count().collect()))
        self.files = self.holder.files_of(counts.keys())
        touched = self._touched(counts)
        taken = [f if _takes_inlined(f) else f._replace(inlined_deletes=()) for f in touched]
        older = dead_positions(self.spark, taken, self.table)
        written = self._write(dead if older is None else dead.unionByName(older))
        listed = {number: made.delete_count for number, made in written.items()}
        for file in touched:
            self._require_known(file, listed[file.id] - _taken(file), counts[file.id])
        found = self._ended(counts, listed)
        for number in found if len(found) < len(counts) else ():
            own = written[number].path.rpartition("/")[0]
            delete_directory(place_below(self.table.path, own))
        if len(found) == len(counts):
            delete_directory(place_below(self.table.path, self.directories[0]))
        return found | self._listed(counts, {n: m for n, m in written.items() if n not in found})

    def _ended(self, counts: Mapping[int, int], listed: Mapping[int, int]) -> dict[int, DeadRows]:
        """Return the files without live rows; ``listed`` counts what a delete file would list."""
        found = {
            number: DeadRows(rows)
            for number, rows in counts.items()
            if self._is_end(self.files[number], listed[number] - _taken(self.files[number]))
        }
        self._require_all_dead(found)
        return found

    def _listed(
        self, counts: Mapping[int, int], written: Mapping[int, NewDeleteFile]
    ) -> dict[int, DeadRows]:
        return {
            number: DeadRows(counts[number], made, takes_inlined=_takes_inlined(self.files[number]))
            for number, made in written.items()
        }

    def _touched(self, numbers: Iterable[int]) -> list[DataFile]:
        """Return the data files that have a delete file, which a new one replaces."""
        return [self.files[n] for n in numbers if self.files[n].delete_file is not None]

    def _few(
        self, counts: Mapping[int, int], positions: Mapping[int, pa.Array]
    ) -> dict[int, DeadRows]:
        """Return positions for the catalog."""
        found: dict[int, DeadRows] = {}
        for number, rows in counts.items():
            file = self.files[number]
            _require_no_later(file, self.table)
            if self._is_end(file, rows + _stored(file)):
                found[number] = DeadRows(rows)
            else:
                found[number] = DeadRows(rows, positions=tuple(positions[number].to_pylist()))
        self._require_all_dead(found)
        return found

    def _directory(self) -> str:
        """Return the directory of another write."""
        if self.register is not None:
            self.register(self.table)
        directory = fresh_name(self.table)
        self.directories.append(directory)
        return directory

    def _is_end(self, file: DataFile, dead: int) -> bool:
        # Positions in the catalog itself are in no delete file.
        return file.record_count == dead + len(file.inlined_deletes)

    def _require_all_dead(self, found: Mapping[int, DeadRows]) -> None:
        """Raise CorruptLake if a file that would end has more or fewer rows than the catalog says.

        Its footer is read: with a count that is too low, live rows would be lost.
        """
        ended = [self.files[n] for n, d in found.items() if d.delete_file is None]
        ended = [f for f in ended if not found[f.id].positions]
        if not ended:
            return
        for file, rows in zip(ended, in_threads(_row_count, ended), strict=True):
            if rows != file.record_count:
                raise CorruptLake(
                    f"data file {file.path} of {self.table.full_name} has {rows} rows, but the"
                    f" catalog says {file.record_count}; restore the file, or correct"
                    " record_count in ducklake_data_file"
                )

    def _require_known(self, file: DataFile, dead: int, new: int) -> None:
        """Raise Conflict if files name other positions than the catalog has counted."""
        if dead != new + _stored(file):
            raise Conflict(
                f"another commit deleted rows from data file {file.id} of"
                f" {self.table.full_name}; read the table again and repeat the change"
            )

    def _write(self, positions: DataFrame) -> dict[int, NewDeleteFile]:
        """Write the columns ``file`` and ``pos``; return the files by data file id."""
        directory = self._directory()
        place = place_below(self.table.path, directory)
        paths = [(f.id, str(f.path)) for f in self.files.values()]
        how = {"encrypted": self.table.options.encrypted}
        written = write_position_files(self.spark, positions, paths, place, _IDS, **how)
        return {n: replace(f, path=f"{directory}/" + f.path) for n, f in written.items()}


def _here(positions: DataFrame) -> pa.Table:
    """Return positions; Arrow would take a job also if the plan holds them."""
    if not is_local(positions):
        return positions.toArrow()
    names = (FILE, POSITION)
    found = [*zip(*positions.collect(), strict=True)] or [()] * len(names)
    return pa.table([pa.array(each, pa.int64()) for each in found], names)


def _row_count(file: DataFile) -> int:
    return int(metadata_of(file.path, "data file").num_rows)


def _stored(file: DataFile) -> int:
    """Return how many positions a file's delete file lists."""
    return 0 if file.delete_file is None else file.delete_file.delete_count


def _taken(file: DataFile) -> int:
    """Return how many positions of a new delete file were in the catalog until then."""
    return len(file.inlined_deletes) if _takes_inlined(file) else 0


def _takes_inlined(file: DataFile) -> bool:
    """Return whether a new delete file, which replaces a committed one, takes inlined positions."""
    older = file.delete_file
    return older is not None and older.id is not None and bool(file.inlined_deletes)


def _require_no_later(file: DataFile, table: TableVersion) -> None:
    """Raise Conflict if a delete file was replaced, under its id, by one of a later snapshot."""
    stored = file.delete_file
    if stored is not None and may_be_later(stored, table.snapshot.id, table.full_name):
        raise Conflict(
            f"another commit may have deleted rows from data file {file.id} of {table.full_name};"
            " read the table again and repeat the change"
        )
