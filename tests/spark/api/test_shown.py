"""What a prompt and a notebook show of lakes, tables, plans, jobs and results."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import shelduck
from shelduck import add_column, change_type, drop_column

STATEMENTS = [
    "CREATE TABLE `<b>` (id BIGINT NOT NULL, name STRING DEFAULT '<i>' COMMENT 'a & b')",
    "INSERT INTO `<b>` VALUES (1, 'x')",
]


@pytest.fixture
def table(lake):
    return lake.table("`<b>`")


def test_a_table_shows_its_columns(table):
    assert repr(table) == "Table('main.`<b>`')"
    assert table._repr_html_() == (
        "<table><caption>main.`&lt;b&gt;`</caption><thead><tr><th>id</th><th>column</th>"
        "<th>type</th><th>nullable</th><th>default</th><th>comment</th></tr></thead><tbody>"
        "<tr><td>1</td><td>id</td><td>BIGINT</td><td>no</td><td></td><td></td></tr>"
        "<tr><td>2</td><td>name</td><td>STRING</td><td>yes</td><td>&lt;i&gt;</td>"
        "<td>a &amp; b</td></tr></tbody></table>"
    )


def test_a_lake_shows_where_it_is(lake):
    assert lake._repr_html_() == (
        "<table><thead><tr><th>catalog</th><th>data_path</th></tr></thead><tbody>"
        f"<tr><td>{lake._state.store.where}</td><td>{lake.data_path}</td></tr></tbody></table>"
    )


def test_nothing_that_is_shown_needs_the_catalog(sqlite_url, data_path, tmp_path, spark):
    lake = shelduck.connect(sqlite_url, data_path, spark)
    table = lake.create_table("t", {"a": "string"})
    job = table.alter(change_type("a", "int"))
    history, plan = table.history(), table.plan_alter(add_column("b", "int"))
    lake.close()
    (tmp_path / "catalog.db").unlink()

    assert repr(table) == "Table('main.t')"
    assert table._repr_html_() == "<pre>Table(&#x27;main.t&#x27;)</pre>"
    assert repr(job) == "SchemaChangeJob(1)"
    assert job._repr_html_() == "<pre>SchemaChangeJob(1)</pre>"
    for shown in (lake, history, plan, history[0]):
        assert repr(shown)
        assert shown._repr_html_()


def test_a_job_shows_what_was_seen_last(lake, table):
    submitted = table.alter(change_type("id", "string"))
    assert repr(submitted) == "SchemaChangeJob(1)"
    assert submitted.state.value == "PENDING"
    assert repr(submitted) == "SchemaChangeJob(1, last seen as 'job 1 on main.`<b>`: PENDING')"
    assert repr(lake.jobs()) == "[SchemaChangeJob(1, last seen as 'job 1 on main.`<b>`: PENDING')]"
    assert "main.`&lt;b&gt;`: PENDING" in submitted._repr_html_()


def test_a_plan_shows_its_steps(lake, table):
    plan = table.plan_alter(add_column("n", "int"), change_type("id", "string"))

    assert repr(plan) == str(plan)
    shown = plan._repr_html_()
    assert shown.startswith("<table><caption>ALTER TABLE main.`&lt;b&gt;`</caption>")
    assert "<td>ADD COLUMN n int32</td><td>light</td>" in shown
    assert "<td>heavy</td>" in shown


def test_a_schema_plan_shows_its_statements(lake):
    text = "CREATE TABLE `<b>` (id BIGINT NOT NULL, name STRING DEFAULT '<i>' COMMENT 'a & b')"
    same = lake.plan({"b.sql": text})
    assert repr(same) == "nothing differs"
    assert same._repr_html_() == "<pre>nothing differs</pre>"

    plan = lake.plan({"b.sql": text, "n.sql": "CREATE TABLE n (a INT)"})
    assert repr(plan) == "CREATE TABLE n (a INT)"
    assert (
        "<tr><td>main.n</td><td>create</td><td>light</td><td>CREATE TABLE n (a INT)</td><td></td>"
        "</tr>" in plan._repr_html_()
    )


def test_snapshots_are_a_list_that_shows_a_line_for_each(lake, table):
    table.alter(drop_column("name"))
    history = table.history()

    assert isinstance(history, list)
    assert [s.id for s in history] == [3, 2, 1]
    lines = repr(history).splitlines()
    assert len(lines) == 3
    assert lines[0] == f"3  {history[0].time:%Y-%m-%d %H:%M:%S}+00:00  altered_table:1"
    assert history._repr_html_().startswith(
        "<table><thead><tr><th>snapshot</th><th>time</th><th>changes</th><th>author</th>"
        "<th>message</th></tr></thead><tbody><tr><td>3</td>"
    )
    assert "&lt;b&gt;" in lake.snapshots()._repr_html_()


def test_a_snapshot_shows_what_it_has():
    time = datetime(2026, 1, 2, tzinfo=UTC)
    shown = repr(shelduck.Snapshot(3, time, 2, 5, 7, author="Ada"))

    assert shown == (
        f"Snapshot(id=3, time={time!r}, schema_version=2, next_catalog_id=5, next_file_id=7,"
        " author='Ada')"
    )


def test_results_show_what_is_not_zero():
    done = shelduck.Committed(3, rows=2, inserted=2, note="<i>")

    assert repr(done) == "Committed(snapshot=3, rows=2, inserted=2, note='<i>')"
    assert repr(shelduck.Unchanged(3)) == "Unchanged(snapshot=3)"
    assert repr(shelduck.Staged()) == "Staged()"
    assert done._repr_html_() == (
        "<table><caption>Committed</caption><thead><tr><th>snapshot</th><th>rows</th>"
        "<th>inserted</th><th>note</th></tr></thead><tbody><tr><td>3</td><td>2</td><td>2</td>"
        "<td>&lt;i&gt;</td></tr></tbody></table>"
    )
