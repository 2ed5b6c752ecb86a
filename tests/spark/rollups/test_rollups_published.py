"""Rollups and their base change in one snapshot: a reader between two commits finds both right.

DuckDB is asked at every snapshot. It knows no rollups, so what it makes of the base is the answer.
"""

from __future__ import annotations

import pytest

import shelduck
from shelduck import JobState
from shelduck.catalog.commit import commit as commits
from shelduck.doors.sql.parse import parse
from shelduck.rollups import altered_bases
from tests.support.lakes import newest, rows
from tests.support.meanwhile import once_before
from tests.support.oracle import DuckDBOracle, at
from tests.support.rollups import Followed, bag

STATEMENTS = [
    (
        "CREATE TABLE t (a INT, b INT, c INT, s VARCHAR(20) MAX, v INT SUM)"
        " AGGREGATE KEY (a, b, c) ROLLUP (r (a, b, s, v), r2 (b, v), r3 (c, s))"
    ),
    "INSERT INTO t VALUES (1, 1, 1, '1', 1), (2, 1, 1, '2', 2), (1, 1, 2, '3', 4)",
    "INSERT INTO t VALUES (NULL, 2, 2, NULL, 8), (2, 1, 1, '0', 16), (NULL, 2, NULL, '9', NULL)",
]
HOW = {"s": "max", "v": "sum"}
# The indexes that SHOW has for a change, its job, and how many snapshots it takes: those that
# reserve columns and convert files show nothing new.
CHANGES = {
    "DROP COLUMN a FROM r": ("r", 1, 1),
    "DROP COLUMN v FROM r": ("r", None, 1),
    "MODIFY COLUMN v BIGINT SUM": ("t r r2", 1, 1),
    "MODIFY COLUMN v BIGINT SUM, DROP COLUMN b FROM r": ("t r r2", 1, 1),
    # A job moves rows and deletes out of the catalog in a snapshot of its own.
    "MODIFY COLUMN s INT MAX": ("t r r3", 1, 4),
    "ALTER COLUMN v TYPE INT USING v * 100": ("t r r2", 1, 4),
    "ALTER COLUMN s TYPE INT ON ERROR NULL": ("t r r3", 1, 4),
}
FAST = (
    "DROP COLUMN a FROM r",
    "MODIFY COLUMN v BIGINT SUM",
    "ALTER COLUMN v TYPE INT USING v * 100",
)


class Died(BaseException):
    """A process that died."""


@pytest.fixture
def followed(copied):
    catalog, lake = copied
    return Followed(lake, f"sqlite:///{catalog}", "t", {})


def right_at_every_snapshot(found, first=1):
    """Assert that each rollup holds at each snapshot what DuckDB makes of its base there."""
    with DuckDBOracle(found.url) as duckdb:
        last = duckdb.snapshot()
        for version in range(first, last + 1):
            base = [name for name, _ in duckdb.columns("t", version=version)]
            for name in ("r", "r2", "r3"):
                table = f'"t${name}"'
                columns = [c for c, _ in duckdb.columns(table, version=version)]
                assert set(columns) <= set(base)
                made = [f"{HOW[c]}({c})" if c in HOW else c for c in columns]
                keys = ", ".join(c for c in columns if c not in HOW)
                query = f"SELECT {', '.join(made)} FROM {at('t', version)} GROUP BY {keys}"
                held = bag(duckdb.rows(table, version=version))
                assert held == bag(duckdb.sql(query)), (version, name)
        return last


def dying_after(monkeypatch, number):
    """Let the commit after so many others end the process: nothing that follows it is done."""
    real, done = commits.write_with_retries, []

    def dying(store, attempt):
        found = real(store, attempt)
        done.append(found)
        if len(done) == number:
            raise Died
        return found

    monkeypatch.setattr(commits, "write_with_retries", dying)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [c if c in FAST else pytest.param(c, marks=pytest.mark.slow) for c in CHANGES]
)
def test_rollups_are_published_with_their_base(followed, change):
    indexes, job, snapshots = CHANGES[change]
    before = newest(followed.lake)
    followed.lake.sql(f"ALTER TABLE t {change}")

    assert right_at_every_snapshot(followed) == before + snapshots
    assert followed.fresh() == {"r": True, "r2": True, "r3": True}
    shown = rows(followed.lake.sql("SHOW ALTER TABLE COLUMN"))
    assert [row[4] for row in shown] == indexes.split()
    assert {(row[0], row[1], row[9]) for row in shown} == {(job, "t", "FINISHED")}
    followed.lake.sql("INSERT INTO t (a, b, c, v) VALUES (9, 9, 9, 5), (1, 1, 1, 7)")
    followed.lake.sql("DELETE FROM t WHERE a IS NULL")
    right_at_every_snapshot(followed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "DROP COLUMN a FROM r",
        pytest.param("MODIFY COLUMN v BIGINT SUM", marks=pytest.mark.slow),
        pytest.param("ALTER COLUMN v TYPE INT USING v * 100", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_dies_between_commits_leaves_rollups_right(base, monkeypatch, change):
    for number in range(1, 9):
        catalog, lake = base.copy()
        found = Followed(lake, f"sqlite:///{catalog}", "t", {})
        with monkeypatch.context() as patch:
            dying_after(patch, number)
            try:
                lake.sql(f"ALTER TABLE t {change}")
                ended = True
            except Died:
                ended = False
        right_at_every_snapshot(found)
        lake.run_jobs()
        right_at_every_snapshot(found)
        assert [job.state for job in lake.jobs()] == [JobState.FINISHED]
        assert found.fresh() == {"r": True, "r2": True, "r3": True}
        lake.close()
        if ended:
            break
    assert number > 1


def test_a_load_beside_a_job_is_in_the_rollups_that_it_publishes(followed, monkeypatch, spark):
    url = followed.url
    with shelduck.connect(url, spark=spark, progress=False) as other:
        load = "INSERT INTO t VALUES (1, 1, 1, '8', 32), (5, 5, 5, '5', 5)"
        once_before(monkeypatch, altered_bases.UnitOfWork, "commit", lambda: other.sql(load))
        followed.lake.sql("ALTER TABLE t DROP COLUMN a FROM r")

    right_at_every_snapshot(followed)
    assert followed.fresh() == {"r": True, "r2": True, "r3": True}


def test_a_change_that_makes_rollups_anew_is_none_of_a_transaction(followed):
    before = newest(followed.lake)
    followed.lake.sql("BEGIN")
    with pytest.raises(shelduck.InvalidRequest, match="a change that rebuilds rollups"):
        followed.lake.sql("ALTER TABLE t DROP COLUMN a FROM r")
    followed.lake.sql("ROLLBACK")
    assert newest(followed.lake) == before


@pytest.mark.slow
def test_what_changes_columns_with_rows_is_followed_in_its_snapshot(followed, spark):
    lake = followed.lake
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    before = newest(lake)
    wide = "SELECT 7 AS a, 7 AS b, 7 AS c, '7' AS s, CAST(3000000000 AS BIGINT) AS v"
    lake.table("t").append(spark.sql(wide), merge_schema=True)
    assert right_at_every_snapshot(followed) == before + 1
    lake.sql(f"RESTORE TABLE t TO VERSION AS OF {before}")
    assert right_at_every_snapshot(followed) == before + 2
    assert followed.fresh() == {"r": True, "r2": True, "r3": True}


def test_the_plan_tells_which_rollups_are_made_anew(followed):
    [statement] = parse("ALTER TABLE t MODIFY COLUMN v BIGINT SUM")
    plan = followed.lake.table("t").plan_alter(*statement.changes)
    assert plan.is_heavy
    assert [(s.change, s.weight) for s in plan.steps[1:]] == [
        *[("rebuild t$r", "heavy"), ("rebuild t$r2", "heavy")]
    ]


def test_a_light_change_right_before_a_job_of_rollups_is_still_shown(followed):
    followed.lake.sql("ALTER TABLE t ADD COLUMN z INT MIN")
    followed.lake.sql("ALTER TABLE t ADD ROLLUP more (a, v)")
    followed.lake.sql("ALTER TABLE t DROP COLUMN s FROM r3")
    shown = rows(followed.lake.sql("SHOW ALTER TABLE COLUMN WHERE TableName = 't'"))
    assert [(row[0], row[4]) for row in shown] == [(None, "r3"), (None, "t")]
