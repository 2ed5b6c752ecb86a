"""Rows on the page: only when they were asked for, as DuckDB reads them, escaped and cut."""

from __future__ import annotations

import importlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from shelduck.web.pages import table_pages
from tests.support.html import of_class, rows, words
from tests.web.conftest import Page, served


@pytest.fixture
def look(lake):
    with served(lake, rows=True) as client:
        yield Page(lake, client)


def test_a_server_shows_no_rows_unless_it_was_started_for_that(lake, page, look):
    lake.create("t", id="bigint")
    path = f"/tables/{page.id_of('t')}"
    refused = words(page.tree(f"{path}/rows", 404))
    assert "this server shows no rows; start it with shelduck ui --rows" in refused
    assert f"{path}/rows" not in page.text(path)
    assert f"{path}/rows" in look.text(path)
    assert "The table has no rows." in look.text(f"{path}/rows")
    assert "table 99 does not exist" in look.text("/tables/99/rows", 404)


@pytest.mark.every_database
def test_rows_of_files_and_of_the_catalog_are_shown(lake, look):
    lake.create("t", id="bigint", at="timestamptz", s="struct<x: int, y: struct<z: double>>")
    lake.tell(
        "INSERT INTO t VALUES (1, '2026-03-01 10:00:00+02', {'x': 1, 'y': NULL}), (2, NULL, NULL)"
    )
    lake.tell("DELETE FROM t WHERE id = 2", "INSERT INTO t (id) VALUES (3)", inline=10)
    found = look.tree(f"/tables/{look.id_of('t')}/rows")
    assert rows(found, "Rows of main.t") == [
        ["1", "2026-03-01 08:00:00+00", "{'x': 1, 'y': NULL}"],
        ["3", "NULL", "NULL"],
    ]
    assert [words(null) for null in of_class(found, "null")] == ["NULL"] * 2
    assert "All 2 rows of snapshot 4, in no order" in words(found)
    # The catalog is still there for others, and for the page.
    assert lake.ask("SELECT count(*) FROM t") == [(2,)]
    assert rows(look.tree("/"), "Tables")[0][1] == "2"


def test_values_are_escaped_and_cut_and_null_is_no_text(lake, look):
    name = '<i>"q"'
    lake.tell(
        'CREATE TABLE t ("<i>""q""" VARCHAR)',
        "INSERT INTO t VALUES ('<b>&'), ('NULL'), (''), (NULL), (repeat('<', 300))",
    )
    path = f"/tables/{look.id_of('t')}/rows"
    found = look.tree(path)
    assert [words(th) for th in found.iter("th")] == [name]
    assert sorted(cell for [cell] in rows(found, "Rows")) == [
        *("", "<" * 200 + "…", "<b>&", "NULL", "NULL")
    ]
    assert len(of_class(found, "null")) == 1
    assert "<b>" not in look.text(path)


def test_a_table_with_more_rows_shows_fifty(lake, look):
    lake.tell("CREATE TABLE t AS SELECT range AS id FROM range(51)")
    found = look.tree(f"/tables/{look.id_of('t')}/rows")
    assert len(rows(found, "Rows")) == 50
    assert "Some 50 rows of snapshot 1" in words(found)


def test_a_page_without_duckdb_says_what_to_install(lake, look, monkeypatch):
    lake.create("t", id="bigint")
    real = importlib.import_module

    def missing(name, *rest):
        if name == "duckdb":
            raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    told = words(look.tree(f"/tables/{look.id_of('t')}/rows", 422))
    assert "is not installed; run pip install duckdb duckdb-extension-ducklake" in told


def test_a_file_that_duckdb_cannot_read_is_named(lake, look):
    lake.create("t", id="bigint")
    lake.append("t", [{"id": 1}])
    [file] = lake.files("t")
    Path(file.path).unlink()
    told = words(look.tree(f"/tables/{look.id_of('t')}/rows", 422))
    assert f"DuckDB does not read lake {lake.store.where}: " in told
    assert Path(file.path).name in told


@pytest.mark.databases("postgres", "duckdb")
def test_pages_and_rows_are_asked_for_at_once(lake, look):
    lake.create("t", id="bigint")
    lake.append("t", [{"id": 1}])
    path = f"/tables/{look.id_of('t')}"
    with ThreadPoolExecutor(4) as pool:
        asked = [f"{path}/rows", path, "/", f"{path}/files"] * 2
        assert list(pool.map(lambda one: look.client.get(one).status_code, asked)) == [200] * 8


def test_rows_in_an_object_store_are_not_read(lake, look, monkeypatch):
    lake.create("t", id="bigint")
    real = table_pages.Site.table

    def far(*arguments):
        return replace(real(*arguments), path="s3://bucket/t/")

    monkeypatch.setattr(table_pages.Site, "table", far)
    told = words(look.tree(f"/tables/{look.id_of('t')}/rows", 422))
    assert "rows of main.t, whose files are in an object store; read the table with Spark" in told
