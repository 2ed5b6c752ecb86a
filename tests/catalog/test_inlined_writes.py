"""Rows and deletes that a commit keeps in the catalog, and what DuckDB makes of them."""

from __future__ import annotations

from itertools import zip_longest

import pytest

from shelduck.catalog.read import read
from shelduck.errors import Conflict
from shelduck.model.changes.change import AppendFiles, DeleteRows, FileDeletes, InlineRows
from shelduck.model.changes.schema_change import RenameColumn
from shelduck.model.files.data_file import DeletesSeen
from shelduck.model.files.fitted import InlinedBatch
from tests.support.files import write_file
from tests.support.lake import altered, created, provisional, statements

pytestmark = pytest.mark.every_database

# One type: values as the catalog gives them, and what DuckDB says of them.
NESTED = (
    "struct<d: date, f: double, b: binary, l: array<int>, s: struct<x: string>,"
    " m: map<string, int>>"
)
VALUES = {
    "boolean": (["true", "false"], ["true", "false"]),
    "tinyint": (["-128"], ["-128"]),
    "smallint": (["-32768"], ["-32768"]),
    "int": (["2147483647"], ["2147483647"]),
    "bigint": (["-9223372036854775808"], ["-9223372036854775808"]),
    "utinyint": (["255"], ["255"]),
    "usmallint": (["65535"], ["65535"]),
    "uinteger": (["4294967295"], ["4294967295"]),
    "ubigint": (["18446744073709551615"], ["18446744073709551615"]),
    "hugeint": ([str(-(2**127))], [str(-(2**127))]),
    "uhugeint": ([str(2**128 - 1)], [str(2**128 - 1)]),
    "float": (["1.1", "nan", "-inf", "-0.0", "1e-07"],) * 2,
    "double": (["0.1", "nan", "inf", "-0.0", "5e-324", "1e+300"],) * 2,
    "decimal(38,10)": (["1.5000000000", "-0.0000000001"],) * 2,
    "decimal(4,1)": (["1.5"],) * 2,
    "date": (["2024-01-02", "0044-03-15 (BC)", "infinity", "12345-01-01"],) * 2,
    "timestamp_ntz": (["2024-01-02 03:04:05.5", "0044-03-15 (BC) 01:00:00", "infinity"],) * 2,
    "timestamp_s": (["2024-01-02 03:04:05"],) * 2,
    "timestamp_ms": (["2024-01-02 03:04:05.123"],) * 2,
    "timestamp_ns": (["2024-01-02 03:04:05.123456789"],) * 2,
    "timestamptz": (["2024-01-02 01:04:05.5+00", "-infinity", "12345-01-01 00:00:00+00"],) * 2,
    "time": (["01:02:03.5", "24:00:00"],) * 2,
    "timetz": (["01:02:03.5+05:30", "23:00:00-08"],) * 2,
    "string": (["it's", "é😀", "", " NULL ", "C:\\x", "'\"%s%%", "a\0b"],) * 2,
    "json": (['{"a": 1}'],) * 2,
    "binary": ([b"\0\xffab'", b""], ["\\x00\\xFFab\\x27", ""]),
    "uuid": (["f79c3e09-677c-4bbd-a479-3f349cb785e7"],) * 2,
    "struct<a: int, b: string>": (
        [{"a": "1", "b": "it's \"q\" \\z, }"}, {"a": None, "b": None}, {"a": "1", "b": "NULL"}],
        [
            "{'a': 1, 'b': 'it\\'s \"q\" \\\\z, }'}",
            "{'a': NULL, 'b': NULL}",
            "{'a': 1, 'b': 'NULL'}",
        ],
    ),
    NESTED: (
        [
            {
                "d": "2024-01-02",
                "f": "nan",
                "b": b"]}\0",
                "l": ["1", None],
                "s": {"x": "y'"},
                "m": [("k ", "1")],
            }
        ],
        [
            (
                "{'d': 2024-01-02, 'f': nan, 'b': ']}\\\\x00', 'l': [1, NULL], 's': {'x': 'y\\''},"
                " 'm': {'k '=1}}"
            )
        ],
    ),
    "array<string>": (
        [["a", "b c", None, "", "it's", "\\", "NULL", " lead", "]}"], []],
        ["[a, b c, NULL, '', 'it\\'s', \\, 'NULL', ' lead', ']}']", "[]"],
    ),
    "array<double>": ([["1.5", "nan", "-0.0"]], ["[1.5, nan, -0.0]"]),
    "map<string, struct<x: date>>": (
        [[("k=", {"x": "2024-01-01"})]],
        ["{'k='={'x': 2024-01-01}}"],
    ),
}  # fmt: skip


def batch(table, *rows, row_ids=()):
    return InlineRows(table.id, InlinedBatch(table.columns, tuple(rows), tuple(row_ids)))


@pytest.mark.versions("1.0")
def test_values_of_every_type_come_back_from_us_and_from_duckdb(lake):
    # One column of each type, and a row for each of their values: where one has fewer, it is NULL.
    names = [f"we'ird \"%s c{n}" for n in range(len(VALUES))]
    lake.create("t", i="int", **dict(zip(names, VALUES, strict=True)))
    columns = [values for values, _ in VALUES.values()]
    values = [*zip_longest(*columns), (None,) * len(columns)]
    rows = [(str(k), *row) for k, row in enumerate(values)]
    change = batch(lake.table("t"), *rows)
    assert change.rows.can_be_kept
    lake.commit(change)
    with lake.store.read() as connection:
        [found] = read.inlined_rows(connection, lake.table("t"))
    for n, kind in enumerate(VALUES, start=1):
        assert (kind, [r[n] for r in found.rows]) == (kind, [r[n] for r in change.rows.rows])
    with lake.duckdb() as oracle:
        for n, (kind, (_, told)) in enumerate(VALUES.items()):
            query = f"""SELECT "we'ird ""%s c{n}"::VARCHAR FROM t ORDER BY i"""
            wanted = [*told, *[None] * (len(rows) - len(told))]
            assert (kind, oracle.sql(query)) == (kind, [(text,) for text in wanted])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        pytest.param("array<array<string>>", [["a]b"]], id="bracket two levels down"),
        pytest.param("struct<m: map<string, int>>", {"m": [("}", "1")]}, id="brace in a key"),
        pytest.param("array<json>", ['{"a": 1}'], id="json in a list"),
        pytest.param("array<string>", ["a\0"], id="NUL"),
    ],
)
def test_a_nested_value_that_duckdb_would_misread_is_not_to_be_kept(sqlite_lake, kind, value):
    sqlite_lake.create("t", a=kind)
    assert not batch(sqlite_lake.table("t"), (value,)).rows.can_be_kept
    assert batch(sqlite_lake.table("t"), (None,)).rows.can_be_kept


@pytest.mark.versions("1.0")
@pytest.mark.slow
def test_inlined_rows_count_and_their_ids_go_on_as_duckdb_lets_them(lake):
    lake.create("t", a="int", b="string")
    table = lake.table("t")
    lake.commit(batch(table, ("1", "x"), (None, "y")))
    lake.tell("INSERT INTO t VALUES (7, NULL)", inline=10)
    lake.commit(batch(lake.table("t"), ("5", "z")))
    lake.append("t", [{"a": 9}], {1: ("9", "9", 0)})

    assert [e["changes_made"] for e in lake.metadata("ducklake_snapshot_changes")][2:] == [
        "inlined_insert:1",
        "inlined_insert:1",
        "inlined_insert:1",
        "inserted_into_table:1",
    ]
    [totals] = lake.metadata("ducklake_table_stats")
    assert (totals["record_count"], totals["next_row_id"]) == (5, 5)
    assert [s["next_file_id"] for s in lake.metadata("ducklake_snapshot")] == [0, 0, 1, 2, 3, 4]
    with lake.duckdb() as oracle:
        assert oracle.rows("t", columns="rowid, a, b") == [
            (0, 1, "x"),
            (1, None, "y"),
            (2, 7, None),
            (3, 5, "z"),
            (4, 9, None),
        ]
        assert oracle.sql("SELECT min(a), max(a), count(*), count(a) FROM t") == [(1, 9, 5, 4)]
        assert oracle.sql("SELECT a FROM t WHERE a > 6 ORDER BY a") == [(7,), (9,)]


@pytest.mark.versions("1.0")
def test_statistics_of_booleans_survive_a_promotion_to_numbers(lake):
    lake.create("t", a="boolean")
    lake.commit(batch(lake.table("t"), ("true",), ("false",)))
    lake.tell("ALTER TABLE t ALTER a TYPE INTEGER", "INSERT INTO t VALUES (7)")
    assert lake.ask("SELECT max(a), count(*) FROM t WHERE a > 0") == [(7, 2)]


@pytest.mark.slow
def test_a_new_table_may_hold_its_first_rows_in_the_same_commit(lake):
    create = created(lake.schema(), a="int")
    lake.commit(create, batch(provisional(create, lake), ("1",)))
    assert lake.ask("SELECT rowid, a FROM t") == [(0, 1)]
    lake.tell("INSERT INTO t VALUES (2)", inline=10)
    assert lake.ask("SELECT rowid, a FROM t ORDER BY a") == [(0, 1), (1, 2)]


@pytest.mark.versions("1.0")
@pytest.mark.slow
def test_an_updated_row_keeps_its_id(lake):
    lake.create("t", a="int")
    lake.commit(batch(lake.table("t"), ("1",), ("2",)))
    table = lake.table("t")
    lake.commit(DeleteRows(table, inlined=(1,)), batch(table, ("20",), ("3",), row_ids=(1, None)))

    assert lake.ask("SELECT rowid, a FROM t ORDER BY a") == [(0, 1), (2, 3), (1, 20)]
    assert lake.ask("SELECT rowid, a FROM t AT (VERSION => 2) ORDER BY a") == [(0, 1), (1, 2)]
    with lake.duckdb() as oracle:
        feed = oracle.sql(
            "SELECT change_type, rowid, a FROM lake.table_changes('t', 3, 3) ORDER BY ALL"
        )
    assert feed == [("insert", 2, 3), ("update_postimage", 1, 20), ("update_preimage", 1, 2)]


@pytest.mark.slow
def test_a_row_that_is_gone_is_a_conflict_and_nothing_is_written(lake):
    lake.create("t", a="int")
    lake.commit(batch(lake.table("t"), ("1",), ("2",)))
    table = lake.table("t")
    lake.commit(DeleteRows(table, inlined=(0,)))
    with pytest.raises(Conflict, match="are still there"):
        lake.commit(DeleteRows(lake.table("t"), inlined=(0, 1)))
    assert lake.ask("SELECT a FROM t") == [(2,)]


@pytest.mark.slow
def test_deleted_positions_stay_in_the_catalog_beside_those_of_duckdb(lake):
    lake.create("t", a="int")
    table = lake.table("t")
    lake.commit(AppendFiles(table.id, (write_file(table, [{"a": n} for n in range(10)]),)))
    [file] = lake.files("t")
    lake.commit(
        DeleteRows(lake.table("t"), (FileDeletes(file.id, DeletesSeen(), positions=(3, 1)),))
    )
    lake.tell("DELETE FROM t WHERE a = 5", inline=10)
    seen = DeletesSeen(None, 3)
    lake.commit(DeleteRows(lake.table("t"), (FileDeletes(file.id, seen, positions=(0,)),)))

    assert lake.ask("SELECT a FROM t ORDER BY a") == [(2,), (4,), (6,), (7,), (8,), (9,)]
    assert lake.ask("SELECT count(*) FROM t") == [(6,)]
    assert lake.ask("SELECT count(*) FROM t AT (VERSION => 3)") == [(8,)]
    changes = [r["changes_made"] for r in lake.metadata("ducklake_snapshot_changes")]
    ours = "deleted_from_table:1,inlined_delete:1"
    assert changes[3:] == [ours, "inlined_delete:1", ours]


@pytest.mark.versions("1.0")
@pytest.mark.sampled(1)
def test_a_table_that_can_have_no_inlined_rows_is_one_without_inlining_for_duckdb(lake):
    lake.create("t", row_id="int")
    assert lake.metadata("ducklake_inlined_data_tables") == []
    lake.tell("INSERT INTO t VALUES (1)", inline=10)
    assert len(lake.files("t")) == 1


def test_a_table_without_a_place_for_inlined_rows_gets_one_when_it_needs_it(lake):
    lake.create("t", a="int")
    with lake.store.write() as connection:
        connection.exec_driver_sql("DELETE FROM ducklake_inlined_data_tables")
        connection.exec_driver_sql("DROP TABLE ducklake_inlined_data_1_1")
    lake.commit(batch(lake.table("t"), ("1",)))
    lake.alter("t", RenameColumn(("a",), "b"))
    lake.tell("INSERT INTO t VALUES (2)", "ALTER TABLE t ADD COLUMN c INTEGER", inline=10)
    assert lake.ask("SELECT b, c FROM t ORDER BY b") == [(1, None), (2, None)]


def test_an_inlined_insert_takes_few_statements_however_large_the_table_is(sqlite_lake):
    lake = sqlite_lake
    lake.create("small", a="int")
    lake.create("large", **dict.fromkeys((f"c{n}" for n in range(50)), "int"))
    for n in range(5):
        lake.commit(altered(lake.table("large"), RenameColumn((f"c{10 + n}",), f"r{n}")))
    counts = []
    for name in ("small", "large"):
        table = lake.table(name)
        row = ("1",) * len(table.columns.names)
        lake.commit(batch(table, row))
        counts.append(statements(lake, batch(lake.table(name), row)))
    assert counts == [5, 5]
