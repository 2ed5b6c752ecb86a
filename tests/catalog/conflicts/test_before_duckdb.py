"""DuckDB begins, we commit, DuckDB commits: by its own rules, and the lake is never broken.

On PostgreSQL: on SQLite an open transaction of DuckDB's keeps everybody else from committing.
"""

from __future__ import annotations

from contextlib import closing

import duckdb
import pytest

from shelduck.catalog.read import read
from shelduck.errors import NotFound
from tests.support.contenders import OURS, THEIRS
from tests.support.contested import left_by, make_contested, seen_by, t_after
from tests.support.copies import postgres_copies
from tests.support.lake import Lake
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.slow

_OURS = (
    "append",
    "inline",
    "delete from A",
    "delete position of A",
    "delete from B",
    "delete inlined",
    "end A",
    "update",
    "add column",
    "partition",
    "rename table",
    "drop table",
    "merge files",
    "rewrite C",
    "flush",
    "create table",
    "create view",
    "replace view",
    "drop schema",
)
_ALL_OF_T = "add column|partition|drop table"
_DELETES = "delete from A|delete position of A|delete from B|delete inlined|end A|update|flush"
# By file; not positions in the catalog: both deletes hold then.
_OF_A = "delete from A|end A|update"
# Not single rows that the catalog keeps: they are in no file.
_OF_FILES = "delete from A|delete position of A|delete from B|end A|update|flush"
# What takes rows or positions that the catalog keeps, or says so that DuckDB gives way to it.
_OF_CATALOG = "delete position of A|delete inlined|flush|merge files|rewrite C"
_ADDS = "append|inline|update"
_NAMES = "rename table|create table|create view"

# What DuckDB does, and which of ours it gives way to.
GIVES_WAY = {
    "insert": f"{_ALL_OF_T}|{_DELETES}",
    "insert inlined": f"{_ALL_OF_T}|{_DELETES}",
    "delete more from A": f"{_ALL_OF_T}|{_ADDS}|{_OF_A}|merge files|rewrite C",
    "delete position of A": f"{_ALL_OF_T}|{_ADDS}|{_OF_CATALOG}",
    "delete position of B": f"{_ALL_OF_T}|{_ADDS}|{_OF_CATALOG}",
    "delete inlined": f"{_ALL_OF_T}|{_ADDS}|{_OF_CATALOG}",
    "update in B": f"{_ALL_OF_T}|{_ADDS}|{_DELETES}|merge files|rewrite C",
    "add column": _ALL_OF_T,
    "rename table": _NAMES,
    "drop table": "drop table",
    "merge files": f"drop table|{_OF_FILES}|merge files|rewrite C",
    # Dead positions of D become a delete file, so it is a delete.
    "flush": f"{_ALL_OF_T}|{_ADDS}|delete position of A|merge files|rewrite C",
    "create table": _NAMES,
    "create table in empty": "drop schema",
    "replace view": "replace view",
}


@pytest.fixture(scope="module")
def copies(postgres_server):
    with postgres_copies(postgres_server) as made:
        yield made


@pytest.fixture(scope="module")
def begun(copies, tmp_path_factory):
    url = copies.fresh()
    lake = make_contested(url, f"{tmp_path_factory.mktemp('data')}/")
    with closing(lake.store):
        return url, lake.head().id


# Its flush locks the rows that it takes, and would wait for us who wait for it.
CASES = [
    (theirs, ours)
    for theirs in GIVES_WAY
    for ours in _OURS
    if (theirs, ours) not in {("flush", "delete inlined"), ("flush", "flush")}
]


@pytest.mark.parametrize(("theirs", "ours"), CASES)
def test_duckdb_lands_or_gives_way(theirs, ours, begun, copies):
    url, base = begun
    lake = Lake(copies.copy(url), None)
    statement, inline, effect = THEIRS[theirs]
    with (
        closing(lake.store),
        DuckDBOracle(lake.url, None, {"DATA_INLINING_ROW_LIMIT": inline}) as oracle,
    ):
        oracle.execute("BEGIN")
        oracle.execute(statement)
        lake.commit(*OURS[ours].make(lake))
        gave_way = gives_way(oracle)
        left = [OURS[ours].effect] if gave_way else [OURS[ours].effect, effect]

        assert seen_by(oracle, t_after(*left)) == left_by(*left)
        assert oracle.rows("main.t", version=base, columns="id") == left_by()[2]
        assert_we_read(lake, left)
    assert gave_way == (ours in GIVES_WAY[theirs].split("|"))
    copies.remove(lake.url)


def gives_way(oracle):
    try:
        oracle.execute("COMMIT")
    except duckdb.Error as error:
        if "conflict" in str(error).lower():
            return True
        raise
    return False


def assert_we_read(lake, effects):
    names, columns, _ = left_by(*effects)
    with lake.store.read() as connection:
        at = read.snapshot(connection)
        tables = {
            f"{schema.name}.{name}".lower()
            for schema in read.schemas(connection, at, lake.info)
            for name in read.table_names(connection, at, schema)
        }
    views = {"main.w", "main.fresh", "empty.fresh", "main.else"}
    assert tables - views == {n for n in names if "." in n and "(" not in n} - views
    t = t_after(*effects)
    if t:
        assert set(lake.table(t.split(".")[1]).columns.names) == columns
    else:
        with pytest.raises(NotFound):
            lake.table("t")
