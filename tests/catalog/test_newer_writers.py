"""What DuckDB 2.0 writes into lakes of either version, as ducklakepy or plain SQL writes it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
from ducklakepy import load_catalog
from ducklakepy.expressions import col
from ducklakepy.types import Int32Type, Int64Type

import shelduck
from shelduck.catalog.read import read
from shelduck.catalog.read.inlined_rows import inlined_rows
from shelduck.engine.types import default_sql
from shelduck.model.files.fitted import fitted_values
from tests.support.lake import Lake
from tests.support.oracle import DuckDBOracle

NEW_SNAPSHOT = (
    "INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, snapshot_time, {version},"
    " next_catalog_id, next_file_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"
)
NEW_CHANGES = "INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made) VALUES (3, '{}')"


@pytest.fixture(params=["1.0", "1.1"])
def ours(request, tmp_path):
    """A lake of either version with a table, and three rows in the catalog."""
    found = shelduck.connect(
        f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/", ducklake_version=request.param
    )
    found.execute("CREATE TABLE t (a INT, x INT)")
    found.execute("INSERT INTO t VALUES (1, NULL), (2, NULL), (3, NULL)")
    return found


@pytest.fixture
def theirs(tmp_path, ours):
    found = load_catalog(url=f"sqlite:///{tmp_path}/lake.db", data_path=f"{tmp_path}/data/")
    found.set_option("data_inlining_row_limit", 10)
    yield found
    found.close()


@pytest.fixture
def change(tmp_path):
    """Changes the catalog by plain SQL and returns what the last statement answers."""

    def run(*statements):
        with closing(sqlite3.connect(tmp_path / "lake.db")) as connection:
            found = [connection.execute(statement).fetchall() for statement in statements]
            connection.commit()
        return found[-1]

    return run


@pytest.fixture
def lake(tmp_path, ours):
    return Lake(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/")


def kept(lake, at=None):
    """The rows of t that the catalog holds, in its columns at a snapshot, as texts."""
    with lake.store.read() as connection:
        seen = read.snapshot(connection) if at is None else read.snapshot(connection, at)
        table = read.table(connection, seen, "main", "t", lake.info)
        found = []
        for part in inlined_rows(connection, table):
            columns = [fitted_values(part.columns, part.rows, f) for f in table.columns]
            found += [told(table.columns.names, row) for row in zip(*columns, strict=True)]
    return sorted(found)


def shown(theirs, at):
    rows = theirs.load_table("main.t", snapshot=theirs.snapshot_by_id(at)).scan().to_arrow()
    return sorted(told(row.keys(), row.values()) for row in rows.to_pylist())


def told(names, values):
    return " ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def insert(theirs, **values):
    columns = {n: pa.array([v], pa.int64() if n == "b" else pa.int32()) for n, v in values.items()}
    theirs.load_table("main.t").append(pa.table(columns))


def alter(theirs, verb, *values):
    with theirs.load_table("main.t").update_schema() as schema:
        getattr(schema, verb)(*values)


def same_at_each_snapshot(lake, theirs):
    newest = theirs.current_snapshot().snapshot_id
    wrong = [at for at in range(2, newest + 1) if kept(lake, at) != shown(theirs, at)]
    return wrong or newest


def test_both_write_and_alter_in_turn_and_each_snapshot_is_the_same_to_both(ours, theirs, lake):
    insert(theirs, a=4, x=5)
    ours.execute("ALTER TABLE t ALTER COLUMN a SET DEFAULT 7")
    insert(theirs, a=5, x=6)
    ours.execute("INSERT INTO t VALUES (6, NULL)")
    alter(theirs, "add_column", "b", Int32Type())
    ours.execute("INSERT INTO t VALUES (7, NULL, 8)")
    alter(theirs, "rename_column", "x", "y")
    theirs.load_table("main.t").delete(col("a") == 2)
    alter(theirs, "set_column_type", "b", Int64Type())
    ours.execute("INSERT INTO t VALUES (8, NULL, 5000000000)")
    insert(theirs, a=9, b=9)
    ours.execute("ALTER TABLE t DROP COLUMN b, ADD COLUMN c INT DEFAULT 3")
    ours.execute("INSERT INTO t VALUES (10, NULL, 4)")
    insert(theirs, a=11, c=5)

    assert same_at_each_snapshot(lake, theirs) == 16
    assert kept(lake)[:3] == ["a=1 y=None c=3", "a=10 y=None c=4", "a=11 y=None c=5"]
    assert len(kept(lake)) == 10
    if theirs.spec_version() == "1.0":
        with DuckDBOracle(lake.url) as oracle:
            assert len(oracle.sql("FROM t")) == 10


def test_an_insert_that_raises_the_version_of_the_schema_is_followed(ours, theirs, lake, change):
    # As DuckDB 2.0 does it: a table for rows of the raised version, without a version of its own.
    number = lake.table("t").id
    [(older,)] = change("SELECT table_name FROM ducklake_inlined_data_tables")
    newer = f"ducklake_inlined_data_{number}_5"
    change(
        f"CREATE TABLE {newer} AS SELECT * FROM {older} WHERE 1 = 0",
        f"INSERT INTO ducklake_inlined_data_tables VALUES ({number}, '{newer}', 5)",
        f"INSERT INTO {newer} VALUES (3, 3, NULL, 4, NULL)",
        NEW_SNAPSHOT.format(version=5),
        NEW_CHANGES.format(f"inlined_insert:{number}"),
        "UPDATE ducklake_table_stats SET record_count = 4, next_row_id = 4",
    )
    ours.execute("INSERT INTO t VALUES (5, NULL)")
    ours.execute("ALTER TABLE t ADD COLUMN c INT DEFAULT 9")
    ours.execute("INSERT INTO t VALUES (6, NULL, 6)")

    assert kept(lake) == [*(f"a={n} x=None c=9" for n in (1, 2, 3, 4, 5)), "a=6 x=None c=6"]
    assert same_at_each_snapshot(lake, theirs) == 6


def test_emptied_tables_of_inlined_rows_vanish(ours, theirs, lake, change):
    ours.execute("ALTER TABLE t ADD COLUMN c INT")
    ours.execute("INSERT INTO t VALUES (4, NULL, 4)")
    assert len(kept(lake)) == 4
    theirs.flush_inlined_data("main.t")
    assert len(change("SELECT * FROM ducklake_inlined_data_tables")) == 1

    ours.execute("INSERT INTO t VALUES (5, NULL, 5)")
    assert kept(lake) == ["a=5 x=None c=5"]
    theirs.flush_inlined_data("main.t")
    [(last,)] = change("SELECT table_name FROM ducklake_inlined_data_tables")
    change("DELETE FROM ducklake_inlined_data_tables", f"DROP TABLE {last}")
    assert kept(lake) == []
    ours.execute("ALTER TABLE t RENAME COLUMN c TO d")
    insert(theirs, a=6)
    assert len(shown(theirs, theirs.current_snapshot().snapshot_id)) == 6


def test_fields_of_structs_that_2_0_renames_and_widens_keep_their_defaults(
    ours, theirs, lake, change
):
    ours.execute("ALTER TABLE t ADD COLUMN s STRUCT<x: INT>")
    ours.execute("ALTER TABLE t ADD COLUMN s.z INT DEFAULT 4")
    alter(theirs, "rename_column", ("s", "z"), "w")
    alter(theirs, "set_column_type", ("s", "w"), Int64Type())
    row = (
        "SELECT initial_default, default_value, nulls_allowed FROM ducklake_column"
        " WHERE column_name = '{}' AND end_snapshot IS NULL"
    )
    # It writes that no NULL is allowed, which means nothing below a struct.
    assert change(row.format("w")) == [("4", "4", 0)]

    ours.execute("ALTER TABLE t RENAME COLUMN s.w TO v")
    field = lake.table("t").columns.get(("s", "v"), "t")
    assert (field.initial_default, field.default.text, field.nullable) == ("4", "4", True)
    assert change(row.format("v"))[0][:2] == ("4", "4")


def test_defaults_in_the_words_of_2_0_are_understood(ours, lake, change):
    ours.execute("ALTER TABLE t ADD COLUMN f BOOLEAN, ADD COLUMN n STRING")
    change(
        "UPDATE ducklake_column SET default_value = 'true', initial_default = 'false'"
        " WHERE column_name = 'f'",
        "UPDATE ducklake_column SET default_value = '''NULL''', default_value_type = 'expression'"
        " WHERE column_name = 'n'",
    )
    columns = lake.table("t").columns
    assert default_sql(columns.get(("f",), "t")) == "CAST('true' AS boolean)"
    assert default_sql(columns.get(("n",), "t")) == "'NULL'"
    assert kept(lake) == [f"a={n} x=None f=false n=None" for n in (1, 2, 3)]

    # Another process, which has not kept the table.
    other = shelduck.connect(lake.url)
    other.execute("ALTER TABLE t RENAME COLUMN n TO m, RENAME COLUMN f TO g")
    assert change(
        "SELECT column_name, initial_default, default_value, default_value_type"
        " FROM ducklake_column WHERE end_snapshot IS NULL AND column_name IN ('g', 'm') ORDER BY 1"
    ) == [("g", "false", "true", "literal"), ("m", None, "'NULL'", "expression")]


def test_changes_in_the_words_of_2_0_are_read(ours, lake, change):
    words = 'flushed_inlined:1,created_table:"a"."b"."t",dropped_schema:5,dropped_schema:4'
    change(NEW_SNAPSHOT.format(version=1), NEW_CHANGES.format(words))
    with lake.store.read() as connection:
        found = [str(entry) for _, entry in read.entries_since(connection, 2, 3)]
    assert found == words.replace("flushed_inlined", "inline_flush").split(",")

    ours.execute("INSERT INTO t VALUES (4, NULL)")
    assert len(kept(lake)) == 4


def test_a_catalog_with_their_uuids_and_times_is_altered(ours, theirs, lake, change):
    theirs.create_table("main.u", schema=theirs.load_table("main.t").schema())
    times = "SELECT instr(snapshot_time, '+') FROM ducklake_snapshot ORDER BY snapshot_id DESC"
    assert change(times)[0] == (0,)
    uuids = "SELECT DISTINCT table_uuid FROM ducklake_table WHERE table_name IN ('u', 'v')"
    assert [len(uuid) for (uuid,) in change(uuids)] == [32]

    ours.execute("ALTER TABLE u RENAME TO v")
    ours.execute("ALTER TABLE v ADD COLUMN b BOOLEAN DEFAULT true")
    assert len(change(uuids)) == 1
    with lake.store.read() as connection:
        seen = [read.snapshot(connection, at).time for at in range(6)]
    assert seen == sorted(seen)
    assert theirs.load_table("main.v").schema().column_by_name("b") is not None
    if theirs.spec_version() == "1.0":
        with DuckDBOracle(lake.url) as oracle:
            assert oracle.sql("SELECT count(*) FROM v") == [(0,)]


@pytest.mark.filterwarnings("ignore:The Result.tuples")
@pytest.mark.parametrize("place", ["", "{DUCKLAKE_CATALOG}."])
def test_views_are_answered_with_and_without_the_placeholder_of_the_catalog(
    ours, theirs, lake, change, place
):
    text = f"SELECT a FROM {place}main.t"
    theirs.create_view("main.v", "SELECT a FROM main.t", column_aliases=["b"])
    change(f"UPDATE ducklake_view SET sql = '{text}'")
    shelduck.connect(lake.url).execute("ALTER VIEW v RENAME TO w")
    assert change("SELECT sql FROM ducklake_view WHERE end_snapshot IS NULL") == [(text,)]
    assert theirs.load_view("main.w").sql == "SELECT a FROM main.t"
    if theirs.spec_version() == "1.0":
        with DuckDBOracle(lake.url) as oracle:
            assert oracle.sql("SELECT max(b) FROM w") == [(3,)]
