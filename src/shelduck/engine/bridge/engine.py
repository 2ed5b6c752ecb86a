"""What Shelduck asks of Spark, and what Spark's public API alone answers, as over Spark Connect.

Sessions whose JVM this process reaches have a `shelduck.engine.bridge.classic.ClassicEngine`, which
does all of it. Here is what the others lack: there are no plans to look into, no files are pruned,
deletion vectors cannot be read, and files are written by Spark's own writer or by pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge.codec import FileWriter
from shelduck.engine.bridge.faults import DAMAGED
from shelduck.engine.bridge.lake_catalog import Answer
from shelduck.engine.bridge.relation import FileEntry, FileRelation, Named, column_of
from shelduck.engine.stores.homes import spark_options, spark_path
from shelduck.engine.types import spark_type
from shelduck.errors import Unsupported
from shelduck.model.files.data_file import SNAPSHOT_COLUMN
from shelduck.model.tables.row_expressions import ROW
from shelduck.model.types import buckets
from shelduck.model.types.data_types import FLOATS, DataType, Primitive, Struct

# What every scan sets, whatever the session's settings are. Files come from writers that use the
# Gregorian calendar. If a file of a snapshot is missing or damaged, the query must fail.
READER_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    # Most writers put a checksum into each page, without which a flipped bit may be a wrong value.
    "parquet.page.verify-checksum.enabled": "true",
}
# For a path that is not a pattern, whatever characters it has.
EXACT_PATH = READER_OPTIONS | {"__globPaths__": "false"}
# For files that are named one by one, and whose schema is given.
LISTED_FILES = EXACT_PATH | {"mergeSchema": "false", "recursiveFileLookup": "true"}
ROW_INDEX = "__shelduck_row_index"
DELETE_SCHEMA = T.StructType(
    [T.StructField("pos", T.LongType()), T.StructField(SNAPSHOT_COLUMN, T.LongType())]
)

_FILE = "__shelduck_file"
_NAME = "__shelduck_name"
_POSITION = "__shelduck_position"
_ROWS = "__shelduck_rows"
# A broadcast of more deleted positions than this is split into several, by files.
_BROADCAST_ROWS = 4_000_000
_ZONE, _ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
_UTC = ("", "UTC", "Etc/UTC", "Z", "GMT")


class Engine:
    """A session of Spark, by its public API; each method says what a JVM adds to its answer."""

    has_jvm = False
    """Whether the session runs Shelduck's Java classes.

    With them, Spark asks listers with its filters while it plans, reads deleted rows and
    dictionaries, and asks catalogs for tables; jobs can be stopped. Writes name files by their
    tasks, tell the old places of changed rows, copy columns of older files and count every NULL.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @property
    def parallelism(self) -> int:
        """How many tasks run at once; a guess over Connect, where nobody tells."""
        return 4

    @property
    def session_id(self) -> str:
        """What tells sessions apart; with a JVM, several Python objects may be one session."""
        return str(id(self.spark))

    def prepare(self) -> None:
        """Do what may fail before `outcome`, which tells of a commit and must not fail."""

    # Queries and their plans.

    def select(self, rows: DataFrame, columns: Sequence[Named]) -> DataFrame:
        """Return these columns of the rows; by one call into a JVM."""
        return rows.select(*[c.column for c in columns])

    def select_bound(self, rows: DataFrame, columns: Sequence[Named], zone: str) -> DataFrame:
        """Return columns of rows of a table, some made by `bound` expressions of one zone.

        A JVM analyzes them in that time zone, with ANSI mode, and names what fails. Otherwise
        raises Unsupported if the session has another time zone or no ANSI mode.
        """
        found, ansi = self.spark.conf.get(_ZONE), self.spark.conf.get(_ANSI)
        if ansi != "true" or (found != zone and not {found, zone} <= {*_UTC}):
            raise Unsupported(
                "constraints and generated columns of a table are computed in the time zone"
                f" {zone or 'UTC'} with ANSI mode, which Spark Connect takes from the session; set"
                f" {_ZONE} to {zone or 'UTC'} and {_ANSI} to true"
            )
        return self.select(rows.alias(ROW), columns)

    def query(self, text: str, relations: Mapping[str, DataFrame]) -> DataFrame:
        """Return the DataFrame of a query in which each word of ``relations`` is a DataFrame.

        The words must occur nowhere else in the text, not even as a part of another word.
        """
        if not relations:
            return self.spark.sql(text)
        # PySpark replaces {names} by DataFrames; braces of the text itself are doubled.
        template = text.replace("{", "{{").replace("}", "}}")
        for word in relations:
            template = template.replace(word, f"{{{word}}}")
        return self.spark.sql(template, args=None, **relations)

    def tables_in(self, text: str) -> list[str]:  # noqa: ARG002
        """Return the tables that Spark's parser finds in a query, as it writes them; or none."""
        return []

    def is_temporary_view(self, name: str) -> bool:
        """Return whether there is a temporary view of this name; a JVM looks for no tables."""
        try:
            return bool(self.spark.catalog.getTable(name).isTemporary)
        except AnalysisException:
            return False

    def outcome(self, row: Mapping[str, int | str | None]) -> DataFrame:
        """Return one row with the result of a statement: integers and plain words by name."""
        values = (
            f"'{value}'"
            if isinstance(value, str)
            else f"CAST({'NULL' if value is None else value} AS BIGINT)"
            for value in row.values()
        )
        names = ", ".join(f"`{name}`" for name in row)
        # Spark returns rows of VALUES without a job.
        return self.spark.sql(f"SELECT * FROM VALUES ({', '.join(values)}) AS outcome({names})")

    def optimized_plan(self, rows: DataFrame) -> Any:  # noqa: ARG002
        """Return the optimized logical plan of a DataFrame in Java; or None."""
        return None

    def measured_plan(self, rows: DataFrame) -> str:  # noqa: ARG002
        """Run a query and return its plan, one node a line, with what Spark counted and timed.

        Raises Unsupported without a JVM, which shows no metrics.
        """
        raise Unsupported(
            "EXPLAIN ANALYZE is not supported over Spark Connect; use EXPLAIN FORMATTED"
        )

    def whole_condition(self, chosen: DataFrame) -> list[str] | None:  # noqa: ARG002
        """Return the filters that choose rows from one scan of a lake, as SQL.

        None if something else chooses them too, or no plan can be seen.
        """
        return None

    # Rows that Spark holds.

    def has_its_rows(self, rows: DataFrame) -> bool:  # noqa: ARG002
        """Return whether all rows that a plan reads are in the plan itself; False if unseen."""
        return False

    def held(self, rows: DataFrame) -> DataFrame | None:  # noqa: ARG002
        """Return rows as Spark's plan holds them, computed once; None if it cannot."""
        return None

    def kept(self, rows: DataFrame) -> DataFrame | None:  # noqa: ARG002
        """Return rows to keep for `again`, which this process may read several times; or None."""
        return None

    def own(self, rows: DataFrame) -> DataFrame:
        """Return rows that their plan holds as rows of a lake, which the optimizer may compute.

        Rows that a job has to read stay as they are; so do all without a JVM.
        """
        return rows

    def unaliased(self, rows: DataFrame) -> DataFrame:
        """Return the same rows; by a plan that renames no column to its own name."""
        return rows

    def checkpoint(self, rows: DataFrame, counts: Sequence[Column]) -> tuple[DataFrame, list[int]]:
        """Return rows that are computed now and kept in the executors, and named counts of them.

        A JVM tells what Spark counted meanwhile. Without one, a second job counts.
        """
        found = rows.localCheckpoint(eager=True)
        # One row of numbers.
        return found, list(found.agg(*counts).collect()[0])

    # What surrounds a query.

    def property_of(self, name: str) -> str | None:  # noqa: ARG002
        """Return a property that Spark gives this thread, such as of its stream; or None."""
        return None

    @contextmanager
    def with_property(self, name: str, value: str) -> Iterator[None]:  # noqa: ARG002
        """Let rules and catalogs see a property of this thread, from whichever thread they run."""
        yield

    def hadoop(self) -> Any:
        """Return a copy of the session's configuration of Hadoop, in Java; None if unknown."""
        return None

    def put_catalog(self, name: str, answer: Answer) -> str | None:  # noqa: ARG002
        """Make ``name`` a catalog of the session; returns its token, None without catalogs."""
        return None

    def put_source(self, answer: Answer) -> bool:  # noqa: ARG002
        """Make ``format("shelduck")`` known to Spark, once; False if it is not."""
        return False

    def require_current_catalog(self, name: str) -> None:
        """Raise Unsupported if names without a catalog cannot mean a lake."""
        raise Unsupported(
            f"{name!r} cannot be the current catalog over Spark Connect, which does not know it;"
            f" use {name}.schema.table"
        )

    # Reading files.

    def relation(self, asked: FileRelation) -> DataFrame:
        """Return a DataFrame of the columns and constants of a relation over its files.

        Without a JVM, all files are listed now. Spark reads deleted positions from the delete files
        and removes them with a join by file name and row index; a broadcast never holds more than
        some millions of them. Another join tells constants that are no texts. A relation that
        ``wants_deleted`` has the positions themselves, for `row_index`, and no other columns.
        Raises Unsupported for deletion vectors.
        """
        entries = list(asked.lister([]))
        _refuse_vectors(entries)
        read = _positions if asked.wants_deleted else _batch
        parts = (read(self.spark, asked, part) for part in _batches(asked, entries))
        return reduce(DataFrame.unionAll, parts)

    def row_index(self, found: DataFrame, _names: Iterable[str] = ()) -> tuple[DataFrame, str]:
        """Return a relation whose constants are no texts, and each row's index in its file as SQL.

        The names are those of the columns of its files.
        """
        return found, ROW_INDEX

    def unpushed(self, source: str | Column, kind: DataType) -> str | Column:
        """Return a source of `Named`, so that filters on floats in it skip no row group in Spark.

        Parquet orders -0.0 before 0.0, but Spark treats them as equal, and footers of some writers
        do not mention NaN. With a JVM, `SafeFilters` knows that.
        """
        return _unpushed(column_of(source), kind)

    def require_vectors(self, path: str) -> None:
        """Raise Unsupported if deletion vectors, such as those at a path, cannot be read."""
        raise Unsupported(
            f"delete file {path} is a deletion vector, which cannot be read over Spark Connect;"
            " use a classic session"
        )

    def add_rule(self) -> bool:
        """Make the optimizer ask choosers of relations what to read instead; or return False."""
        return False

    def compute_few_rows(self) -> None:
        """Make the optimizer group and sort few rows that a plan holds itself, if it can."""

    # Writing files.

    def writer(self) -> FileWriter | None:
        """Return what writes files once, with ids on every level, and tells of them.

        None without a JVM: then `shelduck.write.parquet.plain_write` writes.
        """
        return None

    def sealed_file(self, path: str, key: str | None, options: str) -> Any:  # noqa: ARG002
        """Return an encrypted file in Java, as a plain one; Unsupported without a JVM."""
        raise Unsupported(f"file {path} is encrypted, which needs a driver with a JVM")

    def unbound_file(self, content: bytes, key: str) -> bytes:  # noqa: ARG002
        """Return an encrypted file of pyarrow as DuckDB has it; Unsupported without a JVM."""
        raise Unsupported("a file is to be encrypted, which needs a driver with a JVM")

    def bucket_hash(self, value: Column) -> Column:
        """Return DuckDB's hash for buckets, a 31-bit int, of a column of bigint, double or binary.

        A number is hashed as its eight bytes; null stays null. Without a JVM, Python computes it.
        """
        # Executors need not have this package.
        cloudpickle.register_pickle_by_value(buckets)  # type: ignore[no-untyped-call]
        return F.udf(buckets.bucket_hash, "int", useArrow=False)(value)


def _refuse_vectors(entries: Iterable[FileEntry]) -> None:
    for entry in entries:
        stored = None if entry.deletes is None else entry.deletes.file
        if stored is not None and stored.endswith(".puffin"):
            raise Unsupported(
                f"data file {entry.path} has its deletes in a puffin file, which cannot be read"
                " over Spark Connect; use a classic session, or rewrite the file with DuckDB (CALL"
                " ducklake_rewrite_data_files)"
            )


def _batches(asked: FileRelation, entries: Sequence[FileEntry]) -> Iterator[list[FileEntry]]:
    """Yield files that their names, and those of delete files, identify, and that are read alike.

    They share their texts, and all or none of them have deletes.
    """
    open_batches: list[tuple[set[str], object, list[FileEntry], int]] = []
    for entry in entries:
        names, rows = _names(entry), _dead_rows(entry)
        alike = ([v for _, v in _constants(asked, entry, texts=True)], rows > 0)
        for at, (known, shared, found, total) in enumerate(open_batches):
            if shared == alike and not known & names and total + rows <= _BROADCAST_ROWS:
                open_batches[at] = (known | names, shared, [*found, entry], total + rows)
                break
        else:
            open_batches.append((names, alike, [entry], rows))
    for _, _, found, _ in open_batches:
        yield found


def _names(entry: FileEntry) -> set[str]:
    stored = None if entry.deletes is None else entry.deletes.file
    return {_name(path) for path in (entry.path, stored) if path is not None}


def _dead_rows(entry: FileEntry) -> int:
    return 0 if entry.deletes is None else (entry.deletes.count or 0) + len(entry.deletes.positions)


def _constants(
    asked: FileRelation, entry: FileEntry, *, texts: bool
) -> list[tuple[T.StructField, Any]]:
    """Return the constants of a file that are texts, or its other ones."""
    return [
        (field, value)
        for field, value in zip(asked.constants, entry.constants, strict=True)
        if isinstance(field.dataType, T.StringType) is texts
    ]


def _owners(
    spark: SparkSession, asked: FileRelation, entries: Sequence[FileEntry]
) -> DataFrame | None:
    """Return the constants that are no texts by the names of files; None if there are none."""
    known = [_constants(asked, entry, texts=False) for entry in entries]
    if not known[0]:
        return None
    fields = [T.StructField(_NAME, T.StringType()), *(field for field, _ in known[0])]
    rows = [(_name(e.path), *(v for _, v in k)) for e, k in zip(entries, known, strict=True)]
    return F.broadcast(spark.createDataFrame(rows, T.StructType(fields)))


def _batch(spark: SparkSession, asked: FileRelation, entries: Sequence[FileEntry]) -> DataFrame:
    reader = spark.read.schema(asked.read_schema).options(**LISTED_FILES)
    reader = reader.options(**spark_options(e.path for e in entries))
    found = reader.parquet(*[spark_path(e.path) for e in entries])
    for field, value in _constants(asked, entries[0], texts=True):
        found = found.withColumn(field.name, F.lit(value).cast(T.StringType()))
    owners = _owners(spark, asked, entries)
    has_deletes = any(map(_dead_rows, entries))
    if has_deletes or owners is not None:
        # As separate columns: both sides of a join have a _metadata.
        found = found.withColumns(
            {_FILE: metadata_of(found, "file_name"), ROW_INDEX: metadata_of(found, "row_index")}
        )
    if has_deletes:
        dead = F.broadcast(_deleted(spark, entries))
        same = (found[_FILE] == dead[_NAME]) & (found[ROW_INDEX] == dead[_POSITION])
        found = found.join(dead, same, "left_anti")
    if owners is not None:
        return found.join(owners, found[_FILE] == owners[_NAME], "left")
    # Batches without deletes do not have them.
    return found.drop(_FILE, ROW_INDEX) if has_deletes else found


def _positions(spark: SparkSession, asked: FileRelation, entries: Sequence[FileEntry]) -> DataFrame:
    """Return the positions that are deleted in files, and the constants of these."""
    owners = _owners(spark, asked, entries)
    assert owners is not None
    assert not asked.read_schema.names
    found = _deleted(spark, entries).join(owners, _NAME)
    return found.select(*asked.constants.names, F.col(_POSITION).alias(ROW_INDEX))


def _deleted(spark: SparkSession, entries: Sequence[FileEntry]) -> DataFrame:
    shape = f"{_NAME} string, {_POSITION} bigint"
    dead = [(e, e.deletes) for e in entries if e.deletes is not None]
    inlined = [(_name(e.path), place) for e, deletes in dead for place in deletes.positions]
    frames = [spark.createDataFrame(inlined, shape)] if inlined else []
    stored = [(e, d.file, d.up_to_snapshot) for e, d in dead if d.file is not None]
    if stored:
        paths = [path for _, path, _ in stored]
        owned = [(_name(path), _name(e.path), e.rows) for e, path, _ in stored]
        owners = spark.createDataFrame(
            owned, f"__shelduck_delete string, {_NAME} string, {_ROWS} bigint"
        )
        # A relation shows one snapshot of a table.
        later = F.col(SNAPSHOT_COLUMN) > F.lit(stored[0][2])
        positions = (
            spark.read.schema(DELETE_SCHEMA)
            .options(**LISTED_FILES, **spark_options(paths))
            .parquet(*[spark_path(path) for path in paths])
            .where(~F.coalesce(later, F.lit(False)))
            .select(F.col("_metadata.file_name").alias(_FILE), F.col("pos").alias(_POSITION))
        )
        of_file = positions[_FILE] == owners["__shelduck_delete"]
        place = F.col(_POSITION)
        is_row = (place >= 0) & ~F.coalesce(place >= F.col(_ROWS), F.lit(False))
        told = F.concat(F.lit(f"{DAMAGED}delete file has a wrong position: "), _FILE)
        known = F.when(is_row, place).otherwise(F.raise_error(told)).alias(_POSITION)
        frames.append(positions.join(F.broadcast(owners), of_file).select(_NAME, known))
    return reduce(DataFrame.unionAll, frames)


def metadata_of(scan: DataFrame, name: str) -> Column:
    """Return Spark's metadata of each row's file, whatever the names of its columns are."""
    return scan.metadataColumn("_metadata").getField(name)


def _unpushed(value: Column, kind: DataType) -> Column:
    if isinstance(kind, Primitive) and kind.name in FLOATS:
        return F.nanvl(value, F.lit(float("nan")).cast(spark_type(kind)))
    if isinstance(kind, Struct) and _holds_float(kind):
        parts = [_unpushed(value.getField(m.name), m.type).alias(m.name) for m in kind.members]
        return F.when(value.isNotNull(), F.struct(*parts))
    return value


def _holds_float(kind: DataType) -> bool:
    if isinstance(kind, Struct):
        return any(_holds_float(m.type) for m in kind.members)
    return isinstance(kind, Primitive) and kind.name in FLOATS


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
