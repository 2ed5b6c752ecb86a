"""What Shelduck does is recorded where it happens."""

from __future__ import annotations

import pytest

from shelduck import metrics

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id BIGINT, v INT)",
]


@pytest.fixture
def seen():
    found = []
    stop = metrics.subscribe(found.append)
    yield found
    stop()


def sums(seen, prefix):
    """What was recorded of metrics whose names begin so, added up by name."""
    found = {}
    for told in seen:
        if told.name.startswith(prefix) and told.unit != "s":
            found[told.name] = found.get(told.name, 0) + told.value
    return found


def test_writes_and_reads_tell_their_files(lake, spark, seen):
    table = lake.table("t")
    for first in (0, 100, 200):
        table.append(spark.range(first, first + 10, 1, 1).selectExpr("id", "1 AS v"))
    written = sums(seen, "shelduck.write.")
    size = written.pop("shelduck.write.bytes")

    assert written == {"shelduck.write.rows": 30, "shelduck.write.files": 3}
    sizes = lake.sql("SELECT file_size_in_bytes FROM main.t.files").collect()
    assert size == sum(row[0] for row in sizes)

    del seen[:]
    table.read().where("id = 105").collect()
    planned = sums(seen, "shelduck.scan.")
    assert 0 < planned.pop("shelduck.scan.bytes") < size
    assert planned == {"shelduck.scan.files": 1, "shelduck.scan.skipped_files": 2}
    assert {told.attributes["shelduck.table"] for told in seen if "scan" in told.name} == {"main.t"}


def test_commits_are_timed_and_failed_ones_say_why(lake, seen):
    lake.sql("INSERT INTO t VALUES (1, 1)")
    commits = [t for t in seen if t.name == "shelduck.commit.duration"]
    assert [dict(told.attributes) for told in commits] == [{}]

    with lake.transaction() as mine:
        mine.sql("DELETE FROM t WHERE id = 1")
        lake.sql("DELETE FROM t WHERE id = 1")
        del seen[:]
        with pytest.raises(Exception, match="another"):
            mine.commit()
    commits = [t for t in seen if t.name == "shelduck.commit.duration"]
    assert {"error.type": "Conflict"} in [dict(told.attributes) for told in commits]


def test_a_job_is_timed_by_who_waits_for_it(lake, seen):
    lake.sql("INSERT INTO t VALUES (1, 1)")
    lake.sql("ALTER TABLE t ALTER COLUMN v TYPE STRING")

    [job] = [t for t in seen if t.name == "shelduck.job.duration"]
    assert not job.attributes
    assert job.value > 0


def test_lookups_of_tables_tell_what_the_process_knew(lake, seen):
    lake.sql("INSERT INTO t VALUES (1, 1)")
    del seen[:]
    lake.sql("INSERT INTO t VALUES (2, 2)")

    known = [t.attributes["shelduck.known"] for t in seen if t.name == "shelduck.table.lookups"]
    assert "yes" in known
