"""A driver's JVM that has started this process, and asks it about statements: `Sidecar.java`."""

from __future__ import annotations

import os
import re
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import pyspark
from py4j import clientserver
from py4j.java_gateway import JavaClass, do_client_auth
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway
from pyspark.sql import DataFrame, SparkSession

from shelduck.engine.bridge.classes import class_name, loader_of
from shelduck.engine.bridge.codec import field_rows, rows_of
from shelduck.engine.bridge.jvm import java_frame
from shelduck.engine.bridge.lake_catalog import put_thrown
from shelduck.engine.named_errors import first_line, thrown_by_java
from shelduck.errors import ShelduckError, Unsupported

Answer = Callable[[SparkSession, str, str, list[str]], DataFrame | bool]
"""Answers what Java asks about a session, with a text and the names of the session's lakes.

True is an answer without rows, False means that it is none of Python's business.
"""
_SIDECAR = class_name("Sidecar")
_SESSION = "org.apache.spark.sql.classic.SparkSession"
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_SILENT_SECONDS = 60.0


def serve(port: str, secret: str, answer: Answer) -> None:
    """Let the JVM behind a port ask; it keeps asking, from any thread, after this returns."""
    os.environ[_PORT], os.environ[_SECRET] = port, secret
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    del os.environ[_PORT], os.environ[_SECRET]
    # Nobody else on this machine may call Python's objects, or keep a thread without the secret.
    gateway.callback_server_parameters.auth_token = secret
    gateway.callback_server_parameters.read_timeout = _SILENT_SECONDS
    clientserver.do_client_auth = lambda *at: do_client_auth(*at) and not at[2].settimeout(None)
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    sidecar = JavaClass(_SIDECAR, gateway._gateway_client)  # noqa: SLF001
    sidecar.ready(_Asked(gateway, answer), gateway._callback_server.port)  # noqa: SLF001


def default_session(spark: SparkSession) -> SparkSession:
    """Return the session of the application, which lives as long as it, or else this one."""
    return _default(spark.sparkContext) or spark


def _default(context: SparkContext) -> SparkSession | None:
    gateway: Any = context._gateway  # noqa: SLF001
    found = JavaClass(_SESSION, gateway._gateway_client).getDefaultSession()  # noqa: SLF001
    return SparkSession(context, found.get()) if found.isDefined() else None


class _Asked:
    """An answer as the Java function that ``Sidecar`` calls; no error may leave it."""

    def __init__(self, gateway: Any, answer: Answer) -> None:
        self._gateway = gateway
        self._answer = answer
        self._known: WeakValueDictionary[str, SparkSession] = WeakValueDictionary()
        self._starting = threading.Lock()

    def apply(self, session: Any, request: str) -> Any:
        """Return rows as a Dataset, None, an empty text, or an error: its condition and message."""
        spark = None
        try:
            spark = self._session(session)
            [[what, text, *lakes]] = field_rows(request)
            found = self._answer(spark, what, text, lakes)
        except Exception as error:  # noqa: BLE001 - it goes on in Java, which throws it
            return rows_of([_failure(spark, error)])
        if isinstance(found, DataFrame):
            return java_frame(found)
        return "" if found else None

    def _session(self, java: Any) -> SparkSession:
        key = str(java.sessionUUID())
        known = self._known.get(key)
        if known is None:
            with self._starting:
                context = _context(self._gateway, java)
            known = self._known[key] = SparkSession(context, java)
        return known

    class Java:
        """Declares to py4j which Java interfaces this object implements."""

        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]


def _context(gateway: Any, session: Any) -> SparkContext:
    """Return the driver's SparkContext as Python knows it."""
    known = SparkContext._active_spark_context  # noqa: SLF001
    if known is not None:
        return known
    java = gateway.jvm.JavaSparkContext(session.sparkContext())
    version = str(java.version())
    if _release(version) != _release(pyspark.__version__):
        raise Unsupported(
            f"this is Spark {version}, and {sys.executable} has PySpark {pyspark.__version__}; run"
            f" pip install pyspark=={_release(version)} there, or set spark.shelduck.python to"
            " another Python"
        )
    conf = SparkConf(_jvm=gateway.jvm, _jconf=java.sc().conf())
    context = SparkContext(gateway=gateway, jsc=java, conf=conf)
    # PySpark makes the first session that it sees the default and the active one.
    first = _default(context) or SparkSession(context, session)
    JavaClass(_SESSION, gateway._gateway_client).setActiveSession(session)  # noqa: SLF001
    loader_of(first)
    return context


def _release(version: str) -> str:
    """Return a version without what vendors add to it, as in 4.0.2-amzn-0."""
    return re.sub(r"\.?[^0-9.].*", "", version)


def _failure(spark: SparkSession | None, error: Exception) -> tuple[str, str]:
    if spark is not None and (thrown := thrown_by_java(error)) is not None:
        return "THROWN", put_thrown(spark, thrown)
    if not isinstance(error, ShelduckError | PySparkException):
        traceback.print_exception(error)
        return "", f"{type(error).__name__}: {first_line(error)}"
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return condition or "", str(error)
