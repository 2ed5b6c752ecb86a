"""One run: a fresh lake, some clients, faults and invariants, all decided by the seed."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from shelduck.catalog.databases.store import Store
from shelduck.catalog.schema.lake_schema import open_or_create_lake
from shelduck.doors.lake import Lake
from shelduck.ducklake.format import FORMATS
from shelduck.model.changes.job import OPEN_STATES
from tests.simulation.catalog import SimulatedSQLite
from tests.simulation.clients import Client, SimulatedState
from tests.simulation.faults import Faults
from tests.simulation.files import FileStore
from tests.simulation.invariants import Invariants
from tests.simulation.ledger import Ledger, Told
from tests.simulation.seams import chance, seams
from tests.simulation.world import START, Process, Violation, World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from shelduck.catalog.schema.lake_schema import LakeInfo

DATA = "sim://lake/"
_CLIENTS = 4
_COLLECTED = 50
_MIGRATES = 2
"""The client that may also migrate, and in which of the seeds it does."""
FEW = 2
_TABLES = (
    "CREATE TABLE t (op BIGINT, k INT, v INT, w BIGINT)",
    "CREATE TABLE `left` (op BIGINT, amount BIGINT)",
    "CREATE TABLE `right` (op BIGINT, amount BIGINT)",
)
_KINDS = {
    0: ("append",) * 6 + ("transfer",) * 4 + ("delete",) * 3 + ("batch_of_series",) * 2,
    2: ("compact", "compact", "rewrite", "expire", "clean_up", "remove_orphans", "add_column"),
    3: ("append",) * 4
    + ("work", "wait", "wait", "cancel")
    + ("compact", "transfer", "remove_orphans", "delete"),
}
_CLEANERS = 0.25
"""How often the last client only removes orphans, as one that maintains a lake does."""
_MADE = (
    # An undo of the second job has to look for the texts of the rows that were put together.
    tuple("append convert wait append append convert wait compact_t append transfer".split()),
    ("add_rollup", "wait", "append", "append", "transfer"),
)
"""What was done in the lakes of which runs get copies."""
_STORIES = (
    ("convert", "wait"),
    ("convert", "wait", "convert", "wait"),
    ("convert", "work", "append", "wait"),
    ("append", "convert", "cancel", "convert", "wait"),
    ("add_rollup", "wait", "convert", "wait"),
    ("add_rollup", "cancel", "add_rollup", "wait"),
    ("transfer", "delete", "rewrite", "batch_of_series"),
    ("undo", "wait", "undo", "wait"),
    ("append", "undo", "append", "wait", "compact"),
    ("convert", "wait", "append", "undo", "wait"),
)


@dataclass
class Slot:
    """A store that runs share, because SQLAlchemy keeps compiled statements in its engine."""

    store: Store


@dataclass
class Simulation:
    """One run."""

    seed: int
    info: LakeInfo | None
    path: str
    slots: list[Slot]
    migrates: bool = False
    """Whether somebody migrates the lake to DuckLake 1.1 among other things."""
    branches: bool = False
    """Whether somebody makes branches of the table, and merges and drops them."""
    is_on: bool = False
    told: Counter[str] = field(default_factory=Counter)
    """How often what was done ended in which way."""
    world: World = field(init=False)
    files: FileStore = field(init=False)
    faults: Faults = field(init=False)
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.world = World(self.seed)
        self.files = FileStore(self)
        self.faults = Faults(self)
        self.ledger = Ledger()
        self.world.faults = self.faults.at_step

    @property
    def process(self) -> Process:
        """The process that runs now."""
        assert self.world.task is not None
        return self.world.task.process

    def now(self) -> datetime:
        """The time at the store of the files."""
        return START + timedelta(seconds=self.world.time)

    def at_work(self) -> None:
        """Let it take its time to compute rows."""
        self.world.sleep(self.faults.duration())

    def committed(self) -> None:
        """Look at the lake after a commit."""
        with self._telling():
            self.invariants.after_commit()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """End the run with a violation, even if the product handles the error."""
        try:
            yield
        except BaseException as error:
            self.world.failed(error)
            raise

    def removing(self, path: str, kept: object) -> None:
        """Look at a file before it is gone."""
        with self._telling():
            self.invariants.before_removal(path, kept)

    def run(self) -> None:
        """Let the clients do their work, then let a last one tidy up; raises what goes wrong."""
        self.invariants = Invariants(self, self.path)
        self.is_on = True
        try:
            init = self.world.start("init", "host", self._supervise)
            init.is_immortal = True
            self.world.run()
        finally:
            self.is_on = False
            self.invariants.close()
            for slot in self.slots:
                slot.store.close()

    def _supervise(self) -> None:
        """Start the clients, begin those that crashed again, and tidy up when all have ended."""
        world = self.world
        clients = [self._client(n) for n in range(_CLIENTS)]
        running = {c.name: world.start(c.name, c.machine, c.run) for c in clients}
        while True:
            world.sleep(2.0)
            for client in clients:
                process = running[client.name]
                if process.is_dead and client.orders:
                    client.slot.store.close()
                    running[client.name] = world.start(client.name, client.machine, client.run)
            if all(self._has_ended(running[c.name], c) for c in clients):
                break
        self._tidy_up()

    @staticmethod
    def _has_ended(process: Process, client: Client) -> bool:
        if process.is_dead:
            return not client.orders
        return process.tasks[0].is_done

    def _client(self, number: int) -> Client:
        draw = self.world.random
        if number == 0 and self.branches:
            orders = [draw.choice(("branch", "branch", "append")) for _ in range(4)]
        elif number == 1:
            orders = [*draw.choice(_STORIES)]
        elif number == 3 and draw.random() < _CLEANERS:
            orders = ["remove_orphans"] * 8
        else:
            orders = [draw.choice(_KINDS[number]) for _ in range(draw.randint(2, 5))]
        if number == _MIGRATES and self.migrates:
            # Refused while somebody writes, so it is tried again.
            orders = [each for order in orders for each in (order, "migrate")]
        return Client(self, f"c{number}", self.slots[number], draw.choice(("host", "far")), orders)

    def _tidy_up(self) -> None:
        """Finish what is open, and remove all that nobody needs: after it, nothing is left."""
        self.faults.off()
        world = self.world
        world.told("THE END")
        world.time += 4 * 86400.0
        for process in world.processes:
            process.frozen_until = 0.0
            process.skew = 0.0
        lake = Lake(SimulatedState(self.slots[-1].store, self.info, show_progress=False))
        lake.run_jobs()
        left = [job.id for job in lake.jobs() if job.look().state in OPEN_STATES]
        if left:
            raise Violation(f"job {left[0]} never ends")
        lake.table("t").refresh_rollups()
        lake.expire_snapshots(retain_last=2)
        world.time += 3600.0
        lake.cleanup_old_files(cleanup_all=True)
        lake.remove_orphans(older_than=timedelta(seconds=1))
        lost = [w.number for w in self.ledger.writes.values() if w.added is Told.OPEN]
        if lost:
            raise Violation(f"write {lost[0]} never ended")
        self.invariants.at_the_end()


class Bench:
    """Runs seeds one after the other, on copies of one lake."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "lake.db"
        self._current: Simulation | None = None
        database = lambda: SimulatedSQLite(self._path, self.current)  # noqa: E731 - one for each
        self._slots = [Slot(Store(database())) for _ in range(_CLIENTS + 1)]
        self._templates: list[Simulation] = []
        self.migrates = True
        """Whether some of the seeds migrate the lake."""
        self.branches = False
        """Whether all of the seeds make and merge branches."""

    def make(self) -> None:
        """Make the lakes of which runs get copies; the stand-ins must be in place."""
        self._templates = [self._made(n, version) for version in FORMATS for n in range(2)]
        for slot in self._slots:
            # The first connection of an engine asks more than others do.
            self._current = self._templates[0]
            shutil.copyfile(self._template(self._templates[0]), self._path)
            with slot.store.read():
                pass
            slot.store.close()

    def current(self) -> Simulation:
        """Return the run that goes on."""
        assert self._current is not None
        return self._current

    def run(self, seed: int) -> Simulation:
        """Run a seed; the run tells what happened. Raises what goes wrong, with the trace."""
        for end in ("", "-wal", "-shm", "-journal"):
            Path(f"{self._path}{end}").unlink(missing_ok=True)
        template = self._templates[seed % len(self._templates)]
        for slot in self._slots:
            # A seed does not know what the seeds before it did.
            slot.store.has_own_tables = False
            slot.store.use(FORMATS[template.info.version])
        shutil.copyfile(self._template(template), self._path)
        migrates = self.migrates and seed % 3 == _MIGRATES
        self._current = Simulation(
            *(seed, template.info, str(self._path), self._slots, migrates, self.branches)
        )
        self._current.files.files = dict(template.files.files)
        self._current.ledger = deepcopy(template.ledger)
        if self._current.world.random.random() < 0.5:
            # Readers then see a snapshot while others commit, as on PostgreSQL.
            with sqlite3.connect(self._path) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.close()
        with chance(seed):
            if seed % _COLLECTED == 0:
                gc.collect()
            try:
                self._current.run()
            except BaseException as error:
                error.add_note(f"seed {seed}; replay it with python -m tests.simulation {seed}")
                raise
        return self._current

    def _made(self, number: int, version: str) -> Simulation:
        """Make a lake of which runs get copies: every other one with a rollup, or with jobs."""
        made = Simulation(number, None, "", self._slots)
        made.faults.off()
        self._current = made
        with chance(number):
            made.world.start("maker", "host", lambda: self._make(made, version))
            made.world.run()
        self._slots[0].store.close()
        shutil.move(self._path, self._template(made))
        return made

    def _make(self, made: Simulation, version: str) -> None:
        store = self._slots[0].store
        made.info = open_or_create_lake(store, DATA, version=version)
        maker = Client(made, "maker", self._slots[0], "host", [])
        maker.connect()
        maker.lake.set_option("data_inlining_row_limit", FEW)
        for statement in _TABLES:
            maker.lake.execute(statement)
        for order in _MADE[made.seed % 2]:
            getattr(maker, order)()

    def _template(self, made: Simulation) -> Path:
        return self.folder / f"template{made.seed}-{made.info.version}.db"


@contextmanager
def bench() -> Iterator[Bench]:
    """Provide a bench in memory, with the stand-ins in place."""
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="shelduck-simulation-", dir=where) as folder:
        made = Bench(Path(folder))
        with seams(made.current):
            made.make()
            # Nearly all objects are those of modules, which stay.
            gc.collect()
            gc.freeze()
            gc.disable()
            try:
                yield made
            finally:
                gc.enable()
                gc.unfreeze()
