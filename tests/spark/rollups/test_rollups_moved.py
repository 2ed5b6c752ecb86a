"""Rollups and keys that go, while others rename their table, change its columns or swap it."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import Conflict, JobState, Unsupported
from shelduck.engine.session import AnalysisException
from shelduck.rollups import builder
from tests.support.lakes import rows
from tests.support.meanwhile import once_after, once_before
from tests.support.rollups import Followed

STATEMENTS = [
    "CREATE TABLE d (k INT, g STRING, v INT) DUPLICATE KEY (k)",
    "INSERT INTO d VALUES (1, 'a', 1), (2, NULL, 2)",
    "CREATE TABLE d2 (k INT, g STRING, v INT) DUPLICATE KEY (k)",
    "INSERT INTO d2 VALUES (100, 'z', 100)",
    "CREATE TABLE a (k1 INT, k2 INT, s INT SUM, m INT MAX) AGGREGATE KEY (k1, k2)",
    "INSERT INTO a VALUES (1, 1, 1, 1), (1, 2, 2, 2), (2, 1, 10, 3)",
    "CREATE TABLE a2 (k1 INT, k2 INT, s INT SUM, m INT MAX) AGGREGATE KEY (k1, k2)",
    "INSERT INTO a2 VALUES (7, 7, 7, 7), (8, 8, 8, 8)",
]
TABLES = {"d", "d2", "a", "a2"}
LATER = "PROPERTIES ('wait' = 'false')"
P = f"ALTER TABLE d ADD ROLLUP p (v, g) {LATER}"
DROP = f"ALTER TABLE a DROP COLUMN k2 {LATER}"
RENAME = "ALTER TABLE d RENAME TO e"
SWAP = "ALTER TABLE {0} RENAME TO old; ALTER TABLE {0}2 RENAME TO {0}"
LEFT = [(1, 3, 2), (2, 10, 3)]
ADDED = [(1, 3, 2, 5), (2, 10, 3, 5)]


@pytest.fixture
def other(copied, spark):
    """Another connection to the lake, as another process would have it."""
    with shelduck.connect(f"sqlite:///{copied[0]}", spark=spark, progress=False) as lake:
        yield lake


@pytest.fixture
def followed(copied):
    def of(table, **queries):
        return Followed(copied[1], f"sqlite:///{copied[0]}", table, queries)

    return of


@pytest.fixture
def meanwhile(monkeypatch, other):
    """Lets others do something as soon as a step of a job is done."""

    def of(when, statements):
        once_after(monkeypatch, builder, when, lambda: other.sql(statements))

    return of


def names(lake):
    return {t.name for t in lake.tables()}


def held(lake, table):
    return sorted(rows(lake.sql(f"SELECT * FROM {table}")), key=str)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "named", "when"),
    [
        (RENAME, "e", "catch_up"),
        (SWAP.format("d"), "old", "catch_up"),
        (RENAME, "e", "_fill"),
        (RENAME, "e", "list_rollups"),
    ],
)
def test_a_rollup_follows_the_name_of_its_table(followed, meanwhile, act, named, when):
    lake = followed("d").lake
    lake.sql(P)
    meanwhile(when, act)
    [job] = lake.jobs()
    job.wait()

    assert job.state is JobState.FINISHED
    found = followed(named, p="SELECT v, g FROM {t}")
    found.check()
    found.write(f"INSERT INTO {named} VALUES (9, 'x', 9)")
    assert [name for name in names(lake) if "$" in name] == [f"{named}$p"]


def test_a_rename_gives_way_to_a_rollup_that_it_has_not_seen(followed, lake, other):
    """It began before the rollup was filled, and lands when it is listed."""
    lake.sql(P)

    def rename():
        with other.transaction() as tx:
            tx.sql(RENAME)
            lake.jobs()[0].wait()

    with pytest.raises(Conflict, match=r"changed the rollups of table main.d"):
        rename()
    assert followed("d", p="SELECT v, g FROM {t}").check()


def test_a_listing_gives_way_to_a_rename_that_it_has_not_seen(followed, monkeypatch, other):
    """Which began before the rollup was filled, and left that under the older name."""
    lake = followed("d").lake
    lake.sql(P)
    with other.transaction() as tx:
        tx.sql(RENAME)
        once_before(monkeypatch, builder, "list_rollups", tx.commit)
        lake.jobs()[0].wait()

    assert followed("e", p="SELECT v, g FROM {t}").check()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("act", ["DROP TABLE d", "CANCEL ALTER TABLE ROLLUP FROM d"])
def test_what_is_given_up_goes_under_its_older_name_too(lake, monkeypatch, other, act):
    lake.sql(P)

    real = builder._fill

    def fill(*arguments):
        with other.transaction() as tx:
            tx.sql(RENAME)
            # Filled while the rename is on its way.
            real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(builder, "_fill", fill)
        with pytest.raises(KeyboardInterrupt):
            lake.jobs()[0].wait()
    assert {"e", "d$p"} <= names(lake)
    lake.sql(act.replace(" d", " e"))
    with pytest.raises(shelduck.ShelduckError):
        lake.jobs()[0].wait()

    assert not [name for name in names(lake) if "$" in name]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["catch_up", "list_rollups", "plan_alter"])
def test_a_key_goes_from_the_table_that_it_was_to_go_from(lake, meanwhile, when):
    lake.sql(DROP)
    meanwhile(when, SWAP.format("a"))
    lake.jobs()[0].wait()

    assert held(lake, "old") == LEFT
    assert held(lake, "a") == [(7, 7, 7, 7), (8, 8, 8, 8)]
    assert not [name for name in names(lake) if "$" in name]


@pytest.mark.parametrize(
    ("clause", "left", "when"),
    [
        ("ADD COLUMN x INT MAX DEFAULT 5", ADDED, "_fill"),
        ("ADD COLUMN x INT MAX DEFAULT 5", ADDED, "plan_alter"),
        ("RENAME COLUMN s TO total", LEFT, "_fill"),
        ("RENAME COLUMN s TO total", LEFT, "plan_alter"),
        ("DROP COLUMN s", [(1, 2), (2, 3)], "_fill"),
    ],
)
def test_columns_that_others_change_meanwhile_are_in_what_is_left(
    lake, meanwhile, clause, left, when
):
    lake.sql(DROP)
    meanwhile(when, f"ALTER TABLE a {clause}")
    [job] = lake.jobs()
    job.wait()

    assert job.state is JobState.FINISHED
    assert held(lake, "a") == left
    assert not [name for name in names(lake) if "$" in name]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("clause", ["RENAME COLUMN s TO total", "ADD COLUMN x INT SUM DEFAULT 0"])
def test_a_key_goes_alone(lake, clause):
    with pytest.raises(
        Unsupported, match="a key cannot be dropped together with other changes of columns"
    ):
        lake.sql(f"ALTER TABLE a DROP COLUMN k2, {clause}")
    lake.sql("ALTER TABLE a DROP COLUMN k2, DROP COLUMN m")

    assert held(lake, "a") == [(1, 3), (2, 10)]


def test_what_spark_cannot_do_cancels_the_job(lake, monkeypatch):
    lake.sql(DROP)

    def fail(*_arguments):
        raise AnalysisException("no such thing\nplan")

    with monkeypatch.context() as patch:
        patch.setattr(builder, "exchange", fail)
        with pytest.raises(shelduck.InvalidRequest, match="rows cannot be combined"):
            lake.jobs()[0].wait()

    assert names(lake) == TABLES
    assert len(held(lake, "a")) == 3


@pytest.mark.slow
def test_an_error_of_one_job_does_not_keep_the_others_from_their_turn(lake, monkeypatch):
    lake.sql(f"{DROP}; ALTER TABLE d ALTER COLUMN v TYPE STRING {LATER}")

    def fail(*_arguments):
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr(builder, "exchange", fail)
        lake.run_jobs()
    [second, first] = lake.jobs()
    assert (second.state, first.state) == (JobState.FINISHED, JobState.CANCELLED)
    assert first.look().message == "it failed 3 times: no"
    lake.sql(DROP)
    assert lake.run_jobs()[0].state is JobState.FINISHED
    assert held(lake, "a") == LEFT
