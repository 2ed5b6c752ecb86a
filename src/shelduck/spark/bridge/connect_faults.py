"""Errors over Spark Connect about tables of lakes, which only this process knows.

PySpark's client turns each error of the server into one of Python in one function. It is replaced
by one that first looks for names of lakes, and leaves all other errors to PySpark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from shelduck.errors import ShelduckError
from shelduck.spark.bridge.meanings import sentence_for
from shelduck.spark.named_errors import NotOverConnect

# What Spark says where it takes the name of a lake for that of a schema.
_NOT_FOUND = re.compile(
    r"\[(REQUIRES_SINGLE_PART_NAMESPACE|TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|CATALOG_NOT_FOUND"
    r"|NESTED_DATABASE_UNSUPPORTED_BY_V1_SESSION_CATALOG)|Couldn't find a catalog to handle the"
    r"|Nested databases are not supported by v1 session catalog"
)
_CONVERTS = "convert_exception"
_lakes: set[str] = set()


def tell_over_connect(name: str) -> None:
    """Let PySpark say of tables in a catalog what can be done with them over Spark Connect."""
    from pyspark.sql.connect.client import core  # noqa: PLC0415 - needs the packages of Connect

    _lakes.add(name.lower())
    original = getattr(core, _CONVERTS, None)
    if original is not None and not hasattr(original, "tells_of_lakes"):
        setattr(core, _CONVERTS, _telling(original))


def forget_over_connect(name: str) -> None:
    """Take back `tell_over_connect`."""
    _lakes.discard(name.lower())


def _telling(original: Callable[..., Any]) -> Callable[..., Any]:
    def convert(*arguments: Any, **more: Any) -> Any:
        made = original(*arguments, **more)
        return _told(str(made)) or made

    convert.tells_of_lakes = True  # type: ignore[attr-defined]
    return convert


def _told(message: str) -> ShelduckError | None:
    condition = _NOT_FOUND.search(message) if _lakes else None
    name = None if condition is None else _name().search(message, condition.end())
    if condition is None or name is None:
        return sentence_for(message)
    table = name[1].replace("`", "").rstrip(".")
    made = NotOverConnect(
        f"Spark itself does not find {table} over Spark Connect; use spark.sql for SELECT and for"
        " what changes the lake, spark.sql('SELECT ...').createOrReplaceTempView('v') for a view of"
        " rows, lake.table('main.t').read() and .append(df) for a DataFrame"
    )
    made.condition = condition[1] or made.condition
    return made


def _name() -> re.Pattern[str]:
    """Return a pattern of names that begin with the name of a lake, quoted or not."""
    lakes = "|".join(map(re.escape, _lakes))
    part = r"(?:`[^`]+`|\w+)"
    quoted = rf"(?:{lakes}|`(?:{lakes})`)"
    return re.compile(rf"(?<![\w.`])(?:`spark_catalog`\.)?({quoted}(?:\.{part})*)", re.IGNORECASE)
