"""CHECK constraints: every door of ours enforces them, and nothing is written past one."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck import (
    AlreadyExists,
    Conflict,
    InvalidRequest,
    NotFound,
    Unsupported,
    add_constraint,
    connect,
    drop_constraint,
    validate_constraint,
)
from tests.support.lakes import refusal, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    (
        "CREATE TABLE t (id INT, x INT CONSTRAINT pos CHECK (x > 0), s STRUCT<a: INT>,"
        " CONSTRAINT small CHECK (s.a < 10 AND `id` < 100))"
    ),
    "INSERT INTO t VALUES (1, 10, named_struct('a', 1)), (2, NULL, NULL)",
    "CREATE TABLE free (id INT, x INT)",
    "INSERT INTO free VALUES (1, 1), (2, -2), (3, NULL)",
]
POS = (
    "CHECK constraint pos (x > 0) of main.t is not satisfied by the row (x = -3, id = 7); correct"
    " the row, or drop the constraint"
)


def wrong(base, copied, act) -> str:
    catalog, _ = copied
    return refusal(InvalidRequest, act, catalog, base.folder / "data")


DOORS = {
    "values": "INSERT INTO t VALUES (8, 1, NULL), (7, -3, NULL)",
    "query": "INSERT INTO t SELECT 7, -id, NULL FROM range(3, 4)",
    "update": "UPDATE t SET x = -3, id = 7 WHERE id = 1",
    "merge update": (
        "MERGE INTO t USING (SELECT 1 AS k) ON id = k WHEN MATCHED THEN UPDATE SET x = -3, id = 7"
    ),
    "merge insert": (
        "MERGE INTO t USING (SELECT 9 AS k) ON id = k"
        " WHEN NOT MATCHED THEN INSERT (id, x) VALUES (7, -3)"
    ),
    "overwrite": "INSERT OVERWRITE t SELECT 7, -3, NULL",
    "replace": "INSERT INTO t REPLACE WHERE id = 7 SELECT 7, -3, NULL",
}


@pytest.mark.parametrize("door", DOORS)
def test_a_statement_writes_nothing_past_a_constraint(base, copied, door):
    assert wrong(base, copied, lambda: copied[1].execute(DOORS[door])) == POS


def test_an_append_and_added_files_bring_nothing_past_a_constraint(base, copied, spark, tmp_path):
    lake = copied[1]
    bad = spark.range(1).select(F.lit(7).alias("id"), F.lit(-3).alias("x"))
    assert wrong(base, copied, lambda: lake.table("t").append(bad)) == POS
    bad.write.parquet(f"{tmp_path}/new.parquet")
    place = f"{tmp_path}/new.parquet"
    got = wrong(base, copied, lambda: lake.table("t").add_files(place, allow_missing=True))
    assert got == (
        "CHECK constraint pos (x > 0) of main.t is not satisfied by the row (x = -3, id = 7), which"
        " is there already; correct such rows first, or add the constraint with NOT VALID"
    )


def test_null_satisfies_and_good_rows_are_written(copied):
    catalog, lake = copied
    lake.execute("INSERT INTO t VALUES (3, 5, named_struct('a', 9)), (4, NULL, NULL)")
    lake.execute("UPDATE t SET x = 7 WHERE id = 1")
    lake.execute(
        "MERGE INTO t USING (SELECT 2 AS k UNION SELECT 5) ON id = k WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED THEN INSERT (id, x) VALUES (k, 1)"
    )
    found = lake.sql("SELECT id, x, s.a FROM t ORDER BY id")
    assert rows(found) == [(1, 7, 1), (3, 5, 9), (4, None, None), (5, 1, None)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT id, x FROM t ORDER BY id") == [(1, 7), (3, 5), (4, None), (5, 1)]


def test_a_constraint_is_shown_with_its_name(lake):
    made = lake.sql("SHOW CREATE TABLE t").collect()[0][0]
    assert made == (
        "CREATE TABLE main.t (\n  id INT,\n  x INT,\n  s STRUCT<a: INT>,\n"
        "  CONSTRAINT pos CHECK (x > 0),\n"
        "  CONSTRAINT small CHECK (s.a < 10 AND `id` < 100)\n)"
    )
    assert rows(lake.sql("SHOW TBLPROPERTIES t")) == [
        ("delta.constraints.pos", "x > 0"),
        ("delta.constraints.small", "s.a < 10 AND `id` < 100"),
    ]
    told = rows(lake.sql("DESCRIBE TABLE t"))
    assert told[-2:] == [
        ("pos", "CHECK (x > 0)", None),
        ("small", "CHECK (s.a < 10 AND `id` < 100)", None),
    ]
    lake.execute("CREATE TABLE copied LIKE t")
    with pytest.raises(InvalidRequest, match=r"pos \(x > 0\) of main.copied is not"):
        lake.execute("INSERT INTO copied VALUES (7, -3, NULL)")


def test_a_rename_goes_into_the_condition_and_a_drop_is_refused(lake, copied):
    lake.execute("ALTER TABLE t RENAME COLUMN x TO `y z`, RENAME COLUMN s.a TO b")
    assert rows(lake.sql("SHOW TBLPROPERTIES t"))[1] == (
        "delta.constraints.small",
        "`s`.`b` < 10 AND `id` < 100",
    )
    with pytest.raises(InvalidRequest, match=r"pos \(`y z` > 0\) of main.t is not satisfied"):
        lake.execute("INSERT INTO t VALUES (7, -3, NULL)")
    for change in ("DROP COLUMN `y z`", "DROP COLUMN s", "ALTER COLUMN `y z` TYPE STRING"):
        with pytest.raises(InvalidRequest, match=r"use ALTER TABLE main.t DROP CONSTRAINT"):
            lake.execute(f"ALTER TABLE t {change}")
    lake.execute("ALTER TABLE t DROP CONSTRAINT POS, DROP COLUMN `y z`")
    lake.execute("ALTER TABLE t DROP CONSTRAINT IF EXISTS pos")
    with pytest.raises(NotFound, match=r"constraint 'pos' does not exist in main.t"):
        lake.execute("ALTER TABLE t DROP CONSTRAINT pos")


def test_rows_that_are_there_are_checked_unless_the_constraint_is_not_valid(base, copied):
    lake = copied[1]
    added = "ALTER TABLE free ADD CONSTRAINT pos CHECK (x > 0)"
    got = wrong(base, copied, lambda: lake.execute(added))
    assert got.startswith("CHECK constraint pos (x > 0) of main.free is not satisfied by the row")
    assert "(x = -2, id = 2), which is there already; correct such rows first" in got
    lake.execute(f"{added} NOT VALID")
    assert rows(lake.sql("DESCRIBE TABLE free"))[-1] == ("pos", "CHECK (x > 0) NOT VALID", None)
    assert lake.check(rows=True).is_sound
    with pytest.raises(InvalidRequest, match="is not satisfied by the row"):
        lake.execute("INSERT INTO free VALUES (4, 0)")
    with pytest.raises(InvalidRequest, match="which is there already"):
        lake.execute("ALTER TABLE free VALIDATE CONSTRAINT pos")
    lake.execute("UPDATE free SET x = 2 WHERE id = 2")
    lake.execute("ALTER TABLE free VALIDATE CONSTRAINT pos")
    assert rows(lake.sql("DESCRIBE TABLE free"))[-1] == ("pos", "CHECK (x > 0)", None)


def test_python_adds_validates_and_drops(lake):
    table = lake.table("free")
    table.alter(add_constraint("pos", "x > 0", validate=False))
    with pytest.raises(AlreadyExists, match=r"constraint 'POS' already exists in main.free"):
        table.alter(add_constraint("POS", "x > 1"))
    table.update({"x": "1"}, where="x < 0")
    table.alter(validate_constraint("pos"))
    table.alter(drop_constraint("pos"), drop_constraint("pos", if_exists=True))
    lake.execute("INSERT INTO free VALUES (9, -9)")
    assert rows(lake.sql("SELECT x FROM free ORDER BY id")) == [(1,), (1,), (None,), (-9,)]


@pytest.mark.parametrize(
    ("condition", "error", "told"),
    [
        ("y > 0", NotFound, "column 'y' does not exist in main.free"),
        ("x + 1", InvalidRequest, "is not a condition over its columns"),
        ("no_such(x)", Unsupported, r"calls no_such\(\), which stored text must not do"),
        ("x > (SELECT 1)", Unsupported, "looks at other rows"),
        ("sum(x) > 1", Unsupported, "looks at other rows"),
        ("rand() > 0.5", Unsupported, "has another value each time"),
        ("x > ", InvalidRequest, "cannot parse a condition"),
    ],
)
def test_what_is_no_condition_of_a_row_is_refused(lake, condition, error, told):
    with pytest.raises(error, match=told):
        lake.execute(f"ALTER TABLE free ADD CONSTRAINT c CHECK ({condition})")


def test_a_check_finds_rows_that_duckdb_wrote_past_a_constraint(copied):
    catalog, lake = copied
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("INSERT INTO t VALUES (5, -5, NULL), (6, -6, NULL), (7, 7, NULL)")
        duckdb.execute("ALTER TABLE t RENAME COLUMN x TO renamed")
    found = lake.check(rows=True)
    [problem] = found.problems
    wrong = "2 row(s) do not satisfy CHECK constraint pos (`renamed` > 0) of main.t, such as"
    assert problem.wrong.startswith(f"{wrong} (renamed =")
    assert str(found).startswith(f"main.t: {wrong}")
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("ALTER TABLE t DROP COLUMN renamed")
    lake.execute("ALTER TABLE t ADD COLUMN other INT, DROP COLUMN other")
    with pytest.raises(InvalidRequest, match="uses a column that another writer dropped"):
        lake.execute("INSERT INTO t SELECT 1, NULL")
    lake.execute("ALTER TABLE t DROP CONSTRAINT pos")
    lake.execute("INSERT INTO t SELECT 1, NULL")


def test_a_constraint_can_come_and_go_in_one_statement(lake):
    lake.sql("ALTER TABLE free ADD CONSTRAINT c CHECK (x > 0) NOT VALID, DROP CONSTRAINT c")
    lake.sql("ALTER TABLE free ADD CONSTRAINT c CHECK (x > 0), DROP CONSTRAINT c")
    lake.sql("INSERT INTO free VALUES (4, -4)")
    assert "CONSTRAINT" not in lake.sql("SHOW CREATE TABLE free").collect()[0][0]


def test_keys_are_kept_and_shown_and_nobody_enforces_them(lake):
    lake.execute(
        "CREATE TABLE k (id INT NOT NULL PRIMARY KEY RELY, b INT, CONSTRAINT u UNIQUE (b, id),"
        " FOREIGN KEY (b) REFERENCES t (id))"
    )
    lake.execute("INSERT INTO k VALUES (1, 99), (1, 99)")
    assert rows(lake.sql("DESCRIBE k"))[-4:] == [
        ("# Constraints", "", ""),
        ("primary_key_1", "PRIMARY KEY (id) NOT ENFORCED RELY", None),
        ("u", "UNIQUE (b, id) NOT ENFORCED", None),
        ("foreign_key_1", "FOREIGN KEY (b) REFERENCES t (id) NOT ENFORCED", None),
    ]
    made = lake.sql("SHOW CREATE TABLE k").collect()[0][0]
    lake.execute("DROP TABLE k")
    lake.execute(made)
    assert lake.sql("SHOW CREATE TABLE k").collect()[0][0] == made
    with pytest.raises(InvalidRequest, match="that the constraint foreign_key_1 uses: FOREIGN KEY"):
        lake.execute("ALTER TABLE k DROP CONSTRAINT u, DROP COLUMN b")
    lake.execute("ALTER TABLE k DROP CONSTRAINT foreign_key_1, DROP CONSTRAINT u, DROP COLUMN b")
    assert lake.sql("SHOW TBLPROPERTIES k").collect() == []


def test_rows_that_were_written_for_other_constraints_are_written_again(copied):
    catalog, lake = copied

    def too_late() -> None:
        with lake.transaction() as unit, connect(f"sqlite:///{catalog}") as other:
            unit.table("free").append(lake.sql("SELECT 4 AS id, -4 AS x"))
            other.execute("ALTER TABLE free ADD CONSTRAINT pos CHECK (x > 0) NOT VALID")

    with pytest.raises(Conflict, match="the constraints of the table changed"):
        too_late()

    def not_satisfied() -> None:
        with lake.transaction() as unit:
            unit.sql("ALTER TABLE free DROP CONSTRAINT pos")
            unit.sql("INSERT INTO free VALUES (4, -4)")
            unit.sql("ALTER TABLE free ADD CONSTRAINT pos CHECK (x >= -2)")

    with pytest.raises(InvalidRequest, match=r"the row \(x = -4, id = 4\), which is there already"):
        not_satisfied()
    assert rows(lake.sql("SELECT count(*) FROM free")) == [(3,)]


def test_loads_of_a_key_model_are_checked(lake):
    lake.execute("CREATE TABLE u (id INT, x INT, CHECK (x > 0)) UNIQUE KEY (id)")
    lake.execute("INSERT INTO u VALUES (1, 1), (2, 2)")
    with pytest.raises(InvalidRequest, match=r"the row \(x = 0, id = 2\)"):
        lake.execute("INSERT INTO u VALUES (2, 0)")
    with pytest.raises(InvalidRequest, match="loads of an AGGREGATE KEY table combine"):
        lake.execute("CREATE TABLE a (id INT, x INT SUM, CHECK (x > 0)) AGGREGATE KEY (id)")
