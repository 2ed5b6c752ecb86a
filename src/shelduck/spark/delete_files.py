"""Delete files: the dead positions of data files, one Parquet file for each data file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.errors import Conflict, CorruptLake
from shelduck.model.files import DataFile, NewDeleteFile
from shelduck.model.layout import SNAPSHOT_FIELD
from shelduck.model.place import place_below
from shelduck.model.table import TableVersion
from shelduck.spark.file_systems import filesystem
from shelduck.spark.position_files import (
    FILE,
    PATH,
    POSITION,
    stored_positions,
    write_position_files,
)
from shelduck.spark.read import Origin
from shelduck.spark.reader_options import EXACT_PATH
from shelduck.spark.storage import delete_directory, spark_path
from shelduck.spark.write import fresh_name

_THREADS = 16
_IDS = {PATH: 2147483646, POSITION: 2147483645}


@dataclass(frozen=True, slots=True)
class DeadRows:
    """What died in one data file.

    ``rows`` are those that were alive before. Where they are few they are told by ``positions``,
    else by a delete file with the older ones; with neither, no row of the file is left.
    ``takes_inlined``: the delete file names the positions that the catalog keeps, too.
    """

    rows: int
    delete_file: NewDeleteFile | None = None
    positions: tuple[int, ...] = ()
    takes_inlined: bool = False


@dataclass(frozen=True, slots=True)
class _Written:
    """One delete file and how many positions it names."""

    file: NewDeleteFile
    rows: int


def write_delete_files(
    spark: SparkSession,
    dead: DataFrame,
    files: Sequence[DataFile],
    table: TableVersion,
    *,
    few: int = 0,
) -> dict[int, DeadRows]:
    """Write delete files for rows of ``files`` and return them by data file id.

    ``dead`` has the columns `Origin.FILE_ID` and `Origin.POSITION`, each row once and none that was
    dead before; it is computed once. Two Spark jobs write at most, the second one only for data
    files that have a delete file already. Up to ``few`` rows in all are told by their positions
    instead, where every file is known to the catalog. Raises Conflict when a delete file knows of
    snapshots later than the table's. What was written is removed when anything fails.
    """
    work = _Work(spark, table, {f.id: f for f in files}, few)
    try:
        return work.run(dead)
    except BaseException:
        for directory in work.directories:
            delete_directory(place_below(table.path, directory))
        raise


@dataclass
class _Work:
    """One statement's delete files; ``directories`` are those that it has made."""

    spark: SparkSession
    table: TableVersion
    files: Mapping[int, DataFile]
    few: int
    directories: list[str] = field(default_factory=list)

    def run(self, dead: DataFrame) -> dict[int, DeadRows]:
        new = self._write(
            dead.select(F.col(Origin.FILE_ID).alias(FILE), F.col(Origin.POSITION).alias(POSITION)),
            self.files.values(),
        )
        if sum(w.rows for w in new.values()) <= self.few and all(number >= 0 for number in new):
            return self._few(new)
        touched = [self.files[n] for n in new if self.files[n].delete_file is not None]
        total = new | self._with_older(touched, new)
        found: dict[int, DeadRows] = {}
        for number, written in total.items():
            rows = new[number].rows
            file = self.files[number]
            takes = _takes_inlined(file)
            if self._is_end(file, written.rows - takes * len(file.inlined_deletes)):
                found[number] = DeadRows(rows)
            else:
                found[number] = DeadRows(rows, written.file, takes_inlined=takes)
        self._require_all_dead(found)
        kept = {d.delete_file.path for d in found.values() if d.delete_file is not None}
        self._remove({w.file.path for w in (*new.values(), *total.values())} - kept, kept)
        return found

    def _few(self, new: Mapping[int, _Written]) -> dict[int, DeadRows]:
        found: dict[int, DeadRows] = {}
        for number, written in new.items():
            file = self.files[number]
            older = file.delete_file.delete_count if file.delete_file is not None else 0
            _require_no_later(file, self.table)
            if self._is_end(file, written.rows + older):
                found[number] = DeadRows(written.rows)
            else:
                place = self.table.path + written.file.path
                found[number] = DeadRows(written.rows, positions=_positions(place))
        self._require_all_dead(found)
        self._remove(set(), set())
        return found

    def _remove(self, files: Collection[str], kept: Collection[str]) -> None:
        """Remove files, each with the directory that it has for itself, and what is left empty."""
        used = {path.partition("/")[0] for path in kept}
        for directory in self.directories:
            if directory not in used:
                delete_directory(place_below(self.table.path, directory))
        for path in files:
            if path.partition("/")[0] in used:
                delete_directory(place_below(self.table.path, path.rpartition("/")[0]))

    def _is_end(self, file: DataFile, dead: int) -> bool:
        # Positions that the catalog itself holds are in no delete file.
        return file.record_count == dead + len(file.inlined_deletes)

    def _require_all_dead(self, found: Mapping[int, DeadRows]) -> None:
        """Raise CorruptLake where a file would end that has other rows than the catalog says.

        Its footer is read: a count that is too low would take rows along that are alive.
        """
        ended = [self.files[n] for n, d in found.items() if d.delete_file is None]
        ended = [f for f in ended if not found[f.id].positions]
        if not ended:
            return
        with ThreadPoolExecutor(min(_THREADS, len(ended))) as pool:
            for file, rows in zip(ended, pool.map(_row_count, ended), strict=True):
                if rows != file.record_count:
                    raise CorruptLake(
                        f"data file {file.path} of {self.table.full_name} has {rows} rows, the"
                        f" catalog says {file.record_count}: restore the file, or set record_count"
                        " in ducklake_data_file right"
                    )

    def _with_older(
        self, touched: Sequence[DataFile], new: Mapping[int, _Written]
    ) -> dict[int, _Written]:
        """Write files that name the older positions too, and remove those that do not."""
        if not touched:
            return {}
        place = spark_path(self.table.path + self.directories[0])
        written = self.spark.read.schema(f"{POSITION} bigint, {FILE} bigint").options(**EXACT_PATH)
        fresh = written.parquet(place).where(F.col(FILE).isin([f.id for f in touched]))
        both = fresh.select(FILE, POSITION).unionAll(
            stored_positions(self.spark, touched, self.table)
        )
        inlined = [(f.id, p) for f in touched if _takes_inlined(f) for p in f.inlined_deletes]
        if inlined:
            more = self.spark.createDataFrame(inlined, f"{FILE} bigint, {POSITION} bigint")
            both = both.unionAll(more)
        total = self._write(both, touched)
        for file in touched:
            assert file.delete_file is not None
            known = file.delete_file.delete_count + _takes_inlined(file) * len(file.inlined_deletes)
            if total[file.id].rows != new[file.id].rows + known:
                raise Conflict(
                    f"another commit deleted rows from data file {file.id} of"
                    f" {self.table.full_name} meanwhile; read the table again and repeat the change"
                )
        return total

    def _write(self, positions: DataFrame, files: Iterable[DataFile]) -> dict[int, _Written]:
        """Write columns ``file`` and ``pos``; return the files by the id of their data file."""
        directory = fresh_name(self.table)
        self.directories.append(directory)
        place = place_below(self.table.path, directory)
        paths = [(f.id, f.path) for f in files]
        written = write_position_files(self.spark, positions, paths, place, _IDS)
        return {
            number: _Written(
                NewDeleteFile(f"{directory}/{f.name}", f.rows, f.size, f.footer_size), f.rows
            )
            for number, f in written.items()
        }


def _row_count(file: DataFile) -> int:
    files, name = filesystem(file.path)
    with files.open_input_file(name) as source:
        return int(parquet.read_metadata(source).num_rows)


def _takes_inlined(file: DataFile) -> bool:
    """Tell whether a delete file that ends one of the catalog's takes positions there along."""
    older = file.delete_file
    return older is not None and older.id is not None and bool(file.inlined_deletes)


def _positions(path: str) -> tuple[int, ...]:
    files, name = filesystem(path)
    with files.open_input_file(name) as source:
        return tuple(parquet.read_table(source, columns=[POSITION])[POSITION].to_pylist())


def _require_no_later(file: DataFile, table: TableVersion) -> None:
    """Raise Conflict when a delete file was replaced by one of a later snapshot under its id."""
    if file.delete_file is None or file.delete_file.format != "parquet":
        return
    files, name = filesystem(file.delete_file.path)
    with files.open_input_file(name) as source:
        metadata = parquet.read_metadata(source)
    columns = [n for n, c in enumerate(metadata.schema.to_arrow_schema()) if _is_snapshot(c)]
    for group in range(metadata.num_row_groups):
        for column in columns:
            known = metadata.row_group(group).column(column).statistics
            if known is None or not known.has_min_max or known.max > table.snapshot.id:
                raise Conflict(
                    f"another commit may have deleted rows from data file {file.id} of"
                    f" {table.full_name} meanwhile; read the table again and repeat the change"
                )


def _is_snapshot(column: object) -> bool:
    metadata = getattr(column, "metadata", None) or {}
    return bool(metadata.get(b"PARQUET:field_id") == str(SNAPSHOT_FIELD).encode())
