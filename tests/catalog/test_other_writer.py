"""ducklakepy commits between our commits to a lake of DuckLake 1.1, and we between its."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from ducklakepy.exceptions import CommitConflictError

import shelduck
from shelduck.errors import AlreadyExists, Conflict, NotFound
from shelduck.model.changes.change import DeleteRows, InlineRows
from shelduck.model.changes.schema_change import AddColumn, RenameColumn
from shelduck.model.files.fitted import InlinedBatch
from shelduck.model.types.data_types import parse_type
from tests.support.ducklakepy_oracle import DuckLakePyOracle
from tests.support.lake import Lake, altered, created

pytestmark = [pytest.mark.versions("1.1"), pytest.mark.every_version]
ROUNDS = 12


@pytest.fixture
def lake(ducklake_version, sqlite_url, data_path):
    made = Lake(sqlite_url, data_path)
    made.create("t", a="int", b="string")
    made.commit(inserted(made, ("1", "x"), ("2", "y")))
    yield made
    made.store.close()


def inserted(lake, *rows):
    table = lake.table("t")
    return InlineRows(table.id, InlinedBatch(table.columns, rows))


def third(lake):
    return inserted(lake, ("3", "z"))


# What ducklakepy commits first, what we had prepared before, and the rows or the error after it.
BETWEEN = {
    "insert, insert": (
        "INSERT INTO t VALUES (9, 'theirs')",
        third,
        [(1, "x"), (2, "y"), (3, "z"), (9, "theirs")],
    ),
    "add column, insert": (
        "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 5",
        third,
        Conflict,
    ),
    "rename, insert": (
        "ALTER TABLE t RENAME COLUMN b TO bb",
        third,
        Conflict,
    ),
    "drop, insert": (
        "ALTER TABLE t DROP COLUMN b",
        third,
        Conflict,
    ),
    "wider, insert": (
        "ALTER TABLE t ALTER a TYPE BIGINT",
        third,
        Conflict,
    ),
    "rename of the table, insert": (
        "ALTER TABLE t RENAME TO u",
        third,
        [(1, "x"), (2, "y"), (3, "z")],
    ),
    "delete, insert": (
        "DELETE FROM t WHERE a = 1",
        third,
        Conflict,
    ),
    "flush, insert": (
        "CALL ducklake_flush_inlined_data('lake')",
        third,
        [(1, "x"), (2, "y"), (3, "z")],
    ),
    "insert, alter": (
        "INSERT INTO t VALUES (9, 'theirs')",
        lambda lake: altered(lake.table("t"), RenameColumn(("b",), "bb")),
        [(1, "x"), (2, "y"), (9, "theirs")],
    ),
    "alter, alter": (
        "ALTER TABLE t ADD COLUMN c INTEGER",
        lambda lake: altered(lake.table("t"), AddColumn(("d",), parse_type("int"))),
        Conflict,
    ),
    "delete, delete": (
        "DELETE FROM t WHERE a = 1",
        lambda lake: DeleteRows(lake.table("t"), inlined=(0,)),
        Conflict,
    ),
    "drop of the table, insert": (
        "DROP TABLE t",
        third,
        Conflict,
    ),
    "create, create": (
        "CREATE TABLE n (a INTEGER)",
        lambda lake: created(lake.schema(), "n", a="int"),
        (AlreadyExists, Conflict),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BETWEEN)
def test_what_ducklakepy_commits_first_is_kept_or_is_a_conflict(lake, case):
    theirs, prepare, wanted = BETWEEN[case]
    base, change = lake.head().id, prepare(lake)
    lake.tell(theirs, inline=10)

    if not isinstance(wanted, list):
        before = lake.head()
        with pytest.raises(wanted):
            lake.commit(change, base=base)
        assert lake.head() == before
        return
    lake.commit(change, base=base)
    name = "u" if "RENAME TO" in theirs else "t"
    assert lake.ask(f"SELECT * FROM {name} ORDER BY 1") == wanted
    lake.tell(f"INSERT INTO {name} (a) VALUES (100)", inline=10)
    assert lake.ask(f"SELECT count(*) FROM {name}") == [(len(wanted) + 1,)]
    assert row_ids_are_new(lake)


# What we commit while a transaction of ducklakepy is open, and what becomes of its insert.
MEANWHILE = {
    "insert": ("INSERT INTO t VALUES (3, 'z')", [(1, "x"), (2, "y"), (3, "z"), (9, "theirs")]),
    "create": ("CREATE TABLE other (a INT)", [(1, "x"), (2, "y"), (9, "theirs")]),
    "alter": ("ALTER TABLE t RENAME COLUMN b TO bb", CommitConflictError),
    "drop": ("DROP TABLE t", CommitConflictError),
}


@pytest.mark.parametrize("case", MEANWHILE)
def test_an_open_transaction_of_ducklakepy_sees_what_we_commit(lake, sqlite_url, case):
    ours, wanted = MEANWHILE[case]
    with DuckLakePyOracle(sqlite_url) as oracle, shelduck.connect(sqlite_url) as writer:
        table = oracle.table("t")
        transaction = oracle.catalog.transaction(base_snapshot=table.snapshot())
        rows = oracle._arrow("SELECT 9 AS a, 'theirs' AS b", table.schema())
        transaction.append(table, rows)
        writer.execute(ours)
        if isinstance(wanted, list):
            transaction.commit()
            assert oracle.rows("t") == wanted
            assert row_ids_are_new(lake)
            return
        with pytest.raises(wanted):
            transaction.commit()
    assert [s.id for s in writer.snapshots()] == [0, 1, 2, 3]


def row_ids_are_new(lake) -> bool:
    """Whether no two rows of a table have one id, and none is beyond the next."""
    dump = lake.metadata_of_all()
    [totals] = dump["ducklake_table_stats"]
    ids: list[int] = []
    for name, rows in dump.items():
        if name.startswith("ducklake_inlined_data_") and name != "ducklake_inlined_data_tables":
            ids += [row["_ducklake_row_id"] for row in rows]
    for file in dump["ducklake_data_file"]:
        first = file["row_id_start"]
        ids += range(first, first + file["record_count"]) if first is not None else []
    return len(ids) == len(set(ids)) and max(ids) < totals["next_row_id"]


def tried_again(oracle: DuckLakePyOracle, statement: str) -> None:
    """Run a statement until it meets no other commit: ducklakepy leaves this to its caller."""
    for _ in range(20):
        try:
            oracle.execute(statement)
        except CommitConflictError:
            continue
        return
    raise AssertionError(statement)


def writes(act: Any, failures: list[Exception]) -> threading.Thread:
    """A thread that does something with the number of each round."""

    def run() -> None:
        try:
            for number in range(ROUNDS):
                act(number)
        except Exception as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    return threading.Thread(target=run)


@pytest.mark.slow
def test_two_writers_lose_nothing(lake, sqlite_url):
    failures: list[Exception] = []
    with shelduck.connect(sqlite_url) as ours, DuckLakePyOracle(sqlite_url) as theirs:

        def we_write(number: int) -> None:
            ours.execute(f"INSERT INTO t (a) VALUES ({1000 + number})")
            if number % 3 == 1:
                ours.execute(f"ALTER TABLE t ADD COLUMN c{number} INT DEFAULT {number}")

        def they_write(number: int) -> None:
            tried_again(theirs, f"INSERT INTO t (a) VALUES ({2000 + number})")
            if number % 3 == 2:
                tried_again(theirs, f"ALTER TABLE t ADD COLUMN d{number} INTEGER DEFAULT 5")

        threads = [writes(we_write, failures), writes(they_write, failures)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        found = sorted(a for a, *_ in theirs.rows("t"))
        assert [s.id for s in ours.snapshots()] == list(range(theirs.snapshot() + 1))
    assert found == [1, 2, *range(1000, 1000 + ROUNDS), *range(2000, 2000 + ROUNDS)]
    assert row_ids_are_new(lake)


def test_a_table_that_ducklakepy_dropped_is_not_found(lake):
    lake.tell("DROP TABLE t")
    with pytest.raises(NotFound):
        lake.table("t")
