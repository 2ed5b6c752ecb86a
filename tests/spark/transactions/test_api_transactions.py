"""Transactions: several tables in one snapshot, or nothing at all."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import AlreadyExists, Conflict, InvalidRequest, NotFound
from tests.support.lakes import everything, newest, refusal, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE t (id INT NOT NULL, name STRING DEFAULT '??')",
    "INSERT INTO t VALUES (1, 'one')",
    "CREATE TABLE u (id INT)",
]


@pytest.fixture
def two(spark):
    return spark.sql("SELECT 2 AS id")


@pytest.mark.slow
def test_several_tables_change_in_one_snapshot(copied, two):
    catalog, lake = copied

    with lake.transaction(message="daily load", extra_info="run 7") as tx:
        staged = tx.table("t").append(two)
        assert (type(staged), staged.rows) == (shelduck.Staged, 1)
        tx.table("u").append(two)
        tx.sql("INSERT INTO u VALUES (3)")
        tx.create_table("made", {"a": "int"}).append(two.withColumnRenamed("id", "a"))
        assert newest(lake) == 3
        assert rows(lake.sql("SELECT count(*) FROM t")) == [(1,)]

    assert tx.result.snapshot == 4
    assert tx.result.rows == 4
    last = lake.snapshots()[-1]
    assert (last.id, last.commit_message, last.commit_extra_info) == (4, "daily load", "run 7")
    told = 'created_table:"main"."made",inlined_insert:1,inlined_insert:2,inlined_insert:3'
    assert last.changes_made == told
    assert rows(lake.sql("SELECT id FROM t ORDER BY id")) == [(1,), (2,)]
    assert rows(lake.sql("SELECT id FROM u ORDER BY id")) == [(2,), (3,)]
    assert rows(lake.sql("SELECT a FROM made")) == [(2,)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == [(1, "one"), (2, "??")]
        assert duckdb.rows("made") == [(2,)]


def test_an_exception_takes_everything_back(copied, base, two):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    tx = lake.transaction()

    def fails():
        with tx:
            tx.table("t").append(two)
            tx.sql("CREATE TABLE made AS SELECT 1 AS a")
            tx.sql("ALTER TABLE u ADD COLUMN c INT; CREATE SCHEMA s")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()

    assert tx.result is None
    assert everything(catalog, base.folder / "data") == before
    assert [str(t) for t in lake.tables()] == ["main.t", "main.u"]


def test_a_rollback_by_hand_takes_everything_back(copied, base, two):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    with lake.transaction() as tx:
        tx.table("t").append(two)
        tx.rollback()

    assert everything(catalog, base.folder / "data") == before


def test_an_empty_transaction_makes_no_snapshot(copied, base):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    with lake.transaction("nothing") as tx:
        pass

    assert tx.result == shelduck.Unchanged(3)
    assert everything(catalog, base.folder / "data") == before


def test_a_refusal_inside_leaves_the_rest_of_the_transaction_alone(lake, two):
    with lake.transaction() as tx:
        tx.table("t").append(two)
        with pytest.raises(NotFound):
            tx.sql("DROP TABLE q")
        with pytest.raises(InvalidRequest):
            tx.sql("INSERT INTO t VALUES (NULL, 'x')")
        with pytest.raises(AlreadyExists):
            tx.create_table("u", {"a": "int"})

    assert rows(lake.sql("SELECT id FROM t ORDER BY id")) == [(1,), (2,)]


def test_a_changed_table_takes_rows_in_its_new_shape(copied, spark):
    catalog, lake = copied

    with lake.transaction() as tx:
        table = tx.table("t")
        table.alter(shelduck.add_column("c", "int", default=5), shelduck.drop_column("name"))
        table.append(spark.sql("SELECT 2 AS id, 6 AS c"))
        table.append(spark.sql("SELECT 3 AS id"))
        assert table.schema.names == ["id", "c"]

    assert newest(lake) == 4
    expected = [(1, 5), (2, 6), (3, 5)]
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == expected
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == expected


@pytest.mark.slow
def test_rows_written_before_the_shape_changed_in_the_same_transaction_stay_right(copied, spark):
    catalog, lake = copied

    with lake.transaction() as tx:
        table = tx.table("t")
        table.append(spark.sql("SELECT 2 AS id, 'two' AS name"))
        table.alter(
            shelduck.rename_column("name", "label"),
            shelduck.add_column("c", "int", default=5),
            shelduck.change_type("id", "bigint"),
        )
        table.append(spark.sql("SELECT 3000000000L AS id, 'big' AS label, 6 AS c"))

    expected = [(1, "one", 5), (2, "two", 5), (3000000000, "big", 6)]
    assert rows(lake.sql("SELECT * FROM t ORDER BY id")) == expected
    assert rows(lake.sql("SELECT label FROM t WHERE id > 2147483647")) == [("big",)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == expected


def test_names_are_swapped_between_tables_in_one_snapshot(copied):
    catalog, lake = copied

    with lake.transaction() as tx:
        tx.table("t").rename("tmp")
        tx.table("u").rename("t")
        tx.table("tmp").rename("u")

    assert newest(lake) == 4
    assert rows(lake.sql("SELECT count(*) FROM t")) == [(0,)]
    assert rows(lake.sql("SELECT * FROM u")) == [(1, "one")]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("u") == [(1, "one")]


def test_a_dropped_table_makes_place_for_another_one_in_the_same_snapshot(copied):
    catalog, lake = copied

    with lake.transaction() as tx:
        tx.drop_table("t")
        tx.create_table("T", {"other": "string"})
        tx.sql("INSERT INTO t VALUES ('x')")

    assert newest(lake) == 4
    assert rows(lake.sql("SELECT * FROM t")) == [("x",)]
    assert rows(lake.sql("SELECT * FROM t VERSION AS OF 3")) == [(1, "one")]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("t") == [("x",)]


def test_a_table_made_and_dropped_in_one_transaction_leaves_nothing(copied, base):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    with lake.transaction() as tx:
        tx.sql("CREATE TABLE made AS SELECT 1 AS a")
        tx.drop_table("made")

    assert everything(catalog, base.folder / "data") == before


def test_rows_of_a_table_dropped_later_in_the_transaction_leave_no_file(copied, base, two):
    catalog, lake = copied
    _, files = everything(catalog, base.folder / "data")

    with lake.transaction() as tx:
        tx.table("t").append(two)
        tx.drop_table("t")

    assert [str(t) for t in lake.tables()] == ["main.u"]
    assert everything(catalog, base.folder / "data")[1] == files


def test_a_transaction_lists_what_it_will_leave(lake):
    with lake.transaction() as tx:
        tx.create_schema("s")
        tx.create_table("s.made", {"a": "int"})
        tx.table("t").rename("renamed")
        tx.drop_table("u")

        assert tx.schemas() == ["main", "s"]
        assert [str(n) for n in tx.tables()] == ["main.renamed", "s.made"]
        assert [str(n) for n in tx.tables("S")] == ["s.made"]
        assert [str(n) for n in lake.tables()] == ["main.t", "main.u"]
        with pytest.raises(NotFound, match=r"^table 'main.u' does not exist$"):
            tx.table("u")

    assert [str(n) for n in lake.tables()] == ["main.renamed", "s.made"]


def test_a_schema_ends_with_the_tables_that_the_transaction_left_in_it(lake):
    lake.create_schema("s")
    lake.create_table("s.old", {"a": "int"})

    with lake.transaction() as tx:
        tx.create_table("s.made", {"a": "int"})
        tx.drop_table("s.old")
        with pytest.raises(InvalidRequest, match=r"contains 1 table\(s\), such as 'made'"):
            tx.drop_schema("s")
        tx.drop_schema("s", cascade=True)

    assert lake.schemas() == ["main"]
    assert [str(n) for n in lake.tables()] == ["main.t", "main.u"]


def test_a_schema_that_does_not_exist_lists_nothing_but_an_error(lake):
    with pytest.raises(NotFound, match="schema 'mian' does not exist; did you mean 'main'"):
        lake.tables("mian")


def test_a_schema_and_its_tables_are_made_at_once(lake):
    with lake.transaction() as tx:
        tx.create_schema("s")
        tx.create_table("s.a", {"x": "int"})
        tx.sql("INSERT INTO s.a VALUES (1)")

    assert newest(lake) == 4
    assert rows(lake.sql("SELECT * FROM s.a")) == [(1,)]


@pytest.mark.slow
def test_a_transaction_reads_as_of_its_beginning(lake, spark):
    with lake.transaction() as tx:
        lake.sql("INSERT INTO t VALUES (9, 'late')")
        assert rows(tx.sql("SELECT id FROM t")) == [(1,)]
        assert rows(tx.table("t").read().select("id")) == [(1,)]
        assert rows(tx.table("t").read(version=4).select("id").orderBy("id")) == [(1,), (9,)]
        tx.table("t").append(spark.sql("SELECT 2 AS id"))

    assert rows(lake.sql("SELECT id FROM t ORDER BY id")) == [(1,), (2,), (9,)]


def test_a_transaction_reads_what_it_wrote(lake, two):
    with lake.transaction() as tx:
        tx.table("t").append(two)
        assert rows(tx.sql("SELECT id FROM t ORDER BY id")) == [(1,), *map(tuple, two.collect())]
        tx.table("t").alter(shelduck.rename_column("id", "number"), shelduck.add_column("n", "int"))
        assert tx.table("t").read().where("number > 0 AND n IS NULL").count() == 1 + two.count()
        assert lake.table("t").read().count() == 1


def test_a_transaction_reads_a_table_that_it_made(lake, two):
    with lake.transaction() as tx:
        made = tx.create_table("fresh", two.schema)
        assert made.read().count() == 0
        made.append(two)
        made.append(two)
        assert tx.sql("SELECT * FROM fresh").count() == 2 * two.count()
    assert lake.table("fresh").read().count() == 2 * two.count()


def test_another_commit_on_the_same_columns_is_a_conflict(copied, base):
    catalog, lake = copied
    tx = lake.transaction()
    with tx:
        tx.table("t").alter(shelduck.add_column("mine", "int"))
        lake.table("t").alter(shelduck.add_column("theirs", "int"))
        told = refusal(Conflict, tx.commit, catalog, base.folder / "data")

    assert "main.t" in told or "table 1" in told
    assert lake.table("t").schema.names == ["id", "name", "theirs"]


def test_a_lost_transaction_removes_its_files(copied, base, two):
    catalog, lake = copied
    _, files = everything(catalog, base.folder / "data")

    tx = lake.transaction()
    with tx:
        tx.table("t").append(two)
        lake.sql("DROP TABLE t")
        with pytest.raises(Conflict, match="dropped"):
            tx.commit()

    assert everything(catalog, base.folder / "data")[1] == files


@pytest.mark.parametrize(
    "use",
    [
        lambda tx: tx.commit(),
        lambda tx: tx.table("t"),
        lambda tx: tx.sql("INSERT INTO u VALUES (1)"),
        lambda tx: tx.sql("SELECT * FROM t"),
        lambda tx: tx.create_table("v", {"a": "int"}),
        lambda tx: tx.create_schema("s"),
        lambda tx: tx.drop_table("t"),
        lambda tx: tx.drop_table("q", if_exists=True),
    ],
)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transaction_that_ended_is_of_no_more_use(lake, use, end):
    with lake.transaction() as tx:
        getattr(tx, end)()

    with pytest.raises(InvalidRequest, match="the transaction has ended; begin another one"):
        use(tx)
    assert newest(lake) == 3


def test_a_table_object_of_an_ended_transaction_is_of_no_more_use(lake, two):
    with lake.transaction() as tx:
        table = tx.table("t")

    for use in (
        table.read,
        lambda: table.append(two),
        lambda: table.alter(shelduck.drop_column("name")),
        lambda: table.schema,
        table.drop,
    ):
        with pytest.raises(InvalidRequest, match="the transaction has ended"):
            use()


def test_a_block_that_commits_beside_its_transaction_is_told(lake):
    told = r"does not use it: 2 snapshot\(s\) were committed one by one; write with .* as tx"
    with pytest.raises(InvalidRequest, match=told), lake.transaction():
        lake.sql("INSERT INTO u VALUES (1); INSERT INTO u VALUES (2)")
    with lake.transaction() as tx:
        lake.sql("INSERT INTO u VALUES (3)")
        tx.sql("INSERT INTO u VALUES (4)")
    with lake.transaction():
        pass
    assert sorted(rows(lake.sql("SELECT id FROM u"))) == [(1,), (2,), (3,), (4,)]


def test_a_rollback_after_the_commit_harms_nothing(lake, two):
    with lake.transaction() as tx:
        tx.table("t").append(two)

    tx.rollback()

    assert rows(lake.sql("SELECT id FROM t ORDER BY id")) == [(1,), (2,)]


def test_every_commit_carries_the_author(base, two):
    catalog, lake = base.copy()
    lake.close()
    with shelduck.connect(f"sqlite:///{catalog}", spark=base.spark, author="Ada") as lake:
        lake.table("t").append(two)
        with lake.transaction("by hand") as tx:
            tx.table("t").append(two)

        assert [(s.author, s.commit_message) for s in lake.snapshots()[-2:]] == [
            ("Ada", None),
            ("Ada", "by hand"),
        ]
