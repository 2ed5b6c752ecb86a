"""The Spark session: the user's own, or a quiet local one if there is none.

And what is asked of it: SQL over DataFrames, small answers as DataFrames, and frames of plain rows.
"""

from __future__ import annotations

import atexit
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from shelduck.engine.bridge import engine_for
from shelduck.engine.bridge.lake_catalog import held_frames
from shelduck.errors import Unsupported

__all__ = [
    "AnalysisException",
    "DataFrame",
    "PySparkException",
    "SparkSession",
    "StructType",
    "is_catalog",
    "is_stopped",
    "session_for",
    "time_zone",
]


TIME_ZONE = "spark.sql.session.timeZone"
_LEVEL = "spark.log.level"
_WAREHOUSE = "spark.sql.warehouse.dir"
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", _LEVEL: "ERROR"}
_OLDEST_JAVA = 17
_INSTALL = "install it, or set JAVA_HOME to where it is"
_SILENT = ("ERROR", "FATAL", "OFF")
# What Java and Spark say before the level of the log applies.
_NOISE = re.compile(
    rb"WARNING: |Using Spark's default log4j profile|Setting default log level"
    rb"|To adjust logging level|Setting Spark log level|[\d/]+ [\d:]+ (?:INFO|WARN) "
)
_AT_ONCE = 10_000
_TYPES: Mapping[str, pa.DataType] = {
    "bigint": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "map": pa.map_(pa.string(), pa.string()),
}
_PLAIN = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.DoubleType,
    T.StringType,
    T.BinaryType,
    T.DecimalType,
)
_LOCAL = "org.apache.spark.sql.catalyst.plans.logical.LocalRelation"


def time_zone(given: SparkSession | None, config: Mapping[str, str]) -> str | None:
    """Return the time zone of ``given`` or the active session, or else what ``config`` sets.

    None means that a session would have the time zone of the machine. Starts no session.
    """
    spark = given if given is not None else SparkSession.getActiveSession()
    if spark is None or is_stopped(spark):
        return config.get(TIME_ZONE)
    return spark.conf.get(TIME_ZONE)


def branch_of(spark: SparkSession) -> str:
    """Return the branch that a session works on, by our setting or Iceberg's; else ''."""
    found = spark.conf.get("shelduck.branch", None) or spark.conf.get("spark.wap.branch", None)
    return found or ""


def is_ntz(spark: SparkSession) -> bool:
    """Return whether TIMESTAMP means a time without a time zone in the session."""
    return spark.conf.get("spark.sql.timestampType", "TIMESTAMP_LTZ") == "TIMESTAMP_NTZ"


def is_catalog(spark: SparkSession, name: str) -> bool:
    """Return whether a session has a catalog of that name."""
    is_sparks = name.lower() == "spark_catalog"
    return is_sparks or spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def package_of_spark() -> Path:
    """Return the folder of PySpark, which has Spark's programs of its version in ``bin``."""
    return Path(pyspark.__file__).parent


def is_stopped(spark: SparkSession) -> bool:
    """Return whether a session was stopped, so that it answers no calls."""
    context = getattr(spark, "_sc", None)
    if context is None:
        return bool(getattr(spark, "is_stopped", False))
    return context._jsc is None  # noqa: SLF001


def session_for(config: Mapping[str, str] | None) -> SparkSession:
    """Return the active session, or else a new quiet local one with ``config``.

    An existing session is used as it is: Shelduck passes its settings with each read and write.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "SPARK_REMOTE" not in os.environ:
        # Python workers must be the interpreter that has pyarrow, not the machine's python3.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return start_session(config or {})


def start_session(config: Mapping[str, str]) -> SparkSession:
    """Return a new session with these settings; by default a quiet, local one without a web page.

    Tables of Spark's own catalog are then in a folder that is removed when this process ends.
    """
    settings = _QUIET | dict(config)
    builder = SparkSession.builder.appName("shelduck")
    for key, value in settings.items():
        builder = builder.config(key, value)
    if not _starts_java():
        return builder.getOrCreate()
    java = _require_java()
    with _told_of_java(java), _java(settings, quiet=settings[_LEVEL].upper() in _SILENT):
        known = SparkConf()
        if known.get("spark.master", "local").startswith("local") and _WAREHOUSE not in settings:
            builder = builder.config(_WAREHOUSE, known.get(_WAREHOUSE, None) or _temporary())
        return builder.getOrCreate()


def _starts_java() -> bool:
    """Return whether a session starts a JVM of this process."""
    elsewhere = ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")
    is_there = SparkContext._gateway is not None  # noqa: SLF001
    return os.name == "posix" and not is_there and not any(map(os.environ.get, elsewhere))


def _require_java() -> str:
    """Return the program that Spark starts; Unsupported if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(f"{home}/bin/java" if home else "java")
    if found is None:
        where = f"JAVA_HOME is {home!r}, which has no bin/java" if home else "none is on the path"
        raise Unsupported(f"Spark needs Java {_OLDEST_JAVA} or newer, but {where}; {_INSTALL}")
    return found


@contextmanager
def _told_of_java(java: str) -> Iterator[None]:
    """Raise Unsupported if Spark does not start because Java is too old."""
    try:
        yield
    except Exception as error:
        version = _version_of(java)
        if version is None or version >= _OLDEST_JAVA:
            raise
        raise Unsupported(
            f"Spark needs Java {_OLDEST_JAVA} or newer, but {java} is Java {version}; {_INSTALL}"
        ) from error


def _version_of(java: str) -> int | None:
    """Return the major version of a Java, None if it does not tell."""
    try:
        said = subprocess.run(  # noqa: S603 - the Java that Spark has started
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr)
    return int(found[1]) if found is not None else None


def _temporary() -> str:
    made = tempfile.mkdtemp(prefix="shelduck-warehouse-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@contextmanager
def _java(settings: Mapping[str, str], *, quiet: bool) -> Iterator[None]:
    """Start the JVM for the block that makes the session; what it said is shown if that fails."""
    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    said = Stderr() if quiet else None
    try:
        how = {} if said is None else {"stderr": said.end}
        gateway = launch_gateway(conf, how)  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001
        yield
    except BaseException:
        if said is not None:
            said.open(with_noise=True)
        raise
    if said is not None:
        said.open()


class Stderr:
    """The stderr of the JVM: passed on, without `_NOISE` until it is open."""

    def __init__(self) -> None:
        self._source, self.end = os.pipe()
        self._lock = threading.Lock()
        self._is_open = False
        self._line = b""
        self._noise: list[bytes] = []
        threading.Thread(target=self._pass_on, name="shelduck-stderr", daemon=True).start()

    def open(self, *, with_noise: bool = False) -> None:
        """Pass everything on from now on, after the noise so far if that may explain an error."""
        os.close(self.end)
        with self._lock:
            while select.select([self._source], [], [], 0)[0] and self._take():
                pass
            self._is_open = True
            _tell(b"".join(self._noise) if with_noise else b"")
            _tell(self._line)

    def _pass_on(self) -> None:
        is_going = True
        while is_going:
            select.select([self._source], [], [])
            with self._lock:
                # `open` may have taken what was there.
                if select.select([self._source], [], [], 0)[0]:
                    is_going = self._take()

    def _take(self) -> bool:
        """Pass on or keep what there is; False at the end."""
        found = os.read(self._source, 1 << 16)
        if self._is_open:
            _tell(found)
            return bool(found)
        *lines, self._line = (self._line + found).split(b"\n")
        for line in lines:
            if _NOISE.match(line):
                self._noise.append(line + b"\n")
            else:
                _tell(line + b"\n")
        return bool(found)


def _tell(text: bytes) -> None:
    with suppress(OSError):
        os.write(2, text)


@contextmanager
def temporary_views(
    spark: SparkSession, frames: Mapping[str, DataFrame]
) -> Iterator[dict[str, str]]:
    """Give DataFrames temporary names in the session; yield the name of each by its key."""
    unique = uuid.uuid4().hex
    names = {word: f"{word}{unique}" for word in frames}
    made: list[str] = []
    try:
        for word, frame in frames.items():
            with held_frames():
                frame.createTempView(names[word])
            made.append(names[word])
        yield names
    finally:
        for name in made:
            spark.catalog.dropTempView(name)


def with_values(rows: DataFrame, values: Mapping[str, str]) -> DataFrame:
    """Return rows with additional columns, each with one value: SQL text by the column's name."""
    added = [F.expr(text).alias(name) for name, text in values.items()]
    return rows.select("*", *added) if added else rows


def replaces_partitions(spark: SparkSession) -> bool:
    """Return whether INSERT OVERWRITE of the session replaces only the partitions of new rows."""
    mode = spark.conf.get("spark.sql.sources.partitionOverwriteMode", "STATIC")
    return str(mode).upper() == "DYNAMIC"


def merges_schemas(spark: SparkSession) -> bool:
    """Return whether the session has Delta's setting by which writes add columns."""
    setting = "spark.databricks.delta.schema.autoMerge.enabled"
    return str(spark.conf.get(setting, "false")).lower() == "true"


def session_has(spark: SparkSession, name: str) -> bool:
    """Return whether the session knows a table or temporary view with that name."""
    try:
        return spark.catalog.tableExists(name)
    except AnalysisException:
        # A name that Spark's catalog cannot have, such as a name with three parts.
        return False


def function_exists(spark: SparkSession, name: str) -> bool:
    """Return whether Spark itself or the session has a function with that name."""
    try:
        return spark.catalog.functionExists(name)
    except AnalysisException:
        # The current catalog has no functions.
        return False


def constant(spark: SparkSession, text: str) -> Any:
    """Return the value of an expression without columns."""
    row = spark.sql(f"SELECT {text}").first()
    assert row is not None
    return row[0]


def answer(spark: SparkSession, columns: str, rows: Sequence[tuple[object, ...]]) -> DataFrame:
    """Return a small DataFrame: ``columns`` as in DDL (``"name string, id bigint"``)."""
    # Spark 4.0 pickles rows, and reads no class of its own, such as a name of SQLAlchemy.
    plain = [tuple(str.__str__(v) if isinstance(v, str) else v for v in row) for row in rows]
    return spark.createDataFrame(plain, columns)


def metadata_frame(
    spark: SparkSession, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]
) -> DataFrame:
    """Return rows as a DataFrame; only a few thousand of them are Python values at a time.

    ``columns`` are names with ``bigint``, ``string``, ``boolean``, ``timestamp``, or ``map`` for
    pairs of texts.
    """
    schema = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in columns.items()])
    left, batches = iter(rows), []
    while some := list(islice(left, _AT_ONCE)):
        values = zip(*some, strict=True)
        arrays = [pa.array(list(v), f.type) for v, f in zip(values, schema, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    # Spark needs a batch even without rows.
    table = pa.Table.from_batches(batches or [pa.RecordBatch.from_pylist([], schema)], schema)
    return spark.createDataFrame(table)


def local_size(rows: DataFrame) -> int | None:
    """Return how many rows a plan holds itself, so that Spark returns them without a job.

    None if a job would have to compute them, and over Spark Connect, which shows no plans.
    """
    plan = engine_for(rows.sparkSession).optimized_plan(rows)
    if plan is None or plan.getClass().getName() != _LOCAL:
        return None
    return int(plan.data().size())


def is_local(rows: DataFrame) -> bool:
    """Return whether Spark returns rows without a job."""
    return local_size(rows) is not None


def local_frame(
    spark: SparkSession, rows: Sequence[Sequence[Any]], shape: T.StructType
) -> DataFrame:
    """Return rows as a DataFrame.

    Rows of numbers and texts go through Arrow, which PySpark passes on without an RDD. For
    other types Arrow has other rules than Spark, so a job reads them.
    """
    columns = [*zip(*rows, strict=True)] if rows else [()] * len(shape.fields)
    return local_columns(spark, columns, shape)


def local_columns(
    spark: SparkSession, columns: Sequence[Sequence[Any]], shape: T.StructType
) -> DataFrame:
    """Return rows, given as the values of each column, as `local_frame` does."""
    if not all(isinstance(f.dataType, _PLAIN) for f in shape.fields):
        return spark.createDataFrame([*zip(*columns, strict=True)], shape)
    arrays = [
        pa.array(values, to_arrow_type(f.dataType))
        for values, f in zip(columns, shape.fields, strict=True)
    ]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, names=shape.names), shape)
