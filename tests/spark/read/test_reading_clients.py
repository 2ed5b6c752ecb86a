"""Readers that lag behind the schema, or say what they take it to be; ids that are spent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

import shelduck
from shelduck import InvalidRequest, NotFound, Unsupported
from tests.support.lakes import newest, refusal, rows
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id INT NOT NULL, a INT, b STRING, s STRUCT<x: INT, y: STRING>)",
    "INSERT INTO t VALUES (1, 10, 'one', named_struct('x', 1, 'y', 'one'))",
    "INSERT INTO t VALUES (2, 20, 'two', NULL)",
]


def expected(lake, columns, **more):
    return lake.table("t").read(expect=columns, **more)


# What a reader expects


@pytest.mark.slow
@pytest.mark.parametrize(
    "columns",
    [
        "id INT NOT NULL, a INT, b STRING, s STRUCT<x: INT, y: STRING>",
        "B STRING, ID INT NOT NULL",
        T.StructType().add("a", T.IntegerType()),
    ],
)
def test_a_reader_gets_the_columns_that_it_names(lake, columns):
    found = expected(lake, columns)
    wanted = T.StructType.fromDDL(columns) if isinstance(columns, str) else columns
    assert found.columns == wanted.names
    assert [f.dataType for f in found.schema] == [f.dataType for f in wanted]
    assert rows(found) == rows(lake.table("t").read().select(*wanted.names))


def test_all_that_differs_is_told_at_once(copied, base):
    catalog, lake = copied
    columns = "id BIGINT, a INT NOT NULL, c2 INT, s STRUCT<x: INT, z: STRING>, c3 STRING NOT NULL"
    told = refusal(InvalidRequest, lambda: expected(lake, columns), catalog, base.folder / "data")
    assert told.splitlines() == [
        "main.t does not have the expected columns:",
        "  - column id has type int, expected bigint",
        "  - column id is NOT NULL, expected a nullable column",
        "  - column a is nullable, expected NOT NULL",
        "  - column c2 does not exist",
        "  - column s has type struct<x:int,y:string>, expected struct<x:int,z:string>",
        "  - column c3 does not exist",
        "its columns: id, a, b, s",
    ]


def test_a_reader_that_adapts_gets_what_it_names(lake):
    late = T.StructField("late", T.IntegerType(), False, {"CURRENT_DEFAULT": "6 + 1"})
    columns = T.StructType.fromDDL("id BIGINT, a DOUBLE, gone STRING").add(late)
    found = expected(lake, columns, adapt=True)
    assert [f.dataType for f in found.schema] == [f.dataType for f in columns]
    assert rows(found) == [(1, 10.0, None, 7), (2, 20.0, None, 7)]
    assert rows(expected(lake, "gone INT", adapt=True)) == [(None,), (None,)]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("a SMALLINT", "column a has type int, expected smallint"),
        ("b INT", "column b has type string, expected int"),
        ("a INT NOT NULL", "column a is nullable, expected NOT NULL"),
        (
            "c INT NOT NULL",
            "column c does not exist, but is expected to be NOT NULL, and has no default",
        ),
    ],
)
def test_what_no_reader_can_adapt_to_is_told(lake, columns, told):
    with pytest.raises(InvalidRequest, match=told):
        expected(lake, columns, adapt=True)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("id INT, ID INT", "expect lists column ID twice|expect lists column id twice"),
        ("nonsense", "is not a list of columns"),
        (["id"], "expect must be a StructType or text"),
        (T.StructType(), "expect lists no column"),
    ],
)
def test_what_names_no_columns_is_refused(lake, columns, told):
    with pytest.raises(InvalidRequest, match=told):
        expected(lake, columns)


def test_columns_are_named_once(lake):
    with pytest.raises(InvalidRequest, match="either expect or columns, not both"):
        lake.table("t").read(expect="id INT", columns=["id"])
    with pytest.raises(InvalidRequest, match="must be 'snapshot' or 'current', not 'newest'"):
        lake.table("t").read(schema="newest")


def test_a_reader_of_an_older_snapshot_meets_its_columns(lake):
    before = newest(lake)
    lake.sql("ALTER TABLE t RENAME COLUMN a TO c")
    assert rows(expected(lake, "a INT", version=before)) == [(10,), (20,)]
    with pytest.raises(InvalidRequest, match="column a does not exist"):
        expected(lake, "a INT")


# Old rows, today's columns


@pytest.mark.slow
def test_rows_of_an_older_snapshot_are_read_with_the_columns_of_today(copied):
    catalog, lake = copied
    before = newest(lake)
    lake.sql(
        "ALTER TABLE t RENAME COLUMN a TO c, ADD COLUMN d INT DEFAULT 7, DROP COLUMN b,"
        " RENAME COLUMN s.x TO q, ADD COLUMN s.z INT DEFAULT 3, ALTER COLUMN id TYPE BIGINT"
    )
    lake.sql("ALTER TABLE t ADD COLUMN b INT")
    lake.sql("DELETE FROM t WHERE id = 1; INSERT INTO t (id, c) VALUES (3, 30)")
    found = lake.table("t").read(version=before, schema="current").orderBy("id")

    assert found.columns == ["id", "c", "s", "d", "b"]
    assert rows(found) == [(1, 10, (1, "one", 3), 7, None), (2, 20, None, 7, None)]
    assert rows(found.where("c = 20").select("id")) == [(2,)]
    then = lake.table("t").read(version=before).orderBy("id")
    assert then.columns == ["id", "a", "b", "s"]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert [r[:3] for r in duckdb.rows("t", version=before)] == [r[:3] for r in rows(then)]
    newer = lake.table("t").read(schema="current")
    assert rows(newer.orderBy("id").select("id", "c")) == [(2, 20), (3, 30)]


def test_inlined_rows_are_read_with_the_columns_of_today(lake):
    lake.sql("CALL set_option('data_inlining_row_limit', '10')")
    lake.sql("INSERT INTO t (id, a) VALUES (3, 30)")
    before = newest(lake)
    lake.sql("ALTER TABLE t RENAME COLUMN a TO c, ADD COLUMN d INT DEFAULT 7")
    found = lake.table("t").read(version=before, schema="current", columns=["c", "d"])
    assert sorted(rows(found)) == [(10, 7), (20, 7), (30, 7)]


def test_a_table_that_was_renamed_is_read_by_the_name_that_it_had(lake):
    before, table = newest(lake), lake.table("t")
    lake.sql("ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME COLUMN a TO c")
    found = table.read(version=before, schema="current")
    assert found.columns == ["id", "c", "b", "s"]


def test_values_that_were_converted_since_are_not_guessed(lake):
    before = newest(lake)
    lake.sql("ALTER TABLE t ALTER COLUMN a TYPE STRING")
    told = (
        f"a of main.t was converted from int32 to varchar by job 1, after snapshot {before}; read"
        " that snapshot with its own schema"
    )
    with pytest.raises(Unsupported, match=told):
        lake.table("t").read(version=before, schema="current")
    lake.sql("INSERT INTO t (id) VALUES (3)")
    since = lake.table("t").read(version=newest(lake) - 1, schema="current")
    assert sorted(rows(since.select("a"))) == [("10",), ("20",)]


# Rows that are pinned


@pytest.fixture
def own(tmp_path, spark):
    """A lake whose files may be deleted."""
    with shelduck.connect(f"sqlite:///{tmp_path}/l.db", f"{tmp_path}/data/", spark) as lake:
        for statement in STATEMENTS:
            lake.sql(statement)
        yield lake


@pytest.mark.slow
def test_a_frame_stays_what_it_was_until_its_files_are_gone(own):
    frame = own.table("t").read()
    names, before = frame.columns, sorted(rows(frame))
    own.sql("ALTER TABLE t RENAME COLUMN a TO b2, DROP COLUMN b, ADD COLUMN b INT DEFAULT 9")
    own.sql("UPDATE t SET b2 = 0; DELETE FROM t WHERE id = 2")
    own.sql("ALTER TABLE t RENAME TO u")
    assert (frame.columns, sorted(rows(frame))) == (names, before)
    own.table("u").compact()
    own.expire_snapshots(older_than=timedelta(0))
    # Nobody sees the snapshot any more, and its files wait for their deletion.
    assert sorted(rows(frame)) == before
    own.cleanup_old_files(older_than=timedelta(0))
    with pytest.raises(Exception, match=r"of main\.t is missing, or was cleaned"):
        frame.collect()
    with pytest.raises(NotFound, match=r"has expired|does not exist"):
        own.table("u").read(version=2)


# Ids


def test_the_id_of_a_column_that_nobody_saw_is_spent(copied):
    """Files of the transaction hold its values, and must not give them to the next column."""
    catalog, lake = copied
    with lake.transaction() as tx:
        tx.sql("ALTER TABLE t ADD COLUMN c INT")
        tx.sql("INSERT INTO t (id, c) VALUES (3, 333)")
        tx.sql("ALTER TABLE t DROP COLUMN c")
    lake.sql("ALTER TABLE t ADD COLUMN d INT")
    assert rows(lake.sql("SELECT id, d FROM t ORDER BY id")) == [(1, None), (2, None), (3, None)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT id, d FROM t ORDER BY id") == [(1, None), (2, None), (3, None)]
        duckdb.execute("ALTER TABLE t ADD COLUMN e INTEGER")
        assert duckdb.sql("SELECT DISTINCT d, e FROM t") == [(None, None)]


def test_a_table_that_lost_a_column_before_it_was_there_remembers(copied):
    catalog, lake = copied
    with lake.transaction() as tx:
        tx.sql("CREATE TABLE n (id INT, c INT)")
        tx.sql("INSERT INTO n VALUES (1, 111)")
        tx.sql("ALTER TABLE n DROP COLUMN c")
    lake.sql("ALTER TABLE n ADD COLUMN d INT")
    assert rows(lake.sql("SELECT * FROM n")) == [(1, None)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("n") == [(1, None)]


def test_ids_are_spent_within_one_statement(lake):
    def ids():
        return {f.name: f.id for f in lake.table("t").columns.walk()}

    before = max(ids().values())
    lake.sql("ALTER TABLE t ADD COLUMN c INT, DROP COLUMN c, ADD COLUMN d INT, ADD COLUMN c INT")
    assert (ids()["d"], ids()["c"]) == (before + 2, before + 3)
    lake.sql("ALTER TABLE t ADD COLUMN e INT, ADD COLUMN f STRUCT<g: INT>, DROP COLUMN f")
    assert ids()["e"] == before + 4
    lake.sql("ALTER TABLE t DROP COLUMN e, ADD COLUMN e INT")
    assert ids()["e"] == before + 7


def test_columns_swap_and_chain_their_names_in_one_statement(copied):
    catalog, lake = copied
    lake.sql(
        "ALTER TABLE t RENAME COLUMN a TO t1, RENAME COLUMN id TO a, RENAME COLUMN t1 TO id,"
        " RENAME COLUMN b TO b1, RENAME COLUMN b1 TO b2"
    )
    assert rows(lake.sql("SELECT id, a, b2 FROM t WHERE id = 20")) == [(20, 2, "two")]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT id, a, b2 FROM t WHERE id = 20") == [(20, 2, "two")]
    with pytest.raises(shelduck.AlreadyExists, match="column 'a' already exists"):
        lake.sql("ALTER TABLE t RENAME COLUMN id TO a")
