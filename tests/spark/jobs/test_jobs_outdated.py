"""What others do that files converted before do not know of: the job ends, and nothing is wrong."""

from __future__ import annotations

import pytest

from shelduck import InvalidRequest, JobState
from shelduck.jobs import convert, lots
from shelduck.jobs.lots import Lots
from shelduck.jobs.worker import JobWorker
from tests.support.lakes import rows
from tests.support.meanwhile import convert_first, once_after, once_before
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CREATE TABLE t (id INT, s STRUCT<b: INT, a: INT>, v STRING, w STRING)",
    "INSERT INTO t SELECT 1, named_struct('b', 1, 'a', 11), '1', 'old'",
    "INSERT INTO t SELECT 2, named_struct('b', 2, 'a', 12), 'x', 'old'",
]


@pytest.mark.parametrize(
    ("clause", "meanwhile", "told", "seen"),
    [
        (
            "ALTER COLUMN s.b TYPE STRING",
            ["ALTER TABLE t DROP COLUMN s.a", "ALTER TABLE t ADD COLUMN s.a INT"],
            "a field of 's' was dropped and added again while the job ran",
            ("SELECT id, s.b, s.a FROM t ORDER BY id", [(1, 1, None), (2, 2, None)]),
        ),
        (
            "ALTER COLUMN v TYPE STRING USING concat(v, w)",
            ["ALTER TABLE t DROP COLUMN w", "ALTER TABLE t ADD COLUMN w STRING DEFAULT 'new'"],
            "w became another column while the job ran, and USING may refer to it",
            ("SELECT id, v, w FROM t ORDER BY id", [(1, "1", "new"), (2, "x", "new")]),
        ),
        (
            "ALTER COLUMN v TYPE INT ON ERROR NULL",
            ["ALTER TABLE t ALTER COLUMN v SET NOT NULL"],
            "'v' became NOT NULL while the job ran, and the job may produce NULL",
            ("SELECT id, v FROM t ORDER BY id", [(1, "1"), (2, "x")]),
        ),
    ],
)
def test_a_job_whose_files_are_outdated_is_cancelled(copied, clause, meanwhile, told, seen):
    (catalog, lake), (query, expected) = copied, seen
    lake.sql(f"ALTER TABLE t {clause} PROPERTIES ('wait' = 'false')")
    [job] = lake.jobs()
    with pytest.MonkeyPatch.context() as patch:
        convert_first(patch)
        once_before(patch, JobWorker, "_publish", lambda: [lake.sql(one) for one in meanwhile])
        with pytest.raises(InvalidRequest, match=told):
            job.wait()

    assert job.state is JobState.CANCELLED
    assert rows(lake.sql(query)) == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql(query) == expected


def test_writers_do_not_mind_an_expression_that_has_lost_its_columns(copied):
    """The job is cancelled by whoever works on it; that is no reason to refuse rows."""
    catalog, lake = copied
    lake.sql(
        "ALTER TABLE t ALTER COLUMN v TYPE STRING USING concat(v, w) PROPERTIES ('wait' = 'false')"
    )
    [job] = lake.jobs()
    lake.sql("ALTER TABLE t RENAME COLUMN w TO y")
    lake.sql("INSERT INTO t SELECT 3, named_struct('b', 3, 'a', 13), '3', 'new'")
    lake.sql("UPDATE t SET y = 'other' WHERE id = 1")
    with pytest.raises(InvalidRequest, match="an expression cannot be evaluated"):
        job.wait()

    query = "SELECT id, v, y FROM t ORDER BY id"
    expected = [(1, "1", "other"), (2, "x", "old"), (3, "3", "new")]
    assert rows(lake.sql(query)) == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql(query) == expected


@pytest.mark.slow
def test_other_columns_may_change_meanwhile(copied, monkeypatch):
    catalog, lake = copied
    lake.sql(
        "ALTER TABLE t ALTER COLUMN v TYPE STRING USING concat(v, '!')"
        " PROPERTIES ('wait' = 'false')"
    )
    [job] = lake.jobs()
    others = "RENAME COLUMN w TO y, ADD COLUMN z INT DEFAULT 5, ALTER COLUMN id TYPE BIGINT"
    convert_first(monkeypatch)
    once_before(monkeypatch, JobWorker, "_publish", lambda: lake.sql(f"ALTER TABLE t {others}"))
    job.wait()

    query, expected = "SELECT v, y, z FROM t ORDER BY id", [("1!", "old", 5), ("x!", "old", 5)]
    assert rows(lake.sql(query)) == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql(query) == expected


def test_a_job_that_was_cancelled_converts_no_more_files(lake, monkeypatch):
    lake.sql("ALTER TABLE t ALTER COLUMN v TYPE INT ON ERROR NULL PROPERTIES ('wait' = 'false')")
    [job] = lake.jobs()
    written, write = [], convert.write_bins

    def noted(spark, found, lot, **options):
        written.append(lot)
        return write(spark, found, lot, **options)

    monkeypatch.setattr(convert, "write_bins", noted)
    monkeypatch.setattr(lots, "batches", lambda bins, _: [[one] for one in bins])
    monkeypatch.setattr(
        Lots, "_bins", lambda _, found, left, *_shadows: (found.chosen(left, 1), None)
    )
    convert_first(monkeypatch)
    once_after(monkeypatch, lots, "land", job.cancel)
    with pytest.raises(InvalidRequest, match="was cancelled"):
        job.wait()

    assert len(written) == 1
