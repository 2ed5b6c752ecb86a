"""Python functions over Arrow batches in the executors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame

BatchFunction = Callable[[Iterator[Any]], Iterator[Any]]


def map_batches(rows: DataFrame, function: BatchFunction, schema: str) -> DataFrame:
    """Return the results of ``function`` on the Arrow batches of ``rows``, one call for each task.

    ``function`` should be a nested function that uses nothing of Shelduck. It is then sent to the
    executors by value, and they need pyarrow but not this package.
    """
    with warnings.catch_warnings():
        # PySpark warns about pandas 3 here, although no pandas is used.
        warnings.simplefilter("ignore", FutureWarning)
        return rows.mapInArrow(function, schema)
