"""The partition of each row: text columns that name its directory, and the values they mean.

Spark separates rows by directories, whose names must give the values back: the text of the
transformed value, or `NULL_DIRECTORY` for NULL. Texts that cannot be the name of a directory, or
would be mistaken for others, are percent-encoded after a mark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote, unquote_plus

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.files.storage import carry_file, delete_directory, delete_files
from shelduck.engine.rows import store_rules
from shelduck.engine.rows.unheld import date_text, moment_text, part_of
from shelduck.errors import Unsupported
from shelduck.model.files.data_file import NewDataFile
from shelduck.model.files.partition_values import value_text
from shelduck.model.files.place import place_below, same_file
from shelduck.model.tables.partition import (
    BUCKET,
    IDENTITY,
    NULL_DIRECTORY,
    PartitionBy,
    Transform,
    parse_transform,
)
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name
from shelduck.model.types.bounds import bound_text
from shelduck.model.types.data_types import FLOATS, Leaf
from shelduck.model.types.temporal import MICROSECONDS
from shelduck.write.parquet.bucket_hash import bucket

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
        return (value + F.lit(0.0).cast(value_type(leaf))).cast("string")
    if name == "blob":
        why = f"a value of {quote_name(column)} is not text, and only text can name a partition"
        text = value.cast("string")
        return F.when(F.is_valid_utf8(text), text).otherwise(
            F.when(value.isNotNull(), store_rules.fail(why, T.StringType()))
        )
    return value.cast("string")


def value_type(leaf: Leaf) -> str:
    """Return Spark's word for a float type."""
    return "float" if str(leaf) == "float32" else "double"


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
        replace(f, path=same_file(f.path, t)) for f, t in zip(files, targets, strict=True)
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
