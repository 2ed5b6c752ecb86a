"""A catalog with one fault, drawn by a seed, and what Shelduck says about it."""

from __future__ import annotations

import random
import sqlite3
import warnings
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn
from unittest.mock import patch

from sqlalchemy import event

import shelduck
from shelduck.catalog.databases.store import Store, open_store
from shelduck.catalog.read import metadata_rows, read
from shelduck.catalog.read.files.data_files import identity_values
from shelduck.catalog.read.overview.table_files import partition_rows
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.catalog.upkeep.audit import audit_rows
from shelduck.doors.lake import Lake
from shelduck.ducklake.format import V1_0
from shelduck.errors import CorruptLake, ShelduckError
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.read.plan.scan import plan_scan
from shelduck.read.table_rows import LayoutMemory, table_rows
from tests.support.small_lakes import make_lakes
from tests.support.time_limit import limited

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_VALUES = {
    "NULL": None,
    "zero": 0,
    "minus one": -1,
    "huge": 2**62,
    "terabyte": 10**12,
    "wrong type": "no number",
    "empty text": "",
    "bytes": b"\xff\x00",
}
_NO_NUMBERS = ("minus one", "huge", "wrong type", "empty text", "bytes")


@dataclass(frozen=True)
class Mutation:
    """One fault: the SQL that makes it, and its parts for people."""

    lake: str
    table: str
    column: str
    declared: str
    kind: str
    sql: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.lake}: {self.kind} in {self.table}.{self.column}: {self.sql} {self.values}"

    @property
    def is_impossible(self) -> bool:
        """Whether no sound catalog has it: a number that is none, or an interval or row twice."""
        if self.kind in ("swapped interval", "duplicated row"):
            return True
        is_number = self.declared == "BIGINT" and self.column != "column_order"
        if self.kind == "minus one" and self.table.startswith("ducklake_inlined_data_"):
            # A user's number may be anything.
            is_number = self.column in V1_0.system_columns
        return is_number and self.kind in _NO_NUMBERS


class BrokenCatalogs:
    """Small lakes, one of which is broken for each seed and whole again for the next."""

    def __init__(self, folder: Path) -> None:
        self._catalogs = make_lakes(folder)
        self._whole = {name: path.read_bytes() for name, path in self._catalogs.items()}
        self._stores = {n: open_store(f"sqlite:///{p}") for n, p in self._catalogs.items()}
        for store in self._stores.values():
            event.listen(store._engine, "connect", _without_sync)
        self._told: dict[str, dict[str, object]] = {}
        self._folder = folder
        self._files = self._listed()

    def close(self) -> None:
        for store in self._stores.values():
            store.close()

    @property
    def names(self) -> list[str]:
        """The names of the lakes."""
        return sorted(self._catalogs)

    def problems(self, name: str) -> list[str]:
        """What the audit of the catalog finds in a whole lake."""
        return _audit(self._stores[name])

    def mutation(self, seed: int) -> Mutation:
        """The fault of a seed."""
        draw = random.Random(seed)
        name = draw.choice(sorted(self._catalogs))
        with closing(sqlite3.connect(self._catalogs[name])) as connection:
            tables = [t for t in _tables(connection) if _count(connection, t)]
            return _drawn(draw, connection, name, draw.choice(tables))

    def faults(self, mutation: Mutation) -> list[str]:
        """What is wrong with how Shelduck behaves, in words.

        Raw errors, hangs, what it touched, an impossible value that changed an answer though
        neither the verb nor the audit of the catalog found it, and a fault that a verb refuses and
        the check of the lake does not find.
        """
        path = self._catalogs[mutation.lake]
        store = self._stores[mutation.lake]
        whole = self._answers(mutation.lake)
        store.close()
        try:
            with closing(sqlite3.connect(path)) as connection, connection:
                _without_sync(connection, None)
                connection.execute(mutation.sql, mutation.values)
            found = _answers(store)
            store.close()
            wrong = [f"{verb}: {it}" for verb, it in found.items() if isinstance(it, Raw)]
            wrong += self._touched(path)
            changed = [v for v, it in found.items() if it != whole.get(v) and not refused(it)]
            self.unnoticed = changed if found["audit"] == "[]" else []
            if mutation.is_impossible:
                wrong += [f"unnoticed: {verb}" for verb in self.unnoticed]
            told = [v for v, it in found.items() if isinstance(it, Corrupt) and it != whole.get(v)]
            if told and found["audit"] == "[]" and not self._checked(mutation):
                wrong += [f"only {verb} finds it: {found[verb]}" for verb in told]
        finally:
            store.close()
            path.write_bytes(self._whole[mutation.lake])
        return wrong

    def _checked(self, mutation: Mutation) -> list[str]:
        """What the check of the lake finds, which no other verb has changed, or why it cannot."""
        path, store = self._catalogs[mutation.lake], self._stores[mutation.lake]
        path.write_bytes(self._whole[mutation.lake])
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(mutation.sql, mutation.values)
        try:
            with closing(Lake(LakeState(store, open_lake(store)))) as lake:
                return [str(problem) for problem in lake.check().problems]
        except ShelduckError as error:
            return [str(error)]

    def _answers(self, name: str) -> dict[str, object]:
        if name not in self._told:
            self._told[name] = _answers(self._stores[name])
            self._stores[name].close()
            self._catalogs[name].write_bytes(self._whole[name])
        return self._told[name]

    def _touched(self, path: Path) -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            [(rows,)] = connection.execute("SELECT count(*) FROM somebody_elses")
        wrong = [] if rows == 1 else ["a table of somebody else was changed"]
        return wrong + ["files were touched"] * (self._listed() != self._files)

    def _listed(self) -> dict[str, tuple[int, int]]:
        found = (p for p in self._folder.rglob("*") if p.is_file() and "catalog.db" not in p.name)
        return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in found}


def _without_sync(driver: sqlite3.Connection, _: object) -> None:
    """Nobody needs what a case wrote after the machine fails."""
    driver.execute("PRAGMA synchronous = OFF")


class Raw(str):
    """An error that is no ShelduckError, in words."""

    __slots__ = ()


class Refused(str):
    """A ShelduckError, in words."""

    __slots__ = ()


class Corrupt(Refused):
    """A CorruptLake, in words."""

    __slots__ = ()


class NoSpark(ShelduckError):
    """Raised where a verb would start Spark."""


def _no_spark(_: object) -> NoReturn:
    raise NoSpark


def refused(found: object) -> bool:
    return isinstance(found, Refused | Raw)


def _tables(connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'somebody_elses'"
    return sorted(name for (name,) in connection.execute(query))


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])


def _drawn(draw: random.Random, connection: sqlite3.Connection, lake: str, table: str) -> Mutation:
    rows = connection.execute(f'SELECT rowid, * FROM "{table}" ORDER BY rowid')
    columns = [part[0] for part in rows.description][1:]
    found = rows.fetchall()
    row, place = draw.choice(found), draw.randrange(len(columns))
    kinds = [*_VALUES, *_ROW_KINDS, "swapped value", "one more"]
    if {"begin_snapshot", "end_snapshot"} <= set(columns):
        kinds += ["swapped interval"] * 2
    kind = draw.choice(kinds)
    new = _VALUES.get(kind)
    if kind == "swapped value":
        new = draw.choice(found)[1 + place]
    elif kind == "one more":
        new = max([r[1 + place] for r in found if isinstance(r[1 + place], int)], default=0) + 1
    texts = _ROW_KINDS | {"swapped interval": _INTERVAL}
    sql = texts.get(kind, _UPDATE).format(table=table, column=columns[place])
    values = (new, row[0])[sql.count("?") == 1 :] if "?" in sql else ()
    types = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    return Mutation(lake, table, columns[place], types[place][2], kind, sql, values)


_UPDATE = 'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE rowid = ?'
_ROW_KINDS = {
    "duplicated row": 'INSERT OR IGNORE INTO "{table}" SELECT * FROM "{table}" WHERE rowid = ?',
    "deleted row": 'DELETE FROM "{table}" WHERE rowid = ?',
    "dropped table": 'DROP TABLE "{table}"',
}
_INTERVAL = (
    'UPDATE OR IGNORE "{table}" SET begin_snapshot = coalesce(end_snapshot, begin_snapshot + 1),'
    " end_snapshot = begin_snapshot WHERE rowid = ?"
)


def _answers(store: Store) -> dict[str, object]:
    """What each verb says about a lake: a value, or an error."""
    answers: dict[str, object] = {"audit": "[]"}

    def ask(verb: str, act: Callable[[], object]) -> Any:
        try:
            with (
                limited(),
                warnings.catch_warnings(action="ignore"),
                patch("shelduck.lake.state.session_for", _no_spark),
            ):
                found = act()
        except ShelduckError as error:
            made = Corrupt if isinstance(error, CorruptLake) else Refused
            answers[verb] = made(f"{type(error).__name__}: {error}")
            return None
        except Exception as error:  # noqa: BLE001 - any other error is what the test looks for
            answers[verb] = Raw(f"{type(error).__name__}: {error}")
            return None
        answers[verb] = repr(found)
        return found

    info = ask("open", lambda: open_lake(store))
    if info is None:
        return answers
    lake = Lake(LakeState(store, info))
    ask("audit", lambda: _audit(store))
    for verb, act in _verbs(lake).items():
        ask(verb, act)
    names = ask("tables", lake.tables) or []
    for name in [*names[:2], *names[2:][-1:]]:
        for verb, act in _verbs_of(lake, name).items():
            ask(f"{verb} of {name}", act)
    for statement in _CHANGES:
        ask(statement, lambda s=statement: bool(lake.execute(s)))
    lake.close()
    return answers


_CHANGES = (
    "CREATE TABLE a_new_one (a INT)",
    "ALTER TABLE t ADD COLUMN a_new_one INT",
    "ALTER TABLE dup ADD COLUMN a_new_one INT",
)


def _verbs(lake: Lake) -> dict[str, Callable[[], object]]:
    return {
        "snapshots": lake.snapshots,
        "options": lake.options,
        "jobs": lambda: [str(job) for job in lake.jobs()],
        "show jobs": lambda: [row[1:2] for row in _rows(lake, "SHOW ALTER TABLE COLUMN")],
        "show rollup jobs": lambda: _rows(lake, "SHOW ALTER TABLE ROLLUP"),
        "show views": lambda: _rows(lake, "SHOW VIEWS"),
        "macros": lambda: lake._workspace().macros(),
        "views": lambda: [_view(lake, row[1]) for row in _rows(lake, "SHOW VIEWS")],
        "expire": lambda: lake.expire_snapshots(retain_last=1, dry_run=True).snapshots,
        "clean up": lambda: lake.cleanup_old_files(cleanup_all=True, dry_run=True).files,
        "orphans": lambda: lake.remove_orphans(older_than="1 second", dry_run=True).files,
    }


def _verbs_of(lake: Lake, name: TableName) -> dict[str, Callable[[], object]]:
    def table() -> Any:
        return lake.table(str(name))

    return {
        "columns": lambda: str(table().columns),
        "describe": lambda: _rows(lake, f"DESCRIBE TABLE EXTENDED {name}"),
        "plan": lambda: str(table().plan_alter(shelduck.add_column("z", "int"))),
        "versions": lambda: _history(lake, name),
        "scan": lambda: _scan(lake, name),
        "metadata": lambda: _metadata(lake, name),
    }


def _audit(store: Store) -> list[str]:
    with store.read() as connection:
        return [str(problem) for problem in audit_rows(connection)]


def _rows(lake: Lake, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in lake.execute(statement).rows]


def _view(lake: Lake, name: str) -> object:
    return lake._workspace().view(TableName("main", name))


def _version(lake: Lake, name: TableName) -> Any:
    return lake._workspace().table(name)


def _history(lake: Lake, name: TableName) -> object:
    table = _version(lake, name)
    with lake._state.store.read() as connection:
        return [tuple(s)[1:] for s in metadata_rows.changed_snapshots(connection, table)]


def _metadata(lake: Lake, name: TableName) -> object:
    table = _version(lake, name)
    with lake._state.store.read() as connection:
        files = list(metadata_rows.file_rows(connection, table))
        stats = metadata_rows.column_stats_rows(connection, table)
        parts = partition_rows(connection, table)
    return files, parts, stats


def _scan(lake: Lake, name: TableName) -> object:
    table = _version(lake, name)
    store = lake._state.store
    rows = table_rows(store, table, LayoutMemory())
    with store.read() as connection:
        bounds = read.file_bounds(connection, table, [f.id for f in table.columns.leaves()])
        values = identity_values(connection, table)
    plan = plan_scan(table, rows.files, rows.mappings, None)
    return plan.groups, rows.inlined, bounds, values
