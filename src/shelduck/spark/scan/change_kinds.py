"""A change feed by kind of change, and in DuckLake's words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.errors import InvalidRequest
from shelduck.model.text.quoting import backticked

CAME = ("insert", "update_postimage")
WENT = ("delete", "update_preimage")
_KIND = "_change_type"
_ABOUT = (_KIND, "_commit_version", "_commit_timestamp", "_row_id")
_DUCKLAKES = {"_commit_version": "snapshot_id", "_row_id": "rowid", _KIND: "change_type"}


def rows_of(feed: DataFrame, kinds: Collection[str]) -> DataFrame:
    """Return the rows of some kinds of changes, with only the table's columns."""
    return feed.where(F.col(_KIND).isin(*kinds)).drop(*_ABOUT)


def with_action(feed: DataFrame, column: str, words: Mapping[str, str]) -> DataFrame:
    """Return the feed with one more column, which has a word for each kind of change."""
    names = F.create_map(*[F.lit(part) for pair in words.items() for part in pair])
    return feed.withColumn(column, names[F.col(_KIND)])


def as_ducklakes(feed: DataFrame) -> DataFrame:
    """Return the feed with the columns of DuckDB's extension."""
    columns = [c for c in feed.columns if c not in _ABOUT]
    taken = sorted({*_DUCKLAKES.values()} & {c.lower() for c in columns})
    if taken:
        raise InvalidRequest(
            f"column {taken[0]!r} of the table has the name of a column of ducklake_table_changes;"
            " use table_changes"
        )
    about = [F.col(own).alias(name) for own, name in _DUCKLAKES.items()]
    return feed.select(*about, *[backticked(c) for c in columns])


def nothing(rows: DataFrame, column: str | None = None) -> DataFrame:
    """Return no rows, with the same columns and perhaps one more text column."""
    found = rows.where(F.lit(False))
    return found if column is None else found.withColumn(column, F.lit(""))
