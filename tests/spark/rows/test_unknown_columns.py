"""A column that nobody has is NotFound in every statement, and no hidden name is suggested."""

from __future__ import annotations

import pytest

from shelduck import InvalidRequest, NotFound
from tests.support.lakes import refusal, rows

STATEMENTS = [
    "CREATE TABLE t (id INT, w STRING)",
    "INSERT INTO t VALUES (1, 'a')",
    "INSERT INTO t SELECT CAST(id AS INT), 'b' FROM range(20)",
    "CREATE TABLE gone (id INT)",
    "INSERT INTO gone VALUES (7)",
    "DROP TABLE gone",
]


MERGE = "MERGE INTO t USING (SELECT 1 AS id) s ON"
STATED = [
    "DELETE FROM t WHERE nope = 1",
    "DELETE FROM t AS x WHERE x.nope = 1",
    "UPDATE t SET w = 'x' WHERE nope = 1",
    "UPDATE t SET w = nope",
    "UPDATE t SET nope = 1",
    f"{MERGE} t.nope = s.id WHEN MATCHED THEN DELETE",
    f"{MERGE} t.id = s.id WHEN MATCHED AND nope = 1 THEN DELETE",
    f"{MERGE} t.id = s.id WHEN MATCHED THEN UPDATE SET w = s.nope",
    "INSERT INTO t REPLACE WHERE nope = 1 SELECT 1, 'x'",
    "OPTIMIZE t WHERE nope = 1",
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("text", STATED)
def test_a_column_that_is_not_there(copied, base, text):
    catalog, lake = copied
    told = refusal(NotFound, lambda: lake.sql(text), catalog, base.folder / "data")
    assert "nope" in told
    assert "does not exist" in told
    assert "shelduck" not in told


def test_a_clause_of_a_merge_says_which_side_it_sees(lake):
    with pytest.raises(
        InvalidRequest, match=r"can refer only to the source, alias 's'.*nope"
    ) as caught:
        lake.sql(f"{MERGE} t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (nope)")
    assert "shelduck" not in str(caught.value)


def test_the_same_of_the_calls(lake, spark):
    table = lake.table("t")
    for act in (
        lambda: table.delete("nope = 1"),
        lambda: table.update({"w": "nope"}),
        lambda: table.overwrite(spark.sql("SELECT 1 AS id, 'x' AS w"), where="nope = 1"),
        lambda: table.compact(where="nope = 1"),
    ):
        with pytest.raises(NotFound, match="column 'nope' does not exist"):
            act()


def test_names_of_columns_are_read_alike(lake):
    made = lake.create_table("made", {"`a`": "int", '"b.c"': "int", "`d``e`": "int", "f g": "int"})
    assert made.columns.names == ["a", "b.c", "d`e", "f g"]
    with pytest.raises(InvalidRequest, match=r"column 'b\.c' must be one name, not a path"):
        lake.create_table("other", {"b.c": "int"})


def test_a_table_that_was_dropped_is_read_as_it_was(lake):
    assert rows(lake.table("gone").read(version=5)) == [(7,)]
    assert rows(lake.table("main.GONE").read(version=5)) == [(7,)]
    assert rows(lake.sql("SELECT * FROM gone VERSION AS OF 5")) == [(7,)]
    for use in (
        lambda: lake.table("gone").read(),
        lambda: lake.table("gone").columns,
        lambda: lake.table("gone").read(version=3),
        lambda: lake.table("never"),
    ):
        with pytest.raises(NotFound, match="does not exist"):
            use()
