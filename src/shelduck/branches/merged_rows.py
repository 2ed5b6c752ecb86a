"""Rows of files that both sides changed: they are told by row id, and Spark compares them."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.branches.merging import Merging
from shelduck.engine.session import DataFrame, temporary_views
from shelduck.lake.results import TableName
from shelduck.lake.table_changes import feed_since
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.table_version import TableVersion
from shelduck.read.scan.scan_frames import Origin
from shelduck.write.edit_verbs import EditVerbs

# So many conflicts are told.
_MOST = 100


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows that a side changed since a snapshot, by ``rowid``, and whether each ``lives``."""

    frame: DataFrame

    @classmethod
    def since(cls, unit: UnitOfWork, table: TableVersion, snapshot: int) -> ChangedRows | None:
        """Return the rows that a table has changed, None if nobody knows any more."""
        feed = feed_since(unit, table, snapshot)
        if feed is None:
            return None
        events = feed.where("_change_type <> 'insert'").selectExpr(
            "_row_id AS rowid", "struct(_commit_version, _change_type) AS last"
        )
        last = events.groupBy("rowid").agg({"last": "max"})
        return cls(last.selectExpr("rowid", "`max(last)`._change_type LIKE 'update%' AS lives"))

    def refuse(self, merging: Merging, ours: ChangedRows) -> None:
        """Note each row that both sides changed, unless both deleted it."""
        both = self.frame.withColumnRenamed("lives", "theirs").join(ours.frame, "rowid")
        for row in both.where("theirs OR lives").orderBy("rowid").limit(_MOST).collect():
            now, then = ("changed" if lives else "deleted" for lives in (row.lives, row.theirs))
            merging.refuse("row", f"rowid {row.rowid}", "as it was", now, then)

    def delete(self, unit: UnitOfWork, table: TableVersion) -> None:
        """Stage that these rows leave another table, in whichever files they are there."""
        with temporary_views(unit.state.spark, {"changed": self.frame}) as names:
            verbs = EditVerbs(unit.state, TableName.of(table), unit)
            verbs.delete(f"{Origin.ROW_ID} IN (SELECT rowid FROM {names['changed']})")
