"""Ensuring that after a statement each key of a table with a key model exists only once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.schema import Path
from shelduck.model.tables.table import TableVersion
from shelduck.operations.read.rows import TableRows
from shelduck.operations.write.delete import ORIGINS
from shelduck.operations.write.versions import Versions
from shelduck.spark.merge.folding import Folding
from shelduck.spark.merge.key_ranges import near_keys
from shelduck.spark.merge.load_rows import ordered, some_of_keys, some_twice, without_rows
from shelduck.spark.scan.matching import Where
from shelduck.spark.session import DataFrame, SparkSession
from shelduck.spark.write.kept import keep, shared


def folding_of(table: TableVersion) -> Folding | None:
    """Return how rows of a table are folded, None for a table that keeps all of them.

    Raises Unsupported if another writer has dropped a key, because rows of several keys would be
    combined.
    """
    keys = table_keys(table)
    if keys is None or not keys.folds:
        return None
    if len(keys.key_fields(table.columns)) < len(keys.columns):
        raise Unsupported(
            f"another writer dropped a key column of {table.full_name}, so rows with different"
            " keys look the same; use RESTORE TABLE with a version that has the column, or make"
            " a new table with CREATE TABLE ... AS SELECT"
        )
    return Folding(table, keys)


def sets_keys(table: TableVersion, paths: Iterable[Path]) -> bool:
    """Return whether one of the assigned columns is a key that only one row may have."""
    folding = folding_of(table)
    names = {path[0].lower() for path in paths}
    return folding is not None and any(f.name.lower() in names for f in folding.key_fields)


def require_unique(spark: SparkSession, rows: TableRows, versions: Versions, what: str) -> None:
    """Raise InvalidRequest if rows of a statement have a key that another row has afterwards."""
    folding = folding_of(rows.table)
    parts = [part for part in (versions.updated, versions.inserted) if part is not None]
    if folding is None or not parts:
        return
    keys = folding.key_fields
    names = [f.name for f in keys]
    new = reduce(DataFrame.unionAll, [folding.only_keys(part) for part in parts])
    counts = versions.counts
    found = some_twice(new, keys)
    if not found:
        left = rows.frame(spark, names, ORIGINS).where(near_keys(new, keys))
        if versions.dead is not None:
            left = without_rows(left, shared(versions.dead, counts.updated + counts.deleted))
        found = some_of_keys(left, shared(new, counts.updated + counts.inserted), keys)
    _refuse(found, rows.table, what)


def folded_rows(rows: TableRows, fitting: DataFrame) -> DataFrame:
    """Return assigned rows as the table stores them: with a key model, each key once."""
    folding = folding_of(rows.table)
    if folding is None:
        return fitting
    return folding.without_sign(folding.folded(ordered(fitting)))


def require_apart(spark: SparkSession, rows: TableRows, new: DataFrame, where: Where) -> DataFrame:
    """Return new rows, kept, whose keys no row has that the condition keeps.

    Raises InvalidRequest if a row has such a key. Rows of a table without a key model are returned
    unchanged.
    """
    folding = folding_of(rows.table)
    if folding is None:
        return new
    kept = keep(new)
    keys = folding.key_fields
    frame = rows.frame(spark, None, ORIGINS)
    left = without_rows(frame, where.rows(frame))
    found = some_of_keys(left, shared(kept.rows, kept.count), keys)
    _refuse(found, rows.table, "INSERT … REPLACE WHERE")
    return kept.rows


def _refuse(found: tuple[object, ...], table: TableVersion, what: str) -> None:
    if found:
        told = ", ".join(map(str, found))
        raise InvalidRequest(
            f"{what} would leave several rows with the key ({told}) in {table.full_name}, where"
            " keys are unique; load the rows with INSERT INTO instead, which replaces the old"
            " ones"
        )
