"""Schema as code: files of SQL are pulled, changed, planned and applied."""

from __future__ import annotations

import json
import threading

import pytest

import shelduck
from shelduck import Conflict, InvalidRequest, Unsupported
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle


@pytest.fixture
def lake(spark, sqlite_url, data_path):
    with shelduck.connect(sqlite_url, data_path, spark) as found:
        found.execute("CREATE TABLE t (id BIGINT NOT NULL, name STRING DEFAULT 'x', n INT)")
        yield found


def text_of(lake, folder):
    [place] = lake.pull_schema(folder)
    return place.read_text(encoding="utf-8")


def test_a_team_changes_files_while_writers_go_on(spark, lake, tmp_path, sqlite_url):
    """The whole story: pull, edit, plan, apply a heavy change beside two writers."""
    spark.range(2000).selectExpr("id", "'a' AS name", "cast(id AS int) AS n").createTempView("src")
    try:
        lake.sql("INSERT INTO t SELECT * FROM src")
        folder = tmp_path / "schema"
        text = text_of(lake, folder)
        text = text.replace("name STRING", "label STRING").replace("n INT", "n STRING")
        (folder / "main.t.sql").write_text(text, encoding="utf-8")
        plan = lake.plan(folder)
        assert plan.is_heavy
        assert plan.lost == []
        told = plan.as_json()["tables"][0]
        assert {s["weight"] for s in told["steps"]} == {"light", "heavy"}
        assert max(s["rows"] for s in told["steps"]) == 2000
        assert "| main.t |" in plan.markdown()
        stop, landed = threading.Event(), []

        def write(first):
            at = first
            while not stop.is_set():
                # The type of n changes in the middle, so these rows leave it out.
                lake.table("t").append(spark.createDataFrame([(at,)], "id bigint"))
                landed.append(at)
                at += 1

        writers = [threading.Thread(target=write, args=(first,)) for first in (10_000, 20_000)]
        for writer in writers:
            writer.start()
        [job] = plan.apply()
        job.wait()
        stop.set()
        for writer in writers:
            writer.join()
        assert str(lake.plan(folder)) == "nothing differs"
        found = lake.sql("SELECT count(*), count(DISTINCT id), count(n), min(label) FROM t")
        total = 2000 + len(landed)
        assert rows(found) == [(total, total, 2000, "a")]
        with DuckDBOracle(sqlite_url) as oracle:
            assert oracle.sql("SELECT count(*), max(n) FROM t WHERE id < 2000") == [(2000, "999")]
    finally:
        spark.catalog.dropTempView("src")


def test_light_changes_of_all_tables_are_one_snapshot(lake, tmp_path):
    lake.execute("CREATE TABLE u (k INT)")
    lake.pull_schema(tmp_path)
    (tmp_path / "main.u.sql").write_text("CREATE TABLE u (k INT, v INT);")
    (tmp_path / "s.new.sql").write_text("CREATE TABLE s.new (x INT) PARTITIONED BY (x);")
    changed = (tmp_path / "main.t.sql").read_text().replace("  n INT", "  m INT")
    (tmp_path / "main.t.sql").write_text(changed)
    before = len(lake.snapshots())

    lake.plan(tmp_path).apply()

    assert len(lake.snapshots()) == before + 1
    assert lake.table("u").columns.names == ["k", "v"]
    assert lake.table("t").columns.names == ["id", "name", "m"]
    assert [str(t) for t in lake.tables("s")] == ["s.new"]


def test_only_light_changes_leave_heavy_tables(lake, tmp_path):
    lake.execute("CREATE TABLE u (k INT)")
    lake.pull_schema(tmp_path)
    heavy = (tmp_path / "main.t.sql").read_text().replace("n INT", "n STRING")
    (tmp_path / "main.t.sql").write_text(heavy)
    (tmp_path / "main.u.sql").write_text("CREATE TABLE u (k INT, v INT);")

    assert lake.plan(tmp_path).apply(only_light=True) == []
    assert lake.table("u").columns.names == ["k", "v"]
    assert str(lake.table("t").columns.get(("n",), "t").type) == "int32"


def test_what_would_be_lost_needs_a_word(lake):
    plan = lake.plan({"other": "CREATE TABLE other (x INT)"})
    assert plan.lost == ["main.t"]
    with pytest.raises(InvalidRequest, match=r"this drops main\.t; allow it with --allow-drop"):
        plan.apply()
    assert [str(t) for t in lake.tables()] == ["main.t"]


def test_a_plan_of_an_older_schema_is_refused(lake, tmp_path):
    text = text_of(lake, tmp_path).replace("n INT", "n BIGINT")
    plan = lake.plan({"t": text})
    lake.execute("INSERT INTO t VALUES (1, 'a', 1)")
    newer = lake.plan({"t": text})
    lake.execute("ALTER TABLE t ADD COLUMN w INT")
    for made in (plan, newer):
        with pytest.raises(Conflict, match="the schema of the lake changed since"):
            made.apply()


def test_rows_that_land_meanwhile_do_not_matter(lake, tmp_path):
    plan = lake.plan({"t": text_of(lake, tmp_path).replace("n INT", "n BIGINT")})
    lake.execute("INSERT INTO t VALUES (1, 'a', 1)")
    assert plan.apply() == []
    assert str(lake.table("t").columns.get(("n",), "t").type) == "int64"


def test_without_ids_a_rename_has_to_be_said(lake):
    new = "CREATE TABLE t (id BIGINT NOT NULL, label STRING DEFAULT 'x', n INT)"
    with pytest.raises(InvalidRequest, match="is 'label' a new column, or 'name' with a new name"):
        lake.plan({"t": new})
    told = new.replace("'x',", "'x', -- renamed from: name\n")
    plan = lake.plan({"t": told})
    assert plan.lost == []
    plan.apply()
    assert lake.plan({"t": told}).is_empty
    assert [(f.id, f.name) for f in lake.table("t").columns] == [(1, "id"), (2, "label"), (3, "n")]


WRONG = {
    "no table": ("SELECT 1", "a.sql: the first statement must be CREATE TABLE with columns"),
    "nothing": ("-- nothing", "the first statement must be CREATE TABLE"),
    "a query": ("CREATE TABLE t AS SELECT 1", "must be CREATE TABLE with columns"),
    "no SQL": ("CREATE TABEL t (a INT)", "a.sql: "),
    "an unknown id": ("CREATE TABLE t (id BIGINT, -- id: 99\n n INT)", "has the id 99, which no"),
    "one id twice": (
        "CREATE TABLE t (id BIGINT, -- id: 1\n n INT -- id: 1\n)",
        "two columns of the file are column 'id'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_named(lake, case):
    text, message = WRONG[case]
    with pytest.raises(InvalidRequest, match=message):
        lake.plan({"a.sql": text})


def test_two_files_of_one_table_are_refused(lake):
    text = "CREATE TABLE T (id BIGINT, name STRING, n INT)"
    with pytest.raises(InvalidRequest, match=r"b\.sql: another file declares table main\.T too"):
        lake.plan({"a.sql": text.replace("T ", "t "), "b.sql": text})


def test_models_and_rollups_have_statements_of_their_own(lake, tmp_path):
    lake.execute("CREATE TABLE k (a INT, b INT, v INT SUM) AGGREGATE KEY (a, b) ROLLUP (r (a, v))")
    lake.pull_schema(tmp_path)
    assert lake.plan(tmp_path).is_empty
    text = (tmp_path / "main.k.sql").read_text()
    for old, new in (
        ("AGGREGATE KEY (a, b)", "AGGREGATE KEY (b, a)"),
        ("\nROLLUP (r (a, v))", ""),
        ("\nAGGREGATE KEY (a, b)\nROLLUP (r (a, v))", ""),
    ):
        assert old in text
        changed = text.replace(old, new)
        changed = changed if "KEY" in changed else changed.replace(" SUM", "")
        with pytest.raises(Unsupported, match=r"main\.k"):
            lake.plan({"t": (tmp_path / "main.t.sql").read_text(), "k": changed})


def test_a_plan_is_json(lake, tmp_path):
    plan = lake.plan({"t": text_of(lake, tmp_path).replace("  n INT", "  m INT")})
    assert json.loads(json.dumps(plan.as_json()))["tables"][0]["felt"] == [
        "queries that name n fail; the column keeps its values"
    ]
