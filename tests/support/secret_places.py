"""What a walk with secrets showed: texts of objects and errors, Spark's pages, the catalog."""

from __future__ import annotations

import json
import traceback
import urllib.request
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

MARK = "Gehe1m"
"""Every secret begins with this, and goes on with the place where it stands."""


def every_text(error: BaseException) -> str:
    """All that can be seen of an error, and of those that it comes from or hides."""
    seen: list[str] = ["".join(traceback.format_exception(error))]
    waiting, known = [error], set()
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in known:
            continue
        known.add(id(found))
        seen += [str(found), repr(found), repr(found.args), *getattr(found, "__notes__", ())]
        waiting += [found.__cause__, found.__context__, getattr(found, "orig", None)]
    return "\n".join(seen)


def shown(found: Any) -> Iterator[str]:
    """What an object shows of itself and, one level below, of its attributes."""
    yield from (repr(found), str(found))
    html = getattr(found, "_repr_html_", None)
    if callable(html):
        yield str(html())
    for name in dir(found):
        if not name.startswith("_") and type(found).__module__.startswith("shelduck"):
            yield repr(getattr(found, name, None))
    yield repr(getattr(found, "__dict__", ""))
    if isinstance(found, list | tuple | dict):
        for each in found.values() if isinstance(found, dict) else found:
            yield from shown(each)


def reached(first: Any) -> Iterator[Any]:
    """Each object of Shelduck that one of its objects holds, itself or in a collection."""
    waiting, known = [first], {}
    while waiting:
        found = waiting.pop()
        if id(found) in known:
            continue
        known[id(found)] = found
        if isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list | tuple | set | frozenset):
            waiting += found
        elif type(found).__module__.startswith("shelduck"):
            yield found
            slots = [
                name for kind in type(found).__mro__ for name in getattr(kind, "__slots__", ())
            ]
            waiting += [*getattr(found, "__dict__", {}).values()]
            waiting += [getattr(found, name, None) for name in slots]


def rest_of_spark(spark: SparkSession) -> Iterator[tuple[str, str]]:
    """Each answer of Spark's REST interface, and the pages of its interface, by address."""
    base = spark.sparkContext.uiWebUrl
    api = f"{base}/api/v1/applications/{spark.sparkContext.applicationId}"
    for part in ("environment", "jobs", "stages?details=true", "executors", "storage/rdd"):
        yield part, _text(f"{api}/{part}")
    queries = _text(f"{api}/sql?details=true&planDescription=true&length=100000")
    yield "sql", queries
    for page in ("jobs", "stages", "environment", "executors", "SQL", "StreamingQuery"):
        yield f"page {page}", _text(f"{base}/{page}/")
    for query in json.loads(queries):
        yield f"query {query['id']}", _text(f"{base}/SQL/execution/?id={query['id']}")


def _text(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def tables_of(address: str) -> Iterator[tuple[str, str]]:
    """Each table of a PostgreSQL database as text, by name."""
    with psycopg.connect(address) as connection:
        names = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        )
        for (name,) in names.fetchall():
            yield name, repr(connection.execute(f'SELECT * FROM "{name}"').fetchall())


def settings_of(spark: SparkSession, mine: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """The settings of a session, of Spark and of Hadoop, without those that a user made."""
    found = dict(spark.conf.getAll) | dict(spark.sparkContext.getConf().getAll())
    hadoop = spark.sparkContext._jsc.hadoopConfiguration().iterator()
    while hadoop.hasNext():
        entry = hadoop.next()
        found[str(entry.getKey())] = str(entry.getValue())
    yield from ((key, value) for key, value in found.items() if not mine(key))
