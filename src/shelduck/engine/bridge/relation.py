"""DataFrames over files that Python lists while Spark plans; the options of reader and writer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge.classes import PACKAGE, loaded, tell_lost
from shelduck.engine.bridge.codec import (
    OPTION,
    FileEntry,
    Reports,
    failure,
    field_rows,
    file_rows,
    id_rows,
    rows_of,
    success,
    texts,
)
from shelduck.engine.bridge.jvm import (
    analyzed_plan,
    classic_column,
    current_thread,
    has_jvm,
    java_class,
    java_column,
    java_gateway,
    java_session,
)
from shelduck.engine.stores.homes import listed_path, spark_options, spark_path
from shelduck.errors import InvalidRequest, Unsupported

Lister = Callable[[list[str]], Iterable[FileEntry]]
Measurer = Callable[[list[list[str]]], list[str | None] | None]
Statistics = Callable[[], list[list[str | None]]]

_CONSTANT_TYPES = (
    *(T.BinaryType, T.BooleanType, T.ByteType, T.DateType, T.IntegerType, T.LongType),
    *(T.ShortType, T.StringType),
)
# LakeParquet finds the deletes of a file by these names and this order.
_DELETES = T.StructType(
    [
        T.StructField("__shelduck_delete_file", T.StringType()),
        T.StructField("__shelduck_delete_bound", T.LongType()),
        T.StructField("__shelduck_deleted", T.BinaryType()),
    ]
)
# The first row of a request for measures; a filter is never null.
_MEASURES = "\\N\n"
_STATISTICS = "\\N\tstatistics\n"
_WANTS_DELETED = "shelduck.wants.deleted"
_TABLE = "shelduck.table"
_COLUMNS = "shelduck.columns"
_UNTRUSTED = "shelduck.untrusted"
_DICTIONARY = "shelduck.dictionary"
_PARTITION_NAMES = "shelduck.partition.names"
_starting = threading.Lock()
# Sessions whose planner has a rule or strategy of the bridge, by its class.
_installed: dict[str, WeakSet[SparkSession]] = {}
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


def bridge_for(spark: SparkSession) -> Bridge | None:
    """Return the bridge into the JVM of ``spark``, or None over Spark Connect, which has no JVM.

    The first call in a Spark application adds the bridge's classes to it; later calls are cheap.
    """
    return Bridge(spark, *loaded(spark)) if has_jvm(spark) else None


@dataclass(frozen=True, slots=True)
class FileRelation:
    """Files that Spark reads as columns of ``read_schema``, followed by ``constants`` of each file.

    Spark calls the lister when it plans a query, from any thread, with the filters that it pushes
    down as SQL texts: column names are bare, struct fields follow their column after a dot,
    instants are in UTC, and all filters must be true. The lister returns the files that may have
    matching rows. Its error fails the query. Constants are integers, dates (days since 1970),
    strings, binary or boolean; filters on them are applied here too. ``with_deletes`` drops the
    rows that the entries name as deleted; without it no entry may have any. ``wants_deleted`` reads
    only the deleted rows. Messages call the table ``table``. Footers of the columns ``untrusted``
    skip no row group. Entries refer to ``columns``, names in files, by number. ``size_in_bytes`` is
    the planner's estimate; with ``files``, it is their size, and Spark shows how many a query
    leaves out. Spark gets what it needs to reach ``places``; ``explain`` shows ``root``. With a
    column's id as ``dictionary``, rows are what `shelduck.read.scan.dictionaries` says.
    ``chooser`` is what `Bridge.add_rule` calls. ``measurer`` gets rows of COUNT, MIN or MAX and a
    column, or COUNT alone; it answers for all files or None. ``statistics`` returns what Spark's
    cost-based optimizer wants to know, as rows of ``LakeFileIndex.statistics``.
    """

    read_schema: T.StructType
    constants: T.StructType
    lister: Lister
    with_deletes: bool = False
    size_in_bytes: int = 1
    files: int | None = None
    places: Iterable[str] = ()
    root: str | None = None
    table: str | None = None
    untrusted: Sequence[str] = ()
    columns: Sequence[Sequence[str]] = ()
    wants_deleted: bool = False
    dictionary: int | None = None
    chooser: object | None = None
    measurer: Measurer | None = None
    statistics: Statistics | None = None

    @property
    def options(self) -> dict[str, str]:
        """The reader's own options."""
        found = {} if self.table is None else {_TABLE: self.table}
        if self.columns:
            found[_COLUMNS] = rows_of(self.columns)
        if self.untrusted:
            found[_UNTRUSTED] = rows_of([name] for name in self.untrusted)
        if self.dictionary is not None:
            found[_DICTIONARY] = str(self.dictionary)
        return found | ({_WANTS_DELETED: "true"} if self.wants_deleted else {})


@dataclass(frozen=True)
class Bridge:
    """Shelduck's Java classes in one Spark session."""

    spark: SparkSession
    loader: Any
    plans: Any

    @property
    def write_format(self) -> str:
        """Return the format for ``df.write.format(...).options(**bridge.id_options(ids))``.

        It writes timestamps in microseconds, dates in the Gregorian calendar and no ``_SUCCESS``
        file, whatever the session's settings are. Call it in the thread that writes.
        """
        # Spark looks formats up in the class loader of the thread.
        current_thread(self.spark).setContextClassLoader(self.loader)
        return f"{PACKAGE}.LakeParquet"

    def id_options(self, ids: Mapping[tuple[str, ...], int]) -> dict[str, str]:
        """Return the option with the id of each field, by its path of names in the Parquet schema.

        The list ``tags`` has the paths ``("tags",)`` and ``("tags", "list", "element")``, the map
        ``m`` has ``("m",)``, ``("m", "key_value", "key")`` and ``("m", "key_value", "value")``. The
        write fails if a field is left without an id or an id without a field, and for a value of
        `shelduck.model.tables.held`, which it tells by the id of its field. Raises Unsupported
        for a name in whose place Spark would put a setting.
        """
        option = id_rows(ids)
        _check_settings(self.spark, option)
        return {"shelduck.field.ids": option}

    @property
    def change_options(self) -> dict[str, str]:
        """Return the option of a write of changed rows; see `shelduck.write.parquet.origins`."""
        return {"shelduck.changes": "true"}

    def copied_options(self, sources: Iterable[Sequence[str]]) -> dict[str, str]:
        """Return the option of a write of new columns beside copied ones of older files.

        For each task, ``sources`` have the path of an older file, its id, and the names of its
        top-level columns to copy. Rows have the new columns, the id and the position in the file.
        """
        return {"shelduck.copied": rows_of([spark_path(path), *names] for path, *names in sources)}

    def moved_options(self, ids: Iterable[int]) -> dict[str, str]:
        """Return the option of a write with columns whose values are not checked again."""
        return {"shelduck.moved.ids": rows_of([str(number)] for number in ids)}

    def reports(self) -> Reports:
        """Return what `save` fills; take the reports even if it fails, or Java keeps them."""
        return Reports(self.plans)

    def save(
        self,
        writer: DataFrameWriter,
        place: str,
        reports: Reports,
        *,
        keys: Sequence[str] | None = None,
    ) -> None:
        """Write by `write_format` into the directory of a write, ``place``.

        With ``keys``, the names of the partition keys as paths have them, tasks write into the
        directories that DuckDB would choose, beside ``place``, under names that begin with that of
        the write. A key with an empty name has no directory. Only files in ``reports`` are results:
        others may come from tasks that failed.
        """
        options = {OPTION: reports.name, **spark_options([place])}
        if keys is not None:
            options[_PARTITION_NAMES] = rows_of([keys])
        writer.options(**options).save(spark_path(place))

    def bucket_hash(self, value: Column) -> Column:
        """Return DuckDB's hash for buckets, a 31-bit int, of a column of bigint, double or binary.

        A number is hashed as its eight bytes; null stays null.
        """
        return classic_column(self._new("BucketHash").of(java_column(value)))

    def relation(self, asked: FileRelation) -> DataFrame:
        """Return a DataFrame of the columns and constants of a relation over its files."""
        columns_read = _checked(self.spark, asked.read_schema, asked.constants)
        self._prepare_session(asked)
        hidden = _DELETES if asked.with_deletes else T.StructType()
        options = READER_OPTIONS | spark_options(asked.places) | asked.options
        found = self.plans.relation(
            java_session(self.spark),
            T.StructType(asked.constants.fields + hidden.fields).json(),
            columns_read,
            rows_of(options.items()),
            rows_of([hidden.names] if asked.with_deletes else []),
            asked.root,
            -1 if asked.files is None else asked.files,
            asked.size_in_bytes,
            _Listing(asked),
            asked.chooser,
        )
        return DataFrame(found, self.spark)

    def _prepare_session(self, asked: FileRelation) -> None:
        """Let the session call Python, ask measurers while it plans, and count files."""
        let_java_call(java_gateway(self.spark))
        if asked.measurer is not None:
            self._install("MetadataRule")
        if asked.statistics is not None:
            self._install("StatisticsRule")
        if asked.files is not None:
            self._install("LakeFilesStrategy")

    def compute_few_rows(self) -> None:
        """Make the optimizer of the session group and sort few rows that a plan holds itself."""
        self._install("LocalRule")

    def _install(self, rule: str) -> None:
        """Add a rule or strategy to the planner of the session, once."""
        known = _installed.setdefault(rule, WeakSet())
        if self.spark in known:
            return
        known.add(self.spark)
        # A Spark that cannot run it finds the same rows without it.
        self._added(rule)

    def _added(self, rule: str) -> bool:
        """Add a rule or strategy; False, and a warning, if this Spark cannot run it."""
        try:
            self._new(rule).install(java_session(self.spark))
        except (Py4JError, PySparkException) as error:
            tell_lost(rule, self.spark.version, error)
            return False
        return True

    def add_rule(self) -> bool:
        """Make the optimizer of the session ask choosers of relations what to read instead.

        A chooser is a Java function in Python, from text to the result of `chosen`, or None. The
        rule comes after the session's other rules; calling this again changes nothing. Returns
        False if this Spark cannot run the rule.
        """
        return self._added("RollupRule")

    def chosen(self, found: DataFrame, columns: Iterable[Iterable[str]], reason: str) -> Any:
        """Return the answer of a chooser: what to read, which columns it has, and why."""
        answer = java_class(self.spark, "java.util.ArrayList")()
        for part in (analyzed_plan(found), rows_of(columns), reason):
            answer.add(part)
        return answer

    def _new(self, name: str, *arguments: Any) -> Any:
        values = java_class(self.spark, "java.util.ArrayList")()
        for argument in arguments:
            values.add(argument)
        constructor = self.loader.loadClass(f"{PACKAGE}.{name}").getConstructors()[0]
        return constructor.newInstance(values.toArray())


class _Listing:
    """A lister as the Java function that ``LakeFileIndex`` calls.

    py4j keeps this object in its pool of Python proxies as long as its Java proxy is alive. Only
    the index refers to the Java proxy, and only the plans that read it refer to the index. When the
    last of these plans is collected, the proxy's finalizer notifies py4j, which releases this
    object and its lister.
    """

    def __init__(self, asked: FileRelation) -> None:
        self._lister = asked.lister
        self._measurer = asked.measurer
        self._statistics = asked.statistics
        self._constants = len(asked.constants)
        self._with_deletes = asked.with_deletes

    def apply(self, filters: str) -> str:
        try:
            if filters.startswith(_MEASURES):
                measures = field_rows(filters.removeprefix(_MEASURES))
                found = None if self._measurer is None else self._measurer(measures)
                return success("" if found is None else rows_of([found]))
            if filters == _STATISTICS:
                return success(rows_of([] if self._statistics is None else self._statistics()))
            entries = self._checked(self._lister(texts(filters)))
            return success(file_rows(entries, with_deletes=self._with_deletes))
        except Exception as error:  # noqa: BLE001 - it goes on in Java, which fails the query
            return failure(error)

    def _checked(self, entries: Iterable[FileEntry]) -> Iterable[FileEntry]:
        for entry in entries:
            if len(entry.constants) != self._constants:
                message = f"{entry.path} has {len(entry.constants)} constants"
                raise ValueError(f"{message}, the relation has {self._constants}")
            yield _for_spark(entry)

    class Java:
        """Declares to py4j which Java interfaces this object implements."""

        implements: ClassVar[list[str]] = ["java.util.function.Function"]


def _for_spark(entry: FileEntry) -> FileEntry:
    """Return a file under the paths that Spark has for it and its deletes."""
    path, deletes = listed_path(entry.path), entry.deletes
    if deletes is not None and deletes.file is not None:
        file = listed_path(deletes.file)
        deletes = deletes if file == deletes.file else replace(deletes, file=file)
    if path == entry.path and deletes is entry.deletes:
        return entry
    return replace(entry, path=path, deletes=deletes)


def let_java_call(gateway: Any) -> None:
    """Let Java call Python objects; calling this again changes nothing."""
    with _starting:
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]


def _checked(spark: SparkSession, read_schema: T.StructType, constants: T.StructType) -> str:
    """Return the columns to read as JSON, or raise an error if Spark cannot read them."""
    for field in constants:
        if not isinstance(field.dataType, _CONSTANT_TYPES):
            message = f"constant {field.name!r} cannot be of type {field.dataType.simpleString()}"
            raise InvalidRequest(message)
    both = {n.lower() for n in read_schema.names} & {n.lower() for n in constants.names}
    if both:
        raise InvalidRequest(
            f"both a column and a constant have the name {', '.join(sorted(both))}"
        )
    schema = read_schema.json()
    _check_settings(spark, schema)
    return schema


def _check_settings(spark: SparkSession, schema: str) -> None:
    """Refuse names that Spark would read as others: schemas pass through a Hadoop configuration."""
    if "${" not in schema:
        return
    hadoop = java_session(spark).sessionState().newHadoopConf()
    hadoop.set("shelduck.schema", schema)
    if hadoop.get("shelduck.schema") != schema:
        raise Unsupported(
            "a name or default contains ${...}, in whose place Spark would put a setting; rename"
            " the column, or change the default"
        )
