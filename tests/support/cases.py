"""A lake in which an acceptance case of another system is played, and what both engines read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import shelduck
from tests.support.lakes import Row, everything, newest, refusal, rows
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Changes without a job have no id, which `told` shows as 0.
_LIGHT = (0, "FINISHED", "")


class Case:
    """Both engines read the lake, and nothing changes unseen."""

    def __init__(self, catalog: Path, lake: shelduck.Lake, data: Path) -> None:
        self.catalog, self.lake, self.data = catalog, lake, data

    def both(self, query: str) -> list[Row]:
        """The rows of a query, which DuckDB finds too."""
        found = rows(self.lake.sql(query))
        with self.duckdb() as duckdb:
            assert duckdb.sql(query) == found
        return found

    def duckdb(self) -> DuckDBOracle:
        return DuckDBOracle(f"sqlite:///{self.catalog}")

    def again(self) -> shelduck.Lake:
        """The lake, opened once more."""
        return shelduck.connect(f"sqlite:///{self.catalog}", spark=self.lake.spark)

    def light(self, statement: str) -> None:
        """Run what is metadata only: one snapshot, and no file."""
        before, (_, files) = newest(self.lake), everything(self.catalog, self.data)
        self.lake.sql(statement)
        assert newest(self.lake) == before + 1
        assert everything(self.catalog, self.data)[1] == files

    def refused(self, kind: type[shelduck.ShelduckError], act: str | Callable[[], object]) -> str:
        """The message of a refusal, of a statement or a call, which changed nothing."""
        doing = (lambda: self.lake.sql(act)) if isinstance(act, str) else act
        return refusal(kind, doing, self.catalog, self.data)


class DorisCase(Case):
    """A light change is told of like a job that is finished."""

    def light(self, statement: str) -> None:
        super().light(statement)
        assert self.told()[0] == _LIGHT

    def told(self) -> list[Row]:
        """Id, state and message of the changes, the newest first; the id is 0 without a job."""
        found = self.lake.sql("SHOW ALTER TABLE COLUMN")
        return [(r.JobId or 0, r.State, r.Msg) for r in found.collect()]


class KuduCase(Case):
    """A light change is a version of the schema; columns have ids."""

    def light(self, statement: str) -> None:
        before = self.lake.snapshots()[-1].schema_version
        super().light(statement)
        assert self.lake.snapshots()[-1].schema_version == before + 1

    def ids(self, table: str = "t") -> dict[str, int]:
        """The ids of the columns by name."""
        return {f.name: f.id for f in self.lake.table(table).columns}
