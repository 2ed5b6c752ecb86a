"""Classes of the bridge that Spark makes and that call Python: ``LakeCatalog``, ``LakeProvider``.

Spark makes the catalog from the setting ``spark.sql.catalog.NAME``, and the provider for
``format("shelduck")``. Settings of the session say which Python object each of them calls.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession

from shelduck.engine.bridge.classes import class_name, loaded, loader_of
from shelduck.engine.bridge.codec import field_rows, rows_of
from shelduck.engine.bridge.jvm import (
    classic_column,
    current_thread,
    java_class,
    java_gateway,
    java_session,
    let_java_call,
)
from shelduck.engine.named_errors import InvalidValue, condition_of, thrown_by_java, told_to_java
from shelduck.errors import Unsupported
from shelduck.model.text.names import backticked

Answer = Callable[[list[str], DataFrame | None], Iterable[Iterable[str]]]
"""Answers a request; rows to write are passed with it.

Its first text is the property `QUERY` of the thread that asks, or empty, and behind `ON` the branch
on which its session works. Its second text names the request.
"""

ON = "\x01"
"""Stands before the name of a branch."""

CLASS = class_name("LakeCatalog")
QUERY = "shelduck.query"
"""The property of a thread that marks its requests as those for a query."""
_CALLS = class_name("WritesByPlan")
_SCRIPT = class_name("LakeScript")
_SETTING = "spark.sql.catalog."
_held: ContextVar[bool] = ContextVar("held", default=False)
_SOURCE = "spark.shelduck.source"


def put_catalog(spark: SparkSession, name: str, answer: Answer) -> str:
    """Make ``name`` a catalog of the session; a function answers its requests from any thread.

    Returns the token for `remove_catalog`.
    """
    loader = loader_of(spark)
    token = _asked(spark, answer)
    spark.conf.set(f"{_SETTING}{name}.attached", token)
    spark.conf.set(f"{_SETTING}{name}", CLASS)
    thread = current_thread(spark)
    before = thread.getContextClassLoader()
    thread.setContextClassLoader(loader)
    try:
        # Spark keeps the catalog that it makes now, so other threads do not need our class loader.
        java_session(spark).sql(f"SHOW NAMESPACES IN {backticked(name)}")
    except BaseException:
        remove_catalog(spark, name, token)
        raise
    finally:
        thread.setContextClassLoader(before)
    return token


def put_source(spark: SparkSession, answer: Answer) -> None:
    """Make ``format("shelduck")`` known to a session; a function answers the requests."""
    spark.conf.set(_SOURCE, _asked(spark, answer))


def _asked(spark: SparkSession, answer: Answer) -> str:
    """Return the token by which Java asks a function, for calls by names and by plans."""
    let_java_call(java_gateway(spark))
    token = uuid.uuid4().hex
    _from_python(loader_of(spark), "ASKED").put(token, _Answering(spark, answer))
    java_class(spark, _CALLS).install(java_session(spark))
    return token


def has_source(spark: SparkSession) -> bool:
    """Return whether the data source is known to a session, or to the one it was copied from."""
    return spark.conf.get(_SOURCE, None) is not None


def given(spark: SparkSession, rows: DataFrame) -> tuple[str]:
    """Return the row of an answer that gives Java a DataFrame."""
    token = uuid.uuid4().hex
    _from_python(loader_of(spark), "GIVEN").put(token, rows._jdf)  # noqa: SLF001
    return (token,)


def taken_columns(spark: SparkSession, token: str) -> list[Column]:
    """Return the columns of a call of Spark, which Java has put under a token."""
    return [
        classic_column(found) for found in _from_python(loader_of(spark), "COLUMNS").remove(token)
    ]


def put_thrown(spark: SparkSession, thrown: Any) -> str:
    """Return the token by which Java finds an error that it threw."""
    token = uuid.uuid4().hex
    _from_python(loader_of(spark), "THROWN").put(token, thrown)
    return token


def forget_answer(spark: SparkSession, token: str) -> None:
    """Stop answering a catalog, which the session keeps."""
    _from_python(loader_of(spark), "ASKED").remove(token)


def remove_catalog(spark: SparkSession, name: str, token: str) -> None:
    """Remove a catalog from the session; if Spark has already made it, it stops answering."""
    spark.conf.unset(f"{_SETTING}{name}")
    spark.conf.unset(f"{_SETTING}{name}.attached")
    forget_answer(spark, token)


def token_of(spark: SparkSession, name: str) -> str | None:
    """Return the token of a catalog in a session, or in the session from which it was copied."""
    return spark.conf.get(f"{_SETTING}{name}.attached", None)


def follow_lakes(spark: SparkSession, view: str, *, is_global: bool) -> None:
    """Make a temporary view of a DataFrame read the newest tables of lakes each time.

    Inside of `held_frames` it holds the snapshots of its frame.
    """
    if not _held.get():
        loaded(spark).plans.follow(java_session(spark), view, is_global)


@contextmanager
def held_frames() -> Iterator[None]:
    """Let views that this thread makes hold the snapshots of their frames."""
    token = _held.set(True)
    try:
        yield
    finally:
        _held.reset(token)


def is_query(spark: SparkSession, text: str) -> bool:
    """Return whether Spark takes a text for a query, which does nothing before it is read."""
    try:
        return bool(java_class(spark, class_name("LakeParser")).isQuery(java_session(spark), text))
    except ParseException:
        return False


def statements_of_script(spark: SparkSession, text: str) -> list[str]:
    """Return the statements and queries in a script of Spark, as they are written."""
    return list(_script(spark).statements(java_session(spark), text))


def run_script(spark: SparkSession, text: str, lakes: list[str], catalog: str) -> DataFrame:
    """Run a script of Spark; some of its statements are lakes', of which one is this catalog.

    Returns the rows of its last query.
    """
    if spark.version.startswith("4.0."):
        raise Unsupported(
            f"a script cannot change a lake on Spark {spark.version}; run its statements one by one"
            " with spark.sql, or use Spark 4.1 or newer"
        )
    return DataFrame(_script(spark).run(java_session(spark), text, lakes, catalog), spark)


def _script(spark: SparkSession) -> Any:
    return loader_of(spark).loadClass(_SCRIPT).getConstructors()[0].newInstance(None)


def _from_python(loader: Any, field: str) -> Any:
    return loader.loadClass(class_name("FromPython")).getField(field).get(None)


class _Answering:
    """An answer as the Java function that ``CatalogCall`` calls; no error may leave it."""

    def __init__(self, spark: SparkSession, answer: Answer) -> None:
        self._spark = spark
        self._answer = answer

    def apply(self, request: str, data: Any) -> str:
        """Return ``ok`` and the rows of the answer, or the error: its condition and message."""
        try:
            rows = None if data is None else DataFrame(data, self._spark)
            [texts] = field_rows(request)
            return rows_of([("ok",), *self._answer(texts, rows)])
        except Exception as error:  # noqa: BLE001 - it goes on in Java, which throws it
            return rows_of([self._failure(error)])

    def _failure(self, error: Exception) -> tuple[str, str]:
        # Who writes by Spark's own calls expects its error of a value.
        own = error.__cause__ if isinstance(error, InvalidValue) else error
        thrown = None if own is None else thrown_by_java(own)
        if thrown is None:
            return condition_of(error), told_to_java(error)
        return "THROWN", put_thrown(self._spark, thrown)

    class Java:
        """Declares to py4j which Java interfaces this object implements."""

        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]
