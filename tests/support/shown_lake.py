"""A lake to look at: 30 tables, 2,000 snapshots, a table with a long story, jobs. No Java."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shelduck
from shelduck.catalog.commit.commit import Landed, commit
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.lake.state import new_identity
from shelduck.model.changes.change import AppendFiles, CommitInfo, DeleteRows, FileDeletes
from shelduck.model.changes.job import OPEN_STATES, JobState, JobStep, JobWork, NewJob
from shelduck.model.files.data_file import DeletesSeen
from shelduck.model.shadows.shadows import reservation
from tests.support.files import write_delete_file, write_file
from tests.support.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shelduck.lake.evolution.alter_plan import AlterPlan
    from shelduck.model.changes.modify import TableChange
    from shelduck.model.tables.table_version import TableVersion

SNAPSHOTS = 2000
PEOPLE = ("Mara", "Jonas", "nightly load", "Ilse")
SIZES = [int(8_000 * 3.1**n) for n in (1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9, 9, 10)]
TABLES = """orders customers products invoices payments shipments carts sessions clicks searches
    reviews returns stores staff shifts suppliers stock prices discounts coupons tickets calls
    campaigns audiences emails consents devices regions currencies""".split()


class ShownLake:
    """A SQLite lake that is made step by step; `skip` adds snapshots that only wrote rows."""

    def __init__(self, folder: Path) -> None:
        self.catalog = folder / "lake.db"
        self.url = f"sqlite:///{self.catalog}"
        self.lake = shelduck.connect(self.url, f"{folder}/data")
        self.files = Lake(self.url, f"{folder}/data")

    def close(self) -> None:
        self.lake.close()
        self.files.store.close()

    def alter(self, table: str, who: str, why: str, *changes: TableChange) -> None:
        self.lake._state.author = who
        with self.lake.transaction(message=why) as tx:
            tx.table(table).alter(*changes)

    def convert(self, table: str, who: str, why: str, *changes: TableChange) -> None:
        """A heavy change from its beginning to its end, without converting files."""
        job, plan = self.begin(table, *changes)
        assert plan.change is not None
        version = self.files.table(table)
        change = replace(plan.change, table=version)
        step = JobStep(job, OPEN_STATES, JobState.FINISHED, "", 4, 4)
        self._commit(version, [change], CommitInfo(who, why), step)

    def begin(self, table: str, *changes: TableChange) -> tuple[int, AlterPlan]:
        """The job of a heavy change, submitted as `Table.alter` does it, without its Spark."""
        version = self.files.table(table)
        plan = self.lake.table(table).plan_alter(*changes)
        work = JobWork(tuple(s.conversion for s in plan.shadows), changes)
        new = NewJob(version.id, f"main.{table}", work)
        landed = self._commit(version, [reservation(version, plan.shadows)], CommitInfo(), new)
        assert landed.job is not None
        return landed.job.id, plan

    def _commit(
        self, table: TableVersion, changes: list[Any], info: CommitInfo, job: NewJob | JobStep
    ) -> Landed:
        base = table.snapshot.id
        return commit(self.files.store, self.files.info, [*changes, job], base=base, info=info)

    def run(self, job: int, done: int, total: int) -> None:
        """A worker has a job and converted some files."""
        step = JobStep(job, OPEN_STATES, JobState.RUNNING, "", done, total)
        catalog_jobs.move_job(self.files.store, step)
        assert catalog_jobs.claim_job(self.files.store, job, new_identity())

    def skip(self, count: int, tables: Iterable[str], who: str = "nightly load") -> None:
        """Snapshots that added rows to tables in turns, as the log has them."""
        ids = [self.files.table(name).id for name in tables]
        with closing(sqlite3.connect(self.catalog)) as connection, connection:
            last, time, version, catalog, file = connection.execute(
                "SELECT * FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"
            ).fetchone()
            numbers = range(last + 1, last + 1 + count)
            connection.executemany(
                "INSERT INTO ducklake_snapshot VALUES (?, ?, ?, ?, ?)",
                [(n, time, version, catalog, file) for n in numbers],
            )
            connection.executemany(
                "INSERT INTO ducklake_snapshot_changes VALUES (?, ?, ?, 'daily rows', NULL)",
                [(n, f"inserted_into_table:{ids[n % len(ids)]}", who) for n in numbers],
            )

    def spread(self, days: int, until: datetime | None = None) -> None:
        """Snapshots are as far apart as if they had been made over some days, up to now."""
        end = until or datetime.now(UTC)
        with closing(sqlite3.connect(self.catalog)) as connection, connection:
            [(most,)] = connection.execute("SELECT max(snapshot_id) FROM ducklake_snapshot")
            # Days differ: weekends are quiet, and every third day has more.
            weights = [0.25 if d % 7 > 4 else 1 + 0.5 * (d % 3) for d in range(days)]
            per_snapshot = sum(weights) / (most + 1)
            rows: list[tuple[str, int]] = []
            day, left = 0, weights[0]
            for n in range(most + 1):
                while left <= 0 and day < days - 1:
                    day, left = day + 1, left + weights[day + 1]
                part = min(0.999, max(0.0, 1 - left / weights[day]))
                at = end - timedelta(days=days - day - part)
                rows.append((f"{at:%Y-%m-%d %H:%M:%S.%f}+00", n))
                left -= per_snapshot
            connection.executemany(
                "UPDATE ducklake_snapshot SET snapshot_time = ? WHERE snapshot_id = ?", rows
            )


def make(folder: Path) -> ShownLake:
    """The whole lake; `events` has the story."""
    shown = ShownLake(folder)
    shown.lake._state.author = "Mara"
    shown.lake.execute(
        "CREATE TABLE events (id INT NOT NULL, at TIMESTAMP, kind STRING, amount STRING,"
        " device STRUCT<os: STRING, version: INT>, debug STRING) COMMENT 'What visitors do'"
    )
    for name in TABLES:
        shown.lake.execute(
            f"CREATE TABLE {name} (id BIGINT NOT NULL, name STRING, changed TIMESTAMP)"
        )
    _rows(shown)
    _story(shown)
    left = SNAPSHOTS - shown.files.head().id - 1
    shown.skip(left, TABLES)
    shown.spread(150)
    return shown


def _rows(shown: ShownLake) -> None:
    for at, name in enumerate(TABLES[:12]):
        rows = [{"id": n, "name": f"{name} {n}" * 20} for n in range(40 * (at + 1))]
        shown.files.append(name, rows)
    event = {"id": 1, "kind": "visit", "amount": "1.50", "device": {"os": "mac", "version": 1}}
    for _ in range(4):
        shown.files.append("events", [event] * 300)
    # Ids of neighbours overlap by a half.
    table = shown.lake.table("payments")
    table.alter(shelduck.set_sorting("id"))
    for at in range(24):
        low = at * 50
        ids = [{"id": low + n, "name": "p"} for n in range(100)]
        version = shown.files.table("payments")
        made = write_file(version, ids, {1: (str(low), str(low + 99), 0)})
        size = SIZES[at % len(SIZES)]
        shown.files.commit(AppendFiles(version.id, (replace(made, file_size_bytes=size),)))
    shown.lake.table("shipments").alter(shelduck.set_partitioning("name"))
    for at, name in enumerate(("air", "rail", "road", "sea")):
        version = shown.files.table("shipments")
        rows = [{"id": n, "name": name} for n in range(60 * (at + 1))]
        file = replace(
            write_file(version, rows), partition_id=version.partition_id, partition_values=(name,)
        )
        shown.files.commit(AppendFiles(version.id, (file,)))
    _delete(shown, "invoices", 40)


def _delete(shown: ShownLake, name: str, count: int) -> None:
    version, [file] = shown.files.table(name), shown.files.files(name)
    dead = write_delete_file(version, file.path, range(count))
    deletes = FileDeletes(file.id, DeletesSeen(), delete_file=dead)
    shown.files.commit(DeleteRows(version, (deletes,)))


def _story(shown: ShownLake) -> None:
    add, of = shelduck.add_column, ("events", *TABLES[:5])
    shown.skip(150, of)
    shown.alter("events", "Jonas", "Reports by country (#212)", add("country", "string"))
    shown.skip(120, of)
    shown.alter(
        "events", "Mara", "One name for times everywhere", shelduck.rename_column("at", "seen_at")
    )
    shown.files.append("events", [{"id": 2, "kind": "visit", "country": "CH"}] * 500)
    shown.skip(140, of)
    shown.alter("events", "Ilse", "Ids beyond two billion", shelduck.change_type("id", "bigint"))
    shown.skip(110, of)
    shown.alter(
        "events",
        "Jonas",
        "Every event has a country",
        shelduck.set_default("country", "??"),
        add("is_test", "boolean", default=False),
    )
    shown.skip(90, of)
    shown.alter("events", "Mara", "Nobody reads it", shelduck.drop_column("debug"))
    shown.skip(130, of)
    shown.alter(
        "events", "Ilse", "The app reports its build", add("device.build", "int"),
        shelduck.rename_column("device.os", "system"),
    )  # fmt: skip
    shown.skip(160, of)
    shown.convert(
        "events", "Jonas", "Amounts are money", shelduck.change_type("amount", "decimal(10,2)")
    )
    shown.files.append("events", [{"id": 3, "kind": "sale"}] * 900)
    shown.skip(140, of)
    shown.alter(
        "events", "Mara", "Debug is back", add("debug", "struct<level: int, text: string>"),
        shelduck.rename_column("kind", "event_kind"),
    )  # fmt: skip
    shown.skip(100, of)
    shown.alter(
        "events", "Ilse", "Sampling", add("rate", "double", default=1.0, nullable=False),
    )  # fmt: skip
    shown.skip(60, of)
    cancelled, _ = shown.begin("orders", shelduck.change_type("name", "int"))
    step = JobStep(
        cancelled, OPEN_STATES, JobState.CANCELLED,
        "column name of main.orders has the value 'order 17', which is no int32", 3, 11,
    )  # fmt: skip
    catalog_jobs.move_job(shown.files.store, step)
    running, _ = shown.begin("customers", shelduck.change_type("name", "binary"))
    shown.run(running, 7, 20)
