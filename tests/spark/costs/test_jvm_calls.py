"""How many calls into the JVM a verb makes: each costs about 0.3 ms, whatever it does."""

from __future__ import annotations

from collections import Counter

import pytest
from py4j.java_gateway import GatewayClient

from shelduck.write.merge import merge_scopes
from shelduck.write.parquet.kept import keep
from tests.support.budgets import within

pytestmark = pytest.mark.guard

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id INT NOT NULL, a INT, b STRING, c DOUBLE, d DATE, e BOOLEAN)",
    "INSERT INTO t SELECT cast(id AS INT), 0, 'b', 0.5, DATE '2024-01-02', true FROM range(100)",
    "CREATE TABLE k (id INT, v STRING, n DOUBLE) UNIQUE KEY (id)",
    "INSERT INTO k SELECT cast(id AS INT), 'b', 0.5 FROM range(100)",
    "CALL set_option('data_inlining_row_limit', '10', table_name => 'k')",
    "CREATE TABLE r (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT, CONSTRAINT c CHECK (a > 0))",
    "CALL set_option('data_inlining_row_limit', '10', table_name => 'r')",
]
LOAD = "INSERT INTO k VALUES (7, 'x', 1.5), (8, 'x', 2.5), (200, 'x', 3.5)"
MERGE = (
    "MERGE INTO t USING changes AS s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT *"
)
CALLS_OF_A_COLUMN = 1
VERBS = {
    "read": lambda lake, _: lake.table("t").read(),
    # One call makes the row that `lake.sql` returns.
    "comment": lambda lake, _: lake.sql("COMMENT ON TABLE t IS 'x'"),
    "append": lambda lake, rows: lake.table("t").append(rows),
    "delete": lambda lake, _: lake.table("t").delete("id = 7"),
    "update": lambda lake, _: lake.table("t").update({"a": "a + 1"}, where="id = 9"),
    "load": lambda lake, _: lake.sql(LOAD),
    "insert_with_rules": lambda lake, _: lake.sql("INSERT INTO r (a) VALUES (1), (2)"),
    "merge": lambda lake, _: lake.sql(MERGE),
}


@pytest.fixture
def counted(monkeypatch):
    """How many calls the next acts make."""
    calls = Counter()
    real = GatewayClient.send_command

    def send(client, command, *args, **kwargs):
        # Objects are let go whenever Python collects them: these commands are not counted.
        calls["all"] += command[0] != "m"
        return real(client, command, *args, **kwargs)

    def count(act):
        calls.clear()
        act()
        return calls["all"]

    # PySpark would ask the JVM at each call of a column which line of the user it belongs to.
    monkeypatch.setattr("pyspark.errors.utils._enable_debugging_cache", False)
    monkeypatch.setattr(GatewayClient, "send_command", send)
    return count


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_makes_few_calls(verb, lake, counted):
    act = VERBS[verb]
    rows = lake.table("t").read().where("id BETWEEN 20 AND 29")
    rows.createOrReplaceTempView("changes")
    act(lake, rows)

    calls = counted(lambda: act(lake, rows))

    assert calls > 0
    within(f"jvm_calls.{verb}", calls)


def test_a_merge_plans_the_same_few_columns_for_every_table_and_makes_few_calls_for_one(
    lake, counted, monkeypatch
):
    widths = []
    real = merge_scopes.taken_rows

    def taken(*args, **kwargs):
        found = real(*args, **kwargs)
        widths.append(len(found.columns))
        return found

    monkeypatch.setattr(merge_scopes, "taken_rows", taken)
    calls = []
    for count in (20, 40):
        names = [f"c{n}" for n in range(count)]
        lake.create_table(f"w{count}", {"id": "int", **dict.fromkeys(names, "int")})
        row = ", ".join(["7 AS id", *(f"{n} AS {name}" for n, name in enumerate(names))])
        text = (
            f"MERGE INTO w{count} t USING (SELECT {row}) s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        calls.append(counted(lambda text=text: lake.sql(text)))

    assert widths[0] == widths[1]
    assert calls[1] - calls[0] <= 20 * CALLS_OF_A_COLUMN


def test_kept_rows_have_no_equation_for_each_column(spark):
    # Spark would compare each with all others in every filter and join of a MERGE.
    def known(rows):
        plan = rows._jdf.queryExecution().optimizedPlan()
        return plan.constraints().mkString(" ").count("=")

    source = "SELECT 1 AS a, 2 AS b, 3 AS c UNION ALL SELECT 4, 5, 6"
    kept = keep(spark.sql(source)).rows

    assert known(kept) == 0
    assert known(spark.sql(source).localCheckpoint()) > 0
    assert sorted(map(tuple, kept.collect())) == [(1, 2, 3), (4, 5, 6)]
