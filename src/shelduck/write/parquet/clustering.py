"""Where the rows of a write go: one partition to a file, in the table's sort order.

A rebalance brings rows of a partition together. It splits large partitions and joins small ones by
Spark's own measure (``spark.sql.adaptive.advisoryPartitionSizeInBytes``). A sorted table without
partitions is cut into ranges, so that files follow each other in the sort order.

Spark separates rows by directories, whose names must give the values back: the text of the
transformed value, or `NULL_DIRECTORY` for NULL. Texts that cannot be the name of a directory, or
would be mistaken for others, are percent-encoded after a mark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal as Number
from urllib.parse import quote, unquote, unquote_plus

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, column_of, engine_for
from shelduck.engine.files.storage import carry_file, delete_directory, delete_files
from shelduck.engine.rows import store_rules
from shelduck.engine.rows.table_rules import stored
from shelduck.engine.rows.unheld import (
    clock_micros,
    date_text,
    floor_div,
    micros,
    moment_text,
    part_of,
    zone_seconds,
)
from shelduck.errors import CorruptLake, InvalidRequest, Unsupported
from shelduck.model.files.data_file import NewDataFile
from shelduck.model.files.fitted import value_text
from shelduck.model.files.place import place_below, same_file
from shelduck.model.tables.partition import (
    BUCKET,
    IDENTITY,
    NULL_DIRECTORY,
    PartitionBy,
    Transform,
    directory_keys,
    parse_sort_key,
    parse_transform,
    partition_directory,
)
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name
from shelduck.model.types.buckets import LONG_DIGITS, UNITS
from shelduck.model.types.data_types import FLOATS, Decimal, Leaf
from shelduck.model.types.literals import bound_text
from shelduck.model.types.temporal import MICROSECONDS, NANOSECONDS
from shelduck.text.ddl.sorting import sort_expression_for_spark

_MARK = "\u0001"
# Other texts would give directories that are empty, hidden, in Java's encoding, or not ours.
_ODD = rf"^$|[^ -~]|^{NULL_DIRECTORY}$"
_PERCENT = "~"
_NAME_BYTES = 255
# Precedes a value while its file is being written.
KEY_COLUMN = "__shelduck_key_{}"
_WORKING_BYTES = len(f"{KEY_COLUMN.format('00')}=%01")
_TEXTS = frozenset({"varchar", "json", "blob"})
_USUAL = re.compile(r"\d{4}-\d\d-\d\d.*")
_THREADS = 16
_AS_THEY_ARE = frozenset({"boolean", "int8", "int16", "int32", "int64", *NANOSECONDS})
_UNKNOWN = frozenset({"interval", "geometry", "variant", "unknown", "null", "time_ns"})
_GREATEST_OFFSET = 57_599


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One key of a table: a column and the transform of its values."""

    field: Field
    transform: Transform

    @property
    def leaf(self) -> Leaf:
        """Return the column's type."""
        return self.field.leaf

    @property
    def named(self) -> PartitionBy:
        """Return the key by the column's name."""
        return PartitionBy(self.field.name, self.transform)


def partition_keys(table: TableVersion) -> tuple[PartitionKey, ...]:
    """Return the keys of a table; Unsupported for an unknown transform."""
    found: list[PartitionKey] = []
    for key in table.partition:
        column = table.columns.by_id(key.column_id)
        if column is None or not column.is_leaf:
            raise Unsupported(
                f"{table.full_name} is partitioned by column id {key.column_id}, which"
                f" {'does not exist' if column is None else 'is ' + str(column.type)}; change its"
                " partitioning"
            )
        found.append(PartitionKey(column, parse_transform(key.transform)))
    return tuple(found)


def directory_text(spark: SparkSession, key: PartitionKey) -> Column:
    """Return the directory name of a row for a key; never null."""
    value = F.col(backticked(key.field.name))
    if key.transform.kind != IDENTITY:
        plain = _transformed(spark, key, value).cast("string")
    else:
        plain = _text(value, key.leaf, key.field.name)
        if str(key.leaf) in _TEXTS:
            plain = _checked(plain, key)
            # Spark encodes a percent sign once more as three characters, and keeps this one as it
            # is.
            marked = F.concat(F.lit(_MARK), F.translate(F.url_encode(plain), "%", _PERCENT))
            plain = F.when(plain.rlike(_ODD), marked).otherwise(plain)
    # Not nullable: otherwise Spark would add another sort after ours to handle nulls.
    return F.coalesce(plain, F.lit(NULL_DIRECTORY))


def value_of(key: PartitionKey, directory: str) -> str | None:
    """Return the value, as DuckLake writes it, of a directory ``key=text`` that Spark made."""
    text = unquote(directory.partition("=")[2])
    if text == NULL_DIRECTORY:
        return None
    if key.transform.kind != IDENTITY:
        return text
    if str(key.leaf) in _TEXTS:
        return unquote_plus(text[1:].replace(_PERCENT, "%")) if text.startswith(_MARK) else text
    return _canonical(key.leaf, text)


def _transformed(spark: SparkSession, key: PartitionKey, value: Column) -> Column:
    leaf, kind = key.leaf, key.transform.kind
    if kind == BUCKET:
        return bucket(spark, value, leaf, key.transform.buckets)
    name = str(leaf)
    if kind == "hour" and name in ("time", "timetz"):
        return F.substring(value, 1, 2).cast("int")
    if name in MICROSECONDS or name == "date":
        return part_of(kind, value, leaf)
    raise Unsupported(
        f"{kind} does not apply to column {quote_name(key.field.name)} of type {leaf}; change the"
        " partitioning of the table"
    )


def _text(value: Column, leaf: Leaf, column: str) -> Column:
    name = str(leaf)
    if name == "date":
        return date_text(value)
    if name in MICROSECONDS:
        return moment_text(value, leaf)
    if name in FLOATS:
        kind = "float" if name == "float32" else "double"
        return (value + F.lit(0.0).cast(kind)).cast("string")
    if name == "blob":
        why = f"a value of {quote_name(column)} is not text, and only text can name a partition"
        text = value.cast("string")
        return F.when(F.is_valid_utf8(text), text).otherwise(
            F.when(value.isNotNull(), store_rules.fail(why, T.StringType()))
        )
    return value.cast("string")


def _checked(text: Column, key: PartitionKey) -> Column:
    """Return the text; fail the write if the directory's name would be too long."""
    name = quote_name(key.field.name)
    why = f"a value of {name} is too long to name a directory; partition by bucket(n, {name})"
    # A blank is one character here and three there.
    size = F.octet_length(F.regexp_replace(F.url_encode(text), "[+*]", "%00"))
    room = _NAME_BYTES - max(len(quote(key.field.name)) + 1, _WORKING_BYTES)
    fits = (F.octet_length(text) * 3 <= room) | (size <= room)
    return F.when(fits, text).otherwise(
        F.when(text.isNotNull(), store_rules.fail(why, T.StringType()))
    )


def _canonical(leaf: Leaf, text: str) -> str:
    is_moment = str(leaf) == "date" or str(leaf) in MICROSECONDS
    if is_moment and not _USUAL.fullmatch(text):
        found = bound_text(leaf, int(text))
        assert found is not None
        return found
    return value_text(leaf, text)


def place_files(
    path: str, write: str, files: Sequence[NewDataFile], directories: Sequence[str]
) -> tuple[NewDataFile, ...]:
    """Move the files of a write into directories below ``path``, the table's; all or none.

    Files that are there stay. ``write`` is the name of the write's directory, which is removed
    afterwards. If a move fails, the files that were already moved are deleted.
    """
    targets = [
        file.path if _directory(file.path) == where else f"{where}{write}-{n}.parquet"
        for n, (file, where) in enumerate(zip(files, directories, strict=True))
    ]
    placed = tuple(
        f if f.path == t else replace(f, path=same_file(f.path, t))
        for f, t in zip(files, targets, strict=True)
    )
    moved = [(f.path, t) for f, t in zip(files, targets, strict=True) if f.path != t]
    if not moved:
        return placed
    with ThreadPoolExecutor(_THREADS) as pool:
        moves = [pool.submit(carry_file, path + old, path + new) for old, new in moved]
    if any(move.exception() for move in moves):
        delete_files(place_below(path, new) for _, new in moved)
    for move in moves:
        move.result()
    below = f"{write}/"
    delete_files(place_below(path, old) for old, _ in moved if not old.startswith(below))
    if any(old.startswith(below) for old, _ in moved):
        delete_directory(place_below(path, write))
    return placed


def directory_beside(path: str, source: str) -> str:
    """Return the directory of a data file below ``path``, the table's; '' for one elsewhere."""
    return _directory(source.removeprefix(path) if source.startswith(path) else "")


def _directory(path: str) -> str:
    return path[: path.rfind("/") + 1]


def bucket(spark: SparkSession, value: Column, leaf: Leaf, buckets: int) -> Column:
    """Return the bucket, an int, of a column of Spark's type for ``leaf``; null for null.

    Raises Unsupported for types whose hash is unknown.
    """
    number = _number(value, leaf)
    data = _bytes(value, leaf) if number is None else number
    return engine_for(spark).bucket_hash(data).cast("int") % F.lit(buckets)


def decimal_text(value: Column, leaf: Decimal) -> Column:
    """Return DuckDB's text of a decimal: all digits of the scale, no zero before a lone point."""
    text = value.cast("string")
    # Spark writes very small values with an exponent if ANSI mode is off.
    advice = f"a value of type {leaf} needs spark.sql.ansi.enabled to be put into a bucket"
    refused = store_rules.fail(advice, T.StringType())
    plain = F.when(text.contains("E"), refused).otherwise(text)
    return F.regexp_replace(plain, r"^(-?)0\.", "$1.") if leaf.precision == leaf.scale else plain


def _number(value: Column, leaf: Leaf) -> Column | None:
    """Return the bigint or double whose eight bytes are hashed; None if it is text or bytes."""
    if isinstance(leaf, Decimal):
        if leaf.precision > LONG_DIGITS:
            return None
        return (value * F.lit(Number(10**leaf.scale))).cast("bigint")
    name = leaf.name
    if name in _AS_THEY_ARE:
        return value.cast("bigint")
    if name in FLOATS:
        # Negative zero becomes zero.
        return value.cast("double") + F.lit(0.0)
    if name == "date":
        return F.unix_date(value).cast("bigint")
    if name in MICROSECONDS:
        return floor_div(micros(value, leaf), UNITS.get(name, 1))
    if name == "time":
        return clock_micros(value)
    if name == "timetz":
        return clock_micros(value) * (1 << 24) + (F.lit(_GREATEST_OFFSET) - zone_seconds(value))
    return None


def _bytes(value: Column, leaf: Leaf) -> Column:
    if isinstance(leaf, Decimal):
        return decimal_text(value, leaf).cast("binary")
    if leaf.name in _UNKNOWN:
        raise Unsupported(f"values of type {leaf} cannot be put into buckets")
    return value if leaf.name == "blob" else value.cast("string").cast("binary")


_COMPARED = ("varchar", "json")
_SURE = 256


@dataclass(frozen=True, slots=True)
class Clustering:
    """How the rows of one write are laid out."""

    table: TableVersion
    keys: tuple[PartitionKey, ...]
    order: tuple[Column, ...]

    @property
    def columns(self) -> list[str]:
        """Return the columns that `arranged` adds to a DataFrame's own: one for each key."""
        return [KEY_COLUMN.format(n) for n in range(len(self.keys))]

    @property
    def named(self) -> list[Named]:
        """Return the same columns, for a select."""
        return [Named(name, name) for name in self.columns]

    def arranged(self, spark: SparkSession, df: DataFrame, *, spreads: bool = True) -> DataFrame:
        """Return the rows brought together and sorted, followed by the directory of each key.

        Without ``spreads``, rows stay in their part, and are sorted there.
        """
        if not self.keys and spreads:
            return df.sort(*self.order) if self.order else df
        texts = [directory_text(spark, key) for key in self.keys]
        named = [text.alias(name) for text, name in zip(texts, self.columns, strict=True)]
        together = df.select("*", *named) if named else df
        if spreads:
            together = together.hint("rebalance", *self.columns)
        order = [*map(F.col, self.columns), *self.order]
        return together.sortWithinPartitions(*order) if order else together

    def directories(self, files: Sequence[NewDataFile]) -> list[str]:
        """Return where files belong: the directory of each one's partition below the table's."""
        if not self.table.options.hive_file_pattern:
            return [""] * len(files)
        keys = [key.named for key in self.keys]
        return [partition_directory(keys, file.partition_values) for file in files]

    def directory_keys(self) -> list[str]:
        """Return the texts before the ``=`` of these directories; '' for a key that has none."""
        if not self.table.options.hive_file_pattern:
            return [""] * len(self.keys)
        return [quote(name, safe="") for name in directory_keys([key.named for key in self.keys])]

    def told(self, file: NewDataFile, working: str) -> NewDataFile:
        """Return a newly written file with its partition.

        ``working`` are the directories of `columns` in which Spark puts it. Raises CorruptLake if
        the file's own statistics show another partition.
        """
        if not self.keys:
            return file
        parts = working.split("/")
        values = tuple(value_of(k, part) for k, part in zip(self.keys, parts, strict=True))
        for key, value in zip(self.keys, values, strict=True):
            self._check(file, key, value)
        return replace(file, partition_id=self.table.partition_id, partition_values=values)

    def _check(self, file: NewDataFile, key: PartitionKey, value: str | None) -> None:
        """Raise Unsupported if a file system that ignores case would mix partitions."""
        if key.transform.kind != IDENTITY or str(key.leaf) not in _COMPARED:
            return
        found = next((s for s in file.stats if s.column_id == key.field.id), None)
        if found is None or len((value or "").encode()) >= _SURE:
            return
        bounds = {found.min_value, found.max_value} - {None}
        if bounds - {value} or (value is None and found.value_count):
            raise CorruptLake(
                f"file {file.path} of {self.table.full_name} should hold only {value!r} in"
                f" {key.field.name!r}, but also holds {min(map(str, bounds - {value}))!r}: the"
                " file system does not distinguish such names"
            )


def clustering_of(table: TableVersion, *, sorts: bool | None = None) -> Clustering:
    """Return how rows of a table are laid out.

    ``sorts``: whether its sort order counts; None follows its option ``sort_on_insert``. Raises
    Unsupported for keys that Spark cannot compute.
    """
    if sorts is None:
        sorts = table.options.sort_on_insert
    order = tuple(_ordering(table, text) for text in table.sort) if sorts else ()
    return Clustering(table, partition_keys(table), order)


def _ordering(table: TableVersion, text: str) -> Column:
    key = parse_sort_key(text)
    try:
        made = sort_expression_for_spark(key.expression)
        column = column_of(stored(made, "it", "use a column"))
    except (InvalidRequest, Unsupported) as error:
        raise Unsupported(
            f"table {table.full_name} is sorted by {key.expression}: {error}; use ALTER TABLE"
            f" {table.full_name} RESET SORTED BY, or set its option sort_on_insert to false"
        ) from error
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()
