"""Jobs that take others back: old values return from files, and writes since are kept."""

from __future__ import annotations

import warnings

import pytest

from shelduck.errors import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.jobs import lots
from shelduck.jobs.convert import OlderValues
from shelduck.jobs.worker import JobWorker
from shelduck.lake.state import LakeState
from shelduck.web.application import make_app
from shelduck.web.guard import Guard
from shelduck.write.changes import edits
from tests.support.lakes import rows
from tests.support.meanwhile import once_after
from tests.support.oracle import DuckDBOracle

with warnings.catch_warnings():
    # Starlette prefers a client that is not installed.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

NO_WAIT = 'PROPERTIES ("wait" = "false")'
CONVERTED = "ALTER TABLE {} ALTER COLUMN v TYPE INT"
STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    *(f"CREATE TABLE {name} (id INT, v STRING, w STRING)" for name in ("t", "lossy", "other")),
    "INSERT INTO t VALUES (1, '007', 'a'), (2, '2', 'b')",
    "INSERT INTO t VALUES (3, NULL, 'c'), (4, '4', 'd')",
    CONVERTED.format("t"),  # job 1
    "INSERT INTO lossy VALUES (1, 'x', 'a'), (2, '02', 'b'), (3, 'y', 'c')",
    CONVERTED.format("lossy") + " ON ERROR NULL, ALTER COLUMN w DROP NOT NULL",  # job 2
    CONVERTED.format("other"),  # job 3
    "ALTER TABLE other ALTER COLUMN v TYPE STRING",  # job 4
    "ALTER TABLE other ALTER COLUMN w TYPE INT",  # job 5
    "ALTER TABLE other DROP COLUMN w",
    "ALTER TABLE other REWRITE",  # job 6
    "CREATE TABLE undone (v STRING)",
    CONVERTED.format("undone"),  # job 7
    "ALTER TABLE undone UNDO JOB 7",  # job 8
    "CREATE TABLE gone (v STRING)",
    CONVERTED.format("gone"),  # job 9
    "DROP TABLE gone",
    "CREATE TABLE busy (v STRING, l STRING)",
    "ALTER TABLE busy ALTER COLUMN l TYPE ARRAY<STRING> USING split(l, ' ')",  # job 10
    f"ALTER TABLE busy ALTER COLUMN v TYPE INT {NO_WAIT}",  # job 11
    "CANCEL ALTER TABLE COLUMN FROM busy",
    f"ALTER TABLE busy ALTER COLUMN v TYPE DOUBLE {NO_WAIT}",  # job 12
]


def test_old_values_return_and_all_writes_since_are_kept(copied):
    catalog, lake = copied
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("INSERT INTO lake.t VALUES (5, 50, 'e')")
    lake.sql("UPDATE t SET w = 'A' WHERE id = 1")
    lake.sql("UPDATE t SET v = 3 WHERE id = 3")
    lake.sql("DELETE FROM t WHERE id = 2")

    done = lake.undo(1).wait()

    expected = [(1, "007", "A"), (3, "3", "c"), (4, "4", "d"), (5, "50", "e")]
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == expected
    before = lake.sql(f"SELECT v FROM t VERSION AS OF {done.snapshot - 1} WHERE id = 1")
    assert rows(before) == [(7,)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.columns("t")[1] == ("v", "VARCHAR")
        assert duckdb.sql("SELECT min(v), max(v) FROM lake.t") == [("007", "50")]
        duckdb.execute("INSERT INTO lake.t VALUES (6, '0', 'f')")
        duckdb.execute("CALL ducklake_merge_adjacent_files('lake')")
        assert duckdb.rows("t") == [*expected, (6, "0", "f")]
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == [*expected, (6, "0", "f")]
    assert lake.check(rows=True).problems == ()


def test_the_page_has_a_button_that_begins_an_undo_without_spark(copied, monkeypatch):
    catalog, lake = copied
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("INSERT INTO lake.t VALUES (5, 50, 'e')")
    state = LakeState(lake._state.store, lake._state.info)
    app = make_app(state, Guard(8765, True, "the-token"))
    client = TestClient(app, base_url="http://127.0.0.1:8765")
    client.cookies.set("shelduck_ui_8765", "the-token")
    with monkeypatch.context() as patch:
        patch.setattr(LakeState, "spark", None)
        page = client.get("/jobs").text
        done = client.post("/jobs/1/undo", headers={"Origin": "http://127.0.0.1:8765"})
        again = client.post("/jobs/5/undo", headers={"Origin": "http://127.0.0.1:8765"})

    # Those that converted something, and that no other job took back.
    shown = [n for n in range(1, 13) if f'action="/jobs/{n}/undo"' in page]
    assert shown == [1, 2, 3, 4, 5, 8, 9, 10]
    assert done.status_code == 200
    assert (again.status_code, "no longer has the column &#39;w&#39;" in again.text) == (400, True)
    lake.run_jobs()
    found = rows(lake.sql("SELECT v FROM t ORDER BY id"))
    assert found == [("007",), ("2",), (None,), ("4",), ("50",)]
    assert 'action="/jobs/1/undo"' not in client.get("/jobs").text


@pytest.mark.sampled(1)
@pytest.mark.parametrize("expires", [False, True])
def test_rows_of_rewritten_files_get_what_the_job_lost_from_the_snapshot_before(lake, expires):
    lake.sql("UPDATE lossy SET w = 'A' WHERE id = 1; UPDATE lossy SET v = 9 WHERE id = 3")
    lake.table("lossy").rewrite()
    if expires:
        lake.expire_snapshots(retain_last=1)

    job = lake.undo(2)
    lake.run_jobs()

    [(one,), (two,), (three,)] = rows(lake.sql("SELECT v FROM lossy ORDER BY id"))
    assert three == "9"
    assert (one, two) == ((None, "2") if expires else ("x", "02"))
    told = job.look().message
    assert told.startswith("0 of 1 file(s) hold the old values; 1 file(s) do not")
    assert ("has expired" in told) is expires


@pytest.mark.sampled(1)
@pytest.mark.parametrize("most", [0, 1 << 30])
def test_what_files_hold_is_never_converted_back(lake, monkeypatch, most):
    # Lot by lot, or in one commit.
    monkeypatch.setattr(lots, "_LEAST_BIN", most)
    monkeypatch.setattr(lots, "SMALL", 0)
    lake.sql("DELETE FROM lossy WHERE id = 2; INSERT INTO lossy VALUES (4, 4, 'd')")
    lake.expire_snapshots(retain_last=1)

    job = lake.undo(2)
    lake.sql("INSERT INTO lossy VALUES (5, 5, 'e')")
    job.wait()

    found = rows(lake.sql("SELECT id, v FROM lossy ORDER BY id"))
    assert found == [(1, "x"), (3, "y"), (4, "4"), (5, "5")]
    assert "1 of 2 file(s) hold the old values; 1 file(s) do not" in job.look().message


def test_rows_whose_ids_duckdb_has_changed_are_converted_back(copied):
    """DuckDB 1.5.5 forgets the ids of updated rows when it merges their file with another."""
    catalog, lake = copied
    lake.sql("UPDATE lossy SET w = 'A' WHERE id = 2")
    ids = "SELECT id, rowid FROM lake.lossy WHERE id < 4 ORDER BY id"
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("INSERT INTO lake.lossy VALUES (4, 4, 'd')")
        before = duckdb.sql(ids)
        duckdb.execute("CALL ducklake_merge_adjacent_files('lake')")
        assert [a == b for a, b in zip(before, duckdb.sql(ids), strict=True)] == [True, False, True]

    lake.sql("ALTER TABLE lossy UNDO JOB 2")

    # It was '02', which only the row with its older id has.
    assert rows(lake.sql("SELECT v FROM lossy ORDER BY id")) == [("x",), ("2",), ("y",), ("4",)]


def test_only_rows_that_may_be_older_are_looked_up_in_the_past(lake, monkeypatch):
    looked_up = []
    added = OlderValues.added

    def told(past, spark, found, *more):
        looked_up.extend(file.record_count for file in found.files)
        return added(past, spark, found, *more)

    lake.sql("INSERT INTO lossy VALUES (4, 4, 'd'), (5, 5, 'e')")
    lake.sql("UPDATE lossy SET w = 'A' WHERE id = 1")
    lake.sql("INSERT INTO lossy VALUES (6, 6, 'f'), (7, 7, 'g')")
    monkeypatch.setattr(OlderValues, "added", told)
    lake.sql("ALTER TABLE lossy UNDO JOB 2")

    assert looked_up == [1]
    found = [v for (v,) in rows(lake.sql("SELECT v FROM lossy ORDER BY id"))]
    assert found == ["x", "02", "y", "4", "5", "6", "7"]


@pytest.mark.slow
def test_an_update_that_lands_after_the_undo_is_refused(lake, monkeypatch):
    # Lot by lot, so that the files that it deletes from stay.
    monkeypatch.setattr(lots, "_LEAST_BIN", 0)
    lake.table("lossy").rewrite()
    job = lake.undo(2)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(JobWorker, "_publish", stop)
        with pytest.raises(KeyboardInterrupt):
            job.wait()
    once_after(monkeypatch, edits, "write_rows", job.wait)
    with pytest.raises(Conflict):
        lake.sql("UPDATE lossy SET w = 'A' WHERE id = 1")
    found = rows(lake.sql("SELECT id, v, w FROM lossy ORDER BY id"))
    assert found == [(1, "x", "a"), (2, "02", "b"), (3, "y", "c")]


@pytest.mark.slow
def test_an_undo_can_be_undone(lake):
    lake.sql("INSERT INTO t VALUES (5, 5, 'e'); ALTER TABLE t UNDO JOB 1")
    number = lake.jobs()[0].id
    lake.sql(f"INSERT INTO t VALUES (6, '06', 'f'); ALTER TABLE t UNDO JOB {number}")
    assert [v for (v,) in rows(lake.sql("SELECT v FROM t ORDER BY id"))] == [7, 2, None, 4, 5, 6]
    lake.sql(f"ALTER TABLE t UNDO JOB {number + 1}")
    found = [v for (v,) in rows(lake.sql("SELECT v FROM t ORDER BY id"))]
    assert found == ["007", "2", None, "4", "5", "06"]


def test_parts_of_columns_get_their_ids_back_and_keep_newer_names(copied):
    catalog, lake = copied
    lake.sql("CREATE TABLE n (s STRUCT<x: STRING, l: ARRAY<STRING>>)")
    lake.sql("ALTER TABLE n ADD COLUMN s.y STRING, ALTER COLUMN s.y FIRST")
    lake.sql("INSERT INTO n VALUES (named_struct('y', 'q', 'x', '01', 'l', array('1')))")
    before = [f.id for f in lake.table("n")._version().columns.walk()]
    lake.sql("ALTER TABLE n ALTER COLUMN s.x TYPE INT")
    lake.sql("ALTER TABLE n RENAME COLUMN s.l TO m")
    number = lake.jobs()[0].id

    lake.sql(f"ALTER TABLE n UNDO JOB {number}")

    assert [f.id for f in lake.table("n")._version().columns.walk()] == before
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("n") == [({"y": "q", "x": "01", "m": ["1"]},)]
    lake.sql(f"ALTER TABLE n UNDO JOB {number + 1}; ALTER TABLE n ADD COLUMN s.z INT")
    with pytest.raises(InvalidRequest, match=r"fields of 's' of main\.n were added"):
        lake.undo(number)


@pytest.mark.parametrize(
    ("table", "job", "told"),
    [
        ("t", 3, "job 3 is not of main.t, but of main.other"),
        ("other", 3, "job 4 converted 'v' of main.other again; undo job 4 first"),
        ("other", 5, "no longer has the column 'w' that it made; if it was dropped, use"),
        ("other", 6, "it converted no column; files have the same rows in every layout"),
        ("undone", 7, "job 8 has undone it; to have its change again, undo job 8"),
        ("busy", 11, "job 11 on main.busy: it is CANCELLED, and changed nothing"),
        ("busy", 12, "it is PENDING; use CANCEL ALTER TABLE COLUMN FROM main.busy"),
    ],
)
def test_what_cannot_be_undone_says_why(lake, table, job, told):
    before = lake.snapshots()[-1]
    with pytest.raises(InvalidRequest) as caught:
        lake.execute(f"ALTER TABLE {table} UNDO JOB {job}")
    assert told in str(caught.value)
    assert lake.snapshots()[-1] == before


def test_a_column_without_a_way_back_needs_an_expression(lake):
    with pytest.raises(Unsupported, match="UNDO JOB 10 USING <expression>"):
        lake.execute("ALTER TABLE busy UNDO JOB 10")
    using = "USING concat_ws(' ', l)"
    with pytest.raises(AlreadyExists, match="SCHEMA_CHANGE by job 12"):
        lake.execute(f"ALTER TABLE busy UNDO JOB 10 {using}")
    lake.execute("CANCEL ALTER TABLE COLUMN FROM busy")
    lake.execute(f"ALTER TABLE busy UNDO JOB 10 {using} {NO_WAIT}")
    lake.execute("CANCEL ALTER TABLE COLUMN FROM busy")
    # Nothing was written by it, so another way is as good.
    lake.execute(f"ALTER TABLE busy UNDO JOB 10 USING l[0] {NO_WAIT}")


def test_an_undo_that_failed_is_repeated_with_using(lake):
    lake.sql("CREATE TABLE words (v INT)")
    lake.sql("INSERT INTO words VALUES (1), (2)")
    lake.sql("ALTER TABLE words ALTER COLUMN v TYPE STRING")
    number = max(job.id for job in lake.jobs())
    lake.sql("INSERT INTO words VALUES ('three')")
    with pytest.raises(InvalidRequest, match="cannot be converted to int32, such as 'three'"):
        lake.sql(f"ALTER TABLE words UNDO JOB {number}")

    lake.sql(f"ALTER TABLE words UNDO JOB {number} USING length(v)")

    assert rows(lake.sql("SELECT v FROM words ORDER BY v")) == [(1,), (2,), (5,)]


def test_an_undo_whose_values_are_in_files_keeps_its_way(lake):
    lake.sql("CREATE TABLE split (l STRING)")
    lake.sql("INSERT INTO split VALUES ('a b')")
    lake.sql("ALTER TABLE split ALTER COLUMN l TYPE ARRAY<STRING> USING split(l, ' ')")
    number = max(job.id for job in lake.jobs())
    lake.sql("INSERT INTO split VALUES (array('c', 'd'))")
    lake.sql(f"ALTER TABLE split UNDO JOB {number} USING concat_ws(' ', l)")
    lake.sql(f"ALTER TABLE split UNDO JOB {number + 1}")
    told = r"another way than job \d+ did.*USING concat_ws.*, or change the type with ALTER COLUMN"
    with pytest.raises(InvalidRequest, match=told):
        lake.sql(f"ALTER TABLE split UNDO JOB {number} USING l[0]")


def test_a_column_that_restore_replaced_is_told(lake):
    lake.execute("CREATE TABLE back (v INT)")
    before = lake.snapshots()[-1].id
    lake.execute("ALTER TABLE back ALTER COLUMN v TYPE STRING")
    number = max(job.id for job in lake.jobs())
    lake.sql(f"RESTORE TABLE back TO VERSION AS OF {before}")
    with pytest.raises(InvalidRequest, match="v is another column of type int32; use ALTER COLUMN"):
        lake.execute(f"ALTER TABLE back UNDO JOB {number}")
    lake.sql("DROP TABLE back")
    lake.sql("UNDROP TABLE back")
    with pytest.raises(InvalidRequest, match=r"not of main\.back, but of a table of this name"):
        lake.execute(f"ALTER TABLE back UNDO JOB {number}")


def test_a_constraint_waits_for_the_job_that_converts_its_column(lake):
    lake.execute("CREATE TABLE c (a INT, b INT)")
    lake.execute(f"ALTER TABLE c ALTER COLUMN a TYPE STRING {NO_WAIT}")
    for told in ("CHECK (a > 0)", "CHECK (a > 0) NOT VALID", "UNIQUE (a)"):
        with pytest.raises(AlreadyExists, match=r"job \d+ .PENDING. converts a column"):
            lake.execute(f"ALTER TABLE c ADD CONSTRAINT k {told}")
    lake.execute("ALTER TABLE c ADD CONSTRAINT k CHECK (b > 0)")
    lake.execute("CANCEL ALTER TABLE COLUMN FROM c")
    lake.execute("ALTER TABLE c ADD CONSTRAINT l CHECK (a > 0)")


def test_what_is_gone_is_not_found(lake):
    with pytest.raises(NotFound, match=r"cannot undo job 9: table main\.gone was dropped"):
        lake.undo(9)
    with pytest.raises(NotFound, match="job '99' does not exist"):
        lake.undo(99)
    lake.execute("ALTER TABLE IF EXISTS gone UNDO JOB 9")
    with pytest.raises(InvalidRequest, match="UNDO JOB"), lake.transaction() as tx:
        tx.sql("ALTER TABLE t UNDO JOB 1")
