"""ADD COLUMN with a default that is an expression: rows that are there get its present value."""

from __future__ import annotations

import datetime as dt

from shelduck import clock
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = ["CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1), (2)"]


def test_the_present_time_is_computed_once(copied):
    catalog, lake = copied
    before = clock.now()
    lake.execute(
        "ALTER TABLE t ADD COLUMN made TIMESTAMP NOT NULL DEFAULT current_timestamp(),"
        " ADD COLUMN day DATE DEFAULT current_date(), ADD COLUMN n INT DEFAULT 2 * 3 + 1"
    )
    after = clock.now()
    lake.execute("INSERT INTO t (id) VALUES (3)")
    found = rows(lake.sql("SELECT id, made, day, n FROM t ORDER BY id"))
    [first, second, third] = [row[1].astimezone(dt.UTC) for row in found]
    assert before <= first == second <= after < third
    assert [row[3] for row in found] == [7, 7, 7]
    assert {row[2] for row in found} <= {before.astimezone().date(), clock.now().date()}
    assert rows(lake.sql("SELECT made FROM t WHERE id = 1"))[0][0] == found[0][1]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        told = duckdb.sql("SELECT id, made, n FROM t ORDER BY id")
        assert [(n, at.astimezone(dt.UTC), k) for n, at, k in told] == [
            (1, first, 7),
            (2, first, 7),
            (3, third, 7),
        ]
        duckdb.execute("INSERT INTO t (id) VALUES (4)")
        [(made, n)] = duckdb.sql("SELECT made, n FROM t WHERE id = 4")
        assert n == 7
        assert made.astimezone(dt.UTC) > third


def test_a_plan_has_no_file_to_write(lake):
    made = lake.sql("EXPLAIN ALTER TABLE t ADD COLUMN made TIMESTAMP DEFAULT current_timestamp()")
    assert "light" in str(made.collect())
