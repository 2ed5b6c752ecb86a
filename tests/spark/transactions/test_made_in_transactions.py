"""Tables and schemas that a transaction makes, and goes on to rename, fill, drop and make again."""

from __future__ import annotations

import pytest

from shelduck import AlreadyExists, NotFound
from tests.support.lakes import catalog_files, everything, newest, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = ["CREATE TABLE kept (id INT)"]

HUNDRED = "SELECT CAST(id AS INT) AS id FROM range(100)"


def count(catalog, name):
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        return duckdb.sql(f"SELECT count(*), sum(id) FROM {name}")


def files_outside(catalog, data):
    """Files that are not where the catalog says that they are."""
    return [path for path in catalog_files(catalog, live=False) if not (data / path).is_file()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "name"),
    [
        (f"CREATE TABLE a AS {HUNDRED}; ALTER TABLE a RENAME TO b", "b"),
        (f"CREATE TABLE a (id INT); INSERT INTO a {HUNDRED}; ALTER TABLE a RENAME TO b", "b"),
        (f"CREATE TABLE a (id INT); ALTER TABLE a RENAME TO b; INSERT INTO b {HUNDRED}", "b"),
        (
            (
                f"CREATE SCHEMA s; CREATE TABLE s.a AS {HUNDRED};"
                " ALTER TABLE s.a RENAME TO b; ALTER TABLE s.b RENAME TO c"
            ),
            "s.c",
        ),
        (
            (
                f"CREATE TABLE a AS {HUNDRED}; CREATE TABLE b (id INT); ALTER TABLE a RENAME TO x;"
                " ALTER TABLE b RENAME TO a; ALTER TABLE x RENAME TO b"
            ),
            "b",
        ),
        (
            (
                f"CREATE TABLE a AS {HUNDRED}; ALTER TABLE a RENAME TO b; CREATE TABLE a (id INT);"
                " INSERT INTO a SELECT 1"
            ),
            "b",
        ),
        (
            (
                "CREATE TABLE a (k INT, id INT) DUPLICATE KEY(k) ROLLUP (r (id));"
                f" INSERT INTO a SELECT 1, * FROM ({HUNDRED}); ALTER TABLE a RENAME TO b"
            ),
            "b$r",
        ),
    ],
)
def test_a_table_that_is_made_filled_and_renamed_keeps_its_rows(copied, base, program, name):
    catalog, lake = copied

    lake.sql(f"BEGIN; {program}; COMMIT")

    assert newest(lake) == 2
    assert files_outside(catalog, base.folder / "data") == []
    quoted = f"`{name}`" if "$" in name else name
    assert rows(lake.sql(f"SELECT count(*), sum(id) FROM {quoted}")) == [(100, 4950)]
    assert count(catalog, quoted.replace("`", '"')) == [(100, 4950)]


@pytest.mark.slow
def test_the_same_through_the_objects(copied, base, spark):
    catalog, lake = copied

    with lake.transaction() as tx:
        made = tx.create_table("a", {"id": "int"})
        made.append(spark.sql(HUNDRED))
        made.rename("b")
        made.append(spark.sql("SELECT 100 AS id"))

    assert files_outside(catalog, base.folder / "data") == []
    assert count(catalog, "b") == [(101, 5050)]


def test_the_name_that_a_new_table_gave_up_is_free_for_others(lake):
    with lake.transaction() as tx:
        tx.create_table("a", {"id": "int"}).rename("b")
        lake.create_table("a", {"theirs": "int"})

    assert sorted(str(n) for n in lake.tables()) == ["main.a", "main.b", "main.kept"]


def test_a_schema_made_in_the_transaction_is_dropped_in_it(copied, base):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    with lake.transaction() as tx:
        tx.sql(f"CREATE SCHEMA s; CREATE TABLE s.a AS {HUNDRED}; CREATE VIEW s.v AS SELECT 1 AS x")
        tx.sql("DROP SCHEMA s CASCADE")
        assert tx.schemas() == ["main"]
        with pytest.raises(NotFound, match="schema 's' does not exist"):
            tx.sql("DROP SCHEMA s")

    assert everything(catalog, base.folder / "data") == before

    with lake.transaction() as tx:
        tx.sql("CREATE SCHEMA s; DROP SCHEMA s; CREATE SCHEMA S; CREATE TABLE s.a (id INT)")
    assert lake.schemas() == ["main", "S"]
    assert count(catalog, "s.a") == [(0, None)]


def test_a_schema_of_the_lake_makes_place_for_a_new_one_which_goes_too(copied):
    catalog, lake = copied
    lake.sql("CREATE SCHEMA s; CREATE TABLE s.old (id INT)")

    with lake.transaction() as tx:
        tx.sql("DROP SCHEMA s CASCADE; CREATE SCHEMA s; CREATE TABLE s.new (id INT)")
        tx.sql("DROP SCHEMA s CASCADE")
        assert tx.schemas() == ["main"]

    assert lake.schemas() == ["main"]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT table_name FROM duckdb_tables()") == [("kept",)]


def test_a_new_schema_is_known_when_a_table_is_missing_in_it(lake):
    with lake.transaction() as tx:
        tx.sql("CREATE SCHEMA s; CREATE TABLE s.made (id INT)")
        with pytest.raises(NotFound, match=r"^table 's.mad' does not exist; did you mean 's.made'"):
            tx.table("s.mad")


def test_a_view_of_the_transaction_takes_a_name_at_once(lake):
    with lake.transaction() as tx:
        tx.sql("CREATE VIEW v AS SELECT 1 AS x")
        with pytest.raises(AlreadyExists, match=r"view main\.v already exists"):
            tx.create_table("v", {"id": "int"})
        with pytest.raises(AlreadyExists, match=r"view main\.v already exists"):
            tx.table("kept").rename("v")

    assert [str(n) for n in lake.tables()] == ["main.kept"]
