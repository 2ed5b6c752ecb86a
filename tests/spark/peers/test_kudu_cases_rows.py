"""Apache Kudu's acceptance cases of ALTER TABLE: rows, files, and writers at the same time.

A test's name begins with the case's id; test_kudu_cases.py has the others, and lists those that
have no test. Kudu's deltas are delete files with new rows here, its major compaction is
`Table.rewrite`, its merging compaction `Table.compact`, and its history is gone when snapshots have
expired and their files are cleaned up.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck import Conflict, InvalidRequest
from shelduck.lake import unit
from shelduck.write import appending
from tests.spark.peers.test_kudu_cases import FILES, INLINE, MODES
from tests.support.cases import KuduCase
from tests.support.lakes import newest, rows

TABLE = "CREATE TABLE t (c0 INT NOT NULL, c1 INT NOT NULL)"
STATEMENTS = [
    FILES,
    TABLE,
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
    "CREATE TABLE u (c0 INT NOT NULL, c1 INT) UNIQUE KEY (c0)",
    "INSERT INTO u VALUES (1, 10), (2, 20), (3, 30)",
    "CREATE TABLE e (c0 INT NOT NULL, c1 INT NOT NULL)",
]


@pytest.fixture
def case(copied, base):
    made = KuduCase(*copied, base.folder / "data")
    yield made
    made.lake.close()


@pytest.fixture(params=["land", "commit"])
def meanwhile(request, case, monkeypatch):
    """Alters a table once, when rows for it are written: before they are committed, or just then.

    Loads by key are made whole in between, and know of the commit alone.
    """
    module = {"land": appending, "commit": unit}[request.param]
    real, late = getattr(module, request.param), []

    def altered(*arguments, **more):
        statements = [late.pop(0) for _ in range(len(late))]
        if statements:
            with case.again() as other:
                for statement in statements:
                    other.sql(statement)
        return real(*arguments, **more)

    monkeypatch.setattr(module, request.param, altered)
    return late.extend


class Own(KuduCase):
    """A lake with files of its own, which may be deleted."""

    def __init__(self, folder, spark):
        lake = shelduck.connect(f"sqlite:///{folder}/l.db", f"{folder}/data/", spark)
        super().__init__(folder / "l.db", lake, folder / "data")
        for statement in (FILES, TABLE, *(f"INSERT INTO t VALUES ({n}, {n}0)" for n in (1, 2, 3))):
            self.lake.sql(statement)

    def held(self):
        """The ids of the columns in every Parquet file there is, deletes among them."""
        return [set(_values(path)) for path in self.data.rglob("*.parquet")]

    def forget(self):
        """Give up the history, and what only it had."""
        self.lake.expire_snapshots(older_than=timedelta(0))
        self.lake.cleanup_old_files(cleanup_all=True)

    def file(self):
        """The values by the id of their column, in the only file that the table has."""
        [file] = self.lake.table("t").files().collect()
        assert file.delete_count == 0
        return _values(file.file_path)


@pytest.fixture
def own(tmp_path, spark):
    made = Own(tmp_path, spark)
    yield made
    made.lake.close()


def _values(path):
    """The values of a file by the ids of its columns, without those that DuckLake adds."""
    table = pq.read_table(Path(path))
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in table.schema}
    return {i: table.column(name).to_pylist() for name, i in ids.items() if i < 2**30}


# Older and younger rows


@pytest.mark.sampled(1)
@MODES
def test_k04_rows_older_and_younger_than_a_column_hold_null(case, mode):
    case.lake.sql(INLINE)
    case.lake.sql("INSERT INTO t VALUES (4, 40)")
    if mode == FILES:
        case.lake.sql("CALL flush_inlined_data('t')")
    case.light("ALTER TABLE t ADD COLUMN c2 INT")
    case.lake.sql(mode)
    case.lake.sql("INSERT INTO t (c0, c1) VALUES (5, 50); INSERT INTO t VALUES (6, 60, 600)")

    held = [*[(n, n * 10, None) for n in (1, 2, 3, 4, 5)], (6, 60, 600)]
    assert case.both("SELECT * FROM t ORDER BY c0") == held
    assert case.both("SELECT c0 FROM t WHERE c2 IS NULL ORDER BY c0") == [(n,) for n in range(1, 6)]


@pytest.mark.slow
def test_k12_a_name_that_comes_back_is_another_column_after_restarts(case):
    """There is no log to replay; the lake is opened again."""

    def reopen():
        case.lake.close()
        case.lake = case.again()

    case.lake.sql(INLINE)
    case.lake.sql("INSERT INTO t VALUES (4, 40)")
    seen, first = newest(case.lake), case.ids()["c1"]
    case.light("ALTER TABLE t ADD COLUMN c2 INT NOT NULL DEFAULT 12345")
    case.lake.sql("UPDATE t SET c1 = 11 WHERE c0 = 1; UPDATE t SET c1 = 41 WHERE c0 = 4")
    updated = newest(case.lake)
    case.light("ALTER TABLE t DROP COLUMN c1")
    reopen()
    assert case.both("SELECT * FROM t ORDER BY c0") == [(n, 12345) for n in (1, 2, 3, 4)]
    case.light("ALTER TABLE t ADD COLUMN c1 INT NOT NULL DEFAULT 20000")
    reopen()

    wanted = [(n, 12345, 20000) for n in (1, 2, 3, 4)]
    assert case.both("SELECT c0, c2, c1 FROM t ORDER BY c0") == wanted
    assert case.both("SELECT count(*) FROM t WHERE c1 = 20000") == [(4,)]
    assert case.both("SELECT c0 FROM t WHERE c1 < 20000") == []
    assert case.ids()["c1"] > case.ids()["c2"] > first
    case.lake.sql("CALL flush_inlined_data('t')")
    assert case.both("SELECT c0, c2, c1 FROM t ORDER BY c0") == wanted
    then = [(n, v, 12345) for n, v in ((1, 11), (2, 20), (3, 30), (4, 41))]
    assert sorted(rows(case.lake.table("t").read(version=updated))) == then
    with case.duckdb() as duckdb:
        assert duckdb.rows("t", version=seen) == [(n, n * 10) for n in (1, 2, 3, 4)]
        assert duckdb.rows("t", version=updated) == then


@pytest.mark.slow
@MODES
def test_k32_a_table_that_is_empty_is_altered(case, mode):
    case.lake.sql(mode)
    case.light(
        "ALTER TABLE e ADD COLUMN c2 INT NOT NULL DEFAULT 5, RENAME COLUMN c1 TO v,"
        " ADD COLUMN c3 STRING"
    )
    assert case.both("SELECT * FROM e") == []
    case.lake.sql("INSERT INTO e (c0, v) VALUES (1, 10), (2, 20)")
    case.lake.sql("UPDATE e SET c2 = c2 + v, c3 = 'two' WHERE c0 = 2")

    assert case.both("SELECT * FROM e ORDER BY c0") == [(1, 10, 5, None), (2, 20, 25, "two")]


# Compaction


@pytest.mark.slow
def test_k13_files_of_different_schemas_become_one_of_the_newest(own):
    seen = [newest(own.lake)]
    c0 = own.ids()["c0"]
    for alter, insert in (
        ("ADD COLUMN c2 INT NOT NULL DEFAULT 7", "(4, 40, 400)"),
        ("DROP COLUMN c1, RENAME COLUMN c2 TO d, ADD COLUMN e STRING DEFAULT 'x'", "(5, 500, 'y')"),
        ("ALTER COLUMN c0 TYPE BIGINT, ADD COLUMN c1 INT", "(6, 600, NULL, 60)"),
    ):
        own.lake.sql(f"ALTER TABLE t {alter}; INSERT INTO t VALUES {insert}")
        seen.append(newest(own.lake))
    with own.duckdb() as duckdb:
        before = [duckdb.rows("t", version=n, columns="rowid, *") for n in seen]
    ids = own.ids()
    done = own.lake.table("t").compact()
    # Older snapshots need the files from before the types changed, and could do with the others.
    assert (done.files, done.new_files) == (5, 1)
    done = own.lake.table("t").compact()
    assert (done.files, done.new_files) == (2, 1)

    wanted = [
        *[(1, 7, "x", None), (2, 7, "x", None), (3, 7, "x", None), (4, 400, "x", None)],
        *[(5, 500, "y", None), (6, 600, None, 60)],
    ]
    assert own.both("SELECT c0, d, e, c1 FROM t ORDER BY c0") == wanted
    # What was a default is a value by now, and the first c1 is gone.
    names = ("c0", "d", "e", "c1")
    held = own.file()
    assert held.keys() == {ids[n] for n in names}
    assert set(zip(*(held[ids[n]] for n in names), strict=True)) == set(wanted)
    assert ids["c0"] == c0
    with own.duckdb() as duckdb:
        assert [duckdb.rows("t", version=n, columns="rowid, *") for n in seen] == before
        assert duckdb.rows("t", columns="rowid, *") == before[-1]
    for n, then in zip(seen, before, strict=True):
        assert sorted(rows(own.lake.table("t").read(version=n))) == [row[1:] for row in then]


@pytest.mark.slow
def test_k14_a_dropped_column_is_nowhere_after_compaction(own):
    """Neither what it held nor how it was updated; history keeps both until it is given up."""
    own.lake.sql("ALTER TABLE t ADD COLUMN c2 INT NOT NULL DEFAULT 12345")
    own.lake.sql("UPDATE t SET c1 = c1 + 1 WHERE c0 < 3")
    dropped, before = own.ids()["c1"], newest(own.lake)
    own.lake.sql("ALTER TABLE t DROP COLUMN c1")
    assert any(dropped in held for held in own.held())
    own.lake.table("t").rewrite()

    wanted = [(1, 12345), (2, 12345), (3, 12345)]
    assert own.both("SELECT * FROM t ORDER BY c0") == wanted
    then = own.lake.table("t").read(version=before)
    assert sorted(rows(then)) == [(1, 11, 12345), (2, 21, 12345), (3, 30, 12345)]
    own.forget()
    assert own.held() == [set(own.ids().values())] == [set(own.file())]
    assert dropped not in own.file()
    assert own.both("SELECT * FROM t ORDER BY c0") == wanted


def _updated(own):
    """Both columns are updated, in rows that are older than the second and younger ones."""
    own.lake.sql("ALTER TABLE t ADD COLUMN c2 INT NOT NULL DEFAULT 5")
    own.lake.sql("INSERT INTO t VALUES (4, 40, 400)")
    own.lake.sql("UPDATE t SET c2 = c2 + 1 WHERE c0 IN (1, 4)")
    own.lake.sql("UPDATE t SET c1 = 0 WHERE c0 IN (2, 4)")
    return own.ids()


@pytest.mark.slow
def test_k15_updates_of_an_added_column_are_folded_into_its_default(own):
    c0, c1, c2 = _updated(own).values()
    wanted = [(1, 10, 6), (2, 0, 5), (3, 30, 5), (4, 0, 401)]
    assert own.both("SELECT * FROM t ORDER BY c0") == wanted
    own.lake.table("t").rewrite()
    own.forget()

    assert own.both("SELECT * FROM t ORDER BY c0") == wanted
    found = own.file()
    assert found.keys() == {c0, c1, c2}
    assert sorted(zip(found[c0], found[c1], found[c2], strict=True)) == wanted
    assert len(own.held()) == 1


@pytest.mark.slow
def test_k16_updates_of_a_column_that_was_dropped_since_disappear(own):
    c0, c1, _ = _updated(own).values()
    own.lake.sql("ALTER TABLE t DROP COLUMN c2")
    wanted = [(1, 10), (2, 0), (3, 30), (4, 0)]
    assert own.both("SELECT * FROM t ORDER BY c0") == wanted
    own.lake.table("t").rewrite()
    own.forget()

    assert own.both("SELECT * FROM t ORDER BY c0") == wanted
    found = own.file()
    assert found.keys() == {c0, c1}
    assert sorted(zip(found[c0], found[c1], strict=True)) == wanted
    assert len(own.held()) == 1


# Reading


@pytest.mark.slow
@pytest.mark.parametrize("compacted", [False, True])
def test_k17_time_travel_may_move_rows_and_leave_the_columns(own, compacted):
    """In Kudu it always does; here older snapshots have their own columns, unless one asks."""
    before = newest(own.lake)
    own.lake.sql("ALTER TABLE t RENAME COLUMN c1 TO v, ADD COLUMN c2 INT NOT NULL DEFAULT 7")
    own.lake.sql("UPDATE t SET v = 0, c2 = 8 WHERE c0 = 1; DELETE FROM t WHERE c0 = 2")
    own.lake.sql("INSERT INTO t VALUES (4, 40, 400)")
    if compacted:
        own.lake.table("t").rewrite()
    table = own.lake.table("t")
    found = table.read(version=before, schema="current")

    assert found.columns == ["c0", "v", "c2"]
    assert sorted(rows(found)) == [(1, 10, 7), (2, 20, 7), (3, 30, 7)]
    assert rows(found.where("v = 20 AND c2 = 7").select("c0")) == [(2,)]
    with own.duckdb() as duckdb:
        assert duckdb.columns("t", version=before) == [("c0", "INTEGER"), ("c1", "INTEGER")]
        then = duckdb.rows("t", version=before)
    assert then == sorted(rows(table.read(version=before))) == [(1, 10), (2, 20), (3, 30)]
    assert own.both("SELECT * FROM t ORDER BY c0") == [(1, 0, 8), (3, 30, 7), (4, 40, 400)]


@pytest.mark.slow
@MODES
def test_k29_older_rows_read_one_default_and_younger_ones_another(case, mode):
    case.lake.sql(mode)
    for statement in ("INSERT INTO t VALUES (7, 1)", "DELETE FROM t WHERE c0 = 7"):
        case.lake.sql(statement)
    case.lake.sql("INSERT INTO t VALUES (7, 2)")
    case.light("ALTER TABLE t ADD COLUMN c2 INT DEFAULT 7, ALTER COLUMN c2 SET DEFAULT 5")
    case.lake.sql("INSERT INTO t (c0, c1) VALUES (8, 3)")
    case.lake.sql("INSERT INTO t VALUES (9, 4, NULL)")

    wanted = [(1, 10, 7), (2, 20, 7), (3, 30, 7), (7, 2, 7), (8, 3, 5), (9, 4, None)]
    assert case.both("SELECT * FROM t ORDER BY c0") == wanted
    assert case.both("SELECT c0 FROM t WHERE c2 = 7 ORDER BY c0") == [(1,), (2,), (3,), (7,)]
    case.light("ALTER TABLE t ALTER COLUMN c2 DROP DEFAULT")
    case.lake.sql("CALL flush_inlined_data('t')")
    case.lake.table("t").rewrite()
    assert case.both("SELECT * FROM t ORDER BY c0") == wanted
    with case.duckdb() as duckdb:
        duckdb.execute("INSERT INTO t (c0, c1) VALUES (10, 5)")
    assert case.both("SELECT c2 FROM t WHERE c0 = 10") == [(None,)]


@pytest.mark.slow
@MODES
def test_k30_rows_are_written_deleted_and_updated_across_a_rename(case, mode):
    case.lake.sql(mode)
    case.lake.sql("INSERT INTO u (c0, c1) VALUES (4, 40), (5, 50)")
    case.light("ALTER TABLE u RENAME COLUMN c1 TO c2")
    told = case.refused(InvalidRequest, "INSERT INTO u (c0, c1) VALUES (6, 60)")
    assert "the table has no column c1" in told
    case.lake.sql("INSERT INTO u (c0, c2) VALUES (6, 60), (5, 51)")
    case.lake.sql("DELETE FROM u WHERE c2 IN (20, 60)")
    case.lake.sql("UPDATE u SET c2 = c2 + 1 WHERE c0 IN (1, 4)")

    assert case.both("SELECT c0, c2 FROM u ORDER BY c0") == [(1, 11), (3, 30), (4, 41), (5, 51)]
    assert case.both("SELECT c0 FROM u WHERE c2 > 40 ORDER BY c0") == [(4,), (5,)]


# Writers


ADD = "ALTER TABLE {} ADD COLUMN c2 INT NOT NULL DEFAULT 7, ADD COLUMN c3 INT"
CHANGE = "ALTER TABLE {} ALTER COLUMN c2 SET DEFAULT 8"


@pytest.mark.slow
@MODES
def test_k35_who_does_not_know_a_column_writes_its_write_default(case, spark, meanwhile, mode):
    """Whether it came before the client wrote, or after that and before the client committed."""
    case.lake.sql(mode)
    client = case.lake.table("t")
    meanwhile([ADD.format("t"), CHANGE.format("t")])
    for n in (4, 5):
        client.append(spark.sql(f"SELECT {n} AS c0, {n}0 AS c1"))

    assert case.both("SELECT * FROM t ORDER BY c0") == DEFAULTED
    assert case.both("SELECT c0 FROM t WHERE c2 = 8 ORDER BY c0") == [(4,), (5,)]


DEFAULTED = [
    *[(1, 10, 7, None), (2, 20, 7, None), (3, 30, 7, None), (4, 40, 8, None), (5, 50, 8, None)]
]


@pytest.mark.slow
@pytest.mark.parametrize("meanwhile", ["commit"], indirect=True)
def test_k35_who_does_not_know_a_column_loads_its_write_default(case, spark, meanwhile):
    client = case.lake.table("u")
    meanwhile([ADD.format("u"), CHANGE.format("u")])
    client.append(spark.sql("SELECT 4 AS c0, 40 AS c1"))
    client.append(spark.sql("SELECT 5 AS c0, 50 AS c1"))

    assert case.both("SELECT * FROM u ORDER BY c0") == DEFAULTED


@pytest.mark.slow
@pytest.mark.parametrize("table", ["t", "u"])
def test_k36_writes_that_name_a_column_that_is_gone_fail_and_others_land(case, spark, table):
    """Kudu fails the rows one by one; here what one call writes lands together or not at all."""
    case.lake.sql(f"ALTER TABLE {table} ADD COLUMN gone INT, ADD COLUMN other INT")
    buffered = [
        spark.sql(f"SELECT {n} AS c0, {n}0 AS c1, {n}00 AS {name}")
        for n, name in ((4, "gone"), (5, "other"), (6, "more"))
    ]
    case.lake.sql(f"ALTER TABLE {table} DROP COLUMN gone, RENAME COLUMN other TO more")
    for rest, name in zip(buffered[:2], ("gone", "other"), strict=True):
        told = case.refused(InvalidRequest, lambda rest=rest: case.lake.table(table).append(rest))
        assert f"the table has no column {name}" in told
    case.lake.table(table).append(buffered[2])

    assert case.both(f"SELECT * FROM {table} ORDER BY c0") == [
        *[(1, 10, None), (2, 20, None), (3, 30, None), (6, 60, 600)]
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "mode", "meanwhile"),
    [
        ("t", FILES, "land"),
        ("t", INLINE, "land"),
        ("t", FILES, "commit"),
        ("t", INLINE, "commit"),
        ("u", FILES, "commit"),
    ],
    ids=["files", "inlined", "commit of files", "commit of inlined", "load"],
    indirect=["meanwhile"],
)
def test_k36_rows_on_their_way_follow_a_rename_and_miss_a_dropped_column(
    case, spark, meanwhile, table, mode
):
    """Kudu fails both; here rows that are being written go by the ids of their columns."""
    case.lake.sql(mode)
    case.lake.sql(f"ALTER TABLE {table} ADD COLUMN c2 INT, ADD COLUMN c3 INT")
    client = case.lake.table(table)
    meanwhile([f"ALTER TABLE {table} RENAME COLUMN c2 TO named"])
    client.append(spark.sql("SELECT 4 AS c0, 40 AS c1, 400 AS c2"))
    meanwhile([f"ALTER TABLE {table} DROP COLUMN c3"])
    with pytest.raises(Conflict, match="column c3 was dropped"):
        client.append(spark.sql("SELECT 5 AS c0, 50 AS c1, 500 AS c3"))
    client.append(spark.sql("SELECT 6 AS c0, 60 AS c1"))

    assert case.both(f"SELECT c0, c1, named FROM {table} ORDER BY c0") == [
        *[(1, 10, None), (2, 20, None), (3, 30, None), (4, 40, 400), (6, 60, None)]
    ]


@pytest.mark.slow
@MODES
def test_k18_nobody_notices_columns_that_are_added_meanwhile(case, mode):
    """A writer, an updater and a scanner. Only an update may have to come again, for the rows."""
    case.lake.sql(mode)
    landed, updates, scans, added, conflicts = [3], [0], [0], [], []
    finished = threading.Event()

    def working(step):
        try:
            with case.again() as other:
                while not finished.is_set():
                    step(other)
        finally:
            finished.set()

    def write(other):
        other.sql(f"INSERT INTO t (c0, c1) VALUES ({landed[0] + 1}, 0)")
        landed[0] += 1

    def update(other):
        try:
            other.sql("UPDATE t SET c1 = c1 + 1 WHERE c0 = 2")
            updates[0] += 1
        except Conflict as error:
            conflicts.append(str(error))

    def scan(other):
        known = landed[0]
        assert known <= other.table("t").read().count() <= landed[0] + 1
        scans[0] += 1

    def alter(other):
        n, (row, scanned) = len(added), (landed[0], scans[0])
        other.sql(f"ALTER TABLE t ADD COLUMN x{n} INT NOT NULL DEFAULT {n}")
        added.append(f"x{n}")
        while (row == landed[0] or scanned == scans[0]) and not finished.wait(0.02):
            pass
        if len(added) == 8:
            finished.set()

    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(working, step) for step in (alter, write, update, scan)]:
            job.result(120)

    assert not [c for c in conflicts if "rows were written; append again" in c]
    names = ", ".join(added)
    assert case.both(f"SELECT {names}, count(*) FROM t GROUP BY {names}") == [
        (*range(8), landed[0])
    ]
    assert case.both("SELECT c1 FROM t WHERE c0 = 2") == [(20 + updates[0],)]
    assert case.both("SELECT count(DISTINCT c0), min(c0), max(c0) FROM t") == [
        (landed[0], 1, landed[0])
    ]
