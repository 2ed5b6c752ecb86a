"""A time without an offset is in the session's time zone, wherever it is written."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from shelduck import InvalidRequest, NotFound
from shelduck.lake.lookup import earlier, instant
from tests.support.attaching import attached_lake
from tests.support.lakes import newest, rows

STATEMENTS = ["CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"]
ZONE = "America/New_York"
NEW_YORK = ZoneInfo(ZONE)
TIME_ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def far_away(spark):
    """The session is in New York, and not in UTC."""
    before = spark.conf.get(TIME_ZONE)
    spark.conf.set(TIME_ZONE, ZONE)
    yield
    spark.conf.set(TIME_ZONE, before)


def local(lake, version):
    """The time of a snapshot on a clock in New York."""
    found = next(s for s in lake.snapshots() if s.id == version)
    return found.time.astimezone(NEW_YORK).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-07-01 12:00", "2026-07-01T12:00:00-04:00"),
        ("2026-01-01", "2026-01-01T00:00:00-05:00"),
        ("2026-01-01 12:00+02:00", "2026-01-01T12:00:00+02:00"),
        # Clocks are set forward at 2 o'clock on the eighth of March, and back on the first of
        # November: Spark takes these times in the same way.
        ("2026-03-08 02:30", "2026-03-08T03:30:00-04:00"),
        ("2026-11-01 01:30", "2026-11-01T01:30:00-04:00"),
    ],
)
def test_a_time_is_read_in_a_zone(text, expected):
    assert instant(text, lambda: NEW_YORK).isoformat() == expected
    assert earlier(text, lambda: NEW_YORK).isoformat() == expected


def test_spark_takes_times_that_a_zone_has_twice_or_never_in_the_same_way(spark, far_away):
    for text in ("2026-03-08 02:30", "2026-11-01 01:30", "2026-07-01 12:00"):
        [(micros,)] = rows(spark.sql(f"SELECT unix_micros(TIMESTAMP'{text}')"))
        assert instant(text, lambda: NEW_YORK).timestamp() * 10**6 == micros


def test_the_zone_of_a_lake_is_that_of_its_session(spark, lake, far_away, tmp_path):
    assert lake._state.time_zone() == NEW_YORK
    spark.conf.set(TIME_ZONE, "+05:30")
    assert lake._state.time_zone() == timezone(timedelta(hours=5, minutes=30))
    spark.conf.set(TIME_ZONE, "PST")
    with pytest.raises(InvalidRequest, match="time zone 'PST' is not known here; write the time"):
        lake.table("t").plan_restore(timestamp="2026-01-01")


def test_without_a_session_it_is_the_one_that_a_session_would_have(lake, monkeypatch):
    state = lake._state
    monkeypatch.setattr(state, "given_spark", None)
    monkeypatch.setattr("shelduck.engine.session.SparkSession.getActiveSession", lambda: None)
    state.config = {TIME_ZONE: "Asia/Tokyo"}
    assert state.time_zone() == ZoneInfo("Asia/Tokyo")
    state.config = {}
    assert state.time_zone() is None
    machine = datetime(2026, 7, 1, 12).astimezone().isoformat()
    assert instant("2026-07-01 12:00", state.time_zone).isoformat() == machine


def test_calls_without_a_job_read_times_in_the_zone_of_the_session(lake, far_away):
    at = local(lake, 2)
    table = lake.table("t")

    assert table.plan_restore(timestamp=str(at)).version == 2
    assert table.plan_restore(timestamp=at).version == 2
    expired = f"CALL expire_snapshots(older_than => '{local(lake, 3)}', dry_run => true)"
    assert lake.execute(expired).rows == [(0,), (1,), (2,)]
    wrong = f"CALL list_files('t', snapshot_time => TIMESTAMP'{at - timedelta(hours=1)}')"
    with pytest.raises(NotFound, match="no snapshot as old as") as caught:
        lake.execute(wrong)
    offset = at.replace(tzinfo=NEW_YORK).isoformat()[-6:]
    assert f"{at - timedelta(hours=1)}{offset}; its first snapshot is" in str(caught.value)


def test_a_restore_says_which_instant_it_took(lake, far_away):
    at = local(lake, 2).replace(microsecond=0) + timedelta(seconds=1)
    before = lake.snapshots()[-1].id
    with pytest.raises(NotFound, match="no snapshot as old as"):
        lake.sql(f"RESTORE TABLE t TO TIMESTAMP AS OF '{at - timedelta(hours=5)}'")
    lake.sql(f"RESTORE TABLE t TO TIMESTAMP AS OF '{local(lake, 2)}'")

    assert newest(lake) == before + 1
    assert rows(lake.sql("SELECT id FROM t")) == [(1,)]
    [found] = lake.snapshots(limit=1)
    when = local(lake, 2).replace(tzinfo=NEW_YORK)
    assert found.commit_message == f"restore main.t to snapshot 2, the newest at {when}"


@pytest.mark.slow
def test_every_door_takes_the_same_text_as_the_same_instant(spark, far_away, tmp_path):
    with attached_lake(spark, tmp_path, *STATEMENTS) as lake:
        at, table = local(lake, 2), lake.table("t")
        lake.sql(f"CREATE VIEW then AS SELECT id FROM t TIMESTAMP AS OF '{at}'")
        reads = {
            "lake.sql": lake.sql(f"SELECT id FROM t TIMESTAMP AS OF '{at}'"),
            "AT": lake.sql(f"SELECT id FROM t AT (TIMESTAMP => TIMESTAMP '{at}')"),
            "spark.sql": spark.sql(f"SELECT id FROM lake.main.t TIMESTAMP AS OF '{at}'"),
            "option": spark.read.option("timestampAsOf", str(at)).table("lake.main.t"),
            "read": table.read(timestamp=str(at)),
            "datetime": table.read(timestamp=at),
            "view": lake.sql("SELECT id FROM then"),
            "changes": table.changes(0, str(at)).select("id"),
            "table_changes": lake.sql(f"SELECT id FROM table_changes('t', 0, '{at}')"),
        }
        assert [name for name, found in reads.items() if rows(found) != [(1,)]] == []
        later = lake.sql(f"SELECT id FROM table_changes('t', TIMESTAMP'{local(lake, 3)}', 3)")
        assert rows(later) == [(2,)]
        assert lake.table("t").files(timestamp=str(at)).count() == 0
        stream = spark.readStream.option("startingTimestamp", str(local(lake, 3)))
        query = (
            stream.table("lake.main.t")
            .writeStream.format("memory")
            .queryName("later")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert rows(spark.table("later")) == [(2,)]
