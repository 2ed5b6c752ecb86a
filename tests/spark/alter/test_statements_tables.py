"""Schemas and tables through `lake.sql`: made, dropped, shown, described; and what is refused."""

from __future__ import annotations

import pytest

from shelduck import AlreadyExists, InvalidRequest, NotFound, Unsupported
from shelduck.lake import unit
from tests.support.lakes import everything, newest, refusal, rows
from tests.support.meanwhile import once_before
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE SCHEMA sales",
    (
        "CREATE TABLE sales.orders (id BIGINT NOT NULL COMMENT 'key', kind STRING DEFAULT 'web',"
        " at STRUCT<city: STRING, zip: INT>, price DECIMAL(9, 2) DEFAULT 1.5) COMMENT 'what we"
        " sold'"
    ),
    "CREATE TABLE people (id INT, name STRING)",
    "INSERT INTO people VALUES (1, 'Ada'), (2, NULL)",
]


def result(lake, statement):
    [row] = lake.sql(statement).collect()
    return (row.snapshot, row.operation, row.rows, row.files)


# Schemas


@pytest.mark.parametrize("word", ["SCHEMA", "DATABASE", "NAMESPACE"])
def test_a_schema_is_made_and_dropped(copied, word):
    catalog, lake = copied

    assert result(lake, f"CREATE {word} `new one`") == (5, "CREATE SCHEMA", 0, 0)
    assert lake.schemas() == ["main", "sales", "new one"]
    lake.sql("CREATE TABLE `New One`.t (a INT)")
    assert [str(t) for t in lake.tables("NEW ONE")] == ["`new one`.t"]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows('"new one".t') == []
    assert result(lake, f"DROP {word} `new one` CASCADE") == (7, "DROP SCHEMA", 0, 0)
    assert lake.schemas() == ["main", "sales"]


def test_a_dropped_schema_takes_its_tables_along_in_one_snapshot(lake):
    lake.sql("CREATE TABLE sales.more (a INT)")

    lake.sql("DROP SCHEMA sales CASCADE")

    assert newest(lake) == 6
    assert [str(t) for t in lake.tables()] == ["main.people"]
    assert rows(lake.sql("SELECT count(*) FROM sales.orders VERSION AS OF 5")) == [(0,)]


def test_use_sets_the_schema_of_bare_names(lake):
    lake.sql("USE sales")

    assert rows(lake.sql("SELECT count(*) FROM orders")) == [(0,)]
    lake.sql("CREATE TABLE here (a INT)")
    assert [str(t) for t in lake.tables("sales")] == ["sales.here", "sales.orders"]
    assert rows(lake.sql("SHOW TABLES")) == [("sales", "here", False), ("sales", "orders", False)]


# Tables


def test_a_table_keeps_types_defaults_comments_and_not_null(lake):
    table = lake.table("sales.orders")

    assert [(f.id, f.name, str(f.type), f.nullable) for f in table.columns.walk()] == [
        (1, "id", "int64", False),
        (2, "kind", "varchar", True),
        (3, "at", "struct<city: varchar, zip: int32>", True),
        (4, "city", "varchar", True),
        (5, "zip", "int32", True),
        (6, "price", "decimal(9,2)", True),
    ]
    assert [f.default.text for f in table.columns if f.default] == ["web", "1.50"]


def test_a_table_is_dropped_and_older_snapshots_still_show_it(lake):
    assert result(lake, "DROP TABLE people") == (5, "DROP TABLE", 0, 0)

    assert [str(t) for t in lake.tables()] == ["sales.orders"]
    assert rows(lake.sql("SELECT * FROM people VERSION AS OF 4 ORDER BY id")) == [
        (1, "Ada"),
        (2, None),
    ]


@pytest.mark.slow
def test_a_table_is_made_of_a_query_in_one_snapshot(copied):
    catalog, lake = copied

    assert result(lake, "CREATE TABLE copy AS SELECT id + 1L AS next, name FROM people") == (
        *(5, "CREATE TABLE", 2),
        *[len(lake.table("copy").read().inputFiles())],
    )
    assert lake.table("copy").schema.simpleString() == "struct<next:bigint,name:string>"
    assert rows(lake.sql("SELECT * FROM copy ORDER BY next")) == [(2, "Ada"), (3, None)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("copy") == [(2, "Ada"), (3, None)]


def test_a_table_made_of_a_query_takes_nulls_though_the_query_had_none(lake):
    lake.sql("CREATE TABLE one AS SELECT 1 AS a, named_struct('f', 1) AS s")

    lake.sql("INSERT INTO one VALUES (NULL, named_struct('f', NULL))")

    assert rows(lake.sql("SELECT * FROM one ORDER BY a")) == [(None, (None,)), (1, (1,))]


def test_a_table_made_of_no_rows_has_its_columns(lake):
    assert result(lake, "CREATE TABLE none AS SELECT * FROM people WHERE id > 9")[2:] == (0, 0)
    assert lake.table("none").schema.simpleString() == "struct<id:int,name:string>"
    assert rows(lake.sql("SELECT * FROM none")) == []


@pytest.mark.slow
def test_a_replaced_table_may_be_read_by_the_query_that_replaces_it(lake):
    lake.sql("CREATE OR REPLACE TABLE people AS SELECT id * 10 AS id FROM people")

    assert newest(lake) == 5
    assert rows(lake.sql("SELECT * FROM people ORDER BY id")) == [(10,), (20,)]
    assert rows(lake.sql("SELECT count(name) FROM people VERSION AS OF 4")) == [(1,)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE SCHEMA IF NOT EXISTS SALES",
        "DROP SCHEMA IF EXISTS q",
        "CREATE TABLE IF NOT EXISTS People (a INT)",
        "CREATE TABLE IF NOT EXISTS people AS SELECT 1 AS a",
        "DROP TABLE IF EXISTS q",
        "DROP TABLE IF EXISTS q.r",
    ],
)
def test_what_is_there_or_gone_already_makes_no_snapshot(copied, base, statement):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    assert result(lake, statement)[0] == 4
    assert everything(catalog, base.folder / "data") == before


@pytest.mark.sampled(31)
@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("CREATE SCHEMA Sales", AlreadyExists, "schema 'Sales' already exists"),
        ("CREATE SCHEMA ``", InvalidRequest, "not an empty name"),
        ("DROP SCHEMA sale", NotFound, "schema 'sale' does not exist; did you mean 'sales'?"),
        (
            "DROP SCHEMA sales",
            InvalidRequest,
            "cannot drop schema 'sales': it contains 1 table(s), such as 'orders'; drop them",
        ),
        ("DROP SCHEMA main CASCADE", InvalidRequest, "cannot drop schema 'main'"),
        ("CREATE TABLE PEOPLE (a INT)", AlreadyExists, "table main.PEOPLE already exists"),
        ("CREATE TABLE people AS SELECT 1 AS a", AlreadyExists, "table main.people already exists"),
        (
            "CREATE TABLE q.t (a INT)",
            NotFound,
            "schema 'q' does not exist; existing schemas: 'main', 'sales'",
        ),
        ("CREATE TABLE `` (a INT)", InvalidRequest, "not an empty name"),
        ("CREATE TABLE t (`` INT)", InvalidRequest, "not an empty name"),
        ("CREATE TABLE t (a INT, A INT)", InvalidRequest, "column 'A' is listed twice"),
        ("CREATE TABLE t (a FOO)", InvalidRequest, "unknown data type 'foo' in 'FOO'"),
        (
            "CREATE TABLE t (a INT DEFAULT 'x')",
            InvalidRequest,
            (
                "cannot set the default 'x' of a of t: 'x' is not a value of type int32: expected"
                " a whole number"
            ),
        ),
        (
            "CREATE TABLE t (a INT, b INT DEFAULT a)",
            InvalidRequest,
            "the default 'a' refers to the column 'a', but a default can only contain constants",
        ),
        (
            "CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))",
            AlreadyExists,
            "t already has the PRIMARY KEY primary_key_1; drop it first",
        ),
        ("CREATE TABLE t (a INT) USING csv", Unsupported, "tables of a lake are Parquet files"),
        ("CREATE TABLE t (a INT) LOCATION '/x'", Unsupported, "below the lake's data path"),
        (
            "CREATE TABLE t (a INT) TBLPROPERTIES ('delta.appendOnly' = 'v')",
            Unsupported,
            "t cannot have the property 'delta.appendOnly' of Delta; a lake cannot forbid changes",
        ),
        (
            "CREATE TABLE t AS SELECT NULL AS a",
            Unsupported,
            "column 'a' is void, which has no DuckLake type",
        ),
        ("CREATE TABLE t AS SELECT 1 AS a, 2 AS A", InvalidRequest, "column 'A' is listed twice"),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", Unsupported, "use CREATE SCHEMA, TABLE"),
        (
            "DROP TABLE peple",
            NotFound,
            "table 'peple' does not exist in schema 'main'; did you mean",
        ),
        (
            "DROP TABLE q.t",
            NotFound,
            "schema 'q' does not exist; existing schemas: 'main', 'sales'",
        ),
        ("DROP SEQUENCE v", Unsupported, "use DROP SCHEMA, TABLE, VIEW, MACRO or"),
        ("USE q", NotFound, "schema 'q' does not exist"),
        ("SHOW TABLES IN q", NotFound, "schema 'q' does not exist"),
        ("SHOW COLUMNS IN q", NotFound, "table 'q' does not exist"),
        ("DESCRIBE q", NotFound, "table 'q' does not exist in schema 'main'"),
        ("DESCRIBE people age", NotFound, "column 'age' does not exist in main.people"),
        ("SHOW CREATE TABLE q", NotFound, "table 'q' does not exist in schema 'main'"),
        ("", InvalidRequest, "the text contains no statement"),
        ("GRANT ALL ON people TO me", Unsupported, "give rights on the catalog's database"),
    ],
)
def test_a_statement_that_cannot_be_changes_nothing(copied, base, statement, kind, message):
    catalog, lake = copied

    assert message in refusal(kind, lambda: lake.sql(statement), catalog, base.folder / "data")


def test_a_query_that_fails_while_it_fills_a_new_table_leaves_no_table_and_no_file(copied, base):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    with pytest.raises(Exception, match="my own mistake"):
        lake.sql(
            "CREATE TABLE t AS SELECT CAST(raise_error('my own mistake') AS INT) AS a FROM people"
        )

    assert everything(catalog, base.folder / "data") == before


# Looking


def test_show_schemas_and_tables_and_columns(lake):
    assert rows(lake.sql("SHOW SCHEMAS")) == [("main",), ("sales",)]
    assert rows(lake.sql("SHOW DATABASES LIKE 's*'")) == [("sales",)]
    assert rows(lake.sql("SHOW TABLES")) == [("main", "people", False)]
    assert rows(lake.sql("SHOW TABLES IN Sales")) == [("sales", "orders", False)]
    assert rows(lake.sql("SHOW TABLES LIKE 'x*|P*'")) == [("main", "people", False)]
    assert rows(lake.sql("SHOW TABLES LIKE 'x*'")) == []
    assert rows(lake.sql("SHOW COLUMNS IN sales.orders")) == [
        ("id",),
        ("kind",),
        ("at",),
        ("price",),
    ]


def test_describe_shows_columns_as_spark_does(lake):
    found = lake.sql("DESCRIBE sales.orders")

    assert found.columns == ["col_name", "data_type", "comment"]
    assert rows(found) == [
        ("id", "bigint", "key"),
        ("kind", "string", None),
        ("at", "struct<city:string,zip:int>", None),
        ("price", "decimal(9,2)", None),
    ]


def test_describe_extended_shows_what_the_catalog_knows(lake):
    found = {name: kind for name, kind, _ in rows(lake.sql("DESCRIBE EXTENDED sales.orders"))}

    assert found["at.zip"] == "id 5, int32"
    assert {k: found[k] for k in ("Database", "Table", "Table Id", "Snapshot", "Comment")} == {
        "Database": "sales",
        "Table": "orders",
        "Table Id": "2",
        "Snapshot": "4",
        "Comment": "what we sold",
    }


def test_describe_one_field(lake):
    assert rows(lake.sql("DESCRIBE sales.orders at.zip")) == [
        ("col_name", "at.zip"),
        ("data_type", "int"),
        ("comment", None),
        ("field_id", "5"),
        ("ducklake_type", "int32"),
        ("nullable", "true"),
        ("initial_default", None),
        ("default", None),
    ]


def test_show_create_table_makes_the_same_table_again(lake):
    [(text,)] = rows(lake.sql("SHOW CREATE TABLE sales.orders"))
    assert text == (
        "CREATE TABLE sales.orders (\n"
        "  id BIGINT NOT NULL COMMENT 'key',\n"
        "  kind STRING DEFAULT 'web',\n"
        "  at STRUCT<city: STRING, zip: INT>,\n"
        "  price DECIMAL(9,2) DEFAULT 1.50\n"
        ")\n"
        "COMMENT 'what we sold'"
    )
    before = lake.table("sales.orders").columns

    lake.sql(f"DROP TABLE sales.orders; {text}")

    assert newest(lake) == 6
    assert lake.table("sales.orders").columns == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE IF NOT EXISTS raced (a INT)",
        "CREATE TABLE IF NOT EXISTS raced AS SELECT 1 AS a",
        "CREATE VIEW IF NOT EXISTS raced AS SELECT 1 AS a",
    ],
)
def test_if_not_exists_means_at_the_commit_too(lake, monkeypatch, statement):
    kind = "VIEW" if "VIEW" in statement else "TABLE"
    first = f"CREATE {kind} raced AS SELECT 2 AS a"
    once_before(monkeypatch, unit.UnitOfWork, "commit", lambda: lake.sql(first))
    lake.sql(statement)

    assert rows(lake.sql("SELECT a FROM raced")) == [(2,)]
    with pytest.raises(AlreadyExists):
        lake.sql(statement.replace("IF NOT EXISTS ", ""))
