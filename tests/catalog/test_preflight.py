"""What the catalog proves before a job begins: no file is read, and what must fail is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

import shelduck
from shelduck import InvalidRequest, change_type
from shelduck.catalog.read.files.outside import files_unproven
from shelduck.catalog.running.job_rows import jobs
from shelduck.model.changes.change import AppendFiles
from tests.support.files import write_file
from tests.support.lake import Lake

TO_INT = change_type("v", "decimal(10,0)")
TWICE = (
    "INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id, value_count,"
    " null_count) SELECT data_file_id, table_id, column_id, 1, 1 FROM ducklake_file_column_stats"
)
DELETED = (
    "CREATE TABLE ducklake_inlined_delete_1"
    " (file_id BIGINT NOT NULL, row_id BIGINT NOT NULL, begin_snapshot BIGINT NOT NULL);"
    " INSERT INTO ducklake_inlined_delete_1 VALUES (0, 0, 2)"
)
BIG, SMALL = ("1", "30000000000", 0), ("1", "5", 0)


@pytest.fixture
def made(lake_url, data_path):
    found = Lake(lake_url, data_path)
    found.create(v="bigint", d="decimal(18,4)")
    yield found
    found.store.close()


@pytest.fixture
def alter(made):
    """Opens the lake's table t as users do; its files are gone."""

    def open_table():
        made.store.close()
        for file in Path(made.info.data_path).rglob("*.parquet"):
            file.unlink()
        return lake.table("t")

    with shelduck.connect(made.url, made.info.data_path) as lake:
        yield open_table


def add(made, *bounds, rows=2):
    """Add files with the bounds of v, which their rows need not have."""
    table, empty = made.table("t"), [{"v": None, "d": None}] * rows
    files = [write_file(table, empty, {1: one, 2: (None, None, rows)}) for one in bounds]
    made.commit(AppendFiles(table.id, tuple(files)))


def step(table, change):
    [found] = table.plan_alter(change).steps
    return found


@pytest.mark.databases("sqlite")
def test_a_value_that_fails_is_named_before_a_job_begins(made, alter):
    add(made, SMALL, BIG, BIG, BIG, BIG, ("-5", "7", 1))
    table, seen = alter(), made.head().id
    with pytest.raises(InvalidRequest) as refused:
        table.alter(TO_INT)

    names = [file.path for file in made.files("t")][1:4]
    assert str(refused.value) == (
        "values of column 'v' of main.t cannot be converted to decimal(10,0), such as"
        f" '30000000000', in {', '.join(names)} and 1 more file(s); correct them, give a conversion"
        " with USING, or allow NULL with ON ERROR NULL"
    )
    assert made.head().id == seen
    assert table._state.store.statements < 20
    with made.store.read() as connection:
        assert jobs(connection) == []


@pytest.mark.databases("sqlite")
def test_a_plan_says_what_is_proven(made, alter):
    # The second one counts a NULL and no value, and the third says nothing.
    add(made, SMALL, (None, None, 2), (None, None, 0), BIG)
    made.append("t", [{"v": 1, "d": 1}], {1: SMALL, 2: ("-99.9900", "100.0000", 0)})
    table = alter()
    path = made.files("t")[3].path

    assert step(table, TO_INT).proof == (
        "proven for 3 of 5 file(s); 1 file(s) must be read; these values would fail:"
        f" '30000000000' in {path}"
    )
    assert "     values: proven for 3 of 5 file(s); 1 file(s) must be read; " in str(
        table.plan_alter(TO_INT)
    )
    assert "proven for 3 of 5 file(s)" in table.plan_alter(TO_INT)._repr_html_()
    to_null = change_type("v", "decimal(10,0)", on_error="null")
    assert "these values would become NULL: '30000000000' in " in step(table, to_null).proof
    assert step(table, change_type("d", "decimal(9,2)")).proof == (
        "proven for 4 of 5 file(s); 1 file(s) must be read"
    )
    assert step(table, change_type("d", "decimal(6,5)")).proof == (
        "proven for 4 of 5 file(s); these values would fail: '-99.9900' in"
        f" {made.files('t')[4].path}"
    )
    # Bounds say nothing about these.
    assert step(table, change_type("v", "string")).proof == ""
    assert step(table, change_type("v", "decimal(10,0)", using="v / 7")).proof == ""


@pytest.mark.parametrize(
    "doubt",
    [
        "UPDATE ducklake_data_file SET mapping_id = 1",
        "UPDATE ducklake_data_file SET partial_max = 5",
        "UPDATE ducklake_file_column_stats SET min_value = '30000000001'",
        "UPDATE ducklake_file_column_stats SET max_value = '3e10'",
        "UPDATE ducklake_file_column_stats SET value_count = 0",
        "DELETE FROM ducklake_file_column_stats",
        TWICE,
        DELETED,
    ],
)
@pytest.mark.databases("sqlite")
def test_what_is_in_doubt_is_read_by_the_job(made, alter, doubt):
    add(made, BIG)
    with made.store.write() as connection:
        for one in doubt.split(";"):
            connection.execute(text(one))
    table = alter()

    assert step(table, TO_INT).proof == "proven for 0 of 1 file(s); 1 file(s) must be read"


# Bounds, digits after the point, and whether SQL sees that they are within -99 and 99.
WITHIN = [
    ("-99", "99", 0, True),
    ("-100", "99", 0, False),
    ("-99", "100", 0, False),
    ("-99.99", "99.99", 2, True),
    ("1.00", "100.00", 2, False),
    # Texts of another form are left to whoever reads them exactly.
    ("1", "2", 2, False),
    ("1.5", "2.5", 2, False),
    ("1.5", "2.5", 0, False),
    (".50", "2.50", 2, False),
    ("1.0x", "2.00", 2, False),
    ("1.00", "1e.50", 2, False),
    ("", "", 2, False),
    ("5", "1", 0, False),
    (None, None, 0, False),
]


@pytest.mark.every_database
def test_sql_leaves_out_only_files_whose_bounds_are_within(made):
    add(made, *((low, high, 0) for low, high, _, _ in WITHIN))
    numbers = [file.id for file in made.files("t")]
    with made.store.read() as connection:
        found = {
            scale: files_unproven(connection, made.table("t"), 1, (-99, 99), scale)
            for scale in (0, 2)
        }

    assert [count for count, _ in found.values()] == [len(WITHIN)] * 2
    left = {scale: {file.id for file in files} for scale, (_, files) in found.items()}
    expected = [is_within for *_, is_within in WITHIN]
    told = [n not in left[scale] for n, (*_, scale, _) in zip(numbers, WITHIN, strict=True)]
    assert told == expected


@pytest.mark.databases("sqlite")
def test_rows_of_the_catalog_are_judged_too(made, alter):
    made.tell(
        "INSERT INTO lake.t VALUES (30000000000, 1), (7, 2)",
        "DELETE FROM lake.t WHERE v = 7",
        inline=10,
    )
    table = alter()

    assert step(table, TO_INT).proof == (
        "proven for 1 of 2 row(s) in the catalog; these values would fail: '30000000000' in the"
        " catalog"
    )
    with pytest.raises(InvalidRequest, match=r"'30000000000', in 1 row\(s\) in the catalog; corr"):
        table.alter(TO_INT)
