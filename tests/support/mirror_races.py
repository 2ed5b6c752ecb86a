"""Acts of the mirror story that are sent to two clients at once, and how each of them may end.

They are chosen so that the mirror is the same whichever of them is first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.mirror_acts import LIGHT, MOST_COLUMNS, Act, Author

if TYPE_CHECKING:
    from collections.abc import Callable

WORKERS = ("one", "other")
# How DuckDB says that others were faster.
LOST = "TransactionException"
# How somebody hears that a column is gone by the name that it knew.
_UNNAMED = ("NotFound", "InvalidRequest", "BinderException", "CatalogException")
# Whose act it is, and the errors that it may end with instead of being done.
Race = dict[str, tuple[Act, tuple[str, ...]]]


def engine(name: str) -> str:
    """Which engine a client drives."""
    return "duckdb" if name == "duckdb" else "shelduck"


class Races:
    """Draws two acts that happen at once."""

    def __init__(self, author: Author) -> None:
        self.author = author
        self.dice = author.dice

    def draw(self) -> tuple[str, Race]:
        """A name for what is tried, and the acts by the clients that are to do them."""
        draws: list[Callable[[], Race]] = [
            *[self.two_appends, self.append_and_alter, self.append_and_alter],
            *[self.append_and_upkeep, self.insert_and_alter, self.insert_and_alter],
            *[self.two_updates, self.append_and_delete, self.two_alters],
            *[self.insert_and_job, self.upkeep_and_change],
        ]
        found = self.dice.choice(draws)
        return found.__name__, found()

    def two_appends(self) -> Race:
        name, second = self.both()
        other = self.dice.choice([second, "duckdb"])
        return {name: (self.author.append(), ()), other: (self._insert(other), (LOST,))}

    def append_and_alter(self) -> Race:
        name, other = self.both()
        append, alter = self.author.append(), self._light("shelduck")
        return {name: (append, self._too_late(append, alter, "Conflict")), other: (alter, ())}

    def append_and_upkeep(self) -> Race:
        name, second = self.both()
        other = self.dice.choice([second, "duckdb"])
        upkeep = self.upkeep(other)
        return {name: (self.author.append(), ()), other: (upkeep, ("Conflict", LOST))}

    def append_and_delete(self) -> Race:
        name, second = self.both()
        other = self.dice.choice([second, "duckdb"])
        keys = sorted(self.author.mirror.rows)
        append = self.author.append()
        self.author.engine = engine(other)
        # By their keys: what a condition finds would depend on who is first.
        delete = self.author.delete(self.dice.sample(keys, min(3, len(keys))) or [0])
        return {name: (append, ()), other: (delete, ("Conflict", LOST))}

    def insert_and_alter(self) -> Race:
        insert, alter = self._insert("duckdb"), self._light("shelduck")
        allowed = (LOST, *self._too_late(insert, alter))
        return {"duckdb": (insert, allowed), self.worker(): (alter, ())}

    def insert_and_job(self) -> Race:
        """DuckDB knows of no job: its rows have to be converted before or after they come."""
        job = None if self.author.locked else self.author.heavy(must_work=True)
        if job is None:
            return self.two_appends()
        [identity] = job.names
        self.author.locked = (identity, job.command["kind"])
        insert = self._insert("duckdb")
        self.author.locked = None
        return {self.worker(): (job, ()), "duckdb": (insert, (LOST,))}

    def two_updates(self) -> Race:
        keys = sorted(self.author.mirror.rows)
        self.dice.shuffle(keys)
        acts: Race = {}
        for name, found in ((self.worker(), keys[:3]), ("duckdb", keys[3:6])):
            self.author.engine = engine(name)
            acts[name] = (self.author.update(found or [0]), ("Conflict", LOST))
        return acts

    def two_alters(self) -> Race:
        """Only one of them adds a column, because columns have an order."""
        if len(self.author.mirror.columns) > MOST_COLUMNS:
            return self.two_updates()
        name, second = self.both()
        other = self.dice.choice([second, "duckdb"])
        kinds = ["default", "widen", "rename_key", "drop"]
        return {
            name: (self.author.alter("shelduck", ["add"]), ("Conflict",)),
            other: (self.author.alter(engine(other), kinds), ("Conflict", LOST)),
        }

    def upkeep_and_change(self) -> Race:
        name = self.worker()
        upkeep = self.upkeep(name)
        self.author.engine = "duckdb"
        change = self.dice.choice([self.author.delete, self.author.update])()
        return {name: (upkeep, ("Conflict",)), "duckdb": (change, (LOST,))}

    # Parts of them, and of other steps.

    def worker(self) -> str:
        return self.dice.choice(WORKERS)

    def both(self) -> tuple[str, str]:
        name, other = self.dice.sample(WORKERS, 2)
        return name, other

    def upkeep(self, name: str) -> Act:
        """What changes no row, and may be done beside everything."""
        if name == "duckdb":
            # Not ducklake_flush_inlined_data: of a file that is replaced, had inlined deletes and
            # later a delete file, DuckDB 1.5.5 makes a second one, and older snapshots read its
            # rows twice. It also drops tables that other sessions of DuckDB still know.
            calls = [
                "ducklake_cleanup_old_files('lake', cleanup_all => true)",
                "ducklake_merge_adjacent_files('lake')",
                "ducklake_rewrite_data_files('lake', delete_threshold => 0)",
            ]
            return Act({"do": "compact", "call": self.dice.choice(calls)}, [])
        commands: list[dict[str, Any]] = [
            {"do": "tend", "verb": "compact", "min_files": 2},
            {"do": "tend", "verb": "rewrite_deletes", "delete_threshold": 0},
            {"do": "tend", "verb": "flush_inlined_data"},
            {"do": "tend", "verb": "rewrite"},
            {"do": "clean_up"},
        ]
        return Act(self.dice.choice(commands), [])

    def meanwhile(self, name: str) -> Act:
        """What may happen while rows wait that were made for the columns before it."""
        form = self.dice.choice(["alter", "alter", "rows", "upkeep"])
        if form == "alter":
            return self._light(engine(name))
        return self.upkeep(name) if form == "upkeep" else self.author.rows(engine(name))

    def _light(self, who: str) -> Act:
        return self.author.alter(who, [*LIGHT, "drop"])

    def _insert(self, name: str) -> Act:
        self.author.engine = engine(name)
        return self.author.insert(whole=True, fresh=True)

    def _too_late(self, rows: Act, alter: Act, gone: str = "") -> tuple[str, ...]:
        """Rows may come too late for a name, and what lands first may drop their column."""
        if not rows.names & alter.names:
            return ()
        after = self.author.mirror.copy()
        alter.apply(after)
        is_gone = any(not after.has(identity) for identity in rows.names)
        return (*_UNNAMED, gone) if is_gone else _UNNAMED
