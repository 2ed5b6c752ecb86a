"""Views that show a table in the columns of an older snapshot, in Spark and in DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from pyspark.errors import PySparkException

from shelduck import AlreadyExists, InvalidRequest, NotFound, ShelduckError, Unsupported
from tests.support.lakes import newest, rows
from tests.support.normal import duckdb_rows, spark_rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    (
        "CREATE TABLE t (id INT, name STRING, x INT DEFAULT 5, s STRUCT<a: INT, b: STRING>,"
        " l ARRAY<STRUCT<k: STRING, v: INT>>, m MAP<STRING, STRUCT<p: INT, q: INT>>, day DATE)"
        " TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    ),
    (
        "INSERT INTO t SELECT 1, 'one', 1, named_struct('a', 1, 'b', 'B'),"
        " array(named_struct('k', 'K', 'v', 1)), map('m', named_struct('p', 1, 'q', 2)),"
        " DATE '2026-01-01'"
    ),
    "CREATE VIEW old AS SCHEMA VERSION 2 OF t",
]
FIRST = (1, "one", 1, (1, "B"), [("K", 1)], ("map", [("m", (1, 2))]), "2026-01-01")


def both(catalog, lake, view="old", columns="*"):
    """The rows of a view, after making sure that both engines show the same ones."""
    ours = spark_rows(lake.sql(f"SELECT {columns} FROM {view}"))
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        assert duckdb_rows(oracle, view, columns) == ours
    return ours


def failures(catalog, lake, view="old"):
    """How a query of the view fails in Spark and in DuckDB."""
    with pytest.raises((PySparkException, ShelduckError)) as ours:
        lake.sql(f"SELECT * FROM {view}").collect()
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle, pytest.raises(duckdb.Error) as theirs:
        oracle.sql(f"SELECT * FROM {view}")
    return [str(ours.value), str(theirs.value)]


def test_old_clients_keep_their_columns_through_every_light_change(copied):
    catalog, lake = copied
    assert both(catalog, lake) == [FIRST]
    lake.execute(
        "ALTER TABLE t RENAME COLUMN name TO label, DROP COLUMN x, ADD COLUMN newer INT DEFAULT 1,"
        " ALTER COLUMN id TYPE BIGINT, RENAME COLUMN s.a TO z, ALTER COLUMN day TYPE TIMESTAMP_NTZ,"
        " ALTER COLUMN label FIRST"
    )
    assert lake.snapshots()[-1].changes_made == "altered_table:1,altered_view:2"
    dropped = (*FIRST[:2], 5, *FIRST[3:])
    assert both(catalog, lake) == [dropped]
    lake.execute(
        "ALTER TABLE t RENAME COLUMN l.element.v TO w, ADD COLUMN l.element.n INT,"
        " DROP COLUMN m.value.p, ADD COLUMN name INT, ALTER COLUMN s.z TYPE BIGINT, DROP COLUMN s.b"
    )
    changed = (1, "one", 5, (1, None), [("K", 1)], ("map", [("m", (None, 2))]), "2026-01-01")
    assert both(catalog, lake) == [changed]
    lake.sql("INSERT INTO t (id, label) VALUES (2, 'two')")
    assert both(catalog, lake, columns="id, name, x, day") == [
        (1, "one", 5, "2026-01-01"),
        (2, "two", 5, None),
    ]
    assert rows(lake.sql("SELECT name FROM old WHERE id > 1")) == [("two",)]


def test_a_value_that_the_older_type_does_not_hold_fails_in_both_engines(copied, spark):
    catalog, lake = copied
    lake.table("t").append(spark.sql("SELECT 5000000000L AS id, 'b' AS name"), evolve="widen")
    told = "id of main.t was INT in snapshot 2, which does not hold 5000000000"
    assert all(told in failure for failure in failures(catalog, lake))
    # What does not ask for the column does not meet the value.
    assert both(catalog, lake, columns="name") == [("b",), ("one",)]
    lake.sql("ALTER TABLE t ALTER COLUMN day TYPE TIMESTAMP_NTZ")
    lake.sql("DELETE FROM t WHERE id > 1")
    lake.sql("INSERT INTO t (id, day) VALUES (3, TIMESTAMP_NTZ '2026-01-02 12:00:00')")
    told = "day of main.t was DATE in snapshot 2, which does not hold 2026-01-02 12:00:00"
    assert all(told in failure for failure in failures(catalog, lake))


@pytest.mark.parametrize("by", ["statement", "call", "transaction"])
def test_a_pin_is_made_by_sql_by_a_call_and_in_a_transaction(copied, by):
    catalog, lake = copied
    lake.sql("ALTER TABLE t RENAME COLUMN id TO number")
    if by == "statement":
        lake.execute("CREATE OR REPLACE VIEW old COMMENT 'kept' AS SCHEMA VERSION 2 OF t")
        text = "CREATE VIEW main.old COMMENT 'kept' AS SCHEMA VERSION 2 OF main.t"
        assert lake.execute("SHOW CREATE TABLE old").rows == [(text,)]
    elif by == "call":
        with pytest.raises(AlreadyExists, match=r"view main\.old already exists"):
            lake.pin("t", 2, "old")
        lake.pin("t", 2, "old", replace=True)
    else:
        with lake.transaction() as tx:
            tx.sql("ALTER TABLE t RENAME COLUMN name TO called")
            tx.pin("main.t", 2, "inside")
            tx.sql("ALTER TABLE t RENAME TO u")
            tx.sql("ALTER TABLE u DROP COLUMN x")
            assert rows(tx.sql("SELECT id, name, x FROM inside")) == [(1, "one", 5)]
            assert rows(tx.sql("SELECT id, name, x FROM old")) == [(1, "one", 5)]
        assert both(catalog, lake, "inside", "id, name, x") == [(1, "one", 5)]
    assert both(catalog, lake, columns="id, name") == [(1, "one")]


def test_a_pin_follows_the_table_to_another_name_and_through_restore(copied):
    catalog, lake = copied
    before = newest(lake)
    lake.sql("ALTER TABLE t DROP COLUMN name, RENAME COLUMN id TO n")
    lake.sql("ALTER TABLE t RENAME TO u")
    assert lake.snapshots()[-1].changes_made == 'created_table:"main"."u",altered_view:2'
    lake.sql("CREATE TABLE t (id INT, name STRING)")
    lake.sql("INSERT INTO t VALUES (9, 'another table')")
    assert both(catalog, lake, columns="id, name") == [(1, None)]
    lake.sql(f"RESTORE TABLE u TO VERSION AS OF {before}")
    assert both(catalog, lake, columns="id, name") == [(1, "one")]
    assert rows(lake.sql("DESCRIBE old"))[-2:] == [
        ("Table", "main.u", None),
        ("Schema Version", "2", None),
    ]


def test_a_pin_follows_a_job_that_converts_a_column(copied):
    catalog, lake = copied
    lake.sql("ALTER TABLE t ALTER COLUMN id TYPE STRING")
    assert "altered_view:2" in lake.snapshots()[-1].changes_made
    assert both(catalog, lake, columns="id, s") == [(1, (1, "B"))]
    lake.sql("ALTER TABLE t RENAME COLUMN id TO code")
    lake.sql("INSERT INTO t (code) VALUES ('7')")
    assert both(catalog, lake, columns="id") == [(1,), (7,)]
    lake.sql("INSERT INTO t (code) VALUES ('x8')")
    told = "id of main.t was INT in snapshot 2, which does not hold x8"
    assert all(told in failure for failure in failures(catalog, lake))


def test_a_view_of_a_dropped_table_says_so_and_reads_no_other(copied):
    catalog, lake = copied
    lake.sql("DROP TABLE t")
    lake.sql("CREATE TABLE t (id INT)")
    ours, theirs = failures(catalog, lake)
    assert "view main.old: the table whose columns of snapshot 2 it shows was dropped" in ours
    assert "view old is pinned to a table that was dropped" in theirs
    with pytest.raises(NotFound, match=r"view main\.old: the table whose columns"):
        lake.sql("DESCRIBE old")
    lake.sql("DROP VIEW old")


def test_what_both_engines_cannot_show_alike_is_refused_at_once_or_by_the_view(copied):
    catalog, lake = copied
    lake.sql("ALTER TABLE t ADD COLUMN f DOUBLE")
    then = newest(lake)
    lake.pin("t", then, "with_f")
    lake.sql("ALTER TABLE t ALTER COLUMN f TYPE STRING")
    assert both(catalog, lake, "with_f", "id, f") == [(1, None)]
    lake.sql("ALTER TABLE t ALTER COLUMN f TYPE DOUBLE")
    lake.sql("ALTER TABLE t DROP COLUMN f, ADD COLUMN f STRING")
    later = newest(lake)
    lake.sql("ALTER TABLE t ALTER COLUMN f TYPE DOUBLE")
    with pytest.raises(Unsupported, match=r"f of main\.t: DOUBLE cannot be shown as STRING"):
        lake.pin("t", later, "no")
    assert both(catalog, lake, "with_f", "id, f") == [(1, None)]


def test_a_change_that_a_pin_cannot_follow_is_made_and_the_view_says_why(copied):
    catalog, lake = copied
    lake.sql("CREATE TABLE w (id INT, v STRING)")
    lake.sql("INSERT INTO w VALUES (1, '0.5')")
    lake.pin("w", newest(lake), "of_w")
    lake.sql("ALTER TABLE w ALTER COLUMN v TYPE DOUBLE")
    for told in failures(catalog, lake, "of_w"):
        assert "v of main.w: DOUBLE cannot be shown as STRING with the same meaning" in told
    lake.sql("ALTER TABLE w DROP COLUMN v")
    assert both(catalog, lake, "of_w") == [(1, None)]


def test_our_reader_is_right_whatever_duckdb_does_to_the_table(copied):
    catalog, lake = copied
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        oracle.execute("ALTER TABLE t RENAME COLUMN name TO label")
        oracle.execute("ALTER TABLE t ADD COLUMN name INTEGER DEFAULT 3")
    assert rows(lake.sql("SELECT id, name FROM old")) == [(1, "one")]
    lake.pin("t", 2, "old", replace=True)
    assert both(catalog, lake, columns="id, name") == [(1, "one")]


def test_duckdb_commits_beside_a_pin_that_follows_and_renames_it(copied):
    catalog, lake = copied
    lake.execute("CREATE TABLE u (id INT)")
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        oracle.execute("BEGIN")
        assert oracle.sql("SELECT count(*) FROM u") == [(0,)]
        lake.execute("ALTER TABLE t RENAME COLUMN name TO label")
        # DuckDB reads what the other commit did, before it commits.
        oracle.execute("INSERT INTO u VALUES (1)")
        oracle.execute("COMMIT")
        oracle.execute("ALTER TABLE t RENAME COLUMN label TO last")
        oracle.execute("ALTER VIEW old RENAME TO older")
    lake.execute("ALTER TABLE t ADD COLUMN more INT")
    assert both(catalog, lake, "older", "id, name") == [(1, "one")]


def test_a_pin_at_a_snapshot_shows_the_table_of_then(copied):
    _, lake = copied
    before = newest(lake)
    lake.sql("ALTER TABLE t RENAME COLUMN name TO label")
    lake.sql("UPDATE t SET label = 'changed'")
    assert rows(lake.sql(f"SELECT name FROM old VERSION AS OF {before}")) == [("one",)]
    assert rows(lake.sql("SELECT name FROM old")) == [("changed",)]


def test_a_pin_outlives_its_snapshot(copied):
    catalog, lake = copied
    lake.sql("ALTER TABLE t DROP COLUMN name, RENAME COLUMN id TO n")
    lake.sql("CALL expire_snapshots(retain_last => 1)")
    lake.sql("ALTER TABLE t RENAME COLUMN n TO number")
    assert both(catalog, lake, columns="id, name") == [(1, None)]


def test_pins_of_nothing_are_refused(lake):
    before = newest(lake)
    with pytest.raises(NotFound, match=r"table main\.t did not exist at snapshot 0"):
        lake.execute("CREATE VIEW v AS SCHEMA VERSION 0 OF t")
    with pytest.raises(NotFound, match="snapshot 99"):
        lake.execute("CREATE VIEW v AS SCHEMA VERSION 99 OF t")
    with pytest.raises(NotFound, match="'nope' does not exist"):
        lake.execute("CREATE VIEW v AS SCHEMA VERSION 2 OF nope")
    with pytest.raises(AlreadyExists, match=r"table main\.t already exists"):
        lake.execute("CREATE OR REPLACE VIEW t AS SCHEMA VERSION 2 OF t")
    with pytest.raises(Unsupported, match="a list of columns for pinned view v"):
        lake.execute("CREATE VIEW v (a, b) AS SCHEMA VERSION 2 OF t")
    with pytest.raises(InvalidRequest, match="the id of a snapshot"):
        lake.execute("CREATE VIEW v AS SCHEMA VERSION two OF t")
    lake.execute("CREATE VIEW IF NOT EXISTS old AS SCHEMA VERSION 2 OF t")
    assert newest(lake) == before


def test_views_over_pins_and_renamed_pins_work(copied):
    catalog, lake = copied
    lake.sql("ALTER VIEW old RENAME TO older")
    lake.sql("COMMENT ON VIEW older IS 'for the reports'")
    lake.sql("CREATE VIEW above AS SELECT id, name FROM older WHERE id = 1")
    lake.sql("ALTER TABLE t RENAME COLUMN name TO label")
    assert both(catalog, lake, "above") == [(1, "one")]
    lake.sql("ALTER VIEW older AS SELECT label FROM t")
    lake.sql("ALTER TABLE t RENAME COLUMN label TO last")
    assert both(catalog, lake, "older") == [("one",)]
