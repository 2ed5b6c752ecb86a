"""The state that all objects of one connected lake share."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import tzinfo

from shelduck.catalog.databases.store import Store
from shelduck.catalog.read.kept_tables import KeptTables
from shelduck.catalog.schema.lake_schema import LakeInfo
from shelduck.engine.files.reaching import reach, require_connector
from shelduck.engine.session import SparkSession, is_stopped, session_for, time_zone
from shelduck.engine.stores.homes import hide_secrets_in_log
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.leases import Leases
from shelduck.model.changes.change import CommitInfo
from shelduck.model.files.storage_settings import StorageSettings
from shelduck.model.tables.table_version import DEFAULT_SCHEMA
from shelduck.read.file_lists import FileLists
from shelduck.read.table_rows import KeptInlined, LayoutMemory
from shelduck.text.tokens.filter_literals import zone_named


class Current(threading.local):
    """What statements have chosen, for the thread that ran them alone: the schema of USE.

    In each thread it begins as ``schema``.
    """

    def __init__(self, schema: str = DEFAULT_SCHEMA) -> None:
        self.schema = schema

    def undo(self) -> Callable[[], None]:
        """Return what gives the thread that calls this its schema of now again, from any thread."""
        here, schema = vars(self), self.schema
        return lambda: here.update(schema=schema)


@dataclass
class LakeState:
    """The catalog, the Spark session (created when first needed) and what is known of files."""

    store: Store
    info: LakeInfo
    given_spark: SparkSession | None = None
    author: str | None = None
    current: Current = field(default_factory=Current)
    layouts: LayoutMemory = field(default_factory=LayoutMemory)
    lists: FileLists = field(default_factory=FileLists)
    inlined: KeptInlined = field(default_factory=KeptInlined)
    show_progress: bool | None = None
    storage: StorageSettings = field(default_factory=StorageSettings)
    ntz: bool = False
    """Whether a bare TIMESTAMP in a declaration has no time zone, as in DuckDB."""
    config: dict[str, str] = field(default_factory=dict)
    """Settings of the session if one is made."""
    starts_spark: bool = True
    """Whether a session is made when one is needed."""
    branch: str = ""
    """The branch that names of tables of its source mean, empty for none."""
    trust_views: bool = False
    """Whether views may run whatever the catalog says; see `require_harmless`."""
    commits: Counter[int] = field(default_factory=Counter)
    """How many snapshots the lake's calls have made, by thread."""
    leases: Leases = field(init=False)
    tables: KeptTables = field(init=False)

    def __post_init__(self) -> None:
        self.leases = Leases(self.store)
        self.tables = KeptTables(self.info)
        reach(self.info.data_path, self.storage, self.given_spark)
        if self.info.encrypted:
            hide_secrets_in_log()
            self.store.hide_values()

    def __repr__(self) -> str:
        return f"LakeState({self.store.where!r})"

    @property
    def spark(self) -> SparkSession:
        """The session that the user passed, otherwise the active one, otherwise a new local one."""
        if self.given_spark is None:
            if not self.starts_spark:
                raise Unsupported(
                    "this needs Spark, which the page does not start; use the command line"
                )
            self.given_spark = session_for(self.config)
            self.require_spark_reaches(self.given_spark)
        if is_stopped(self.given_spark):
            raise InvalidRequest(
                "the Spark session of this lake was stopped; connect again with a running one"
            )
        return self.given_spark

    @property
    def has_spark(self) -> bool:
        """Whether the lake has a session that runs; it makes none."""
        return self.given_spark is not None and not is_stopped(self.given_spark)

    @property
    def zone(self) -> str:
        """The name of the time zone in which expressions are made; empty if nobody has set one."""
        return time_zone(self.given_spark, self.config) or ""

    def time_zone(self) -> tzinfo | None:
        """Return the time zone in which people write times without an offset.

        It is that of the session, or the one that a session of this lake would have; None is that
        of the machine. Raises InvalidRequest if Python does not know it.
        """
        name = time_zone(self.given_spark, self.config)
        if name is None:
            return None
        found = zone_named(name)
        if found is None:
            raise InvalidRequest(
                f"the session's time zone {name!r} is not known here; write the time with an"
                " offset, such as 2026-01-31 12:30:00+00:00"
            )
        return found

    def require_spark_reaches(self, spark: SparkSession) -> None:
        """Let a session reach the lake's files; Unsupported if it lacks the connector."""
        reach(self.info.data_path, self.storage, spark)
        require_connector(spark, self.info.data_path, encrypted=self.info.encrypted)

    def commit_info(self, message: str | None = None, extra_info: str | None = None) -> CommitInfo:
        """Return author, message and extra info for a commit of this lake."""
        return CommitInfo(self.author, message, extra_info)
