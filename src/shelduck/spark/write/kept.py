"""Rows that were computed once and are kept in the executors until they are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck.model.files.data_files import DataFile
from shelduck.model.tables.table import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.spark.files.physical import ROW_ID_COLUMN
from shelduck.spark.rows.assign import failure_of
from shelduck.spark.scan.read import Origin

_FILE_BYTES = 128 * 1024 * 1024
_ROW_BYTES = 100
FEW = 1000
"""So many rows are looked at here, or counted without a shuffle."""


def kept(rows: DataFrame) -> DataFrame:
    """Return rows that are computed now and never again, so that all that is done agrees.

    Losing them fails what reads them. A value that does not fit its column is InvalidRequest.
    """
    try:
        return rows.localCheckpoint(eager=True)
    except BaseException as error:
        found = failure_of(error)
        if found is None:
            raise
        raise found from error


def few_rows(rows: DataFrame) -> list[Row] | None:
    """Collect up to `FEW` kept rows by one small job; None where there are more."""
    found = rows.coalesce(1).limit(FEW + 1).collect()
    return found if len(found) <= FEW else None


def versions(rows: DataFrame, table: TableVersion, *, with_row_ids: bool) -> DataFrame:
    """Return rows as they are written: the table's columns, and their row ids behind them."""
    columns = [F.col(backticked(f.name)) for f in table.columns]
    if with_row_ids:
        columns.append(F.col(Origin.ROW_ID).alias(ROW_ID_COLUMN))
    return rows.select(*columns)


def in_few_files(rows: DataFrame, count: int, files: Sequence[DataFile]) -> DataFrame:
    """Return ``count`` rows in as many parts as they need, judged by what rows of ``files`` take.

    What was chosen from many files would else be written to as many.
    """
    counted = [(f.file_size_bytes, f.record_count) for f in files if f.record_count]
    bytes_per_row = _ROW_BYTES
    if counted:
        bytes_per_row = math.ceil(sum(b for b, _ in counted) / sum(n for _, n in counted))
    return in_parts(rows, count * bytes_per_row)


def in_parts(rows: DataFrame, size: int) -> DataFrame:
    """Return rows in as many parts as files of a usual size hold ``size`` bytes."""
    return rows.coalesce(max(1, math.ceil(size / _FILE_BYTES)))


def of_files(rows: DataFrame) -> DataFrame:
    """Return the rows that stand in files, and not in the catalog."""
    return rows.where(F.col(Origin.FILE_ID).isNotNull())


def of_catalog(rows: DataFrame) -> DataFrame:
    """Return the rows that the catalog itself holds."""
    return rows.where(F.col(Origin.FILE_ID).isNull())


def with_row_id(rows: DataFrame) -> DataFrame:
    """Return the rows that have a row id."""
    return rows.where(F.col(Origin.ROW_ID).isNotNull())


def without_row_id(rows: DataFrame) -> DataFrame:
    """Return the rows that have no row id yet."""
    return rows.where(F.col(Origin.ROW_ID).isNull())


def may_lack_row_ids(files: Iterable[DataFile]) -> bool:
    """Tell whether rows of these files may have no row id yet."""
    return any(f.row_id_start is None for f in files)


def distinct(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return these columns of the rows, each combination of values once."""
    return rows.select(*columns).distinct()
