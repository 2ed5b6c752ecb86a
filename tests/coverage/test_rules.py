"""Delta Lake's and Databricks' documents of constraints and computed columns, claim by claim."""

from __future__ import annotations

import pytest

from shelduck import InvalidRequest, Unsupported
from tests.coverage.pages import Page

PAGE = Page("rules", "Delta Lake: constraints and computed columns")
CHECKS, KEYS = "CHECK constraints", "Primary and foreign keys"
GENERATED, IDENTITY = "Generated columns", "Identity columns"

# tests/spark/constraints shows the same in the fast set.
pytestmark = pytest.mark.slow


@pytest.fixture
def t(case):
    """A lake with a table of two rows."""
    case.lake.sql("CREATE TABLE t (id INT, x INT)")
    case.lake.sql("INSERT INTO t VALUES (1, 1), (2, NULL)")
    return case


def refused(case, statement, told, error=InvalidRequest):
    with pytest.raises(error, match=told):
        case.lake.sql(statement)


@PAGE.row(
    *("R1", CHECKS, "Existing rows are checked before a constraint is added"),
    statement="ALTER TABLE t ADD CONSTRAINT pos CHECK (x > 1)",
)
def test_r1_rows_that_are_there(t):
    refused(t, PAGE.statement("R1"), r"pos \(x > 1\) of main.t is not satisfied by the row")


@PAGE.row(
    *("R2", CHECKS, "A write that violates a constraint fails as a whole"),
    does="the error names the constraint and a row",
)
def test_r2_a_write_fails(t):
    t.lake.sql("ALTER TABLE t ADD CONSTRAINT pos CHECK (x > 0)")
    refused(t, "INSERT INTO t VALUES (3, 1), (4, -1)", r"by the row \(x = -1, id = 4\)")
    assert t.both("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


@PAGE.row(*("R3", CHECKS, "Constraints are table properties"), statement="SHOW TBLPROPERTIES t")
def test_r3_properties(t):
    t.lake.sql("ALTER TABLE t ADD CONSTRAINT pos CHECK (x > 0)")
    found = [tuple(row) for row in t.lake.sql(PAGE.statement("R3")).collect()]
    assert found == [("delta.constraints.pos", "x > 0")]


@PAGE.row(
    *("R4", CHECKS, "A constraint is dropped by its name"),
    statement="ALTER TABLE t DROP CONSTRAINT pos",
)
def test_r4_drop(t):
    t.lake.sql("ALTER TABLE t ADD CONSTRAINT pos CHECK (x > 0)")
    t.lake.sql(PAGE.statement("R4"))
    t.lake.sql("INSERT INTO t VALUES (3, -1)")


@PAGE.row(
    *("R5", CHECKS, "A column that a constraint uses cannot be renamed or dropped"),
    beyond="a rename goes into the constraint; a drop is refused",
)
def test_r5_columns_of_a_constraint(t):
    t.lake.sql("ALTER TABLE t ADD CONSTRAINT pos CHECK (x > 0)")
    t.light("ALTER TABLE t RENAME COLUMN x TO y")
    refused(t, "INSERT INTO t VALUES (3, -1)", r"pos \(`y` > 0\)")
    refused(t, "ALTER TABLE t DROP COLUMN y", "DROP CONSTRAINT pos first")


@PAGE.row(
    *("R6", CHECKS, "A constraint may be added without a look at existing rows"),
    statement="ALTER TABLE t ADD CONSTRAINT big CHECK (x > 5) NOT VALID",
    beyond="as in PostgreSQL; `VALIDATE CONSTRAINT big` looks at them later",
)
def test_r6_not_valid(t):
    t.light(PAGE.statement("R6"))
    refused(t, "ALTER TABLE t VALIDATE CONSTRAINT big", "is there already")


@PAGE.row(
    *("R7", KEYS, "Keys are informational, and not enforced"),
    statement="CREATE TABLE k (id BIGINT NOT NULL PRIMARY KEY, t INT REFERENCES t (id) RELY)",
)
def test_r7_keys(t):
    t.lake.sql(PAGE.statement("R7"))
    t.lake.sql("INSERT INTO k VALUES (1, 9), (1, 9)")
    told = [row[1] for row in t.lake.sql("DESCRIBE k").collect()]
    assert told[-2:] == [
        "PRIMARY KEY (id) NOT ENFORCED",
        "FOREIGN KEY (t) REFERENCES t (id) NOT ENFORCED RELY",
    ]


@PAGE.row(
    *("R8", KEYS, "ENFORCED keys are not supported"),
    statement="ALTER TABLE t ADD PRIMARY KEY (id) ENFORCED",
)
def test_r8_enforced(t):
    refused(t, PAGE.statement("R8"), "keys are information", Unsupported)


@PAGE.row(
    *("R9", GENERATED, "The value is computed when a write leaves the column out"),
    statement="CREATE TABLE g (at TIMESTAMP_NTZ, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)))",
)
def test_r9_generated(case):
    case.lake.sql(PAGE.statement("R9"))
    case.lake.sql("INSERT INTO g (at) VALUES (TIMESTAMP_NTZ '2024-02-29 10:00:00')")
    assert [str(row[0]) for row in case.both("SELECT day FROM g")] == ["2024-02-29"]


@PAGE.row(*("R10", GENERATED, "A value that a write gives must be the generated one"))
def test_r10_given(case):
    case.lake.sql("CREATE TABLE g (n INT, m INT GENERATED ALWAYS AS (n + 1))")
    case.lake.sql("INSERT INTO g VALUES (1, 2)")
    refused(case, "INSERT INTO g VALUES (1, 3)", "m of main.g .GENERATED .*cannot be 3")
    case.lake.sql("UPDATE g SET n = 5")
    assert case.both("SELECT * FROM g") == [(5, 6)]


@PAGE.row(
    *("R11", GENERATED, "Partition filters are derived from filters on the source column"),
    differs="not derived: filter on the generated column, too",
)
def test_r11_partitions(case):
    case.lake.sql("CREATE TABLE g (n INT, m INT GENERATED ALWAYS AS (n div 10)) PARTITIONED BY (m)")
    case.lake.sql("INSERT INTO g VALUES (1), (25)")
    assert case.both("SELECT n FROM g WHERE n > 20 AND m >= 2") == [(25,)]


@PAGE.row(
    *("R12", IDENTITY, "Numbers are unique, not always without gaps"),
    statement="CREATE TABLE i (v STRING, id BIGINT GENERATED ALWAYS AS IDENTITY"
    " (START WITH 100 INCREMENT BY 10))",
)
def test_r12_numbers(case):
    case.lake.sql(PAGE.statement("R12"))
    case.lake.sql("INSERT INTO i VALUES ('a'), ('b')")
    case.lake.sql("INSERT INTO i (v) SELECT 'c'")
    found = case.both("SELECT v, id FROM i ORDER BY id")
    assert found == [("a", 100), ("b", 110), ("c", 120)]


@PAGE.row(*("R13", IDENTITY, "ALWAYS refuses a value that a write gives, BY DEFAULT takes it"))
def test_r13_given(case):
    case.lake.sql("CREATE TABLE a (v INT, id BIGINT GENERATED ALWAYS AS IDENTITY)")
    case.lake.sql("CREATE TABLE d (v INT, id BIGINT GENERATED BY DEFAULT AS IDENTITY)")
    refused(case, "INSERT INTO a VALUES (1, 5)", "cannot be given; leave it out")
    case.lake.sql("INSERT INTO d VALUES (1, 5)")
    assert case.both("SELECT id FROM d") == [(5,)]


@PAGE.row(
    *("R14", IDENTITY, "A table with an identity allows no concurrent transactions"),
    beyond="writers reserve numbers, and do not conflict",
)
def test_r14_writers(case):
    case.lake.sql("CREATE TABLE i (v INT, id BIGINT GENERATED ALWAYS AS IDENTITY)")
    with case.lake.transaction() as unit:
        unit.sql("INSERT INTO i VALUES (1)")
        case.lake.sql("INSERT INTO i VALUES (2)")
    assert case.both("SELECT * FROM i ORDER BY id") == [(1, 1), (2, 2)]


@PAGE.row(
    *("R15", IDENTITY, "SYNC IDENTITY moves the counter behind values that were given"),
    statement="ALTER TABLE i ALTER COLUMN id SYNC IDENTITY",
)
def test_r15_sync(case):
    case.lake.sql("CREATE TABLE i (v INT, id BIGINT GENERATED BY DEFAULT AS IDENTITY)")
    case.lake.sql("INSERT INTO i VALUES (1, 9)")
    case.lake.sql(PAGE.statement("R15"))
    case.lake.sql("INSERT INTO i (v) VALUES (2)")
    assert case.both("SELECT * FROM i ORDER BY id") == [(1, 9), (2, 10)]
