"""Heavy schema changes as jobs: what they make of rows, and what others may do meanwhile."""

from __future__ import annotations

import datetime as dt
import json
import time
from decimal import Decimal
from pathlib import Path

import pytest

import shelduck
from shelduck import (
    AlreadyExists,
    InvalidRequest,
    JobState,
    NotFound,
    SchemaChangeJob,
    Unsupported,
    change_type,
    clock,
    rewrite_files,
    set_not_null,
)
from shelduck.catalog.read import read as catalog_read
from shelduck.jobs import job_record, lots, worker
from shelduck.jobs.lots import Lots
from tests.support.lakes import newest, refusal, rows
from tests.support.meanwhile import convert_first, once_before
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (id INT NOT NULL, v STRING NOT NULL, d DOUBLE, day STRING COMMENT 'of birth')",
    *(
        f"INSERT INTO t SELECT CAST(id AS INT), CAST(id * 10 AS STRING), id / 4,"
        f" concat('2024-02-0', 1 + id % 9) FROM range({n}, {n + 20}, 1, 1)"
        for n in (0, 20, 40)
    ),
    "DELETE FROM t WHERE id = 5",
]
TO_INT = change_type("v", "int")
THREE = (TO_INT, change_type("d", "decimal(18,2)"), change_type("day", "date"))


def expected(ids):
    day = [dt.date(2024, 2, 1 + n % 9) for n in range(60)]
    return [(n, n * 10, Decimal(n) / 4, day[n]) for n in ids if n != 5]


def everything(lake, at=""):
    return rows(lake.sql(f"SELECT * FROM t{at} ORDER BY id"))


def orphans(lake):
    """Files that belong to nobody; the lakes of other tests have some in the same folder."""
    return lake.remove_orphans(older_than=dt.timedelta(0), dry_run=True).files


def shown(lake):
    return rows(lake.sql("SHOW ALTER TABLE COLUMN"))


def test_several_columns_are_converted_in_one_job_and_older_snapshots_stay(copied):
    catalog, lake = copied
    before, old = newest(lake), everything(lake)
    table = lake.table("t")
    job = table.alter(*THREE)

    assert isinstance(job, SchemaChangeJob)
    assert job.state is JobState.PENDING
    assert everything(lake) == old
    done = job.wait()

    assert job.state is JobState.FINISHED
    assert str(job) == "job 1 on main.t: FINISHED"
    assert done == job.wait() == shelduck.Committed(newest(lake))
    assert everything(lake) == expected(range(60))
    assert [(f.name, str(f.type), f.nullable) for f in table.columns] == [
        *[("id", "int32", False), ("v", "int32", False)],
        *[("d", "decimal(18,2)", True), ("day", "date", True)],
    ]
    assert rows(lake.sql("DESCRIBE t"))[3] == ("day", "date", "of birth")
    assert everything(lake, f" VERSION AS OF {before}") == old
    assert rows(lake.sql("SELECT id FROM t WHERE v > 570 AND d < 14.6")) == [(58,)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == expected(range(60))
        assert duckdb.rows("t", version=before) == old
        assert duckdb.sql("SELECT id FROM t WHERE v > 570 AND d < 14.6") == [(58,)]
        assert duckdb.sql("SELECT count(*), min(v), max(v) FROM t") == [(59, 0, 590)]
        duckdb.execute("INSERT INTO t VALUES (60, 600, 15, '2024-02-07')")
    assert everything(lake)[59:] == [(60, 600, Decimal(15), dt.date(2024, 2, 7))]


def begins(duckdb):
    """Where the live data files begin."""
    place = "__ducklake_metadata_lake.ducklake_data_file"
    return duckdb.sql(f"SELECT DISTINCT begin_snapshot FROM {place} WHERE end_snapshot IS NULL")


def test_a_small_table_is_converted_and_published_in_one_snapshot(copied):
    catalog, lake = copied
    before, old = newest(lake), everything(lake)
    done = lake.table("t").alter(*THREE, wait=True)

    assert done == shelduck.Committed(before + 2)
    assert everything(lake, f" VERSION AS OF {before}") == old
    assert everything(lake, f" VERSION AS OF {before + 1}") == old
    assert lake.table("t").changes(before + 2).count() == 0
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert begins(duckdb) == [(before + 2,)]
        assert duckdb.rows("t", version=before + 1) == old
        duckdb.execute("CALL ducklake_merge_adjacent_files('lake')")
        assert duckdb.rows("t") == expected(range(60))
    assert everything(lake) == expected(range(60))


def test_the_table_that_a_new_job_knows_is_the_one_in_the_catalog(lake, monkeypatch):
    known = []
    real = job_record.survey

    def looked(state, table, **more):
        known.append(table)
        return real(state, table, **more)

    monkeypatch.setattr(job_record, "survey", looked)
    before = newest(lake)
    lake.table("t").alter(*THREE, wait=True)
    with lake._state.store.read() as connection:
        at = catalog_read.snapshot(connection, before + 1)
        stored = catalog_read.table(connection, at, "main", "t", lake._state.info)
    assert known == [stored]


@pytest.mark.slow
def test_row_ids_stay_and_a_restore_brings_the_old_columns_back(lake):
    before, old = newest(lake), everything(lake)
    table = lake.table("t")
    shown = table.alter(*THREE).wait().snapshot
    changed = [table.changes(before + 1, shown - 1).count(), table.changes(shown).count()]
    lake.sql(f"RESTORE TABLE t TO VERSION AS OF {before}")

    assert changed == [0, 0]
    assert everything(lake) == old


def between(monkeypatch, act):
    """Do something once, after the job has looked for files and before it publishes."""
    once_before(monkeypatch, worker, "publication", act)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statements", "change"),
    [
        (["INSERT INTO t VALUES (100, '7', 1, '20240301')"], {100: (7, 1, (2024, 3, 1))}),
        (["UPDATE t SET v = '8' WHERE id = 3"], {3: (8, Decimal("0.75"), (2024, 2, 4))}),
        (["DELETE FROM t WHERE id < 59"], dict.fromkeys(range(59))),
        (["CALL ducklake_merge_adjacent_files('lake')"], {}),
        (["CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)"], {}),
        (["ALTER TABLE t ADD COLUMN z INTEGER", "ALTER TABLE t DROP COLUMN z"], {}),
    ],
    ids=["insert", "update", "delete", "merge files", "rewrite files", "other columns"],
)
def test_what_duckdb_does_meanwhile_is_converted_too(copied, monkeypatch, statements, change):
    catalog, lake = copied

    def act():
        with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
            for statement in statements:
                duckdb.execute(statement)

    between(monkeypatch, act)
    lake.table("t").alter(*THREE).wait()

    kept = {row[0]: row for row in expected(range(60))}
    for number, value in change.items():
        kept.pop(number, None)
        if value is not None:
            kept[number] = (number, value[0], Decimal(value[1]), dt.date(*value[2]))
    assert everything(lake) == [kept[n] for n in sorted(kept)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == everything(lake)


@pytest.mark.slow
def test_what_we_do_meanwhile_is_converted_too(lake, monkeypatch):
    def act():
        table = lake.table("t")
        lake.sql("INSERT INTO t VALUES (100, '7', 1, '20240301')")
        lake.set_option("data_inlining_row_limit", 100)
        lake.sql("INSERT INTO t VALUES (101, '8', 1, '20240301')")
        lake.sql("UPDATE t SET v = '9' WHERE id = 100")
        table.compact()

    between(monkeypatch, act)
    job = lake.table("t").alter(TO_INT)
    job.wait()

    assert rows(lake.sql("SELECT id, v FROM t WHERE id >= 59 ORDER BY id")) == [
        *[(59, 590), (100, 9), (101, 8)]
    ]


@pytest.mark.slow
def test_a_value_that_does_not_survive_cancels_the_job_and_changes_nothing(lake):
    lake.sql("INSERT INTO t VALUES (100, 'zz', 1, '2024-01-01'), (101, 'y', 1, '2024-01-01')")
    before, old = lake.table("t").columns, everything(lake)
    job = lake.table("t").alter(TO_INT)
    with pytest.raises(InvalidRequest) as refused:
        job.wait()

    told = str(refused.value)
    assert told.startswith(
        "job 1 was cancelled: 2 value(s) of column 'v' cannot be converted to int32, such as 'y',"
        " in /"
    )
    assert told.endswith("give a conversion with USING, or allow NULL with ON ERROR NULL")
    assert job.state is JobState.CANCELLED
    assert lake.table("t").columns == before
    assert everything(lake) == old
    # The way is free again, and ids are not used again.
    lake.sql("UPDATE t SET v = '7' WHERE id >= 100")
    lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT")
    assert rows(lake.sql("SELECT v FROM t WHERE id >= 100")) == [(7,), (7,)]
    assert lake.table("t").columns.get(("v",)).id == 6


def test_a_job_in_lots_ends_in_every_database(lake_url, data_path, spark, monkeypatch):
    monkeypatch.setattr(lots, "_LEAST_BIN", 0)
    with shelduck.connect(lake_url, data_path, spark, progress=False) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.sql("CREATE TABLE t (v STRING); INSERT INTO t VALUES ('1'), ('x')")
        lake.sql("INSERT INTO t VALUES ('2'), (NULL)")
        lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT ON ERROR NULL")

        assert lake.jobs()[0].look().message.endswith("1 value(s) of 'v' became NULL")
        assert sorted(rows(lake.sql("SELECT v FROM t WHERE v > 0"))) == [(1,), (2,)]


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 1 << 30])
def test_loss_is_accepted_where_it_is_asked_for_and_counted(copied, monkeypatch, most):
    catalog, lake = copied
    # Lot by lot, or in one commit.
    monkeypatch.setattr(lots, "_LEAST_BIN", most)
    before = rows(lake.sql("SELECT d FROM t"))
    lake.sql("ALTER TABLE t ALTER COLUMN d TYPE INT ON ERROR NULL")
    lake.sql(
        "ALTER TABLE t ALTER COLUMN day TYPE INT USING CASE WHEN id = 0 THEN NULL"
        " ELSE CAST(right(day, 1) AS INT) END"
    )

    assert rows(lake.sql("SELECT d, day FROM t WHERE id < 5 ORDER BY id")) == [
        *[(0, None), (None, 2), (None, 3), (None, 4), (1, 5)]
    ]
    # A USING says itself what becomes NULL.
    [using, lossy] = [job.look().message for job in lake.jobs()[:2]]
    lost = sum(1 for (d,) in before if d != int(d))
    assert lossy.endswith(f"{lost} value(s) of 'd' became NULL")
    assert "NULL" not in using
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        told = duckdb.sql("SELECT commit_extra_info FROM ducklake_snapshots('lake')")
    lossy, using = (json.loads(text) for (text,) in told if text)
    assert lossy == {
        "job": 1,
        "rows": len(before),
        "by": f"Shelduck {shelduck.__version__}",
        "conversions": [
            {
                "column": "d",
                "from": "DOUBLE",
                "to": "INT",
                "on_error": "null",
                "nulls": lost,
                "became_null": lost,
            }
        ],
    }
    assert using["conversions"][0]["using"].startswith("CASE WHEN id = 0 THEN NULL")
    assert using["conversions"][0]["nulls"] == 1
    with pytest.raises(
        InvalidRequest, match=r"value\(s\) of column 'v' cannot be converted to int8"
    ):
        lake.sql("ALTER TABLE t ALTER COLUMN v TYPE TINYINT ON ERROR NULL")


def test_one_job_at_a_time_which_can_be_cancelled(copied, base):
    catalog, lake = copied
    job = lake.table("t").alter(TO_INT)
    told = refusal(
        AlreadyExists,
        lambda: lake.table("t").alter(change_type("d", "int")),
        catalog,
        base.folder / "data",
    )

    assert told == (
        "table main.t is under SCHEMA_CHANGE by job 1 (PENDING): its state is not NORMAL; wait"
        " for the job, or use CANCEL ALTER TABLE COLUMN FROM main.t"
    )
    with pytest.raises(InvalidRequest, match=r"main.t is not under SCHEMA_CHANGE \(job 7\)"):
        lake.sql("CANCEL ALTER TABLE COLUMN FROM t (7)")
    lake.sql("CANCEL ALTER TABLE COLUMN FROM t (1)")
    assert job.state is JobState.CANCELLED
    with pytest.raises(InvalidRequest, match="job 1 was cancelled: user cancelled"):
        job.wait()
    with pytest.raises(InvalidRequest, match="cannot cancel job 1: it is already CANCELLED"):
        job.cancel()
    with pytest.raises(InvalidRequest, match="is not under SCHEMA_CHANGE"):
        lake.sql("CANCEL ALTER TABLE COLUMN FROM t")
    assert lake.job(1).look().message == "user cancelled"
    with pytest.raises(NotFound, match="job '2' does not exist; existing jobs: '1'"):
        lake.job(2)


def test_a_job_that_is_cancelled_while_it_runs_leaves_no_trace(lake, monkeypatch):
    between(monkeypatch, lambda: lake.sql("CANCEL ALTER TABLE COLUMN FROM t"))
    old = everything(lake)
    job = lake.table("t").alter(TO_INT)
    with pytest.raises(InvalidRequest, match="job 1 was cancelled: user cancelled"):
        job.wait()

    assert everything(lake) == old


def dying(land, landed):
    """Land the first of some files, and die."""

    def dies(parts, commit):
        landed.extend(land(parts[:1], commit))
        raise KeyboardInterrupt

    return dies


@pytest.mark.slow
def test_another_process_goes_on_where_one_died(copied, monkeypatch, spark):
    _, lake = copied
    lake.set_option("target_file_size", 1, table="t")
    job = lake.table("t").alter(*THREE)
    real, landed = Lots._land, []
    convert_first(monkeypatch)
    monkeypatch.setattr(lots, "land", dying(lots.land, landed))
    with pytest.raises(KeyboardInterrupt):
        job.wait()
    monkeypatch.undo()
    convert_first(monkeypatch)
    assert job.state is JobState.RUNNING
    assert len(landed) == 1

    def counts(self, table, before, whole, parts):
        landed.extend(parts)
        return real(self, table, before, whole, parts)

    monkeypatch.setattr(Lots, "_land", counts)
    [again] = lake.jobs()
    before = newest(lake)
    again.wait()

    # The two files that were left in one snapshot, and the new columns in another.
    assert len(landed) == 3
    assert newest(lake) == before + 2
    assert everything(lake) == expected(range(60))


def test_a_job_is_paused_while_it_runs_and_goes_on(lake, monkeypatch):
    monkeypatch.setattr(lots, "is_little", lambda _: False)
    lake.set_option("target_file_size", 1, table="t")
    job = lake.table("t").alter(TO_INT)
    job.set_pace(tasks=1, bytes_per_second="1 GB")
    rested, write = [], lots.write_converted

    def paused_once(*arguments, **more):
        if not rested:
            rested.append(lake.sql(f"ALTER JOB {job.id} PAUSE"))
        return write(*arguments, **more)

    def resumed_by_another(_):
        if job.state is JobState.PAUSED:
            assert lake.run_jobs() == []
            lake.sql(f"ALTER JOB {job.id} RESUME")

    monkeypatch.setattr(lots, "write_converted", paused_once)
    monkeypatch.setattr(clock, "sleep", resumed_by_another)
    before, strange = newest(lake), orphans(lake)
    job.wait()

    # One file for each commit, and one that publishes; the lot at the pause was lost.
    assert newest(lake) - before == 4
    assert [v for _, v, *_ in everything(lake)] == [n * 10 for n in range(60) if n != 5]
    assert orphans(lake) == strange
    with pytest.raises(InvalidRequest, match="cannot pause job 1: job 1 is already FINISHED"):
        job.pause()


def test_a_job_rests_until_it_has_its_pace(lake, monkeypatch):
    monkeypatch.setattr(lots, "is_little", lambda _: False)
    lake.set_option("target_file_size", 1, table="t")
    job = lake.table("t").alter(TO_INT)
    job.set_pace(tasks=1, bytes_per_second=100)
    files = lake.table("t").read().inputFiles()
    size = sum(Path(path.removeprefix("file://")).stat().st_size for path in files)
    rested = []
    monkeypatch.setattr(clock, "sleep", rested.append)
    job.wait()

    # Not behind the last of three files, and less by the time that Spark took.
    assert size / 3 / 100 < sum(rested) < size / 100


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ("speed = 2", "a job does not support the limit 'speed'; use tasks or bytes_per_second"),
        ("tasks = 0", "tasks of a job must be at least 1, not 0"),
        ("tasks = 'x'", "tasks of a job must be a whole number of at least 1, not 'x'"),
        ("bytes_per_second = 'fast'", "bytes_per_second does not accept 'fast'; give bytes"),
    ],
)
def test_a_pace_that_means_nothing_is_refused(lake, limits, told):
    job = lake.table("t").alter(TO_INT)
    with pytest.raises(InvalidRequest, match=told):
        lake.sql(f"ALTER JOB {job.id} SET ({limits})")
    with pytest.raises(NotFound, match="job '99' does not exist"):
        lake.sql("ALTER JOB 99 PAUSE")
    job.cancel()


def test_time_runs_out(lake):
    job = lake.table("t").alter(TO_INT, timeout=1)
    time.sleep(1.1)

    with pytest.raises(InvalidRequest, match="job 1 was cancelled: Timeout"):
        job.wait()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("ALTER TABLE t DROP COLUMN v", "column 2 was dropped"),
        ("DROP TABLE t", "the table was dropped"),
    ],
)
def test_a_job_without_its_column_is_cancelled(lake, statement, told):
    job = lake.table("t").alter(TO_INT)
    lake.sql(statement)

    with pytest.raises(InvalidRequest, match=f"job 1 was cancelled: {told}"):
        job.wait()


def test_a_rename_meanwhile_stays(lake):
    job = lake.table("t").alter(TO_INT)
    lake.sql("ALTER TABLE t RENAME COLUMN v TO w")
    lake.sql("ALTER TABLE t RENAME TO t2")
    job.wait()

    assert rows(lake.sql("SELECT w FROM t2 WHERE id = 7")) == [(70,)]


@pytest.mark.slow
def test_jobs_are_shown_with_the_thirteen_columns_of_doris(lake):
    lake.table("t").alter(TO_INT).cancel()
    lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT")
    found = lake.sql("SHOW ALTER TABLE COLUMN FROM main WHERE State = 'FINISHED' LIMIT 1")

    assert found.columns == (
        "JobId TableName CreateTime FinishTime IndexName IndexId OriginIndexId SchemaVersion"
        " TransactionId State Msg Progress Timeout".split()
    )
    [row] = found.collect()
    assert (row.JobId, row.TableName, row.State, row.Progress, row.Timeout) == (
        *(2, "t", "FINISHED", None, 86400),
    )
    assert [(r[0], r[9], r[10]) for r in shown(lake)] == [
        *[(2, "FINISHED", ""), (1, "CANCELLED", "user cancelled")]
    ]
    ordered = lake.sql("SHOW ALTER TABLE COLUMN ORDER BY JobId")
    assert [r.JobId for r in ordered.collect()] == [1, 2]
    lake.create_table("`od.d`", {"a": "int"}).alter(change_type("a", "string"))
    assert lake.sql("SHOW ALTER TABLE COLUMN LIMIT 1").first().TableName == "od.d"


def test_a_plan_tells_what_a_job_would_write_anew(lake):
    before = newest(lake)
    plan = lake.table("t").plan_alter(*THREE[:2])

    assert [(s.weight, s.files_to_rewrite) for s in plan.steps] == [("heavy", 3), ("heavy", 3)]
    assert plan.steps[0].bytes_to_rewrite > 0
    assert plan.steps[0].reason.startswith(
        "values of varchar are stored in another form than those of int32; a job"
    )
    assert newest(lake) == before


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ([TO_INT, set_not_null("d")], Unsupported, "write two statements"),
        (
            [TO_INT, rewrite_files()],
            Unsupported,
            "REWRITE can be combined only with SET PARTITIONED BY, SET SORTED BY",
        ),
        ([TO_INT, TO_INT], InvalidRequest, "the type of v of main.t changes twice"),
        (
            [change_type("day", "geometry", using="v")],
            Unsupported,
            "no data type that preserves the values of geometry",
        ),
        ([change_type("s.f", "int", using="1")], Unsupported, "use it on the column"),
        ([change_type("k", "string")], Unsupported, "RESET PARTITIONED BY first"),
        ([change_type("def", "int")], Unsupported, "ALTER COLUMN def DROP DEFAULT first"),
    ],
)
def test_what_cannot_be_converted_is_refused_before_anything(copied, base, changes, error, told):
    catalog, lake = copied
    lake.sql("ALTER TABLE t ADD COLUMN (s STRUCT<f: STRING>, k INT, def STRING DEFAULT 'x')")
    lake.sql("ALTER TABLE t SET PARTITIONED BY (k)")

    message = refusal(error, lambda: lake.table("t").alter(*changes), catalog, base.folder / "data")
    assert told in message


NESTED = [
    (
        "CREATE TABLE n (id INT, s STRUCT<a: STRING, b: INT>, l ARRAY<STRUCT<x: STRING>>,"
        " m MAP<STRING, STRING>)"
    ),
    (
        "INSERT INTO n SELECT 1, named_struct('a', '7', 'b', 1),"
        " array(named_struct('x', '8'), NULL), map('1', '9')"
    ),
    "INSERT INTO n SELECT 2, NULL, array(), NULL",
]


@pytest.mark.slow
def test_values_inside_structs_lists_and_maps_are_converted(copied):
    catalog, lake = copied
    for statement in NESTED:
        lake.sql(statement)
    before, old = newest(lake), rows(lake.sql("SELECT * FROM n ORDER BY id"))
    lake.sql(
        "ALTER TABLE n ALTER COLUMN s.a TYPE INT, ALTER COLUMN l.element.x TYPE INT,"
        " ALTER COLUMN m TYPE MAP<INT, DECIMAL(9,2)>, ADD COLUMN s2 STRUCT<a: INT>"
    )

    expected = [(1, (7, 1), [(8,), None], {1: Decimal(9)}, None), (2, None, [], None, None)]
    assert rows(lake.sql("SELECT * FROM n ORDER BY id")) == expected
    assert rows(lake.sql(f"SELECT * FROM n VERSION AS OF {before} ORDER BY id")) == old
    assert rows(lake.sql("SELECT id FROM n WHERE s.a = 7")) == [(1,)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        found = duckdb.sql("SELECT id, s.a, s.b, l, m FROM n ORDER BY id")
        assert found == [(1, 7, 1, [{"x": 8}, None], {1: Decimal(9)}), (2, None, None, [], None)]
        assert duckdb.sql(f"SELECT s.a FROM n AT (VERSION => {before}) WHERE id = 1") == [("7",)]
        duckdb.execute("INSERT INTO n VALUES (3, {'a': 1, 'b': 2}, [{'x': 3}], MAP {4: 5}, NULL)")
    assert rows(lake.sql("SELECT s.a, l[0].x, m[4] FROM n WHERE id = 3")) == [(1, 3, Decimal(5))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            "ALTER COLUMN s.a TYPE INT",
            "1 value(s) of column 's' cannot be converted to struct<a: int32",
        ),
        (
            "ALTER COLUMN l.element.x TYPE DATE",
            "1 value(s) of column 'l' cannot be converted to array",
        ),
        ("ALTER COLUMN m TYPE MAP<INT, STRING>", "such as '{01 -> b, 1 -> a}'"),
    ],
)
def test_a_nested_value_that_does_not_survive_cancels_the_job(lake, change, told):
    for statement in NESTED:
        lake.sql(statement)
    lake.sql(
        "INSERT INTO n SELECT 3, named_struct('a', 'zz', 'b', 1), array(), map('01', 'b', '1', 'a')"
    )
    seen = rows(lake.sql("SELECT * FROM n ORDER BY id"))
    with pytest.raises(InvalidRequest) as refused:
        lake.sql(f"ALTER TABLE n {change}")

    assert told in str(refused.value)
    assert rows(lake.sql("SELECT * FROM n ORDER BY id")) == seen


def test_an_expression_makes_a_nested_column_by_the_names_of_its_fields(lake):
    lake.sql(
        "ALTER TABLE t ALTER COLUMN v TYPE STRUCT<number: INT, text: STRING>"
        " USING named_struct('text', v, 'number', CAST(v AS INT))"
    )

    assert rows(lake.sql("SELECT v.number, v.text FROM t WHERE id = 7")) == [(70, "70")]


def test_a_key_of_a_map_keeps_its_fields(lake):
    lake.sql("CREATE TABLE k (m MAP<STRUCT<a: INT, b: INT>, INT>)")
    lake.sql(
        "INSERT INTO k SELECT map(named_struct('a', 1, 'b', 1), 1, named_struct('a', 2, 'b', 1), 2)"
    )
    with pytest.raises(
        Unsupported, match="map keys that differ only in this field would become equal"
    ):
        lake.sql("ALTER TABLE k DROP COLUMN m.key.a")
    with pytest.raises(InvalidRequest, match=r"1 value\(s\) of column 'm' cannot be converted"):
        lake.sql("ALTER TABLE k ALTER COLUMN m.key TYPE STRUCT<b: INT>")


def test_inside_a_transaction_it_is_refused(lake):
    with (
        lake.transaction() as tx,
        pytest.raises(InvalidRequest, match="a change that converts values commits by itself"),
    ):
        tx.table("t").alter(TO_INT)
