"""A column becomes narrower in metadata: what is checked, what stays, and who else may write."""

from __future__ import annotations

from contextlib import contextmanager
from decimal import Decimal

import duckdb
import pytest
from sqlalchemy import text

import shelduck
from shelduck import Conflict, InvalidRequest, Unsupported
from shelduck.alter import verb as alter_verbs
from shelduck.doors.sql.parse import parse
from tests.support.oracle import DuckDBOracle

FILES = {"DATA_INLINING_ROW_LIMIT": 0}
CREATE = "CREATE TABLE t (id INT, v BIGINT, d DECIMAL(18,4))"
TO_INT = "ALTER COLUMN v TYPE INT"
WIDENS = "SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
FIT = "VALUES (1, 2147483647, -99999.9999), (2, -2147483648, 0), (3, NULL, NULL)"
TOO_LARGE = "VALUES (4, 2147483648, NULL)"


@pytest.fixture
def lake(lake_url, data_path):
    with shelduck.connect(lake_url, data_path) as made:
        made.execute(CREATE)
        made.url = lake_url
        yield made


@contextmanager
def duck(lake, options=FILES):
    lake._state.store.close()
    with DuckDBOracle(lake.url, options=options) as oracle:
        yield oracle


def insert(lake, *rows, options=FILES):
    with duck(lake, options) as oracle:
        for each in rows:
            oracle.execute(f"INSERT INTO t {each}")


def alter(lake, clauses):
    """What the Python API answers: a job, or a commit."""
    return lake.table("t").alter(*parse(f"ALTER TABLE t {clauses}")[0].changes)


def plan(lake, clauses):
    return lake.table("t").plan_alter(*parse(f"ALTER TABLE t {clauses}")[0].changes)


def columns(lake):
    """The names and types of the columns in the catalog, with defaults and NOT NULL."""
    live = "FROM ducklake_column WHERE table_id = 1 AND end_snapshot IS NULL ORDER BY column_order"
    return dict(catalog(lake, f"SELECT column_name, column_type {live}"))


def catalog(lake, query):
    with lake._state.store.read() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


@pytest.mark.every_database
def test_files_stay_and_every_reader_sees_the_narrower_type(lake):
    insert(lake, FIT, "VALUES (4, 7, 7)")
    before = catalog(lake, "SELECT data_file_id, path, end_snapshot FROM ducklake_data_file")
    told = "metadata only: the bounds of 2 file(s) prove that every value fits"

    planned = plan(lake, f"{TO_INT}, ALTER COLUMN d TYPE DECIMAL(9,4)")
    done = alter(lake, f"{TO_INT}, ALTER COLUMN d TYPE DECIMAL(9,4)")

    assert [(s.weight, s.reason, s.files_to_rewrite) for s in planned.steps] == [
        ("light", told, 0)
    ] * 2
    assert done.note == told
    assert (
        catalog(lake, "SELECT data_file_id, path, end_snapshot FROM ducklake_data_file") == before
    )
    with duck(lake) as oracle:
        oracle.execute("INSERT INTO t VALUES (5, 5, 5)")
        assert oracle.columns("t") == [("id", "INTEGER"), ("v", "INTEGER"), ("d", "DECIMAL(9,4)")]
        assert oracle.columns("t", version=3)[1:] == [("v", "BIGINT"), ("d", "DECIMAL(18,4)")]
        assert oracle.rows("t", version=3) == oracle.rows("t")[:4]
        assert oracle.rows("t")[:2] == [
            (1, 2147483647, Decimal("-99999.9999")),
            (2, -2147483648, Decimal(0)),
        ]
        assert oracle.sql("SELECT min(v), max(v), min(d), count(v) FROM t") == [
            (-2147483648, 2147483647, Decimal("-99999.9999"), 4)
        ]
        assert oracle.sql("SELECT id FROM t WHERE v > 2147483646 OR d = 7") == [(1,), (4,)]


@pytest.mark.parametrize(
    ("before", "clause", "told"),
    [
        (["SET TBLPROPERTIES ('shelduck.metadataNarrowing' = 'false')"], TO_INT, "2 of 2"),
        # Readers of other engines round these, or read another type.
        ([], "ALTER COLUMN v TYPE DECIMAL(12,0)", "2 of 2"),
        ([], "ALTER COLUMN d TYPE DECIMAL(12,6)", "2 of 2"),
        (
            [WIDENS, "ALTER COLUMN d TYPE DECIMAL(20,6)"],
            "ALTER COLUMN d TYPE DECIMAL(12,6)",
            "0 of 2",
        ),
        (["ADD COLUMN w BIGINT DEFAULT 5"], "ALTER COLUMN w TYPE INT", "0 of 2"),
        # One of two columns is not proven.
        ([], f"{TO_INT}, ALTER COLUMN d TYPE DECIMAL(9,2)", "2 of 2"),
    ],
)
@pytest.mark.databases("sqlite")
def test_what_is_not_proven_to_be_read_right_stays_a_job(lake, before, clause, told):
    insert(lake, FIT, "VALUES (4, 7, 7)")
    for each in before:
        alter(lake, each)
    planned = plan(lake, clause)

    assert planned.is_heavy
    assert f"proven for {told} file(s)" in planned.steps[0].proof


@pytest.mark.parametrize(
    ("table", "clause", "refused"),
    [
        ("(id INT, v BIGINT) UNIQUE KEY (id)", TO_INT, None),
        ("(id INT, v BIGINT, s STRUCT<a: BIGINT>)", "ALTER COLUMN s.a TYPE INT", None),
        ("(id INT, v BIGINT) PARTITIONED BY (v)", TO_INT, "RESET PARTITIONED BY first"),
        ("(id INT, v BIGINT) PARTITIONED BY (bucket(4, v))", TO_INT, "RESET PARTITIONED BY first"),
        ("(id INT, v BIGINT DEFAULT 3000000000)", TO_INT, "DROP DEFAULT first"),
    ],
)
@pytest.mark.databases("sqlite")
def test_keys_parts_and_partitions_are_left_to_the_job(lake, table, clause, refused):
    lake.execute(f"CREATE OR REPLACE TABLE t {table}")
    if refused is None:
        assert plan(lake, clause).is_heavy
    else:
        with pytest.raises(Unsupported, match=refused):
            alter(lake, clause)


@pytest.mark.databases("sqlite")
def test_sorted_renamed_and_empty_columns_become_narrower(lake):
    lake.execute(
        "ALTER TABLE t SET SORTED BY (v), ALTER COLUMN v SET DEFAULT 5, ALTER COLUMN v SET NOT NULL"
    )
    insert(lake, "VALUES (1, 300, 1)")
    done = alter(lake, "ALTER COLUMN v TYPE SMALLINT, RENAME COLUMN v TO w, ADD COLUMN x BIGINT")
    lake.execute("CREATE TABLE e (id BIGINT)")
    [step] = lake.table("e").plan_alter(shelduck.change_type("id", "tinyint")).steps

    assert done.note == "metadata only: the bounds of 1 file(s) prove that every value fits"
    assert columns(lake) == {"id": "int32", "w": "int16", "d": "decimal(18,4)", "x": "int64"}
    told = "SELECT default_value, nulls_allowed FROM ducklake_column WHERE column_type = 'int16'"
    assert catalog(lake, told) == [("5", 0)]
    assert step.reason == "metadata only: the bounds of 0 file(s) prove that every value fits"


@pytest.mark.every_database
def test_rows_of_the_catalog_become_narrower_too(lake):
    insert(lake, FIT, "VALUES (4, 1, 1)", options={})
    with duck(lake) as oracle:
        oracle.execute("DELETE FROM t WHERE id = 4")
    done = alter(lake, TO_INT)

    assert done.note == "metadata only: 4 row(s) in the catalog prove that every value fits"
    with duck(lake, {}) as oracle:
        oracle.execute("INSERT INTO t VALUES (5, 5, 5)")
        assert oracle.sql("SELECT id, v, typeof(v) FROM t ORDER BY id") == [
            (1, 2147483647, "INTEGER"),
            (2, -2147483648, "INTEGER"),
            (3, None, "INTEGER"),
            (5, 5, "INTEGER"),
        ]
        assert oracle.sql("SELECT id FROM t WHERE v < 0") == [(2,)]


@pytest.mark.databases("sqlite")
def test_a_deleted_row_of_the_catalog_must_fit_because_a_flush_writes_it(lake):
    insert(lake, "VALUES (1, 1, 1)", TOO_LARGE, options={})
    with duck(lake) as oracle:
        oracle.execute("DELETE FROM t WHERE id = 4")

    assert plan(lake, TO_INT).steps[0].proof == "proven for 1 of 2 row(s) in the catalog"


@pytest.mark.databases("sqlite")
def test_bounds_of_a_table_go_if_its_column_cannot_hold_them(lake):
    insert(lake, FIT, TOO_LARGE)
    with duck(lake) as oracle:
        oracle.execute("DELETE FROM t WHERE id = 4")
    done = alter(lake, TO_INT)

    assert done.note.startswith("metadata only")
    found = catalog(lake, "SELECT column_id FROM ducklake_table_column_stats ORDER BY column_id")
    assert found == [(1,), (3,)]
    with duck(lake) as oracle:
        assert oracle.sql("SELECT max(v) FROM t WHERE v < 2147483647") == [(-2147483648,)]


@pytest.fixture
def meanwhile(monkeypatch):
    """Runs something once, after the proof and before its commit."""

    def install(act):
        real, left = alter_verbs.preflight, [act]

        def looked(*given):
            found = real(*given)
            if left:
                left.pop()()
            return found

        monkeypatch.setattr(alter_verbs, "preflight", looked)

    return install


@pytest.mark.parametrize("inlining", [0, 10])
@pytest.mark.parametrize("change", [f"INSERT INTO t {TOO_LARGE}", "UPDATE t SET v = 2147483648"])
@pytest.mark.databases("sqlite")
def test_a_value_that_comes_between_proof_and_commit_is_found(lake, meanwhile, change, inlining):
    insert(lake, FIT)

    def add():
        with duck(lake, {"DATA_INLINING_ROW_LIMIT": inlining}) as oracle:
            oracle.execute(change)

    meanwhile(add)
    with pytest.raises(InvalidRequest, match="cannot be converted to int32, such as '2147483648'"):
        alter(lake, TO_INT)
    assert columns(lake)["v"] == "int64"


@pytest.mark.databases("sqlite")
def test_values_that_fit_may_come_between_proof_and_commit(lake, meanwhile):
    insert(lake, FIT)
    meanwhile(lambda: insert(lake, "VALUES (4, 4, 4)"))

    done = alter(lake, TO_INT)

    assert done.note == "metadata only: the bounds of 2 file(s) prove that every value fits"


@pytest.mark.databases("sqlite")
def test_what_is_in_doubt_between_proof_and_commit_needs_another_try(lake, meanwhile):
    insert(lake, FIT)

    def spoil():
        insert(lake, "VALUES (4, 4, 4)")
        with lake._state.store.write() as connection:
            connection.execute(text("DELETE FROM ducklake_file_column_stats"))

    meanwhile(spoil)
    with pytest.raises(Conflict, match="alter it again"):
        alter(lake, TO_INT)


@pytest.mark.databases("sqlite")
def test_duckdb_does_not_commit_older_rows_after_it(lake):
    insert(lake, FIT)
    with DuckDBOracle(lake.url, options=FILES) as oracle:
        oracle.execute("BEGIN")
        oracle.execute(f"INSERT INTO t {TOO_LARGE}")
        alter(lake, TO_INT)
        with pytest.raises(duckdb.Error, match="another transaction has altered it"):
            oracle.execute("COMMIT")


@pytest.mark.databases("sqlite")
def test_a_transaction_narrows_a_column_unless_others_add_rows(lake):
    insert(lake, FIT)
    with lake.transaction() as tx:
        tx.table("t").alter(shelduck.change_type("v", "int"))
        tx.table("t").alter(shelduck.rename_column("v", "w"))
    assert columns(lake)["w"] == "int32"

    late = lake.transaction()
    late.table("t").alter(shelduck.change_type("d", "decimal(9,4)"))
    insert(lake, "VALUES (5, 5, 999999.5)")
    with pytest.raises(Conflict, match="another writer committed"):
        late.commit()


@pytest.mark.databases("sqlite")
def test_a_statement_commits_without_spark(lake):
    insert(lake, FIT)
    lake.execute(f"ALTER TABLE t {TO_INT}")

    assert columns(lake)["v"] == "int32"
    assert lake._state.given_spark is None
