"""VARCHAR(n): every write checks the length, and DuckDB sees VARCHAR."""

from __future__ import annotations

import pytest

import shelduck
from shelduck.errors import InvalidRequest
from tests.support.oracle import DuckDBOracle

WRITES = [
    ("INSERT INTO t VALUES (1, 'abcd', NULL)", "column a of main.t is VARCHAR(3), got a text of 4"),
    ("INSERT INTO t SELECT 1, 'ab' || 'cd', NULL", "column a of main.t is VARCHAR(3)"),
    ("UPDATE t SET a = concat(a, a)", "column a of main.t is VARCHAR(3), got a text of 6"),
    ("UPDATE t SET s.x = 'xyz'", "column s.x of main.t is VARCHAR(2)"),
    (
        (
            "MERGE INTO t USING (VALUES (7)) u(i) ON t.i = u.i"
            " WHEN NOT MATCHED THEN INSERT (i, a) VALUES (7, 'abcd')"
        ),
        "column a of main.t is VARCHAR(3)",
    ),
    ("INSERT OVERWRITE t VALUES (1, 'abcd', NULL)", "column a of main.t is VARCHAR(3)"),
    ("ALTER TABLE t ALTER COLUMN a SET DEFAULT 'abcd'", "it has 4 characters"),
    ("ALTER TABLE t MODIFY COLUMN a VARCHAR(2)", "have up to 3 characters, and VARCHAR(2) takes 2"),
    ("ALTER TABLE t ALTER COLUMN a TYPE VARCHAR(2) ON ERROR NULL", "have up to 3 characters"),
]


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        lake.sql("CREATE TABLE t (i INT, a VARCHAR(3), s STRUCT<x: CHAR(2)>)")
        lake.sql("INSERT INTO t VALUES (1, 'äöü', named_struct('x', 'xy'))")
        yield lake


def test_no_write_stores_a_longer_text(lake, sqlite_url):
    before = len(lake.snapshots())
    for text, message in WRITES:
        with pytest.raises(InvalidRequest) as caught:
            lake.sql(text)
        assert message in str(caught.value), text
    assert len(lake.snapshots()) == before
    with DuckDBOracle(sqlite_url) as oracle:
        assert oracle.columns("t") == [
            *(("i", "INTEGER"), ("a", "VARCHAR"), ("s", "STRUCT(x VARCHAR)"))
        ]
        # DuckLake has no lengths, so other writers are not held to them.
        oracle.execute("INSERT INTO t VALUES (2, 'longer', NULL)")
    assert lake.sql("SELECT max(length(a)) FROM t").first()[0] == 6


def test_lengths_follow_alter(lake):
    for text in (
        "ALTER TABLE t RENAME COLUMN a TO b",
        "ALTER TABLE t MODIFY COLUMN b VARCHAR(5)",
        "ALTER TABLE t ADD COLUMN c VARCHAR(1) DEFAULT 'c'",
        "ALTER TABLE t ALTER COLUMN i TYPE VARCHAR(11)",
        "ALTER TABLE t DROP COLUMN s",
    ):
        lake.sql(text)
    made = lake.sql("SHOW CREATE TABLE t").first()[0]
    assert "  i VARCHAR(11),\n  b VARCHAR(5),\n  c VARCHAR(1) DEFAULT 'c'\n" in made
    lake.sql("INSERT INTO t VALUES ('12345678901', 'abcde', 'x')")
    for values in ("('123456789012', 'a', 'x')", "('1', 'abcdef', 'x')", "('1', 'a', 'xy')"):
        with pytest.raises(InvalidRequest, match="got a text of"):
            lake.sql(f"INSERT INTO t VALUES {values}")
    lake.sql("ALTER TABLE t ALTER COLUMN b TYPE STRING")
    lake.sql("INSERT INTO t VALUES ('1', 'as long as you like', 'x')")
    assert lake.table("t").read(version=2).columns == ["i", "a", "s"]


def test_a_job_checks_the_lengths_that_it_makes(lake):
    lake.sql("INSERT INTO t VALUES (123456, 'a', NULL)")
    for more in ("", " USING CAST(i AS STRING)"):
        with pytest.raises(InvalidRequest, match=r"1 value\(s\) of column 'i' cannot be converted"):
            lake.sql(f"ALTER TABLE t ALTER COLUMN i TYPE VARCHAR(3){more}")
    lake.sql("ALTER TABLE t ALTER COLUMN i TYPE VARCHAR(3) ON ERROR NULL")
    assert sorted(lake.sql("SELECT i, a FROM t").collect(), key=str) == [("1", "äöü"), (None, "a")]


def test_columns_in_python_have_lengths_too(lake):
    made = lake.create_table("p", {"a": "VARCHAR(2)"})
    with pytest.raises(InvalidRequest, match=r"VARCHAR\(2\)"):
        made.append(lake.spark.createDataFrame([("abc",)], "a string"))
    made.alter(shelduck.modify_column("a", "varchar(3)"))
    made.append(lake.spark.createDataFrame([("abc",)], "a string"))


def test_rollups_follow_a_longer_key(lake):
    lake.sql(
        "CREATE TABLE k (a INT, b VARCHAR(3), n INT SUM) AGGREGATE KEY (a, b) ROLLUP (r (b, n))"
    )
    lake.sql("INSERT INTO k VALUES (1, 'abc', 1)")
    lake.sql("ALTER TABLE k MODIFY COLUMN b VARCHAR(5) KEY")
    lake.sql("INSERT INTO k VALUES (1, 'abcde', 2)")
    assert sorted(lake.sql("SELECT b, sum(n) FROM k GROUP BY b").collect()) == [
        ("abc", 1),
        ("abcde", 2),
    ]
