"""Keys of other types: jobs convert, sort and fold, and refuse keys that would become equal."""

from __future__ import annotations

from functools import partial

import pytest

from shelduck import InvalidRequest, JobState, Unsupported, change_type
from shelduck.jobs import dictionary_proof, worker
from shelduck.jobs.job_record import JobRecord
from shelduck.jobs.lots import Lots
from shelduck.keys import unique_keys
from shelduck.keys.unique_keys import MeetingRows
from tests.support.lakes import refusal, rows
from tests.support.meanwhile import once_before
from tests.support.oracle import DuckDBOracle

SEQUENCE = "PROPERTIES ('function_column.sequence_col' = 'q')"
ROLLUP = "ROLLUP (r (g, s))"
STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE u (k STRING, g INT, v INT) UNIQUE KEY (k, g) ROLLUP (r (g, k, v))",
    f"CREATE TABLE s (k STRING, v INT, q INT) UNIQUE KEY (k) {SEQUENCE}",
    f"CREATE TABLE a (k STRING, g INT, s BIGINT SUM, m INT MAX) AGGREGATE KEY (k, g) {ROLLUP}",
    "CREATE TABLE l (k STRING, m INT REPLACE, n INT REPLACE_IF_NOT_NULL) AGGREGATE KEY (k)",
    "CREATE TABLE d (k STRING, v INT) DUPLICATE KEY (k)",
    "CREATE TABLE ok (k STRING, v INT) UNIQUE KEY (k)",
    "CREATE TABLE w (k STRING, g STRING, v INT) UNIQUE KEY (k, g)",
    "INSERT INTO u VALUES ('1', 0, 10), ('2', 0, 20), (NULL, 0, 30), ('10', 0, 40)",
    "INSERT INTO u VALUES ('01', 0, 11), ('01', 1, 12), ('+1', 0, 13)",
    # The row is older than those that it meets, but its value came last.
    "INSERT INTO u VALUES ('1', 0, 14)",
    "INSERT INTO s VALUES ('1', 10, 7), ('01', 11, NULL)",
    "INSERT INTO s VALUES ('001', 12, 5)",
    "INSERT INTO a VALUES ('1', 0, 1, 5), ('01', 0, 2, 7), ('2', 0, 4, 1)",
    "INSERT INTO l VALUES ('1', 1, 1)",
    "INSERT INTO l VALUES ('01', 2, NULL)",
    "INSERT INTO d VALUES ('10', 1), ('9', 2), ('09', 3), ('1', 4)",
    "INSERT INTO ok VALUES ('3', 1), ('20', 2), ('007', 3)",
    "INSERT INTO w VALUES ('1', 'a', 1), ('x', 'a', 2), ('7', 'b', 3)",
    "INSERT INTO w VALUES ('01', 'A', 4), ('y', 'a', 5), ('7', 'c', 6)",
]
NEWEST = " ON DUPLICATE KEYS KEEP NEWEST"
LATER = " PROPERTIES ('wait' = 'false')"
FOLDED = [(1, 0, 14), (1, 1, 12), (10, 0, 40), (2, 0, 20), (None, 0, 30)]
MEET = "1 key(s) of 3 rows: ('+1', 0) and ('1', 0) become (1, 0)"


def to_int(table, how=""):
    return f"ALTER TABLE {table} ALTER COLUMN k TYPE INT{how}"


def test_a_unique_key_keeps_the_newest_row_of_keys_that_become_equal(both, lake):
    lake.sql(to_int("u", NEWEST))
    [job] = lake.jobs()

    assert both("u") == FOLDED
    assert both("u$r") == sorted(((g, k, v) for k, g, v in FOLDED), key=str)
    assert job.look().message.endswith("2 row(s) with equal keys folded into others")
    assert lake.check(rows=True).problems == ()
    # The fold has settled the table: the next load finds its keys, and nothing to fold.
    assert lake.sql("INSERT INTO u VALUES (1, 0, 15)") is not None
    assert both("u") == [(1, 0, 15), *FOLDED[1:]]


def test_keys_that_become_equal_are_refused_before_anything_begins(base, copied):
    catalog, lake = copied
    told = [
        refusal(InvalidRequest, partial(lake.sql, text), catalog, base.folder / "data")
        for text in (to_int("u"), to_int("l"), to_int("a", " ON DUPLICATE KEYS REFUSE"))
    ]
    assert told == [
        f"different keys of main.{table} would become equal: {met}; change them, or use ON"
        " DUPLICATE KEYS KEEP NEWEST, which folds their rows as a load does and cannot be undone"
        for table, met in (
            ("u", MEET),
            ("l", "1 key(s) of 2 rows: ('01') and ('1') become (1)"),
            ("a", "1 key(s) of 2 rows: ('01', 0) and ('1', 0) become (1, 0)"),
        )
    ]


def test_a_plan_says_which_keys_become_equal(lake):
    def proof(table, **how):
        return lake.table(table).plan_alter(change_type("k", "int", **how)).steps[0].proof

    assert proof("u") == f"these keys become equal, and their rows are refused: {MEET}"
    assert proof("u", on_duplicate_keys="keep newest") == (
        f"these keys become equal, and their rows are folded, which cannot be undone: {MEET}"
    )
    assert proof("ok") == "no different keys become equal"
    assert proof("d") == ""
    plan = lake.table("u").plan_alter(change_type("k", "int"))
    assert plan.steps[0].reason.endswith("files are written whole, sorted again by k")


def test_what_bounds_and_dictionaries_prove_is_not_counted(lake, monkeypatch):
    counted = []
    monkeypatch.setattr(unique_keys, "keys_that_meet", lambda *_: counted.append(1))
    for name in ("_SMALL", "_WORTH", "_FEW"):
        monkeypatch.setattr(dictionary_proof, name, -1)
    narrower = change_type("v", "tinyint", on_error="null")
    lake.sql("CREATE TABLE n (v BIGINT, k INT) UNIQUE KEY (v)")
    lake.sql("INSERT INTO n VALUES (1, 1), (2, 2)")
    lake.sql("CREATE TABLE e (g BIGINT, k STRING) UNIQUE KEY (g, k)")
    # A dictionary that saves nothing is not written.
    lake.sql("INSERT INTO e SELECT id, CAST(id % 2 AS STRING) FROM range(40)")

    def proof(table, change):
        return lake.table(table).plan_alter(change).steps[0].proof

    assert proof("n", narrower).endswith("; no different keys become equal")
    assert proof("e", change_type("k", "int")).endswith("; no different keys become equal")
    assert counted == []
    lake.sql("INSERT INTO n VALUES (1000, 3)")
    lake.sql("INSERT INTO e SELECT id, '01' FROM range(40)")
    proof("n", narrower)
    proof("e", change_type("k", "int"))
    assert counted == [1, 1]


def test_a_sequence_column_says_which_row_is_the_newest(both, lake):
    lake.sql(to_int("s", NEWEST))

    assert both("s") == [(1, 10, 7)]


def test_an_aggregate_key_folds_by_its_functions(both, lake):
    lake.sql(to_int("a"))
    lake.sql(to_int("l", NEWEST))

    assert both("a") == [(1, 0, 3, 7), (2, 0, 4, 1)]
    assert both("a$r") == [(0, 7)]
    assert both("l") == [(1, 2, 1)]
    assert lake.check(rows=True).problems == ()


def test_a_duplicate_key_keeps_all_rows_and_sorts_them(both, lake):
    lake.sql(to_int("d"))

    assert both("d") == [(1, 4), (10, 1), (9, 2), (9, 3)]
    assert rows(lake.sql("SELECT k FROM d")) == [(1,), (9,), (9,), (10,)]
    lake.undo(1).wait()
    assert both("d") == [("09", 3), ("1", 4), ("10", 1), ("9", 2)]


def test_several_changes_of_one_statement_fold_once(both, lake):
    lake.sql(
        "ALTER TABLE w ALTER COLUMN k TYPE INT ON ERROR NULL ON DUPLICATE KEYS KEEP NEWEST,"
        " ALTER COLUMN g TYPE STRING USING lower(g), RENAME COLUMN k TO number,"
        " ALTER COLUMN v TYPE STRING, ADD COLUMN n INT KEY DEFAULT 9"
    )
    assert both("w") == [(1, "a", 9, "4"), (7, "b", 9, "3"), (7, "c", 9, "6"), (None, "a", 9, "5")]


def test_values_that_become_null_are_equal_keys(lake, both):
    lake.sql("INSERT INTO ok VALUES ('x', 8), (NULL, 9), ('y', 10)")
    with pytest.raises(InvalidRequest, match=r"1 key\(s\) of 3 rows: \(NULL\) and \('y'\) become"):
        lake.sql(to_int("ok", " ON ERROR NULL"))

    lake.sql("DELETE FROM ok WHERE k IN ('x', 'y')")
    lake.sql(to_int("ok", " ON ERROR NULL"))
    assert both("ok") == [(20, 2), (3, 1), (7, 3), (None, 9)]
    # No row was folded, so all of them come back.
    lake.undo(1).wait()
    assert both("ok") == [("007", 3), ("20", 2), ("3", 1), (None, 9)]


def test_what_a_job_folded_is_not_undone(base, copied):
    catalog, lake = copied
    lake.sql(to_int("u", NEWEST))
    [job] = lake.jobs()
    before = job.look().published - 1
    told = refusal(InvalidRequest, job.undo, catalog, base.folder / "data")

    assert told == (
        "cannot undo job 1 on main.u: it folded 2 row(s) into others with equal keys; use RESTORE"
        f" TABLE main.u TO VERSION AS OF {before}"
    )
    lake.sql(f"RESTORE TABLE u TO VERSION AS OF {before}")
    assert rows(lake.sql("SELECT count(*) FROM u WHERE k IN ('1', '01', '+1')")) == [(4,)]


def test_an_undo_that_would_make_keys_equal_is_cancelled(both, lake):
    lake.sql("ALTER TABLE ok ALTER COLUMN k TYPE STRING USING concat('k', k)")
    lake.sql("INSERT INTO ok VALUES ('3', 4)")
    with pytest.raises(InvalidRequest, match=r"\('3'\) and \('k3'\) become \('3'\)"):
        lake.undo(1).wait()

    assert lake.job(2).state is JobState.CANCELLED
    assert both("ok") == [("3", 4), ("k007", 3), ("k20", 2), ("k3", 1)]


def test_rows_that_come_beside_the_job_are_folded(copied, both):
    catalog, lake = copied
    lake.sql(to_int("u", NEWEST + LATER))
    lake.sql("INSERT INTO u VALUES ('02', 0, 21), ('5', 0, 50)")
    lake.sql("UPDATE u SET v = 33 WHERE k IS NULL")
    lake.sql("DELETE FROM u WHERE k = '1' AND g = 0")
    lake.sql(
        "MERGE INTO u USING (SELECT '10' AS k, 0 AS g, 41 AS v) AS n ON u.k = n.k AND u.g = n.g"
        " WHEN MATCHED THEN UPDATE SET *"
    )
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("INSERT INTO lake.u VALUES ('5', 0, 51)")
        duckdb.execute("INSERT INTO lake.u VALUES ('0005', 0, 52)")
    lake.run_jobs()

    # Of the rows of one load, it is the last one in its file, which is sorted.
    expected = [(1, 0, 11), (1, 1, 12), (10, 0, 41), (2, 0, 21), (5, 0, 52), (None, 0, 33)]
    assert lake.jobs()[0].state is JobState.FINISHED
    assert both("u") == expected
    assert both("u$r") == sorted(((g, k, v) for k, g, v in expected), key=str)
    assert lake.check(rows=True).problems == ()


def test_a_load_whose_key_would_become_equal_to_another_ends_a_job_that_refuses(lake, both):
    job = lake.table("ok").alter(change_type("k", "int"))
    lake.sql("INSERT INTO ok VALUES ('03', 4)")
    with pytest.raises(InvalidRequest, match=r"different keys of main.ok would become equal: 1"):
        job.wait()

    assert job.state is JobState.CANCELLED
    assert both("ok") == [("007", 3), ("03", 4), ("20", 2), ("3", 1)]


def test_a_load_between_the_last_look_and_the_publication_is_looked_at(lake, both, monkeypatch):
    job = lake.table("u").alter(change_type("k", "int", on_duplicate_keys="keep newest"))
    looks, look = [], MeetingRows._look

    def looked(self, unit, rows, *rest):
        looks.append(len([f for f in rows.files if f.id not in self.seen]))
        return look(self, unit, rows, *rest)

    monkeypatch.setattr(MeetingRows, "_look", looked)
    once_before(
        monkeypatch,
        worker,
        "stage_converted",
        lambda: lake.sql("INSERT INTO u VALUES ('002', 0, 22), ('99', 0, 99)"),
    )
    job.wait()

    assert both("u") == [*FOLDED[:3], (2, 0, 22), (99, 0, 99), FOLDED[4]]
    assert looks[-1] == 1
    assert lake.check(rows=True).problems == ()


def test_a_row_of_a_file_that_the_publication_would_copy_is_folded(lake, both):
    """The load's file has both columns, so nothing else writes it again."""
    lake.sql(to_int("ok", NEWEST + LATER))
    lake.sql("INSERT INTO ok VALUES ('030', 5), ('03', 4), ('21', 6)")
    lake.sql("INSERT INTO ok VALUES ('003', 7)")
    lake.sql("DELETE FROM ok WHERE k = '21'")
    lake.run_jobs()

    assert both("ok") == [(20, 2), (3, 7), (30, 5), (7, 3)]
    assert lake.check(rows=True).problems == ()


@pytest.mark.parametrize(
    "at",
    [(Lots, "_land"), (MeetingRows, "_look"), (worker, "stage_converted"), (JobRecord, "commit")],
    ids=lambda at: at[1],
)
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.sampled(2)
def test_a_worker_that_dies_leaves_the_job_to_the_next_one(lake, both, monkeypatch, at, late):
    job = lake.table("u").alter(change_type("k", "int", on_duplicate_keys="keep newest"))
    real = getattr(*at)

    def dying(*arguments, **more):
        if late:
            real(*arguments, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*at, dying)
        with pytest.raises(KeyboardInterrupt):
            job.wait()
    lake.run_jobs()

    assert job.state is JobState.FINISHED
    assert both("u") == FOLDED


def test_a_job_that_is_cancelled_folds_nothing(lake, both):
    before = both("u")
    lake.sql(to_int("u", NEWEST + LATER))
    lake.sql("CANCEL ALTER TABLE COLUMN FROM u")
    lake.run_jobs()

    assert both("u") == before
    assert lake.jobs()[0].state is JobState.CANCELLED


def test_a_change_feed_goes_around_the_snapshot_that_folded(lake):
    lake.sql(to_int("u", NEWEST))
    at = lake.jobs()[0].look().published
    lake.sql("INSERT INTO u VALUES (1, 0, 15)")
    with pytest.raises(Unsupported, match=f"end at {at - 1}, and begin at {at + 1} for later"):
        lake.table("u").changes(at - 1)
    with pytest.raises(Unsupported, match=f"snapshot {at} both compacted files and changed rows"):
        lake.table("u").changes(at)

    found = lake.table("u").changes(at + 1).select("_change_type", "k", "v")
    assert sorted(rows(found)) == [("update_postimage", 1, 15), ("update_preimage", 1, 14)]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_times_that_become_equal_depend_on_the_zone(lake, zone):
    """In Berlin, an hour comes twice in October; a value that does not come back is lost."""
    lake.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        lake.sql("CREATE TABLE z (k TIMESTAMP, v INT) UNIQUE KEY (k)")
        lake.sql(
            "INSERT INTO z VALUES (TIMESTAMP'2024-10-26 22:00:00Z', 1),"
            " (TIMESTAMP'2024-10-27 21:00:00Z', 2)"
        )
        how = "ALTER TABLE z ALTER COLUMN k TYPE DATE"
        if zone == "UTC":
            lake.sql(how)
            found = [("2024-10-26", 1), ("2024-10-27", 2)]
        else:
            with pytest.raises(InvalidRequest, match=r"become \(2024-10-27\)"):
                lake.sql(how)
            lake.sql(how + NEWEST)
            found = [("2024-10-27", 2)]
        assert rows(lake.sql("SELECT CAST(k AS STRING), v FROM z ORDER BY k")) == found
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_zeros_of_either_sign_are_one_number(lake, both):
    lake.sql("INSERT INTO ok VALUES ('-0', 4)")
    lake.sql("INSERT INTO ok VALUES ('0.00', 5)")
    lake.sql("ALTER TABLE ok ALTER COLUMN k TYPE DECIMAL(5, 1)" + NEWEST)

    assert [(float(k), v) for k, v in both("ok")] == [(0.0, 5), (20.0, 2), (3.0, 1), (7.0, 3)]


def test_a_table_that_is_restored_meanwhile_is_converted_as_it_is_then(lake, both):
    before = lake.snapshots()[-1].id
    lake.sql(to_int("ok", NEWEST + LATER))
    lake.sql("INSERT INTO ok VALUES ('03', 4)")
    lake.sql(f"RESTORE TABLE ok TO VERSION AS OF {before}")
    lake.run_jobs()

    assert lake.jobs()[0].state is JobState.FINISHED
    assert both("ok") == [(20, 2), (3, 1), (7, 3)]
