"""``format("shelduck")`` over Spark Connect, where Spark cannot load the bridge's data source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.spark.calls.replacing import replace_method

FORMAT = "shelduck"
ReadTable = Callable[[SparkSession, Mapping[str, str]], DataFrame | None]
"""Returns the rows that options name, None if the session has not registered the format."""


def replace_load(spark: SparkSession, read: ReadTable) -> None:
    """Replace ``load`` of the readers of a Connect session, until the methods are restored."""
    replace_method(type(spark.read), "load", _loading(read))
    replace_method(type(spark.readStream), "load", _loading(_refuse))


def _refuse(_spark: SparkSession, _options: Mapping[str, str]) -> DataFrame | None:
    raise Unsupported(
        "a stream of a lake's table needs a classic Spark session; over Spark Connect, use"
        " lake.table(name).follow(handle, checkpoint)"
    )


def _loading(read: ReadTable) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def load(
            self: Any,
            path: Any = None,
            format: Any = None,  # noqa: A002 - Spark's own name for it
            schema: Any = None,
            **options: Any,
        ) -> Any:
            if (format or self._format or "").lower() == FORMAT:
                if schema or self._schema:
                    raise InvalidRequest(
                        "a table of a lake has a schema of its own; leave out .schema(...)"
                    )
                self.options(**options)
                given = dict(self._options) | ({} if path is None else {"path": path})
                found = read(self._client, given)
                if found is not None:
                    return found
            return original(self, path, format, schema, **options)

        return load

    return replaced
