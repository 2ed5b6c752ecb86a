"""A team changes a table through files in git, while others write, and one client lags behind."""

from __future__ import annotations

import re
import threading
import warnings
from decimal import Decimal

import pytest

import shelduck
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.lake.state import LakeState
from shelduck.web.application import make_app
from shelduck.web.guard import Guard
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

with warnings.catch_warnings():
    # Starlette prefers a client that is not installed.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

EDITS = (
    ("name STRING", "label STRING"),
    ("amount STRING", "amount DECIMAL(10,2)"),
    ("os: STRING", "system: STRING"),
    ("city STRING  -- id: 6", "note STRING DEFAULT 'none'"),
)


class Writer(threading.Thread):
    """Appends one row after the other, with a column that nobody changes."""

    def __init__(self, lake, first):
        super().__init__()
        self.lake, self.first, self.written = lake, first, 0
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.is_set():
            row = [(self.first + self.written,)]
            self.lake.table("orders").append(self.lake.spark.createDataFrame(row, "id bigint"))
            self.written += 1


@pytest.fixture
def orders(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark, author="Ada") as lake:
        lake.execute(
            "CREATE TABLE orders (id BIGINT, name STRING, amount STRING, device STRUCT<os: STRING>,"
            " city STRING)"
        )
        lake.table("orders").append(
            spark.sql(
                "SELECT id, concat('n', id) AS name, concat(id, '.50') AS amount,"
                " named_struct('os', 'linux') AS device, 'Bern' AS city FROM range(2000)"
            )
        )
        yield lake


def test_a_team_changes_a_table_through_files(orders, tmp_path, sqlite_url):
    before = orders.snapshots()[-1].id
    orders.pin("orders", before, "orders_old")
    folder = tmp_path / "schema"
    places = orders.pull_schema(folder)
    assert [p.name for p in places] == ["main.orders.sql", "main.orders_old.sql"]
    text = places[0].read_text(encoding="utf-8")
    for old, new in EDITS:
        assert old in text
        text = text.replace(old, new)
    places[0].write_text(text, encoding="utf-8")

    # The pull request shows what will happen.
    plan = orders.plan(folder)
    assert plan.lost == ["main.orders.city"]
    light, heavy = plan.tables
    assert (light.is_heavy, heavy.is_heavy) == (False, True)
    assert heavy.text == "ALTER TABLE main.orders ALTER COLUMN amount TYPE decimal(10,2)"
    assert "| main.orders | `DROP COLUMN city` | light |" in plan.markdown()

    writers = [Writer(orders, first) for first in (10_000, 20_000)]
    for writer in writers:
        writer.start()
    try:
        [job] = plan.apply(allow_drop=True)
        shown = page(sqlite_url, "/jobs")
        assert f"{job.id}" in shown
        assert "main.orders" in shown
        job.wait()
    finally:
        for writer in writers:
            writer.is_over.set()
        for writer in writers:
            writer.join()

    assert "<li>amount: STRING to DECIMAL(10,2), " in page(sqlite_url, "/jobs")
    assert orders.plan(folder).is_empty
    total = 2000 + sum(writer.written for writer in writers)
    found = orders.sql("SELECT count(*), count(DISTINCT id), sum(amount), min(label) FROM orders")
    paid = Decimal("2000000.00")
    assert rows(found) == [(total, total, paid, "n0")]
    # The old client reads its columns, here and in DuckDB.
    old = "SELECT name, amount, city FROM orders_old WHERE id = 7"
    assert rows(orders.sql(old)) == [("n7", "7.50", None)]
    with DuckDBOracle(sqlite_url) as duckdb:
        assert duckdb.sql(old) == [("n7", "7.50", None)]
        assert duckdb.sql("SELECT count(*), sum(amount) FROM orders") == [(total, paid)]
        assert duckdb.sql("SELECT device.system FROM orders WHERE id = 7") == [("linux",)]
    [number] = re.findall(r'href="/tables/(\d+)"[^>]*>(?:<[^>]*>)*main', page(sqlite_url, "/"))[:1]
    story = page(sqlite_url, f"/tables/{number}")
    for text in ("label", "amount", "decimal(10,2)", "dropped", "system", "Ada"):
        assert text in story


def page(url, path):
    """Return the page of the lake at a path."""
    store = open_store(url)
    try:
        app = make_app(LakeState(store, open_lake(store)), Guard(8765))
        with TestClient(app, base_url="http://127.0.0.1:8765") as client:
            answer = client.get(path)
            assert answer.status_code == 200
            return answer.text
    finally:
        store.close()
