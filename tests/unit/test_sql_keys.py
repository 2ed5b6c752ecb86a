"""Key models, as Doris writes them: words of columns, clauses of CREATE TABLE, rollups' columns."""

from __future__ import annotations

import pytest

from shelduck.alter.statement import AlterTableStatement
from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.definition import Definition, Position
from shelduck.model.changes.modify import ModifyColumn, OrderColumns
from shelduck.model.changes.schema_change import AddColumn, DropColumn, RenameColumn
from shelduck.model.tables.keys import DELETE_SIGN, Aggregation, KeyModel, KeySpec
from shelduck.model.tables.rollup import RollupSpec
from shelduck.model.tables.schema import Default
from shelduck.model.types.data_types import Primitive
from shelduck.objects.statement.create_table import CreateTableStatement
from shelduck.text.tokens.parts import NamedTable

INT, STRING = Primitive("int32"), Primitive("varchar")
T = NamedTable(("t",))
DUPLICATE, UNIQUE, AGGREGATE = KeyModel.DUPLICATE, KeyModel.UNIQUE, KeyModel.AGGREGATE


def changes(text):
    [statement] = parse(f"ALTER TABLE t {text}")
    assert isinstance(statement, AlterTableStatement)
    return statement.changes


def created(text):
    [statement] = parse(f"CREATE TABLE t {text}")
    assert isinstance(statement, CreateTableStatement)
    return statement


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("c INT KEY", AddColumn(("c",), INT, key=True)),
        ("c INT sum", AddColumn(("c",), INT, aggregation=Aggregation.SUM)),
        ("c VARCHAR(10) REPLACE", AddColumn(("c",), STRING, aggregation=Aggregation.REPLACE)),
        (
            "c INT NULL REPLACE_IF_NOT_NULL",
            AddColumn(("c",), INT, aggregation=Aggregation.REPLACE_IF_NOT_NULL),
        ),
        ("c INT KEY MAX", AddColumn(("c",), INT, key=True, aggregation=Aggregation.MAX)),
        (
            "c INT DEFAULT '0' SUM NOT NULL COMMENT 'x' AFTER sum",
            AddColumn(
                *(("c",), INT, Default("0"), False, "x", Position("sum")),
                aggregation=Aggregation.SUM,
            ),
        ),
        (
            "c INT DEFAULT 1 KEY FIRST",
            AddColumn(("c",), INT, Default("1"), True, None, Position(), True),
        ),
        ("key INT", AddColumn(("key",), INT)),
        ("replace INT KEY", AddColumn(("replace",), INT, key=True)),
        ("c INT DEFAULT 5 TO r", AddColumn(("c",), INT, Default("5"), rollup="r")),
        (
            "c INT MIN AFTER b TO `a r`",
            AddColumn(
                ("c",), INT, position=Position("b"), aggregation=Aggregation.MIN, rollup="a r"
            ),
        ),
    ],
)
def test_a_column_says_whether_it_is_a_key_and_how_it_is_combined(text, column):
    assert changes(f"ADD COLUMN {text}") == (column,)
    assert changes(str(column)) == (column,)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "ADD COLUMN (a INT KEY, sum INT SUM DEFAULT 0) TO r PROPERTIES ('timeout' = '5')",
            (
                AddColumn(("a",), INT, key=True, rollup="r"),
                AddColumn(("sum",), INT, Default("0"), aggregation=Aggregation.SUM, rollup="r"),
            ),
        ),
        (
            "ADD COLUMN a INT TO r, ADD COLUMN b INT TO s, DROP COLUMN c FROM r, DROP d",
            (
                AddColumn(("a",), INT, rollup="r"),
                AddColumn(("b",), INT, rollup="s"),
                DropColumn(("c",), rollup="r"),
                DropColumn(("d",)),
            ),
        ),
        ("DROP COLUMN from FROM r", (DropColumn(("from",), rollup="r"),)),
        ("DROP (a, b) FROM r", (DropColumn(("a",), rollup="r"), DropColumn(("b",), rollup="r"))),
        (
            "MODIFY COLUMN c INT SUM DEFAULT '0' AFTER b FROM r",
            (
                ModifyColumn(
                    *(("c",), INT, Default("0")),
                    position=Position("b"),
                    aggregation=Aggregation.SUM,
                    rollup="r",
                ),
            ),
        ),
        (
            "MODIFY COLUMN c INT KEY DEFAULT 1 FROM r, ORDER BY (c, b) FROM r",
            (
                ModifyColumn(("c",), INT, Default("1"), key=True, rollup="r"),
                OrderColumns(("c", "b"), "r"),
            ),
        ),
        (
            "ADD COLUMN rollup INT, RENAME COLUMN rollup TO b, DROP COLUMN rollup",
            (AddColumn(("rollup",), INT), RenameColumn(("rollup",), "b"), DropColumn(("rollup",))),
        ),
    ],
)
def test_a_change_of_columns_may_be_one_of_a_rollup(text, found):
    assert changes(text) == found


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("(a INT, b INT) UNIQUE KEY (a, `b`)", KeySpec(UNIQUE, ("a", "b"))),
        ("(a INT, b INT) DUPLICATE KEY(a)", KeySpec(DUPLICATE, ("a",))),
        (
            "(a INT, b INT SUM, c INT REPLACE) AGGREGATE KEY(a)",
            KeySpec(AGGREGATE, ("a",), (("b", Aggregation.SUM), ("c", Aggregation.REPLACE))),
        ),
        (
            "(a INT KEY, b INT, c INT NOT NULL MAX DEFAULT 1)",
            KeySpec(AGGREGATE, ("a", "b"), (("c", Aggregation.MAX),)),
        ),
        ("(a INT KEY SUM)", KeySpec(AGGREGATE, ("a",), (("a", Aggregation.SUM),))),
        ("(a INT KEY, b INT KEY, c INT)", KeySpec(DUPLICATE, ("a", "b"))),
        ("(a INT KEY, b INT) UNIQUE KEY (A)", KeySpec(UNIQUE, ("A",))),
        ("(a INT KEY) DISTRIBUTED BY HASH (a)", KeySpec(DUPLICATE, ("a",), distributed_by=("a",))),
        (
            (
                "(a INT, b INT) ENGINE=OLAP UNIQUE KEY (a) COMMENT 'x'"
                " DISTRIBUTED BY HASH(a) BUCKETS 10 TBLPROPERTIES ('k' = 'v')"
                ' PROPERTIES ("function_column.sequence_col" = "b", "replication_num" = "1")'
            ),
            KeySpec(UNIQUE, ("a",), sequence="b", distributed_by=("a",), buckets="10"),
        ),
        (
            "(a INT) DISTRIBUTED BY RANDOM BUCKETS AUTO DUPLICATE KEY (a)",
            KeySpec(DUPLICATE, ("a",), buckets="AUTO"),
        ),
        (
            "(a INT) DISTRIBUTED BY HASH (a) BUCKETS AUTO",
            KeySpec(DUPLICATE, (), distributed_by=("a",), buckets="AUTO"),
        ),
        ("(a INT) DISTRIBUTED BY RANDOM BUCKETS 2", KeySpec(DUPLICATE, (), buckets="2")),
        ("(a INT) DISTRIBUTED BY RANDOM", None),
        ("(key INT, sum INT, engine INT)", None),
    ],
)
def test_a_table_says_its_keys(text, keys):
    assert created(text).keys == keys


@pytest.mark.parametrize(
    ("clause", "same"),
    [
        ("PARTITION BY LIST (a, s) (PARTITION p VALUES IN (('1', 'x')))", "a, s"),
        ("AUTO PARTITION BY LIST (s) ()", "s"),
        (
            "PARTITION BY RANGE (d) (FROM ('2024-01-01') TO ('2025-01-01') INTERVAL 1 DAY)",
            "days(d)",
        ),
        (
            (
                "PARTITION BY RANGE (d) (FROM ('2024-01-01') TO ('2025-01-01') INTERVAL 1 MONTH,"
                " FROM ('2025-01-01') TO ('2026-01-01') INTERVAL 1 MONTH)"
            ),
            "months(d)",
        ),
        ("AUTO PARTITION BY RANGE (date_trunc(d, 'year')) ()", "years(d)"),
    ],
)
def test_partitions_of_doris_are_transforms(clause, same):
    columns = "(a INT, s STRING, d DATE)"
    found = created(f"{columns} DUPLICATE KEY (a) {clause} DISTRIBUTED BY RANDOM")
    assert found.partitioned_by == created(f"{columns} PARTITIONED BY ({same})").partitioned_by


def test_clauses_of_doris_stand_beside_the_others():
    assert created(
        "(a INT KEY COMMENT 'k', v INT SUM NULL DEFAULT 0) engine = olap AGGREGATE KEY (a)"
        " PARTITIONED BY (a) DISTRIBUTED BY HASH (a) BUCKETS 4"
        " ROLLUP (r1 (a, v), r2 (v) DUPLICATE KEY (v))"
        ' PROPERTIES ("replication_num" = "1") COMMENT \'x\' TBLPROPERTIES (k = 1)'
    ) == CreateTableStatement(
        T,
        (
            Definition(("a",), INT, comment="k", key=True),
            Definition(("v",), INT, default=Default("0"), aggregation=Aggregation.SUM),
        ),
        comment="x",
        partitioned_by=created("(a INT) PARTITIONED BY (a)").partitioned_by,
        properties={"k": "1"},
        keys=KeySpec(
            AGGREGATE, ("a",), (("v", Aggregation.SUM),), distributed_by=("a",), buckets="4"
        ),
        rollups=(RollupSpec("r1", ("a", "v")), RollupSpec("r2", ("v",), duplicate_keys=("v",))),
        doris_properties={"replication_num": "1"},
    )


def test_a_table_of_a_query_has_keys():
    found = created(
        "UNIQUE KEY(id) DISTRIBUTED BY HASH(id) ROLLUP (r (v, id)) PROPERTIES ('a' = 'b')"
        " AS SELECT 1 AS id, 2 AS v"
    )

    assert found.as_query.text == "SELECT 1 AS id, 2 AS v"
    assert found.keys == KeySpec(UNIQUE, ("id",), distributed_by=("id",))
    assert found.rollups == (RollupSpec("r", ("v", "id")),)
    assert found.doris_properties == {"a": "b"}


def test_rows_may_say_that_they_are_deleted():
    [found] = parse(f"INSERT INTO t (id, {DELETE_SIGN}) VALUES (1, 1)")

    assert found.columns == ("id", "__DORIS_DELETE_SIGN__")


def test_a_function_called_like_an_aggregation_is_part_of_a_default():
    with pytest.raises(Unsupported, match=r"the default \"'a' \|\| replace\('x', 'y'\)\""):
        parse("ALTER TABLE t ADD COLUMN c STRING DEFAULT 'a' || replace('x', 'y') KEY")
    with pytest.raises(Unsupported, match=r"the default \"INTERVAL '1-2' YEAR TO MONTH\""):
        parse("ALTER TABLE t ADD COLUMN c STRING DEFAULT INTERVAL '1-2' YEAR TO MONTH")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ALTER TABLE t ADD COLUMN c INT SUM MAX", "expected an aggregation only once"),
        ("ALTER TABLE t ADD COLUMN c INT KEY NULL KEY", "expected KEY only once"),
        ("ALTER TABLE t ADD COLUMN c INT TO", "expected a rollup"),
        (
            "ALTER TABLE t ADD COLUMNS a INT, b INT TO r",
            "write the columns of a rollup in brackets",
        ),
        ("ALTER TABLE t DROP a, b FROM r", "write the columns of a rollup in brackets"),
        ("ALTER TABLE t ADD COLUMN a INT TO r, b INT", "expected one of ADD, DROP"),
        ("CREATE TABLE t (a INT) UNIQUE KEY (a) UNIQUE KEY (a)", "a KEY clause only once"),
        ("CREATE TABLE t (a INT) UNIQUE KEY (a) DUPLICATE KEY (a)", "a KEY clause only once"),
        ("CREATE TABLE t (a INT) UNIQUE KEY ()", "expected a column at line 1"),
        ("CREATE TABLE t (a INT) UNIQUE KEY (a, A)", "expected each column only once"),
        ("CREATE TABLE t (a INT) UNIQUE KEY (a.b)", "expected a top-level column"),
        ("CREATE TABLE t (a INT) UNIQUE (a)", "expected KEY at line 1, column 31"),
        (
            "CREATE TABLE t (a INT, b INT KEY) UNIQUE KEY (a)",
            "column b has the word KEY but is not",
        ),
        ("CREATE TABLE t (a INT) DISTRIBUTED BY (a)", "expected HASH and columns in brackets"),
        ("CREATE TABLE t (a INT) DISTRIBUTED BY HASH (a) BUCKETS x", "expected the number of buck"),
        ("CREATE TABLE t (a INT) DISTRIBUTED BY RANDOM DISTRIBUTED BY RANDOM", "only once"),
        (
            (
                "CREATE TABLE t (a INT) DUPLICATE KEY (a) PROPERTIES"
                " ('function_column.sequence_col' = 'a')"
            ),
            "applies only to tables with UNIQUE KEY (...)",
        ),
        (
            "CREATE TABLE t (a INT) PROPERTIES ('function_column.sequence_col' = 'a')",
            "applies only to tables with UNIQUE KEY (...)",
        ),
    ],
)
def test_what_cannot_be_read_is_named(text, told):
    with pytest.raises(InvalidRequest) as refused:
        parse(text)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("(c HLL HLL_UNION)", "the aggregation HLL_UNION is not supported"),
        ("(c BIGINT NOT NULL BITMAP_UNION)", "use SUM, MIN"),
        ("(c INT DEFAULT 1 GENERIC)", "the aggregation GENERIC is not supported"),
        ("(c QUANTILE_STATE QUANTILE_UNION)", "the aggregation QUANTILE_UNION is not"),
        ("(c BIGINT NOT NULL AUTO_INCREMENT)", "AUTO_INCREMENT is not supported"),
        ("(c BIGINT AUTO_INCREMENT(5))", "write BIGINT GENERATED BY DEFAULT AS IDENTITY"),
        ("(c INT PRIMARY KEY ENFORCED)", "PRIMARY KEY ... ENFORCED is not supported"),
        ("(c INT UNIQUE KEY)", "UNIQUE KEY among the columns is not supported"),
        ("(c INT, UNIQUE KEY (c))", "UNIQUE KEY among the columns is not supported"),
        ("(c INT) ENGINE=mysql", "ENGINE=mysql is not supported"),
        ("(c INT) PARTITION BY RANGE (c) ()", "use PARTITIONED BY (days(c)), months(), years()"),
        (
            (
                "(c DATE) PARTITION BY RANGE (c) (FROM ('2024-01-01') TO ('2025-01-01')"
                " INTERVAL 2 MONTH)"
            ),
            "PARTITION BY RANGE without INTERVAL 1 DAY, MONTH, YEAR or HOUR is not supported",
        ),
        (
            "(c DATE) PARTITION BY RANGE (c) (PARTITION a VALUES LESS THAN ('2024-01-01'))",
            "use PARTITIONED BY (days(c))",
        ),
    ],
)
def test_what_is_not_supported_says_so(text, told):
    with pytest.raises(Unsupported) as refused:
        parse(f"CREATE TABLE t {text}")
    assert told in str(refused.value)
