"""CREATE, DROP, INSERT, SHOW, DESCRIBE, EXPLAIN and USE."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.explain import Explain
from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.definition import Definition
from shelduck.model.tables.partition import PartitionBy, Transform
from shelduck.model.tables.schema import Default
from shelduck.model.types.data_types import Decimal, Primitive
from shelduck.objects.statement.create_table import CreateTableStatement
from shelduck.objects.statement.schemas_and_tables import (
    CreateSchemaStatement,
    DropSchemaStatement,
    DropTableStatement,
    UseSchema,
)
from shelduck.objects.statement.show import (
    Describe,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowSchemas,
    ShowTables,
)
from shelduck.objects.statement.views import ShowViews
from shelduck.text.query.value_rows import DefaultCell
from shelduck.text.tokens.parts import NamedTable, Query, Relation, SchemaName
from shelduck.write.statement.insert_into import Insert

INT, STRING = Primitive("int32"), Primitive("varchar")
T = NamedTable(("t",))


def reading(text, *names):
    relations = tuple(
        Relation(NamedTable(tuple(n.split("."))), f"__lake_{i}__") for i, n in enumerate(names)
    )
    return Query(text, relations)


STATEMENTS = [
    ("CREATE SCHEMA s", CreateSchemaStatement(SchemaName(("s",)))),
    ("create database if not exists `a b`", CreateSchemaStatement(SchemaName(("a b",)), True)),
    ("DROP SCHEMA s", DropSchemaStatement(SchemaName(("s",)))),
    (
        "DROP SCHEMA IF EXISTS lake.s CASCADE",
        DropSchemaStatement(SchemaName(("lake", "s")), True, True),
    ),
    ("DROP DATABASE s RESTRICT", DropSchemaStatement(SchemaName(("s",)))),
    ("USE s", UseSchema(SchemaName(("s",)))),
    ("USE SCHEMA s", UseSchema(SchemaName(("s",)))),
    ("USE schema", UseSchema(SchemaName(("schema",)))),
    (
        "CREATE TABLE x (col_a int, col_b int)",
        CreateTableStatement(
            NamedTable(("x",)), (Definition(("col_a",), INT), Definition(("col_b",), INT))
        ),
    ),
    (
        (
            "CREATE TABLE IF NOT EXISTS main.t (`a.b` DECIMAL(10,2) NOT NULL DEFAULT 1.5"
            " COMMENT 'x', \"from\" VARCHAR(20)) USING shelduck"
            " PARTITIONED BY (`a.b`, bucket(4, c)) COMMENT 'y'"
            " TBLPROPERTIES ('k' = 'v', a.b = 5)"
        ),
        CreateTableStatement(
            NamedTable(("main", "t")),
            (
                Definition(("a.b",), Decimal(10, 2), Default("1.5"), nullable=False, comment="x"),
                Definition(("from",), STRING),
            ),
            if_not_exists=True,
            comment="y",
            partitioned_by=(PartitionBy("a.b"), PartitionBy("c", Transform("bucket", 4))),
            properties={"k": "v", "a.b": "5"},
        ),
    ),
    (
        "CREATE OR REPLACE TABLE t AS SELECT * FROM u",
        CreateTableStatement(
            T, or_replace=True, as_query=reading("SELECT * FROM __lake_0__ AS `u`", "u")
        ),
    ),
    (
        "CREATE TABLE t COMMENT 'x' AS (SELECT 1)",
        CreateTableStatement(T, comment="x", as_query=reading("(SELECT 1)")),
    ),
    (
        "CREATE TABLE t AS WITH a AS (SELECT 1) SELECT * FROM a",
        CreateTableStatement(T, as_query=reading("WITH a AS (SELECT 1) SELECT * FROM a")),
    ),
    ("DROP TABLE t", DropTableStatement(T)),
    ("DROP TABLE t CASCADE", DropTableStatement(T)),
    ("DROP TABLE t RESTRICT", DropTableStatement(T)),
    ("DROP TABLE IF EXISTS main.t", DropTableStatement(NamedTable(("main", "t")), True)),
    ("INSERT INTO t VALUES (1, 'a;b')", Insert(T, reading("VALUES (1, 'a;b')"))),
    (
        'INSERT INTO TABLE t (a, "b c", `d``e`) VALUES (1, 2, 3)',
        Insert(T, reading("VALUES (1, 2, 3)"), ("a", "b c", "d`e")),
    ),
    ("INSERT INTO t SELECT * FROM t", Insert(T, reading("SELECT * FROM __lake_0__ AS `t`", "t"))),
    ("INSERT INTO t (SELECT 1)", Insert(T, reading("(SELECT 1)"))),
    (
        "INSERT INTO t (values, b) VALUES (1, 2)",
        Insert(T, reading("VALUES (1, 2)"), ("values", "b")),
    ),
    ("INSERT INTO t BY NAME SELECT 1 AS a", Insert(T, reading("SELECT 1 AS a"), by_name=True)),
    ("INSERT INTO t TABLE s.u", Insert(T, reading("TABLE __lake_0__", "s.u"))),
    (
        "INSERT OVERWRITE t WITH a AS (SELECT 1) SELECT * FROM a",
        Insert(T, reading("WITH a AS (SELECT 1) SELECT * FROM a"), mode="overwrite"),
    ),
    (
        "INSERT INTO t VALUES (1, DEFAULT, f(a, 2)), (2, 'default', default)",
        Insert(
            T,
            reading("VALUES (1, __default_1__, f(a, 2)), (2, 'default', __default_2__)"),
            defaults=(DefaultCell(1, "__default_1__"), DefaultCell(2, "__default_2__")),
        ),
    ),
    ("SHOW SCHEMAS", ShowSchemas()),
    ("SHOW DATABASES LIKE 'a*'", ShowSchemas(like="a*")),
    ("SHOW NAMESPACES 'a*'", ShowSchemas(like="a*")),
    ("SHOW SCHEMAS IN a.b LIKE 'a*'", ShowSchemas(SchemaName(("a", "b")), "a*")),
    ("DROP SCHEMA a.b.c", DropSchemaStatement(SchemaName(("a", "b", "c")))),
    ("SHOW TABLES", ShowTables()),
    ("SHOW TABLES IN s LIKE 'a*|b'", ShowTables(SchemaName(("s",)), "a*|b")),
    ("SHOW TABLES FROM s 'a'", ShowTables(SchemaName(("s",)), "a")),
    ("SHOW VIEWS", ShowViews()),
    ("SHOW VIEWS IN s LIKE 'a*'", ShowViews(SchemaName(("s",)), "a*")),
    ("SHOW PARTITIONS main.t", ShowPartitions(NamedTable(("main", "t")))),
    ("SHOW COLUMNS IN t", ShowColumns(T)),
    ("SHOW COLUMNS FROM main.t", ShowColumns(NamedTable(("main", "t")))),
    ("SHOW COLUMNS IN t IN s", ShowColumns(NamedTable(("s", "t")))),
    ("SHOW CREATE TABLE t", ShowCreateTable(T)),
    ("DESCRIBE t", Describe(T)),
    ("DESC TABLE main.t", Describe(NamedTable(("main", "t")))),
    ("DESCRIBE EXTENDED t", Describe(T, extended=True)),
    ("DESCRIBE TABLE FORMATTED t", Describe(T, extended=True)),
    ("DESCRIBE t s.f", Describe(T, column=("s", "f"))),
    ("DESCRIBE table", Describe(NamedTable(("table",)))),
    ("DESCRIBE history", Describe(NamedTable(("history",)))),
    ("EXPLAIN SELECT 1", Explain(reading("SELECT 1"))),
    (
        "EXPLAIN FORMATTED SELECT * FROM t x",
        Explain(reading("SELECT * FROM __lake_0__ x", "t"), "formatted"),
    ),
]


@pytest.mark.parametrize(("text", "statement"), STATEMENTS)
def test_a_statement_is_read(text, statement):
    assert parse(text) == [statement]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "CREATE",
            "expected SCHEMA, TABLE, VIEW or MACRO at line 1, column 7, but the statement ends",
        ),
        ("CREATE TABLE t", "expected the columns in brackets, or AS and a query"),
        ("CREATE TABLE t ()", "expected a column at line 1, column 17, but found ')'"),
        ("CREATE TABLE t (a)", "expected a data type at line 1, column 18, but found ')'"),
        ("CREATE TABLE t (a int", "expected ) at line 1, column 22, but the statement ends"),
        (
            "CREATE TABLE t (a.b int)",
            "expected the name of a column (quote a name that contains a dot)",
        ),
        ("CREATE TABLE t (a int) AS SELECT 1", "the query of CREATE TABLE AS defines the columns"),
        ("CREATE TABLE t (a int FIRST)", "FIRST and AFTER are for ALTER TABLE"),
        ("CREATE TABLE t AS DROP u", "expected a query: SELECT, WITH, FROM, VALUES or TABLE"),
        ("CREATE TABLE t (a int) COMMENT 'x' COMMENT 'y'", "expected COMMENT only once"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t (a int)", "EXISTS cannot be used together"),
        ("DROP TABLE", "expected a table at line 1, column 11, but the statement ends"),
        ("INSERT t VALUES (1)", "expected INTO or OVERWRITE at line 1, column 8"),
        ("INSERT INTO t", "expected a query: SELECT, WITH, FROM, VALUES or TABLE"),
        ("INSERT INTO t (a, A) VALUES (1, 2)", "expected each column only once at line 1"),
        ("INSERT INTO t (a.b) VALUES (1)", "expected a top-level column (quote a name"),
        ("INSERT INTO t (a) BY NAME SELECT 1", "with BY NAME, the query names the columns"),
        ("INSERT INTO t PARTITION (a, A) SELECT 1", "expected each column only once"),
        ("INSERT INTO t PARTITION (a = b) SELECT 1", "expected a literal: a number, a string"),
        ("INSERT INTO t REPLACE a = 1 SELECT 1", "expected WHERE at line 1, column 23"),
        ("INSERT INTO t REPLACE WHERE SELECT 1", "expected a query: SELECT"),
        ("INSERT INTO t REPLACE WHERE a = 1", "expected a query: SELECT, WITH, FROM"),
        ("INSERT OVERWRITE t REPLACE WHERE a SELECT 1", "REPLACE is written after INSERT INTO"),
        (
            "INSERT INTO t PARTITION (a = 1) REPLACE WHERE a = 1 SELECT 1",
            "the partition in the condition",
        ),
        ("SHOW COLUMNS t", "expected IN or FROM and a table"),
        ("SHOW COLUMNS IN a.t IN b", "the schema is given twice"),
        ("SHOW TABLES LIKE x", "expected a pattern as a string"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text, message):
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TEMPORARY TABLE t (a int)", "CREATE TEMPORARY is not supported"),
        ("CREATE TABLE t (a int REFERENCES u ENFORCED)", "FOREIGN KEY ... ENFORCED is not"),
        ("CREATE TABLE t (a int) USING csv", "USING csv is not supported"),
        ("CREATE TABLE t (a int) LOCATION '/x'", "are below the lake's data path"),
        ("CREATE SCHEMA s LOCATION '/x'", "CREATE SCHEMA ... LOCATION is not supported"),
        ("DROP TABLE t PURGE", "files are kept for time travel"),
        ("INSERT OVERWRITE t PARTITION (a = 1) IF NOT EXISTS SELECT 1", "IF NOT EXISTS is not"),
        ("INSERT OVERWRITE DIRECTORY '/x' SELECT 1", "use df.write"),
        ("SHOW FUNCTIONS", "SHOW FUNCTIONS is not supported"),
        ("DESCRIBE SCHEMA s", "DESCRIBE SCHEMA is not supported"),
        ("DESCRIBE SELECT 1", "DESCRIBE of a query is not supported"),
        ("EXPLAIN DROP TABLE t", "MERGE, ALTER TABLE and REFRESH"),
    ],
)
def test_what_is_not_supported_says_so(text, message):
    with pytest.raises(Unsupported) as caught:
        parse(text)
    assert message in str(caught.value)
