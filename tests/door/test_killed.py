"""The sidecar is killed: nothing is lost, nothing lands twice, and the next statement works."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import shelduck
from tests.support import door
from tests.support.attaching import duck
from tests.support.time_limit import PATIENCE

pytestmark = pytest.mark.slow

GONE = (
    "Python ended while it ran this statement, which has landed or not; see the newest snapshots"
    " (DESCRIBE HISTORY of the table) before you run it again"
)
# Each row takes a while.
SLEEP = "java_method('java.lang.Thread', 'sleep', 1500L)"
SLOWLY = f"SELECT id FROM range(0, 3, 1, 1) WHERE {SLEEP} IS NOT NULL OR id >= 0"


@pytest.fixture(scope="module")
def server(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    url = f"sqlite:///{folder}/lake.db"
    conf = door.settings(spark, folder, url, f"{folder}/data/")
    with door.thrift_server(folder / "server", conf) as found:
        yield found, url


@pytest.fixture
def client(spark, server):
    found, _ = server
    return found.connect(spark)


def kill(server):
    killed = server.sidecar()
    os.kill(killed, signal.SIGKILL)
    return killed


def answered(client, statement):
    """The rows of a statement that must not fail."""
    found = client.ask(statement)
    assert found.error == ""
    return [tuple(row) for row in found.rows]


def in_the_middle(client, server, statement, seconds):
    """What a statement answers in the middle of which the sidecar is killed."""
    told = []
    asking = threading.Thread(target=lambda: told.append(client.ask(statement)))
    asking.start()
    time.sleep(seconds)
    kill(server)
    asking.join()
    return told[0]


def test_between_statements_nobody_notices(client, server):
    found, url = server
    answered(client, "CREATE TABLE lake.main.calm (id INT)")
    answered(client, "USE lake.main")
    answered(client, "INSERT INTO calm VALUES (1)")
    killed = kill(found)
    assert answered(client, "SELECT id FROM calm") == [("1",)]
    assert found.sidecar() != killed
    kill(found)
    answered(client, "INSERT INTO calm VALUES (2)")
    assert duck(url, "SELECT id FROM lake.calm") == [(1,), (2,)]


def test_an_insert_lands_once_or_not_at_all(client, server):
    found, url = server
    answered(client, "CREATE TABLE lake.main.rows (id BIGINT)")
    told = in_the_middle(client, found, f"INSERT INTO lake.main.rows {SLOWLY}", 2.0)
    assert told.error == GONE
    rows = duck(url, "SELECT id FROM lake.rows")
    assert rows in ([], [(0,), (1,), (2,)])
    if not rows:
        answered(client, f"INSERT INTO lake.main.rows {SLOWLY}")
    assert answered(client, "SELECT count(*) FROM lake.main.rows") == [("3",)]
    assert duck(url, "SELECT id FROM lake.rows") == [(0,), (1,), (2,)]


@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.0])
def test_a_worker_goes_on_with_a_job(spark, client, server, seconds):
    found, url = server
    table = f"jobs_{int(seconds * 10)}"
    texts = "SELECT CAST(id AS STRING) AS id FROM range(200000)"
    answered(client, f"CREATE TABLE lake.main.{table} AS {texts}")
    change = f"ALTER TABLE lake.main.{table} ALTER COLUMN id TYPE BIGINT"
    told = in_the_middle(client, found, change, seconds)
    assert told.error in (GONE, "")
    [(kind,)] = answered(client, f"SELECT typeof(max(id)) FROM lake.main.{table}")
    more = "'200000'" if kind == "string" else "200000L"
    answered(client, f"INSERT INTO lake.main.{table} VALUES ({more})")
    with shelduck.connect(url, spark=spark) as lake:
        deadline = time.monotonic() + PATIENCE
        while any(job.look().is_open for job in lake.jobs()):
            assert time.monotonic() < deadline
            lake.run_jobs()
    if told.error and kind == "string":
        # Killed before there was a job, it is as if nobody had asked.
        client.ask(change)
    count = f"SELECT count(DISTINCT id), sum(id), typeof(min(id)) FROM lake.{table}"
    assert duck(url, count) == [(200001, 20000100000, "BIGINT")]
