"""Lakes that earlier versions left go on, and what a later one keeps is left to it.

``unversioned`` was made by tests/data/lakes/make.py before stored texts had versions.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

import shelduck
from shelduck import InvalidRequest, JobState, NewerFormat
from shelduck.model.tables.keys import KEYS
from shelduck.model.tables.rollup import ROLLUP, ROLLUPS
from tests.support.lakes import newest, rows
from tests.support.old_lakes import OldLake
from tests.support.oracle import DuckDBOracle
from tests.support.rollups import Followed

QUERIES = {
    "dup": {
        "p": "SELECT v, g FROM {t}",
        "m": "SELECT g, SUM(v), COUNT(v), COUNT(*), MIN(v), MAX(v) FROM {t} GROUP BY g",
    },
    "uni": {"r": 'SELECT g, k, v, "at" FROM {t}'},
    "agg": {"few": "SELECT j, SUM(s), MAX(hi) FROM {t} GROUP BY j"},
}
OPEN = {
    "pending": JobState.PENDING,
    "waiting": JobState.WAITING_TXN,
    "running": JobState.RUNNING,
    "laid_out": JobState.PENDING,
    "rewritten": JobState.PENDING,
    "modified": JobState.PENDING,
    "filling": JobState.RUNNING,
    "sorted": JobState.PENDING,
    "measured": JobState.PENDING,
    "folding": JobState.PENDING,
    "remaking": JobState.PENDING,
}
ENDED = {
    "dup": JobState.FINISHED,
    "ended": JobState.FINISHED,
    "failed": JobState.CANCELLED,
    "given_up": JobState.CANCELLED,
}
# What each job leaves: the columns, and the rows in the order of the first one.
AFTER = {
    "pending": (
        (
            "w decimal(9,2), number int, more array<decimal(5,1)>, v int,"
            " s struct<a:bigint,t:string,b:map<string,struct<c:int>>>, n int"
        ),
        [
            (Decimal("1.00"), 1, None, 11, (1, "x", None), 7),
            (Decimal("2.00"), 2, None, 21, (2, "y", None), 7),
        ],
    ),
    "waiting": ("id int, v int", [(1, 10), (2, None)]),
    "running": ("id int, v int", [(1, 10), (2, 20)]),
    "laid_out": (
        "id int, at date, g string",
        [(1, date(2024, 1, 1), "a"), (2, date(2025, 2, 2), "b")],
    ),
    "rewritten": ("id int, v int", [(1, 1)]),
    "modified": ("k int, v int", [(1, 10), (2, 20)]),
    "filling$by_v": ("v int, k int", [(1, 1), (2, 2), (4, 3)]),
    "sorted$by_v": ("v int, g int", [(1, 1), (2, 1)]),
    "measured$m2": ("g int, s bigint, c bigint", [(1, 3, 2)]),
    "folding": ("k int, v int", [(1, 3), (2, 4)]),
    "remaking": ("a int, b int, c int, v bigint", [(1, 1, 1, 1), (2, 1, 2, 2)]),
    "remaking$r": ("b int, v decimal(38,0)", [(1, Decimal(3))]),
}


@pytest.fixture
def old(tmp_path):
    return OldLake("unversioned", tmp_path / "lake")


@pytest.fixture
def lake(old, spark):
    with shelduck.connect(old.url, None, spark) as lake:
        yield lake


def columns(lake, name):
    return ", ".join(f"{column} {kind}" for column, kind in lake.table(name).read().dtypes)


def ordered(lake, name, by=1):
    return rows(lake.sql(f"SELECT * FROM `{name}` ORDER BY {by}"))


@pytest.mark.slow
def test_rows_are_read(lake):
    assert ordered(lake, "dup") == [
        *[(1, "a", 1), (2, "a", 2), (3, "b", 4), (4, "b", 8), (5, "c", None), (6, "c", 16)]
    ]
    assert ordered(lake, "small") == [(1, (1, [Decimal("1.50")]), {"d": date(2024, 1, 1)})]
    assert ordered(lake, "seen", "w NULLS FIRST")[:2] == [("c", None), ("a", 2)]
    assert ordered(lake, "theirs") == [(1, (2,), [Decimal("3.50")], "x"), (2, (3,), None, None)]
    assert rows(lake.sql("SELECT count(*) FROM dup VERSION AS OF 1")) == [(0,)]
    assert {job.look().table_name.removeprefix("main."): job.state for job in lake.jobs()} == (
        OPEN | ENDED
    )


def test_queries_are_answered_from_rollups(lake):
    found = lake.sql("SELECT g, SUM(v) FROM dup GROUP BY g")

    assert set(found.inputFiles()) == set(lake.table("dup$m").read().inputFiles())
    assert sorted(rows(found)) == [("a", 3), ("b", 12), ("c", 16)]


@pytest.mark.slow
def test_loads_go_by_the_model_and_rollups_follow(old, lake):
    before = {name: old.tag(name, KEYS) for name in QUERIES}
    followed = {name: Followed(lake, old.url, name, of) for name, of in QUERIES.items()}
    assert all(all(each.fresh().values()) for each in followed.values())

    followed["dup"].write("INSERT INTO dup VALUES (1, 'a', 32)")
    followed["uni"].write("INSERT INTO uni VALUES (1, 1, 4, 'late'), (2, 1, 3, 'z'), (9, 9, 9, '')")
    followed["agg"].write("INSERT INTO agg VALUES (1, 1, 16, 0, 0, 'd', NULL)")

    assert ordered(lake, "uni") == [
        *[(1, 1, 5, "new"), (2, 1, 3, "z"), (3, 2, 0, "z"), (4, 2, 0, "w"), (9, 9, 9, "")]
    ]
    assert ordered(lake, "agg", "1, 2") == [
        (1, 1, 21, 0, 4, "d", "a"),
        (1, 2, 2, 2, 2, "b", "b"),
        (2, 1, 8, 8, 8, "c", "c"),
    ]
    assert {name: old.tag(name, KEYS) for name in QUERIES} == before
    with pytest.raises(InvalidRequest, match="is rollup p of dup"):
        lake.sql("INSERT INTO `dup$p` VALUES (1, 'a')")


@pytest.mark.slow
def test_tables_are_altered_and_their_texts_are_those_of_today(old, lake):
    lake.sql("ALTER TABLE agg ADD COLUMN more INT MAX DEFAULT 0 TO few")
    lake.sql("ALTER TABLE dup RENAME COLUMN v TO w")
    lake.sql("ALTER TABLE dup ADD ROLLUP q (w, k)")
    lake.sql("ALTER TABLE uni RENAME TO uni2; ALTER TABLE uni2 DROP ROLLUP r")
    lake.sql("INSERT INTO agg VALUES (1, 1, 1, 1, 1, NULL, NULL, 7)")

    assert old.tag("agg", KEYS) == (
        '{"version":1,"model":"AGGREGATE","columns":[1,2],"aggregations":[[3,"SUM"],[4,"MIN"],'
        '[5,"MAX"],[6,"REPLACE"],[7,"REPLACE_IF_NOT_NULL"],[8,"MAX"]]}'
    )
    assert ordered(lake, "agg$few") == [(1, 8, 4, 7), (2, 8, 8, 0)]
    assert old.tag("dup", ROLLUPS) == '{"version":1,"names":["p","m","q"]}'
    assert old.tag("dup$p", ROLLUP).startswith('{"is":"Rollup"')
    assert Followed(lake, old.url, "dup", {}).fresh() == {"p": True, "m": True, "q": True}
    assert "uni2$r" not in [table.name for table in lake.tables()]


@pytest.mark.slow
def test_jobs_go_on_from_where_they_are(old, lake):
    done = lake.run_jobs()

    found = {job.look().table_name.removeprefix("main."): job.state for job in done}
    assert found == dict.fromkeys(OPEN, JobState.FINISHED)
    for name, (kinds, held) in AFTER.items():
        assert (name, columns(lake, name)) == (name, kinds)
        assert (name, ordered(lake, name)) == (name, held)
    [(laid_out,)] = rows(lake.sql("SHOW CREATE TABLE laid_out"))
    assert "PARTITIONED BY (year(at), bucket(4, g))" in laid_out


@pytest.mark.slow
def test_what_was_followed_and_what_has_landed_is_known(old, lake):
    seen = []
    at = lake.table("dup").follow(
        lambda changes, number: seen.append((number, changes.count())), f"{old.folder}/follower"
    )

    assert (seen, at) == ([(1, 1)], 62)
    with lake.transaction(once=("nightly", 3)) as work:
        work.table("theirs").append(lake.sql("SELECT 3 AS id"))
    assert len(ordered(lake, "theirs")) == 2


WRITES = [
    "INSERT INTO {} SELECT * FROM {} LIMIT 1",
    "DELETE FROM {}",
    "UPDATE {} SET k = 7",
    "INSERT OVERWRITE {} SELECT * FROM {}",
    "TRUNCATE TABLE {}",
]
# What a newer Shelduck keeps, of which table, and what a write or ALTER of which base says then.
NEWER = [
    ("agg", KEYS, "agg", "the key model of table main.agg was made by a newer Shelduck; upgrade"),
    ("dup$p", ROLLUP, "dup", "the rollup definition of table main.`dup$p` was made by a newer"),
    ("dup$p", KEYS, "dup", "the key model of table main.`dup$p` was made by a newer Shelduck"),
    ("dup", ROLLUPS, "dup", "the rollup list of table main.dup was made by a newer Shelduck"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("newer", NEWER, ids=lambda newer: " ".join(newer[:2]))
def test_a_table_of_a_newer_shelduck_is_read_and_not_written(old, lake, newer):
    table, key, base, told = newer
    sums = {
        "agg": ("SELECT j, SUM(s) FROM agg GROUP BY j", [(1, 7), (2, 8)]),
        "dup": ("SELECT g, SUM(v) FROM dup GROUP BY g", [("a", 3), ("b", 12), ("c", 16)]),
    }
    query, wanted = sums[base]
    held = ordered(lake, table)
    old.retag(table, key, '{"version":2,"made":"of something else"}')
    before = newest(lake)

    found = lake.sql(query)
    assert sorted(rows(found)) == wanted
    assert set(found.inputFiles()) == set(lake.table(base).read().inputFiles())
    assert ordered(lake, table) == held
    lake.sql(f"DESCRIBE EXTENDED {base}").collect()
    for write in (*WRITES, "ALTER TABLE {} ADD COLUMN c INT"):
        with pytest.raises(NewerFormat) as caught:
            lake.sql(write.format(base, base))
        assert str(caught.value).startswith(told), write
    assert newest(lake) == before
    lake.table(base).compact()
    assert ordered(lake, table) == held


@pytest.mark.slow
def test_a_table_with_a_property_of_a_newer_shelduck_is_read_and_not_written(old, lake, tmp_path):
    old.sql(
        "INSERT INTO ducklake_tag SELECT table_id, begin_snapshot, NULL, 'shelduck.checks', 'id'"
        " FROM ducklake_table WHERE table_name = 'theirs'"
    )
    lake.set_option("data_inlining_row_limit", 10)
    files = str(tmp_path / "files")
    lake.sql("SELECT * FROM theirs").write.parquet(files)
    before = newest(lake)

    assert len(ordered(lake, "theirs")) == 2
    for act in (
        lambda: lake.sql("INSERT INTO theirs VALUES (1, NULL, NULL, NULL)"),
        lambda: lake.table("theirs").append(lake.sql("SELECT 1 AS id")),
        lambda: lake.table("theirs").add_files(files),
        lambda: lake.sql("DELETE FROM theirs"),
        lambda: lake.sql("ALTER TABLE theirs DROP COLUMN u"),
    ):
        with pytest.raises(NewerFormat, match=r"^property shelduck\.checks of table main\.theirs"):
            act()
    assert newest(lake) == before


def test_a_newer_rollup_holds_up_nothing_else_and_is_not_taken_for_right(old, lake):
    text = old.tag("dup$p", ROLLUP)
    old.retag("dup$p", ROLLUP, '{"version":2}')

    lake.sql("INSERT INTO uni VALUES (7, 7, 7, '')")
    with DuckDBOracle(old.url) as duckdb:
        duckdb.execute("INSERT INTO dup VALUES (9, 'z', 9)")
    lake.sql("INSERT INTO theirs (id) VALUES (3)")
    lake.expire_snapshots(older_than=lake.snapshots()[-1].time)
    assert len(lake.snapshots()) == 1

    assert Followed(lake, old.url, "uni", {}).fresh() == {"r": True}
    old.retag("dup$p", ROLLUP, text)
    followed = Followed(lake, old.url, "dup", QUERIES["dup"])
    assert followed.fresh() == {"p": False, "m": False}
    lake.sql("CALL refresh_rollups('dup')")
    followed.check()


NEWER_WORK = '{"version":2,"explodes":true}'


def test_a_job_of_a_newer_shelduck_is_left_to_it(old, lake):
    [number] = [j.id for j in lake.jobs() if j.look().table_name == "main.running"]
    [(work,)] = old.sql("SELECT work FROM shelduck_job WHERE job_id = ?", number)
    old.sql("UPDATE shelduck_job SET state = 'CANCELLED' WHERE job_id NOT IN (?, 3)", number)
    old.sql("UPDATE shelduck_job SET work = ? WHERE job_id = ?", NEWER_WORK, number)
    job = lake.job(number)
    told = (
        f"the work of job {number} on main.running was made by a newer Shelduck; upgrade (format"
        " version 2, supported: 1)"
    )

    assert str(job) == f"job {number} on main.running: RUNNING 1/1 file(s): {told}"
    shown = lake.sql("SHOW ALTER TABLE COLUMN").where(f"JobId = {number}")
    assert rows(shown.select("TableName", "IndexName", "State", "Msg")) == [
        ("running", "running", "RUNNING", told)
    ]
    acts = (
        job.wait,
        job.cancel,
        lambda: lake.sql("CANCEL ALTER TABLE COLUMN FROM running"),
        lambda: lake.sql("ALTER TABLE running ALTER COLUMN v TYPE BIGINT"),
    )
    for act in acts:
        with pytest.raises(NewerFormat) as caught:
            act()
        assert str(caught.value) == told
    # Rows come without what the job converts, as DuckDB's do; other jobs are not held up.
    lake.sql("INSERT INTO running VALUES (3, '30')")
    assert [(j.id, j.state.value) for j in lake.run_jobs()] == [
        (3, "FINISHED"),
        (number, "RUNNING"),
    ]
    assert ordered(lake, "running") == [(1, "10"), (2, "20"), (3, "30")]
    [found] = old.sql("SELECT worker, work FROM shelduck_job WHERE job_id = ?", number)
    assert found == (None, NEWER_WORK)

    old.sql("UPDATE shelduck_job SET work = ? WHERE job_id = ?", work, number)
    lake.job(number).wait()
    assert ordered(lake, "running") == [(1, 10), (2, 20), (3, 30)]


def test_a_job_waits_where_only_a_newer_shelduck_knows_its_table(old, lake):
    [job] = [j for j in lake.jobs() if j.look().table_name == "main.folding"]
    old.retag("folding", KEYS, '{"version":2}')

    with pytest.raises(NewerFormat, match=r"^the key model of table main\.folding was made by"):
        job.wait()

    assert job.state is JobState.RUNNING
    assert job.look().worker is None
    with pytest.raises(NewerFormat, match=r"^the key model of table main\.folding was made by"):
        lake.sql(f"RESTORE TABLE folding TO VERSION AS OF {lake.table('folding').history()[-1].id}")


def test_a_batch_of_a_newer_shelduck_is_left_to_it(old, lake):
    batch = old.folder / "follower" / "1.json"
    batch.write_text(batch.read_text().replace("{", '{"version": 2, '))

    with pytest.raises(NewerFormat, match=r"/follower/1\.json was made by a newer"):
        lake.table("dup").follow(lambda changes, number: None, str(old.folder / "follower"))


@pytest.mark.slow
def test_a_layout_of_a_newer_shelduck_is_read_from_the_file(old, lake):
    old.sql("UPDATE shelduck_layout SET layout = '{\"version\":2}'")

    assert [i for i, *_ in ordered(lake, "theirs")] == [1, 2]
    lake.sql("INSERT INTO theirs (id) VALUES (3)")
    assert [i for i, *_ in ordered(lake, "theirs")] == [1, 2, 3]
