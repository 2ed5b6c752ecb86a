"""Appended files, their statistics and layouts, in each kind of catalog."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from shelduck.errors import CorruptLake
from shelduck.model.changes.change import AppendFiles
from shelduck.model.changes.schema_change import AddColumn, SetComment
from shelduck.model.files.data_file import Layout, PhysicalField
from shelduck.model.types.data_types import Primitive, parse_type
from tests.support.files import write_file
from tests.support.lake import NESTED, altered, statements


@pytest.mark.versions("1.0")
def test_appended_files_are_read_by_duckdb_which_goes_on_writing(lake):
    lake.create("t", **NESTED)
    row = {"id": 1, "tags": ["a", None], "s": {"x": 3, "y": {"z": 0.5}}, "m": [("k", 2)]}
    lake.append("t", [row, {"id": 2}], {1: ("1", "2", 0)})
    lake.tell("INSERT INTO t (id) VALUES (3)", "UPDATE t SET id = 20 WHERE id = 2")
    lake.append("t", [{"id": 4}])

    with lake.duckdb() as oracle:
        assert oracle.rows("t", columns="rowid, id, tags, s, m") == [
            (0, 1, ["a", None], {"x": 3, "y": {"z": 0.5}}, {"k": 2}),
            (1, 20, None, None, None),
            (2, 3, None, None, None),
            (4, 4, None, None, None),
        ]
        assert oracle.sql("SELECT count(*), max(id) FROM t") == [(4, 20)]
        assert oracle.sql("SELECT id FROM t WHERE id > 3 ORDER BY id") == [(4,), (20,)]
        assert oracle.rows("t", version=2, columns="id") == [(1,), (2,)]


def test_table_statistics_are_written_at_the_first_insert_and_widened_later(lake):
    lake.create("t", a="int", b="string", c="double")
    lake.append("t", [{"a": 5}, {"a": 9}], {1: ("5", "9", 0), 2: (None, None, 2)})
    lake.append("t", [{"a": 1}, {"a": None}], {1: ("1", "1", 1), 2: (None, None, 2)})
    lake.append("t", [{"a": 10}], {1: ("10", "10", 0), 2: (None, None, 1)})

    rows = lake.metadata("ducklake_table_column_stats")
    assert [
        (r["column_id"], bool(r["contains_null"]), r["min_value"], r["max_value"]) for r in rows
    ] == [(1, True, "1", "10"), (2, True, None, None)]
    [totals] = lake.metadata("ducklake_table_stats")
    sizes = [f.file_size_bytes for f in lake.files("t")]
    assert (totals["record_count"], totals["next_row_id"]) == (5, 5)
    assert totals["file_size_bytes"] == sum(sizes)
    assert lake.ask("SELECT min(a), max(a), count(*) FROM t") == [(1, 10, 5)]


def test_an_encrypted_lake_takes_no_file_without_a_key(sqlite_lake):
    sqlite_lake.create("t", a="int")
    sqlite_lake.info = replace(sqlite_lake.info, encrypted=True)
    with pytest.raises(CorruptLake, match="has no key; nothing is committed"):
        sqlite_lake.append("t", [{"a": 5}])
    assert not sqlite_lake.files("t")


UNKNOWN = {1: (None, None, 0)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(None, None, id="no statistics"),
        pytest.param(UNKNOWN, UNKNOWN, id="no bounds"),
        pytest.param({1: ("5", "5", 0)}, None, id="lost later"),
        pytest.param(None, {1: ("900", "900", 0)}, id="known too late"),
        pytest.param({1: (None, None, 1)}, {1: ("900", "900", 0)}, id="no values at first"),
    ],
)
def test_duckdb_never_takes_bounds_for_certain_that_are_not(lake, first, second):
    lake.create("t", a="int")
    lake.append("t", [{"a": None if first == {1: (None, None, 1)} else 5}], first)
    lake.append("t", [{"a": 900}], second)
    before = lake.ask("SELECT min(a), max(a) FROM t WHERE a <> 5")
    lake.tell("INSERT INTO t VALUES (7)")

    assert before == [(900, 900)]
    assert lake.ask("SELECT min(a), max(a) FROM t WHERE a <> 5") == [(7, 900)]
    assert lake.ask("SELECT max(a) FROM t") == [(900,)]
    assert lake.ask("SELECT a FROM t WHERE a > 100") == [(900,)]


def test_a_nan_that_the_statistics_do_not_tell_is_found_by_duckdb(lake):
    lake.create("t", a="double")
    lake.append("t", [{"a": 1.5}, {"a": math.nan}], {1: ("1.5", "1.5", 0)})

    assert math.isnan(lake.ask("SELECT max(a) FROM t")[0][0])


def test_row_ids_go_on_where_the_statistics_of_a_table_are_missing(sqlite_lake):
    sqlite_lake.create("t", a="int")
    sqlite_lake.append("t", [{"a": 5}, {"a": 6}])
    with sqlite_lake.store.write() as connection:
        connection.exec_driver_sql("DELETE FROM ducklake_table_stats")
    sqlite_lake.append("t", [{"a": 7}])

    assert sqlite_lake.ask("SELECT rowid, a FROM t ORDER BY a") == [(0, 5), (1, 6), (2, 7)]


def test_layouts_are_recorded_once_and_come_back_with_the_files(lake):
    lake.create("t", a="int", s="struct<x: int>")
    lake.append("t", [{"a": 1}])
    lake.append("t", [{"a": 2}])
    lake.alter("t", AddColumn(("b",), parse_type("int")))
    lake.append("t", [{"a": 3}])

    first, second, third = [f.layout for f in lake.files("t")]
    assert first == second
    assert [f.name for f in first.fields] == ["a", "s"]
    assert first.fields[1].children[0] == PhysicalField("x", 3, Primitive("int32"))
    assert [f.id for f in third.fields] == [1, 2, 4]


def test_learned_layouts_are_recorded_with_the_next_commit(lake):
    lake.tell("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)")
    files = lake.files("t")
    layout = Layout((PhysicalField("a", 1, Primitive("int32")),))
    learned = {f.id: layout for f in files}
    lake.commit(altered(lake.table("t"), SetComment((), "seen")), learned=learned)
    lake.commit(altered(lake.table("t"), SetComment((), "seen again")), learned=learned)

    assert [f.layout for f in files] == [None, None]
    assert [f.layout for f in lake.files("t")] == [layout, layout]


def test_an_append_takes_as_many_statements_for_many_files_as_for_one(sqlite_lake):
    lake = sqlite_lake
    lake.create("t", **dict.fromkeys((f"c{n}" for n in range(50)), "int"))
    bounds = dict.fromkeys(range(1, 51), ("1", "1", 0))
    table = lake.table("t")
    files = [write_file(table, [dict.fromkeys(table.columns.names, 1)], bounds) for _ in range(12)]
    lake.commit(AppendFiles(table.id, (files[0],)))
    one = statements(lake, AppendFiles(table.id, (files[1],)))
    ten = statements(lake, AppendFiles(table.id, tuple(files[2:])))

    assert one == ten == 7
