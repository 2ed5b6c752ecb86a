"""How many calls into the JVM a verb makes: each costs about 0.3 ms, whatever it does."""

from __future__ import annotations

from collections import Counter

import pytest
from py4j.java_gateway import GatewayClient

from tests.support.budgets import within

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id INT NOT NULL, a INT, b STRING, c DOUBLE, d DATE, e BOOLEAN)",
    "INSERT INTO t SELECT cast(id AS INT), 0, 'b', 0.5, DATE '2024-01-02', true FROM range(100)",
    "CREATE TABLE k (id INT, v STRING, n DOUBLE) UNIQUE KEY (id)",
    "INSERT INTO k SELECT cast(id AS INT), 'b', 0.5 FROM range(100)",
    "CALL set_option('data_inlining_row_limit', '10', table_name => 'k')",
]
LOAD = "INSERT INTO k VALUES (7, 'x', 1.5), (8, 'x', 2.5), (200, 'x', 3.5)"
MERGE = (
    "MERGE INTO t USING changes AS s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT *"
)
VERBS = {
    "read": lambda lake, _: lake.table("t").read(),
    # One call makes the row that `lake.sql` returns.
    "comment": lambda lake, _: lake.sql("COMMENT ON TABLE t IS 'x'"),
    "append": lambda lake, rows: lake.table("t").append(rows),
    "delete": lambda lake, _: lake.table("t").delete("id = 7"),
    "update": lambda lake, _: lake.table("t").update({"a": "a + 1"}, where="id = 9"),
    "load": lambda lake, _: lake.sql(LOAD),
    "merge": lambda lake, _: lake.sql(MERGE),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_makes_few_calls(verb, lake, spark, monkeypatch):
    act = VERBS[verb]
    rows = lake.table("t").read().where("id BETWEEN 20 AND 29")
    rows.createOrReplaceTempView("changes")
    calls = Counter()
    real = GatewayClient.send_command

    def send(client, command, *args, **kwargs):
        # Objects are let go whenever Python collects them: these commands are not counted.
        calls[verb] += command[0] != "m"
        return real(client, command, *args, **kwargs)

    # PySpark would ask the JVM at each call of a column which line of the user it belongs to.
    monkeypatch.setattr("pyspark.errors.utils._enable_debugging_cache", False)
    act(lake, rows)
    monkeypatch.setattr(GatewayClient, "send_command", send)
    act(lake, rows)

    assert calls[verb] > 0
    within(f"jvm_calls.{verb}", calls[verb])
