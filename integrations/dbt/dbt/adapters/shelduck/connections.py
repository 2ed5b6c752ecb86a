"""Connections to a lake: a Spark session of this process, or a server that has the lake."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from dbt.adapters.contracts.connection import Connection, ConnectionState
from dbt.adapters.shelduck.__version__ import version
from dbt.adapters.spark.connections import (
    SparkConnectionManager,
    SparkConnectionMethod,
    SparkCredentials,
)
from dbt.adapters.spark.session import Cursor, SessionConnectionWrapper
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import shelduck
from shelduck.errors import ShelduckError


@dataclass
class ShelduckCredentials(SparkCredentials):
    """A profile of type ``shelduck``.

    With the method ``session``, the default, ``catalog`` is the address of the lake and
    ``data_path`` the folder of its files, as `shelduck.connect` takes them;
    ``server_side_parameters`` are settings of the Spark session. With ``thrift``, the server of
    ``host`` and ``port`` has the lake. With ``lake_branch``, models are built into that branch of
    the ``schema`` of the profile; whoever connects makes it if it is missing.
    """

    method: SparkConnectionMethod = SparkConnectionMethod.SESSION
    catalog: str | None = None
    data_path: str | None = None
    lake: str = "lake"
    lake_branch: str | None = None
    branch_source: str = ""

    def __post_init__(self) -> None:
        if self.method == SparkConnectionMethod.SESSION:
            if not self.catalog:
                raise DbtRuntimeError(
                    "the profile has no `catalog`; give the address of the lake, such as"
                    " sqlite:///lake.db"
                )
            self.host = self.host or "NA"
        elif self.catalog or self.data_path:
            raise DbtRuntimeError(
                f"`catalog` and `data_path` are for the method session; with {self.method}, the"
                " server has the lake"
            )
        elif self.lake_branch:
            raise DbtRuntimeError(
                f"`lake_branch` is for the method session; with {self.method}, make the branch"
                " there, and name it as `schema`"
            )
        if self.lake_branch and not self.branch_source:
            # From here on, it is the schema of all models.
            self.branch_source, self.schema = self.schema, self.lake_branch
        super().__post_init__()

    @property
    def type(self) -> str:
        return "shelduck"

    @property
    def unique_field(self) -> str:
        return self.catalog or self.host or ""

    def _connection_keys(self) -> tuple[str, ...]:
        if self.method == SparkConnectionMethod.SESSION:
            # The address may have a password.
            return ("method", "data_path", "schema", "lake", "lake_branch")
        return ("method", "host", "port", "schema")


class Lakes:
    """The lake that the Spark session of this process has attached."""

    _lock: ClassVar = threading.Lock()
    _known: ClassVar[tuple[Any, ...] | None] = None
    _spark: ClassVar[SparkSession | None] = None

    @classmethod
    def session(cls, wanted: ShelduckCredentials) -> SparkSession:
        """Return a session of its own, in which names without a catalog mean the lake."""
        key = (wanted.catalog, wanted.data_path, wanted.lake, wanted.lake_branch)
        with cls._lock:
            if cls._known != key or cls._spark is None or _is_stopped(cls._spark):
                cls.leave()
                config = {k: str(v) for k, v in wanted.server_side_parameters.items()}
                address = wanted.catalog or ""
                spark = shelduck.session(address, wanted.data_path, name=wanted.lake, config=config)
                cls._spark, cls._known = spark, key
                if wanted.lake_branch:
                    branch, source = map(_quoted, (wanted.lake_branch, wanted.branch_source))
                    spark.sql(f"CREATE BRANCH IF NOT EXISTS {branch} FROM {source}")
            # Temporary views and settings of one model are not those of another thread.
            return cls._spark.newSession()

    @classmethod
    def leave(cls) -> None:
        """Detach the lake."""
        if cls._spark is not None and cls._known is not None and not _is_stopped(cls._spark):
            shelduck.detach(cls._spark, cls._known[2])
        cls._spark = cls._known = None


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _is_stopped(spark: SparkSession) -> bool:
    # It is None as soon as PySpark has stopped it.
    context = spark.sparkContext._jsc  # noqa: SLF001 - there is no other way to ask
    return context is None or context.sc().isStopped()


class LakeCursor(Cursor):
    """Runs statements in one session."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self._spark = spark

    def execute(self, sql: str, *parameters: Any) -> None:
        """Run a statement, with texts in the places of its ``%s``."""
        try:
            self._df = self._spark.sql(sql % parameters if parameters else sql)
        except (ShelduckError, PySparkException) as error:
            raise DbtDatabaseError(_told(error)) from error


def _told(error: ShelduckError | PySparkException) -> str:
    """Return what an error says, with Spark's name for it, by which dbt knows some."""
    name = error.getCondition() if isinstance(error, PySparkException) else None
    told = str(error)
    return told if name is None or name in told else f"[{name}] {told}"


class LakeHandle(SessionConnectionWrapper):
    """A connection: one Spark session."""

    def __init__(self, spark: SparkSession, lake: str) -> None:
        super().__init__(None)
        self.spark, self._lake = spark, lake

    def cursor(self) -> LakeHandle:
        """Return something that runs one statement after the other."""
        self._cursor = LakeCursor(self.spark)
        return self

    def close(self) -> None:
        """Forget the session."""
        super().close()
        if not _is_stopped(self.spark):
            shelduck.detach(self.spark, self._lake)

    @classmethod
    def _fix_binding(cls, value: Any) -> str:
        """Return a value of a seed as a literal."""
        if value is None:
            return "NULL"
        if isinstance(value, bool | int | float | Decimal):
            return str(value)
        text = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{text}'"


class ShelduckConnectionManager(SparkConnectionManager):
    """Opens connections; with a server, as dbt on Spark does."""

    TYPE = "shelduck"

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open a connection if it is not open yet."""
        wanted = connection.credentials
        if connection.state == ConnectionState.OPEN or wanted.method != "session":
            return super().open(connection)
        try:
            spark = Lakes.session(wanted)
        except (ShelduckError, PySparkException) as error:
            raise DbtDatabaseError(str(error)) from error
        connection.handle = LakeHandle(spark, wanted.lake)
        connection.state = ConnectionState.OPEN
        return connection


__all__ = ["ShelduckConnectionManager", "ShelduckCredentials", "version"]
