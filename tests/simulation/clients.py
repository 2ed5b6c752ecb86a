"""What clients do: each is a program with a few things to do, which begins again after a crash."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from shelduck.alter.schema_changes import add_column, change_type
from shelduck.doors.lake import Lake
from shelduck.errors import CorruptLake, OutcomeUnknown, ShelduckError
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.model.changes.job import JobState
from shelduck.write.appending import Manner, append
from tests.simulation.frames import Rows
from tests.simulation.ledger import Told, row_of
from tests.simulation.world import Crashed, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.ledger import Write
    from tests.simulation.run import Simulation, Slot

_T = TableName("main", "t")
_SIDES = (TableName("main", "left"), TableName("main", "right"))


class SimulatedState(LakeState):
    """The state of a lake without a Spark session."""

    @property
    def spark(self) -> None:  # type: ignore[override]
        """Nobody asks it: stand-ins take its place."""
        return


@dataclass
class Client:
    """One program; ``orders`` are the names of what it has still to do."""

    simulation: Simulation
    name: str
    slot: Slot
    machine: str
    orders: list[str]
    batch: int = 0

    def run(self) -> None:
        """Carry out the orders; one that a crash interrupts is not repeated, except for batches."""
        self.connect()
        world = self.simulation.world
        world.sleep(world.random.uniform(0.0, 5.0))
        while self.orders:
            order = self.orders.pop(0)
            world.told(f"ORDER {order}")
            with self._expected(order):
                getattr(self, order)()
            world.sleep(world.random.choice((0.01, 1.0, 20.0)))

    def connect(self) -> None:
        """Begin with a new state, as a new process does."""
        self.lake = Lake(SimulatedState(self.slot.store, self.simulation.info, show_progress=False))

    @property
    def _state(self) -> LakeState:
        return self.lake._state

    @contextmanager
    def _expected(self, order: str) -> Iterator[None]:
        """Expect errors of Shelduck, but none that says that the lake is broken."""
        told = self.simulation.told
        try:
            yield
            told[f"{order} ok"] += 1
        except CorruptLake as error:
            # Orphans are looked for with short ages, so also files of rewrites must be registered.
            if not self.simulation.process.is_late:
                raise Violation(f"a sound lake is told to be corrupt: {error}") from error
            told[f"{order} CorruptLake"] += 1
            self.simulation.world.told(f"CorruptLake: {error}")
        except KeyboardInterrupt:
            told[f"{order} Ctrl-C"] += 1
        except FileNotFoundError:
            # A cleanup without a grace period takes the files of expired snapshots from readers.
            told[f"{order} FileNotFoundError"] += 1
        except ShelduckError as error:
            told[f"{order} {type(error).__name__}"] += 1
            self.simulation.world.told(f"{type(error).__name__}: {error}")

    @contextmanager
    def _asking(self, write: Write, what: str) -> Iterator[None]:
        """Keep what the client is told about a write: ``what`` is "added" or "deleted"."""
        setattr(write, what, Told.OPEN)
        process = self.simulation.process
        process.writes.clear()
        process.is_registered = True
        try:
            yield
        except (OutcomeUnknown, Crashed, KeyboardInterrupt):
            setattr(write, what, Told.UNKNOWN)
            raise
        except (ShelduckError, FileNotFoundError):
            setattr(write, what, Told.FAILED)
            raise
        finally:
            process.is_registered = False
        setattr(write, what, Told.LANDED)

    def append(self) -> None:
        """Add rows to one table."""
        write = self.simulation.ledger.begin(("t",), self.simulation.world.random.randint(1, 3))
        with self._asking(write, "added"):
            append(self._state, None, _T, self._rows(write), Manner())

    def branch(self) -> None:
        """Add rows on a branch, delete others there, and merge it; the name is of this order."""
        random, ledger = self.simulation.world.random, self.simulation.ledger
        name = f"b{len(ledger.writes)}"
        deleted = random.choice(ledger.deletable() or [None])
        if random.random() < 0.5:
            deleted = None
        write = ledger.begin(("t",), random.randint(1, 3))
        with self._asking(write, "added"):
            if deleted is None:
                self._merged(name, write, None)
            else:
                with self._asking(deleted, "deleted"):
                    self._merged(name, write, deleted)
        self.lake.drop_branch(name)

    def _merged(self, name: str, write: Write, deleted: Write | None) -> None:
        process = self.simulation.process
        self.lake.create_branch(name, tables=["t"])
        process.is_on_branch = True
        try:
            rows = self._rows(write, f"{name}.t")
            append(self._state, None, TableName(name, "t"), rows, Manner())
            if deleted is not None:
                self.lake.table(f"{name}.t").delete(f"op = {deleted.number}")
        finally:
            process.is_on_branch = False
        self.lake.merge_branch(name)

    def _rows(self, write: Write, table: str = "t") -> Rows:
        made = [row_of(write.number, n) for n in range(write.rows)]
        # Whoever appends looks at the type of the column.
        kind = self.lake.table(table).columns
        text = next(c for c in kind if c.name == "v").type
        if "varchar" in str(text).lower() or "string" in str(text).lower():
            # As a number, such a text loses its zeros.
            made = [row | {"v": f"{row['v']:04}"} for row in made]
        return Rows(tuple(made[0]), tuple(made))

    def transfer(self) -> None:
        """Take an amount from one table and give it to the other, in one transaction."""
        write = self.simulation.ledger.begin(("left", "right"), 1)
        self._transfer(write, None)

    def batch_of_series(self) -> None:
        """Do the same as a batch of a series, until it is certain that it has landed."""
        write = self.simulation.ledger.begin(("left", "right"), 1)
        self.batch += 1
        number = self.batch
        write.added = Told.UNKNOWN
        while write.added is not Told.LANDED:
            with self._expected("batch_of_series"):
                try:
                    self._transfer(write, number)
                finally:
                    if write.added is not Told.LANDED:
                        # A failed attempt says nothing about the ones before.
                        write.added = Told.UNKNOWN
            self.simulation.world.sleep(1.0)

    def _transfer(self, write: Write, batch: int | None) -> None:
        amount = self.simulation.world.random.randint(1, 9)
        once = None if batch is None else (self.name, batch)
        with self._asking(write, "added"), self.lake.transaction(once=once) as transaction:
            for name, signed in zip(_SIDES, (-amount, amount), strict=True):
                row = {"op": write.number, "amount": signed}
                frame = Rows(("op", "amount"), (row,))
                append(self._state, transaction._open_unit, name, frame, Manner())

    def delete(self) -> None:
        """Delete the rows of a write that is known to have landed."""
        known = self.simulation.ledger.deletable()
        if not known:
            return
        write = self.simulation.world.random.choice(known)
        with self._asking(write, "deleted"):
            self.lake.table("t").delete(f"op = {write.number}")

    def compact(self) -> None:
        """Combine small files of a table."""
        self.lake.table(self.simulation.world.random.choice(("t", "left"))).compact()

    def compact_t(self) -> None:
        """Combine small files of the table of which a column is converted."""
        self.lake.table("t").compact()

    def rewrite(self) -> None:
        """Rewrite files with deleted rows."""
        self.lake.table("t").rewrite_deletes(0)

    def expire(self) -> None:
        """Expire old snapshots."""
        self.lake.expire_snapshots(retain_last=self.simulation.world.random.randint(1, 5))

    def clean_up(self) -> None:
        """Delete files that nobody needs."""
        self.lake.cleanup_old_files(cleanup_all=True)

    def remove_orphans(self) -> None:
        """Delete what died writers left; registered writers are safe, whatever the age is."""
        age = self.simulation.world.random.choice((1, 1, 300, 4000))
        self.lake.remove_orphans(older_than=timedelta(seconds=age))

    def migrate(self) -> None:
        """Give the lake the newer DuckLake, while others work with it."""
        self.lake.migrate("1.1")

    def convert(self) -> None:
        """Begin a job that changes the type of a column; any worker runs it."""
        columns = {c.name: str(c.type).lower() for c in self.lake.table("t").columns}
        wanted = "INT" if columns["v"] in ("varchar", "string") else "STRING"
        self.lake.table("t").alter(change_type("v", wanted))

    def undo(self) -> None:
        """Begin a job that takes back the newest job that has converted a column."""
        for job in self.lake.jobs():
            known = job.look()
            if known.state is JobState.FINISHED and known.work.conversions:
                self.lake.undo(job.id)
                return

    def add_column(self) -> None:
        """Add a column, which older files do not have."""
        known = len(self.lake.table("t").columns.names)
        self.lake.table("t").alter(add_column(f"c{known}", "INT", default=known))

    def add_rollup(self) -> None:
        """Begin a job that adds a rollup."""
        self.lake.table("t").add_rollup("r", ["k"], {"w": ("sum", "w"), "n": "count"})

    def work(self) -> None:
        """Run the open jobs that nobody runs."""
        self.lake.run_jobs()

    def wait(self) -> None:
        """Wait for the newest job, and run it if nobody does."""
        jobs = self.lake.jobs()
        if jobs:
            jobs[0].wait()

    def cancel(self) -> None:
        """Cancel the newest job."""
        jobs = self.lake.jobs()
        if jobs:
            jobs[0].cancel()
