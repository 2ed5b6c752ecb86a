"""What all objects of one connected lake share."""

from __future__ import annotations

from dataclasses import dataclass, field

from shelduck.catalog.create import LakeInfo
from shelduck.catalog.store import Store
from shelduck.errors import InvalidRequest
from shelduck.jobs.leases import Leases
from shelduck.model.change import CommitInfo
from shelduck.operations.layouts import LayoutMemory
from shelduck.spark.session import SparkSession, is_stopped, session_for

DEFAULT_SCHEMA = "main"


@dataclass
class LakeState:
    """The catalog, the Spark session (made when first needed) and what was learned of files."""

    store: Store
    info: LakeInfo
    given_spark: SparkSession | None = None
    author: str | None = None
    default_schema: str = DEFAULT_SCHEMA
    layouts: LayoutMemory = field(default_factory=LayoutMemory)
    show_progress: bool | None = None
    leases: Leases = field(init=False)

    def __post_init__(self) -> None:
        self.leases = Leases(self.store)

    @property
    def spark(self) -> SparkSession:
        """The session that the user gave, else the active one, else a local one made now."""
        if self.given_spark is None:
            self.given_spark = session_for(None)
        if is_stopped(self.given_spark):
            raise InvalidRequest(
                "the Spark session of this lake was stopped; connect again with one that runs"
            )
        return self.given_spark

    def commit_info(self, message: str | None = None, extra_info: str | None = None) -> CommitInfo:
        """Return what commits of this lake say of themselves."""
        return CommitInfo(self.author, message, extra_info)
