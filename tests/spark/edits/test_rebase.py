"""Writes that began before an ALTER and land behind it: what is followed, and what is refused."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

import shelduck
from shelduck import Conflict
from shelduck.catalog.schema import own_tables
from shelduck.lake import unit
from shelduck.model.changes.records import EndWriters
from shelduck.write import appending
from tests.support.lakes import newest, rows
from tests.support.meanwhile import once_before
from tests.support.oracle import DuckDBOracle

STATEMENTS = [
    "CREATE TABLE t (id INT NOT NULL, a INT, b STRING, s STRUCT<x: INT, y: STRING>)",
    "INSERT INTO t VALUES (1, 1, 'one', named_struct('x', 1, 'y', 'one'))",
    "CREATE TABLE part (id INT, a INT) PARTITIONED BY (id)",
    "CREATE TABLE u (k INT, v INT, w STRING) UNIQUE KEY (k, v) ROLLUP (r (v, k))",
    "INSERT INTO u VALUES (1, 1, 'one'), (2, 2, 'two')",
]
INLINE = "CALL set_option('data_inlining_row_limit', '100')"
FILES = "CALL set_option('data_inlining_row_limit', '0')"


@pytest.fixture
def other(copied, spark):
    """Another connection to the lake, as another process would have it."""
    with shelduck.connect(f"sqlite:///{copied[0]}", spark=spark, progress=False) as lake:
        yield lake


@pytest.fixture
def meanwhile(monkeypatch, other):
    """Alters the table once, when everything is written and nothing is committed."""

    def arrange(*statements, module=appending, name="land"):
        def act():
            for statement in statements:
                other.sql(statement)

        return once_before(monkeypatch, module, name, act)

    return arrange


IN_COMMIT = {"module": unit, "name": "commit"}
NEW = "SELECT 2 AS id, 2 AS a, 'two' AS b, named_struct('x', 2, 'y', 'two') AS s"

# What happens meanwhile, and the new row as it is then, by column.
FOLLOWED = {
    "rename": (["RENAME COLUMN a TO c"], {"id": 2, "c": 2, "b": "two"}),
    "swap": (
        ["RENAME COLUMN a TO t, RENAME COLUMN id TO a, RENAME COLUMN t TO id"],
        {"a": 2, "id": 2, "b": "two"},
    ),
    "added": (["ADD COLUMN c INT"], {"id": 2, "a": 2, "b": "two", "c": None}),
    "default": (["ADD COLUMN c INT DEFAULT 7"], {"id": 2, "a": 2, "b": "two", "c": 7}),
    "not null": (["ADD COLUMN c INT NOT NULL DEFAULT 7"], {"id": 2, "a": 2, "b": "two", "c": 7}),
    "field": (["ADD COLUMN s.z INT"], {"id": 2, "a": 2, "b": "two"}),
    "wider": (["ALTER COLUMN a TYPE BIGINT"], {"id": 2, "a": 2, "b": "two"}),
    "moved": (["ALTER COLUMN b FIRST"], {"b": "two", "id": 2, "a": 2}),
    "refused nulls": (["ALTER COLUMN a SET NOT NULL"], {"id": 2, "a": 2, "b": "two"}),
    "layout": (["SET PARTITIONED BY (id)"], {"id": 2, "a": 2, "b": "two"}),
    "write default": (
        ["ADD COLUMN c INT DEFAULT 7", "ALTER COLUMN c SET DEFAULT 8"],
        {"id": 2, "a": 2, "b": "two", "c": 8},
    ),
    "no default": (
        ["ADD COLUMN c INT DEFAULT 7", "ALTER COLUMN c DROP DEFAULT"],
        {"id": 2, "a": 2, "b": "two", "c": None},
    ),
    "expression": (
        ["ADD COLUMN c INT", "ALTER COLUMN c SET DEFAULT 3 + 4", "RENAME COLUMN s.x TO q"],
        {"id": 2, "a": 2, "b": "two", "c": 7},
    ),
}


def altered(changes):
    return [f"ALTER TABLE t {change}" for change in changes]


def agreed(lake, catalog, table="t"):
    """The rows that both engines find."""
    found = rows(lake.table(table).read())
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        seen = [
            tuple(tuple(v.values()) if isinstance(v, dict) else v for v in row)
            for row in duckdb.rows(table)
        ]
    assert sorted(found, key=str) == sorted(seen, key=str)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", [FILES, INLINE], ids=["files", "inlined"])
@pytest.mark.parametrize("case", FOLLOWED)
def test_an_append_follows_the_columns(copied, meanwhile, case, mode):
    catalog, lake = copied
    changes, wanted = FOLLOWED[case]
    lake.sql(mode)
    happened = meanwhile(*altered(changes))
    lake.table("t").append(lake.sql(NEW))

    assert happened
    agreed(lake, catalog)
    names = list(wanted)
    found = lake.sql(f"SELECT {', '.join(names)}, s FROM t WHERE b = 'two'")
    [row] = rows(found)
    assert row[:-1] == tuple(wanted.values())
    assert row[-1][:2] == (2, "two")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", ["rename", "write default", "wider"])
def test_rows_by_position_follow_the_columns(copied, meanwhile, case):
    catalog, lake = copied
    changes, wanted = FOLLOWED[case]
    meanwhile(*altered(changes))
    lake.sql("INSERT INTO t SELECT 2, 2, 'two', named_struct('x', 2, 'y', 'two')")

    agreed(lake, catalog)
    [row] = rows(lake.sql(f"SELECT {', '.join(wanted)} FROM t WHERE b = 'two'"))
    assert row == tuple(wanted.values())


def test_files_land_as_they_were_written(copied, base, meanwhile, spark):
    """Nothing is computed twice where metadata is enough."""
    catalog, lake = copied
    lake.sql(FILES)
    count = spark.sparkContext.accumulator(0)

    def counting(part):
        for frame in part:
            count.add(len(frame))
            yield frame

    given = spark.range(2, 12).selectExpr("CAST(id AS INT) AS id", "CAST(id AS INT) AS a")
    given = given.mapInPandas(counting, given.schema)
    meanwhile(*altered(["RENAME COLUMN a TO c, ADD COLUMN d INT DEFAULT 5"]))
    before = set((base.folder / "data").rglob("*.parquet"))
    done = lake.table("t").append(given)

    assert done.inserted == 10
    assert count.value == 10
    assert len(set((base.folder / "data").rglob("*.parquet")) - before) == done.files
    assert len(agreed(lake, catalog)) == 11
    assert rows(lake.sql("SELECT DISTINCT d FROM t WHERE c > 1")) == [(5,)]
    # What the catalog says of the files is right under the new names, too.
    assert rows(lake.sql("SELECT id FROM t WHERE c = 11")) == [(11,)]


REFUSED = {
    "dropped": (["DROP COLUMN a"], "column a was dropped"),
    "came back": (["DROP COLUMN a", "ADD COLUMN a INT"], "column a was dropped"),
    "field": (["DROP COLUMN s.x"], "column s.x was dropped"),
    "no default": (
        ["ADD COLUMN c INT NOT NULL DEFAULT 1", "ALTER COLUMN c DROP DEFAULT"],
        "column c was added as NOT NULL without a default",
    ),
    "nulls": (["ALTER COLUMN b SET NOT NULL"], "column b is NOT NULL now"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", REFUSED)
def test_an_append_that_does_not_fit_tells_why(copied, base, meanwhile, case):
    catalog, lake = copied
    changes, problem = REFUSED[case]
    lake.sql(FILES)
    meanwhile(*altered(changes))
    given = lake.sql(NEW).selectExpr("id", "a", "CAST(NULL AS STRING) AS b", "s")
    files = set((base.folder / "data").rglob("*.parquet"))
    with pytest.raises(Conflict) as caught:
        lake.table("t").append(given)

    told = str(caught.value)
    assert told.startswith("the columns of main.t changed while rows were written")
    assert problem in told
    assert "written for:\n  id int32 NOT NULL\n  a int32\n" in told
    assert "now:\n  id int32 NOT NULL\n" in told
    assert set((base.folder / "data").rglob("*.parquet")) == files
    assert len(agreed(lake, catalog)) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", [FILES, INLINE], ids=["files", "inlined"])
def test_nobody_misses_a_column_that_was_not_given(copied, meanwhile, mode):
    catalog, lake = copied
    lake.sql(mode)
    meanwhile("ALTER TABLE t DROP COLUMN a", "ALTER TABLE t ADD COLUMN a STRING DEFAULT 'x'")
    lake.table("t").append(lake.sql("SELECT 2 AS id"))

    assert (2, None, None, "x") in agreed(lake, catalog)


def test_a_table_is_found_under_its_new_name(copied, meanwhile):
    catalog, lake = copied
    meanwhile("ALTER TABLE t RENAME TO q", "CREATE TABLE t (id INT)")
    lake.table("t").append(lake.sql(NEW))

    assert len(agreed(lake, catalog, "q")) == 2
    assert agreed(lake, catalog, "t") == []


def test_a_table_that_is_gone_takes_no_rows(lake, meanwhile, base):
    files = set((base.folder / "data").rglob("*.parquet"))
    meanwhile("DROP TABLE t", "CREATE TABLE t (id INT)")
    with pytest.raises(Conflict, match=r"table main\.t was dropped by another commit"):
        lake.table("t").append(lake.sql(NEW))
    assert set((base.folder / "data").rglob("*.parquet")) == files


# Right before the commit: no other attempt is made, what is written is fitted under its lock.
WRITES = {
    "append": "INSERT INTO t SELECT 2, 2, 'two', named_struct('x', 2, 'y', 'two')",
    "update": "UPDATE t SET a = 5 WHERE id = 1",
    "delete": "DELETE FROM t WHERE id = 1",
    "merge": (
        "MERGE INTO t USING (SELECT id + 1 AS i FROM range(2)) n ON t.id = n.i"
        " WHEN MATCHED THEN UPDATE SET a = 5 WHEN NOT MATCHED THEN INSERT (id, a) VALUES (i, 6)"
    ),
    "overwrite": "INSERT OVERWRITE t SELECT id + 1, a, b, s FROM t",
    "replace": "INSERT INTO t REPLACE WHERE id = 1 SELECT id, 7, b, s FROM t",
}
LIGHT = ["RENAME COLUMN a TO c, ADD COLUMN d INT DEFAULT 9, ALTER COLUMN id TYPE BIGINT"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", [FILES, INLINE], ids=["files", "inlined"])
@pytest.mark.parametrize("write", WRITES)
def test_a_statement_lands_behind_an_alter(copied, meanwhile, write, mode):
    catalog, lake = copied
    lake.sql(mode)
    before = newest(lake)
    plain = rows(lake.table("t").read())
    light = LIGHT if mode == FILES else ["RENAME COLUMN a TO c, ADD COLUMN d INT"]
    meanwhile(*altered(light), **IN_COMMIT)
    lake.sql(WRITES[write])

    assert newest(lake) == before + 2
    found = agreed(lake, catalog)
    assert {row[-1] for row in found} <= {9 if mode == FILES else None}
    assert rows(lake.table("t").read(version=before)) == plain
    fresh = {"append": 2, "update": 1, "delete": 0, "merge": 2, "overwrite": 1, "replace": 1}
    assert len(found) == fresh[write]


def test_what_needs_values_is_repeated_by_whoever_chose_the_rows(copied, meanwhile):
    _, lake = copied
    lake.sql(FILES)
    changes = ["ADD COLUMN c INT DEFAULT 7", "ALTER COLUMN c SET DEFAULT 8"]
    meanwhile(*altered(changes), **IN_COMMIT)
    with pytest.raises(Conflict, match="column c was added, and its default changed"):
        lake.sql("UPDATE t SET a = 5")
    lake.sql("UPDATE t SET a = 5")
    assert rows(lake.sql("SELECT a, c FROM t")) == [(5, 7)]


def test_a_transaction_of_several_statements_lands_behind_an_alter(copied, other):
    catalog, lake = copied
    lake.sql(FILES)
    with lake.transaction() as tx:
        tx.sql("INSERT INTO t SELECT 2, 2, 'two', NULL")
        tx.sql("UPDATE t SET a = a + 1")
        other.sql("ALTER TABLE t RENAME COLUMN a TO c, ADD COLUMN d INT DEFAULT 9")
    assert sorted(row[:2] + row[-1:] for row in agreed(lake, catalog)) == [(1, 2, 9), (2, 3, 9)]


def test_a_writer_that_loses_a_race_stays_registered(copied, meanwhile, monkeypatch):
    """A job that began meanwhile waits for it, or its rows would have to be written again."""
    catalog, lake = copied
    lake.sql(FILES)
    told, commit = [], unit.commit

    def noted(*arguments, **more):
        told.append([r.registered for r in arguments[2] if isinstance(r, EndWriters)])
        return commit(*arguments, **more)

    monkeypatch.setattr(unit, "commit", noted)
    meanwhile("DELETE FROM t WHERE id = 1", **IN_COMMIT)
    lake.table("t").append(lake.sql(NEW))

    _, lost, landed = told
    assert lost == landed != []
    assert [row[:2] for row in agreed(lake, catalog)] == [(2, 2)]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.sql("SELECT * FROM __ducklake_metadata_lake.shelduck_writer") == []


def test_a_schema_that_merges_follows_one_that_was_altered(copied, meanwhile):
    catalog, lake = copied
    meanwhile("ALTER TABLE t RENAME COLUMN a TO c", "ALTER TABLE t ADD COLUMN d INT")
    more = lake.sql("SELECT 2 AS id, 2 AS a, 'new' AS e")
    lake.table("t").append(more, merge_schema=True)

    assert lake.table("t").columns.names == ["id", "c", "b", "s", "d", "e"]
    assert (2, 2, None, None, None, "new") in agreed(lake, catalog)


def test_a_schema_that_merges_takes_no_id_that_another_column_had(copied, meanwhile):
    catalog, lake = copied
    meanwhile(
        "COMMENT ON TABLE t IS 'kept'",
        "COMMENT ON COLUMN t.b IS 'kept too'",
        "ALTER TABLE t ADD COLUMN x INT",
        "INSERT INTO t (id, x) SELECT 3, 77",
        "ALTER TABLE t DROP COLUMN x",
    )
    lake.table("t").append(lake.sql("SELECT 2 AS id, 'new' AS e"), merge_schema=True)

    assert sorted(row[:1] + row[-1:] for row in agreed(lake, catalog)) == [
        (1, None),
        (2, "new"),
        (3, None),
    ]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        columns = duckdb.dump_metadata()["ducklake_column"]
        top = {r["column_name"]: r["column_id"] for r in columns if r["parent_column"] is None}
        assert top["e"] > top["x"]
        told = "SELECT comment FROM duckdb_{} WHERE table_name = 't' AND comment IS NOT NULL"
        assert duckdb.sql(told.format("tables()")) == [("kept",)]
        assert duckdb.sql(told.format("columns()")) == [("kept too",)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("at", [{"name": "load"}, IN_COMMIT], ids=["load", "commit"])
def test_a_load_by_key_follows_the_columns(copied, meanwhile, at):
    catalog, lake = copied
    meanwhile("ALTER TABLE u RENAME COLUMN w TO x", "ALTER TABLE u ADD COLUMN y INT", **at)
    lake.table("u").append(lake.sql("SELECT 2 AS k, 2 AS v, 'new' AS w"))

    assert sorted(agreed(lake, catalog, "u")) == [(1, 1, "one", None), (2, 2, "new", None)]
    assert sorted(agreed(lake, catalog, "u$r")) == [(1, 1), (2, 2)]


def test_a_batch_of_a_stream_lands_behind_an_alter_once(copied, meanwhile):
    catalog, lake = copied
    meanwhile(*altered(["RENAME COLUMN a TO c, ADD COLUMN d INT DEFAULT 9"]), **IN_COMMIT)
    sink = lake.table("t").sink("q")
    for _ in range(2):
        sink(lake.sql(NEW), 0)
    assert len(agreed(lake, catalog)) == 2


def test_partitions_of_an_older_spec_stay_what_they_are(copied, meanwhile):
    catalog, lake = copied
    lake.sql(FILES)
    meanwhile(
        "ALTER TABLE part SET PARTITIONED BY (a)",
        "ALTER TABLE part RENAME COLUMN id TO i",
        **IN_COMMIT,
    )
    lake.sql("INSERT INTO part VALUES (1, 1), (2, 2)")
    assert sorted(agreed(lake, catalog, "part")) == [(1, 1), (2, 2)]
    assert rows(lake.sql("SELECT a FROM part WHERE i = 2")) == [(2,)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("inline", [0, 100])
def test_an_alter_of_duckdb_is_followed(copied, monkeypatch, inline):
    catalog, lake = copied

    def act():
        with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
            duckdb.execute("ALTER TABLE t RENAME a TO c")
            duckdb.execute("ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 9")

    lake.sql(f"CALL set_option('data_inlining_row_limit', '{inline}')")
    once_before(monkeypatch, unit, "commit", act)
    lake.table("t").append(lake.sql(NEW))
    assert rows(lake.sql("SELECT c, d FROM t WHERE id = 2")) == [(2, 9)]
    agreed(lake, catalog)


@pytest.mark.parametrize(
    "alter", [None, "ALTER TABLE t ADD ROLLUP by_a (a)"], ids=["same", "rollup"]
)
def test_an_append_whose_writer_is_taken_for_dead_writes_its_rows_again(
    copied, monkeypatch, other, alter
):
    """Its files may be gone by then, or lack the columns of a job."""
    catalog, lake = copied
    lake.sql(FILES)

    def forgotten():
        with lake._state.store.write() as connection:
            connection.execute(sa.delete(own_tables.writer))
        if alter is not None:
            other.sql(alter)

    happened = once_before(monkeypatch, unit, "commit", forgotten)
    done = lake.table("t").append(lake.sql(NEW))

    assert happened
    assert done.inserted == 1
    assert len(agreed(lake, catalog)) == 2
    assert not lake.check(rows=True).problems
