"""What happened on a branch, row by row: Spark counts by row ids, and shows some of them."""

from __future__ import annotations

from decimal import Decimal

import pytest

import shelduck


@pytest.fixture
def lake(spark, tmp_path):
    where = f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data"
    with shelduck.connect(*where, spark) as found:
        found.sql("CREATE TABLE t (id INT, v STRING)")
        found.sql("INSERT INTO t SELECT id, string(id) FROM range(6)")
        found.create_branch("b")
        yield found


def counted(lake):
    [table] = lake.branch_diff("b").tables
    return table.counts.added, table.counts.changed, table.counts.deleted


@pytest.mark.parametrize("inlined", [0, 100], ids=["files", "inlined"])
def test_rows_are_counted_by_their_ids(lake, inlined):
    lake.set_option("data_inlining_row_limit", inlined)
    lake.sql("INSERT INTO b.t VALUES (7, 'x'), (8, 'y'), (9, 'z')")
    assert counted(lake) == (3, 0, 0)
    lake.sql("UPDATE b.t SET v = 'new' WHERE id IN (1, 7)")
    assert counted(lake) == (3, 1, 0)
    lake.sql("UPDATE b.t SET v = 'newer' WHERE id = 1")
    lake.sql("DELETE FROM b.t WHERE id IN (1, 2, 8)")
    assert counted(lake) == (2, 0, 2)
    lake.sql("UPDATE b.t SET v = 'new' WHERE id = 3")
    lake.table("b.t").rewrite()
    assert counted(lake) == (2, 1, 2)
    [table] = lake.branch_diff("b", 10).tables
    assert sorted(table.rows, key=str) == [
        {"_change": "added", "id": 7, "v": "new"},
        {"_change": "added", "id": 9, "v": "z"},
        {"_change": "changed", "id": 3, "v": "new"},
        {"_change": "deleted", "id": 1, "v": "newer"},
        {"_change": "deleted", "id": 2, "v": "2"},
    ]
    assert [row["id"] for row in lake.branch_diff("b", 2).tables[0].rows] == [1, 2]
    lake.merge_branch("b")
    assert lake.branch_diff("b", 10).is_empty


def test_rows_before_and_after_a_conversion_are_told_with_the_new_type(lake):
    lake.sql("INSERT INTO b.t VALUES (7, '7.5')")
    lake.sql("DELETE FROM b.t WHERE id = 0")
    lake.table("b.t").alter(shelduck.change_type("v", "decimal(5, 2)")).wait()
    lake.sql("INSERT INTO b.t VALUES (8, 8.5)")
    lake.sql("DELETE FROM b.t WHERE id = 1")
    [table] = lake.branch_diff("b", 10).tables
    assert table.clauses == ("ALTER COLUMN v TYPE decimal(5,2)",)
    assert (table.counts.added, table.counts.changed, table.counts.deleted) == (2, 0, 2)
    assert sorted(table.rows, key=str) == [
        {"_change": "added", "id": 7, "v": Decimal("7.50")},
        {"_change": "added", "id": 8, "v": Decimal("8.50")},
        {"_change": "deleted", "id": 0, "v": "0"},
        {"_change": "deleted", "id": 1, "v": Decimal("1.00")},
    ]
    told = lake.branch_diff("b", 10)
    assert '  added {"id": 8, "v": "8.50"}' in str(told).splitlines()
    assert told.as_json()["tables"][0]["rows"][0] == {"_change": "deleted", "id": 0, "v": "0"}
    lake.table("b.t").rename("u")
    assert lake.branch_diff("b", 1).tables[0].clauses[0] == "RENAME TO u"
    lake.table("b.u").alter(shelduck.change_type("v", "string")).wait()
    [table] = lake.branch_diff("b").tables
    assert table.clauses == ("RENAME TO u", "ALTER COLUMN v TYPE varchar")
    assert table.counts.added == 2


def test_values_of_every_kind_are_json_and_stay_inside_their_block(lake):
    lake.sql("CREATE TABLE b.odd (m MAP<DATE, BINARY>, d DOUBLE, s STRUCT<a: ARRAY<TIMESTAMP>>)")
    lake.sql(
        "INSERT INTO b.odd VALUES (map(DATE '2026-01-02', X'0a'), double('NaN'),"
        " named_struct('a', array(TIMESTAMP '2026-01-02 03:04:05')))"
    )
    lake.sql("CREATE TABLE b.text (s STRING)")
    lake.sql("INSERT INTO b.text VALUES ('\n````\n@everybody')")
    found = lake.branch_diff("b", 5)
    [told] = found.as_json()["tables"][0]["rows"]
    assert told == {
        "_change": "added",
        "m": {"2026-01-02": "0a"},
        "d": "nan",
        "s": {"a": ["2026-01-02 03:04:05"]},
    }
    lines = found.markdown().splitlines()
    assert 'main.text added {"s": "\\n````\\n@everybody"}' in lines
    assert lines.count("`````") == 2


def test_constraints_are_told_until_they_say_the_same(lake):
    lake.execute("ALTER TABLE b.t ADD CONSTRAINT few CHECK (id < 100)")
    lake.execute("ALTER TABLE b.t RENAME COLUMN id TO number")
    [table] = lake.branch_diff("b").tables
    assert table.clauses == (
        "RENAME COLUMN id TO number",
        "ADD CONSTRAINT few CHECK (`number` < 100)",
    )
    lake.merge_branch("b")
    lake.execute("ALTER TABLE b.t RENAME COLUMN number TO id")
    lake.execute("ALTER TABLE b.t SET TBLPROPERTIES ('owner' = 'Mara')")
    assert lake.branch_diff("b").tables[0].clauses == (
        "RENAME COLUMN number TO id",
        "SET TBLPROPERTIES ('owner' = 'Mara')",
    )
    lake.merge_branch("b")
    lake.execute("ALTER TABLE b.t DROP CONSTRAINT few")
    lake.execute("ALTER TABLE b.t UNSET TBLPROPERTIES ('owner')")
    assert lake.branch_diff("b").tables[0].clauses == (
        "DROP CONSTRAINT few",
        "UNSET TBLPROPERTIES ('owner')",
    )
