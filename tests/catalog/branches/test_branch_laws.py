"""Laws of branches: drawn stories, beside a plain model of what they leave.

A merge that follows a merge, and that of an untouched branch, change nothing. Rows and columns are
as after a plain three-way merge, and no id is given twice. Snapshots of all sides read as before.
Whoever expires, compacts and cleans up, in any order: no file goes that somebody can read, and
nothing is left in the end.
"""

from __future__ import annotations

import random

import pytest

import shelduck
from tests.support.branch_program import COLUMNS, FILES, NAMES, ROWS, TABLES, VIEWS, tell
from tests.support.copies import SQLiteCopies, postgres_copies
from tests.support.lengths import one_by_one, with_slow
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.databases("sqlite", "postgres")
PROGRAMS, FAST = range(2_000), range(8)
OF_TABLES, FAST_OF_TABLES = range(1_000), range(3)
OF_NAMES = range(500)
OF_VIEWS, FAST_OF_VIEWS = range(500), range(2)
ORDERS, FAST_ORDERS = range(200), range(1)
# Stories in which tables come and go.
WITH_TABLES = ROWS + 2 * FILES + TABLES


@pytest.fixture
def without_rows(monkeypatch):
    """Nobody compares rows, as Spark does: see tests/spark/branches."""
    monkeypatch.setattr("shelduck.branches.changed_rows.RowMerge.is_known", False)


@pytest.fixture
def lake(without_rows, lake):
    return lake


@pytest.mark.guard
@pytest.mark.parametrize("seed", FAST)
def test_a_program_of_branches_is_as_its_model(lake, duck, seed):
    tell(lake, duck, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_by_one(PROGRAMS, 30))
def test_many_programs_of_branches_are_as_their_models(lake, duck, seed):
    tell(lake, duck, seed)


@pytest.mark.guard
@pytest.mark.parametrize("seed", FAST_OF_TABLES)
def test_no_file_goes_that_a_side_can_read_while_tables_come_and_go(lake, duck, seed):
    tell(lake, duck, seed, acts=WITH_TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_by_one(OF_TABLES, 15))
def test_no_file_goes_in_many_programs_of_tables(lake, duck, seed):
    tell(lake, duck, seed, acts=WITH_TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", one_by_one(OF_NAMES, 15))
def test_tables_that_go_and_come_back_stay_those_of_their_branches(lake, duck, seed):
    tell(lake, duck, seed, acts=NAMES, steps=18)


@pytest.mark.parametrize("seed", with_slow(FAST_OF_VIEWS, one_by_one(OF_VIEWS, 10)))
def test_views_of_branches_show_the_rows_of_their_side(lake, duck, seed):
    tell(lake, duck, seed, acts=ROWS + COLUMNS + VIEWS)


@pytest.fixture
def copies(request, lake_url, tmp_path):
    if lake_url.startswith("sqlite"):
        yield SQLiteCopies(tmp_path)
        return
    with postgres_copies(request.getfixturevalue("postgres_server")) as made:
        yield made


def changes(draw, schema, part):
    """What a side does to rows, which are in a file of their own, and columns that are its part."""
    keys = range(10 * part, 10 * part + 10)
    some = ", ".join(map(str, draw.sample(keys, draw.randrange(1, 10))))
    known = [
        f"ALTER TABLE {schema}.t ADD COLUMN new_{schema} BIGINT",
        f"ALTER TABLE {schema}.t RENAME COLUMN v{part} TO renamed_{schema}",
        f"INSERT INTO {schema}.t (id) VALUES ({100 + part}), ({200 + part})",
        f"DELETE FROM {schema}.t WHERE id IN ({some})",
        f"UPDATE {schema}.t SET w = {part} WHERE id BETWEEN {keys[0]} AND {keys[5]}",
        f"COMMENT ON COLUMN {schema}.t.w{part} IS 'of {schema}'",
    ]
    return draw.sample(known, draw.randrange(1, len(known) + 1))


def rows_by_name(duck):
    """Rows of main.t by the names of its columns: orders of merges give other orders of columns."""
    names = sorted(name for name, _ in duck.columns("t"))
    return names, sorted(duck.sql(f"SELECT rowid, {', '.join(names)} FROM t"), key=str)


@pytest.mark.parametrize("seed", with_slow(FAST_ORDERS, one_by_one(ORDERS, 20)))
def test_branches_that_touch_other_rows_and_columns_merge_in_any_order(
    copies, data_path, seed, without_rows
):
    draw, url = random.Random(seed), copies.fresh()
    names = ["a", "b", "c"]
    with shelduck.connect(url, data_path) as lake:
        lake.set_option("data_inlining_row_limit", 0)
    with shelduck.connect(url) as lake, DuckDBOracle(url) as duck:
        duck.execute("CREATE TABLE t (id BIGINT, w BIGINT, v0 INT, w0 INT, v1 INT, w1 INT)")
        duck.execute("ALTER TABLE t ADD COLUMN v2 INT; ALTER TABLE t ADD COLUMN w2 INT")
        duck.execute("ALTER TABLE t ADD COLUMN v3 INT; ALTER TABLE t ADD COLUMN w3 INT")
        for part in range(4):
            duck.execute(f"INSERT INTO t (id) SELECT * FROM range({10 * part}, {10 * part + 10})")
        for name in names:
            lake.create_branch(name)
        for part, schema in enumerate(["main", *names]):
            for statement in changes(draw, schema, part):
                duck.execute(statement)
    found = []
    for _ in range(2):
        draw.shuffle(names)
        copy = copies.copy(url)
        with shelduck.connect(copy) as lake, DuckDBOracle(copy) as duck:
            for name in names:
                lake.merge_branch(name)
            found.append(rows_by_name(duck))
            assert not lake.check().problems
    assert found[0] == found[1]
