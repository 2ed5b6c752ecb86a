"""MERGE: all clauses, in Python and SQL, against what is written out and DuckDB's view of it."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812

from shelduck import (
    InvalidRequest,
    Unchanged,
    when_matched_delete,
    when_matched_update,
    when_matched_update_all,
    when_not_matched_by_source_delete,
    when_not_matched_by_source_update,
    when_not_matched_insert,
    when_not_matched_insert_all,
)
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id INT, n INT, name STRING DEFAULT 'nobody')",
    "INSERT INTO t SELECT /*+ COALESCE(1) */ cast(id AS INT), cast(id AS INT), 'a' FROM range(5)",
    (
        "INSERT INTO t SELECT /*+ COALESCE(1) */ cast(id AS INT), cast(id AS INT), 'b'"
        " FROM range(5, 10)"
    ),
    "INSERT INTO t VALUES (NULL, -1, 'null')",
    "CREATE TABLE u (id INT, n INT, name STRING)",
    "INSERT INTO u VALUES (3, 30, 'x'), (7, 70, 'y'), (20, 200, 'z'), (NULL, 0, 'w')",
]


@pytest.fixture
def updates(spark):
    return spark.sql(
        "SELECT * FROM VALUES (3, 30, 'x'), (7, 70, 'y'), (20, 200, 'z') AS v(id, n, name)"
    )


def duckdb(catalog, inline=0):
    return DuckDBOracle(f"sqlite:///{catalog}", None, {"DATA_INLINING_ROW_LIMIT": inline})


def found(lake):
    return rows(lake.table("t").read().orderBy("id", "n"))


def seen(catalog, with_ids=False):
    ids = ", rowid" if with_ids else ""
    with duckdb(catalog) as oracle:
        return oracle.sql(f"SELECT *{ids} FROM t ORDER BY id NULLS FIRST, n")


def start(*, but=None):
    """The rows that the table begins with, as others where `but` says so; None takes one out."""
    but = but or {}
    kept = {n: (n, n, "a" if n < 5 else "b") for n in range(10)} | but
    return [(None, -1, "null"), *[kept[n] for n in sorted(kept) if kept[n] is not None]]


@pytest.mark.slow
def test_matched_rows_are_updated_and_others_inserted(copied, updates):
    catalog, lake = copied

    done = lake.table("t").merge(
        updates, "t.id = s.id", when_matched_update_all(), when_not_matched_insert_all()
    )

    assert (done.inserted, done.updated, done.deleted, done.rows) == (1, 2, 0, 3)
    want = start(but={3: (3, 30, "x"), 7: (7, 70, "y"), 20: (20, 200, "z")})
    assert found(lake) == seen(catalog) == want
    ids = [row[-1] for row in seen(catalog, with_ids=True)]
    assert ids[:-1] == [10, *range(10)]
    assert ids[-1] > 10
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*), min(n), max(n) FROM t") == [(12, -1, 200)]
        assert oracle.sql(
            f"SELECT change_type, count(*) FROM lake.table_changes('t', {done.snapshot},"
            f" {done.snapshot}) GROUP BY ALL ORDER BY ALL"
        ) == [("insert", 1), ("update_postimage", 2), ("update_preimage", 2)]
    assert rows(lake.table("t").read(version=done.snapshot - 1).where("n > 9")) == []


def test_the_first_clause_whose_condition_is_true_takes_a_row(copied, updates):
    catalog, lake = copied
    done = lake.table("t").merge(
        updates,
        F.col("target.id") == F.col("source.id"),
        when_matched_delete(condition="source.n > 60"),
        when_matched_update({"n": "target.n + source.n"}, condition=F.col("source.n") > 100),
        when_matched_update({"n": F.col("source.n") + 1, "name": "DEFAULT"}),
        when_not_matched_insert({"id": "source.id"}, condition="source.n < 100"),
        when_not_matched_insert({"id": "source.id + 1", "n": F.lit(5)}),
        when_not_matched_by_source_update({"name": "'alone'"}, condition="target.id = 0"),
        when_not_matched_by_source_delete(condition="target.id >= 8"),
        target_alias="target",
        source_alias="source",
    )
    assert (done.inserted, done.updated, done.deleted) == (1, 2, 3)
    changed = {0: (0, 0, "alone"), 3: (3, 31, "nobody"), 21: (21, 5, "nobody")}
    want = start(but=changed | {7: None, 8: None, 9: None})
    assert found(lake) == seen(catalog) == want


def test_null_keys_match_nothing(copied):
    catalog, lake = copied
    done = lake.sql(
        "MERGE INTO t USING u ON t.id = u.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    ).first()
    assert (done.inserted, done.updated, done.deleted) == (2, 0, 2)
    want = start(but={3: None, 7: None, 20: (20, 200, "z")})
    assert found(lake) == seen(catalog) == [want[0], (None, 0, "w"), *want[1:]]


def test_only_inserts_add_what_is_not_there(copied, updates):
    catalog, lake = copied
    done = lake.table("t").merge(updates, ["ID"], when_not_matched_insert_all())
    assert (done.inserted, done.rows) == (1, 1)
    assert found(lake) == seen(catalog) == start(but={20: (20, 200, "z")})
    again = lake.table("t").merge(updates, ["ID"], when_not_matched_insert_all())
    assert again == Unchanged(done.snapshot)


def test_by_source_alone_reads_what_the_source_has_not(copied, updates):
    catalog, lake = copied
    done = lake.table("t").merge(updates, "t.id = s.id", when_not_matched_by_source_delete())
    assert done.deleted == 9
    assert found(lake) == seen(catalog) == [(3, 3, "a"), (7, 7, "b")]


@pytest.mark.slow
def test_two_rows_for_one_are_refused_with_their_number(copied, base, updates):
    _, lake = copied
    before, files = newest(lake), set((base.folder / "data").rglob("*"))
    twice = updates.unionAll(updates.where("id = 3"))
    with pytest.raises(InvalidRequest, match=r"main\.t: 1 row\(s\) of the table match"):
        lake.table("t").merge(twice, ["id"], when_matched_update_all())
    with pytest.raises(InvalidRequest, match="match several rows"):
        lake.table("t").merge(
            twice, ["id"], when_matched_delete(condition="s.n = 30"), when_matched_update_all()
        )
    with pytest.raises(InvalidRequest, match="match several rows"):
        lake.table("t").merge(
            updates.unionAll(updates.where("id = 3").withColumn("n", F.lit(31))),
            ["id"],
            when_matched_delete(condition="s.n = 31"),
            when_matched_update_all(),
        )
    assert newest(lake) == before
    assert set((base.folder / "data").rglob("*")) == files


@pytest.mark.slow
def test_two_rows_of_which_one_counts_are_no_matter(copied, updates):
    catalog, lake = copied
    other = updates.unionAll(updates.where("id = 3").withColumn("n", F.lit(31)))
    done = lake.table("t").merge(other, ["id"], when_matched_update_all(condition="s.n <> 31"))
    assert done.updated == 2
    assert found(lake) == seen(catalog) == start(but={3: (3, 30, "x"), 7: (7, 70, "y")})


def test_a_lone_delete_may_match_often(copied, updates):
    catalog, lake = copied
    done = lake.table("t").merge(updates.unionAll(updates), ["id"], when_matched_delete())
    assert done.deleted == 2
    assert found(lake) == seen(catalog) == start(but={3: None, 7: None})


@pytest.mark.slow
def test_sql_merges_queries_with_every_clause(copied):
    catalog, lake = copied
    done = lake.sql(
        """MERGE INTO main.t AS dst
        USING (SELECT id, max(n) AS n FROM u WHERE id IS NOT NULL GROUP BY id) src
        ON dst.id = src.id
        WHEN MATCHED AND src.n IN (SELECT n FROM u WHERE name = 'y') THEN DELETE
        WHEN MATCHED THEN UPDATE SET dst.n = src.n + (SELECT count(*) FROM t), name = DEFAULT
        WHEN NOT MATCHED AND src.n > 5 THEN INSERT (id, n, name) VALUES (src.id, src.n, DEFAULT)
        WHEN NOT MATCHED BY SOURCE AND dst.id < 2 THEN UPDATE SET name = concat(dst.name, '?')
        WHEN NOT MATCHED BY SOURCE AND dst.id = 9 THEN DELETE"""
    ).first()
    assert done.operation == "MERGE"
    assert (done.rows, done.inserted, done.updated, done.deleted) == (6, 1, 3, 2)
    changed = {0: (0, 0, "a?"), 1: (1, 1, "a?"), 3: (3, 41, "nobody"), 20: (20, 200, "nobody")}
    want = start(but=changed | {7: None, 9: None})
    assert found(lake) == seen(catalog) == want


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ((), "MERGE has no clause"),
        (
            (when_matched_delete(), when_matched_update_all()),
            "another clause after WHEN MATCHED THEN DELETE, which has no condition",
        ),
        ((when_matched_update({"n": "s.name"}),), "string cannot be stored as int32"),
    ],
)
def test_what_cannot_be_merged_is_told_before_anything_runs(lake, updates, clauses, message):
    before = newest(lake)
    with pytest.raises(InvalidRequest, match=message):
        lake.table("t").merge(updates, ["id"], *clauses)
    assert newest(lake) == before


def test_a_star_needs_all_columns_in_the_source(lake, updates):
    with pytest.raises(InvalidRequest, match="the source does not have name"):
        lake.table("t").merge(updates.drop("name"), ["id"], when_not_matched_insert_all())


def test_a_source_that_reads_the_table_and_is_never_twice_the_same_is_read_once(copied):
    catalog, lake = copied
    table = lake.table("t")
    source = table.read().where("id IS NOT NULL").withColumn("n", (F.rand() * 1000).cast("int"))
    done = table.merge(source, ["id"], when_matched_update({"n": "s.n", "name": "string(s.n)"}))
    assert done.updated == 10
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT count(*) FROM t WHERE name = n::VARCHAR") == [(10,)]
        assert oracle.sql("SELECT rowid FROM t WHERE id >= 0 ORDER BY id") == [
            (n,) for n in range(10)
        ]


@pytest.mark.slow
def test_a_transaction_merges_over_what_it_wrote(copied, updates):
    catalog, lake = copied
    with lake.transaction() as tx:
        table = tx.table("t")
        table.append(updates.where("id = 20"))
        table.delete("id = 3")
        done = table.merge(
            updates, ["id"], when_matched_update({"n": "t.n + 1"}), when_not_matched_insert_all()
        )
        assert (done.inserted, done.updated) == (1, 2)
        table.merge(updates, ["id"], when_matched_update({"name": "'twice'"}))
    changed = {3: (3, 30, "twice"), 7: (7, 8, "twice"), 20: (20, 201, "twice")}
    assert found(lake) == seen(catalog) == start(but=changed)
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT rowid FROM t WHERE id = 7") == [(7,)]
        assert oracle.sql("SELECT count(*), count(DISTINCT rowid) FROM t") == [(12, 12)]


@pytest.mark.slow
def test_rows_that_the_catalog_holds_take_part(copied, updates):
    catalog, lake = copied
    with duckdb(catalog, inline=10) as oracle:
        oracle.execute("INSERT INTO t VALUES (20, 2, 'in'), (21, 2, 'in')")
    done = lake.table("t").merge(
        updates,
        ["id"],
        when_matched_update_all(),
        when_not_matched_by_source_delete(condition="t.id > 8"),
    )
    assert (done.updated, done.deleted) == (3, 2)
    changed = {3: (3, 30, "x"), 7: (7, 70, "y"), 9: None, 20: (20, 200, "z")}
    assert found(lake) == seen(catalog) == start(but=changed)
    with duckdb(catalog) as oracle:
        assert oracle.sql("SELECT rowid FROM t WHERE id = 20") == [(11,)]
        assert oracle.sql("SELECT count(*) FROM t") == [(11,)]


@pytest.mark.slow
def test_a_clause_for_one_side_takes_plain_names_for_columns_of_that_side(copied, updates):
    catalog, lake = copied
    done = lake.table("t").merge(
        updates,
        "t.id = s.id",
        when_matched_update({"n": "t.n + s.n"}),
        when_not_matched_insert({"id": "id", "n": "n", "name": "name"}, condition="n > 5"),
        when_not_matched_by_source_update({"name": "concat(name, n)"}, condition="id = 1"),
    )
    assert (done.inserted, done.updated) == (1, 3)
    changed = {1: (1, 1, "a1"), 3: (3, 33, "a"), 7: (7, 77, "b"), 20: (20, 200, "z")}
    assert found(lake) == seen(catalog) == start(but=changed)


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        (
            when_not_matched_insert({"id": "t.id"}),
            "NOT MATCHED can refer only to the source, alias 's'",
        ),
        (
            when_not_matched_insert_all(condition="t.id IS NULL"),
            "NOT MATCHED can refer only to the source, alias 's'",
        ),
        (
            when_not_matched_by_source_update({"name": "s.name"}),
            "NOT MATCHED BY SOURCE can refer only to the table, alias 't'",
        ),
    ],
)
def test_a_clause_for_one_side_refuses_names_of_the_other(lake, updates, clause, message):
    before = newest(lake)
    with pytest.raises(InvalidRequest, match=message):
        lake.table("t").merge(updates, ["id"], when_matched_delete(condition="false"), clause)
    assert newest(lake) == before
