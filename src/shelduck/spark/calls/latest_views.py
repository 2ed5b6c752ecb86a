"""Temporary views of DataFrames: each use of one reads the newest tables of the session's lakes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

from shelduck.spark.bridge.lake_catalog import follow_lakes
from shelduck.spark.calls.replaced_calls import replace_method

HasLakes = Callable[[SparkSession], bool]

_GLOBAL = {
    "createTempView": False,
    "createOrReplaceTempView": False,
    "registerTempTable": False,
    "createGlobalTempView": True,
    "createOrReplaceGlobalTempView": True,
}


def replace_views(has_lakes: HasLakes) -> None:
    """Replace the methods that make views of frames, until the methods are restored.

    A frame itself holds the snapshot that it was made from. Spark would hold it in a view, too.
    """
    for method, is_global in _GLOBAL.items():
        if hasattr(DataFrame, method):
            replace_method(DataFrame, method, partial(_replaced, has_lakes, is_global))


def _replaced(
    has_lakes: HasLakes, is_global: bool, original: Callable[..., None]
) -> Callable[..., None]:
    def call(self: Any, name: str) -> None:
        original(self, name)
        if has_lakes(self.sparkSession):
            follow_lakes(self.sparkSession, name, is_global=is_global)

    return call
