"""``check`` with rows: every value is read and compared with the catalog."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import shelduck
from shelduck.jobs import lots

STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id BIGINT NOT NULL, v STRING, m MAP<STRING, INT>)",
    "INSERT INTO t SELECT id, 'v', map('a', 1) FROM range(0, 20, 1, 1)",
    "DELETE FROM t WHERE id IN (3, 4)",
    "CREATE TABLE k (id BIGINT, v STRING) UNIQUE KEY (id)",
    "INSERT INTO k SELECT id, 'k' FROM range(5)",
]


def found(lake):
    return [(p.table, p.wrong) for p in lake.check(rows=True).problems if p.kind == "rows"]


def change(catalog, *statements):
    with closing(sqlite3.connect(catalog)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_a_sound_lake_has_no_problem_in_its_rows(lake):
    assert lake.check(rows=True).is_sound


def test_nulls_and_row_ids_are_looked_at(spark, copied):
    catalog, lake = copied
    lake.sql("INSERT INTO t SELECT 100, NULL, NULL")
    change(
        catalog,
        "UPDATE ducklake_column SET nulls_allowed = 0 WHERE column_name = 'v'",
        "UPDATE ducklake_data_file SET row_id_start = 7 WHERE record_count = 1",
    )

    with shelduck.connect(f"sqlite:///{catalog}", spark=spark) as fresh:
        problems = found(fresh)

    assert problems == [
        ("main.t", "v is NOT NULL, and NULL in 1 rows"),
        ("main.t", "1 rows have the row id of another row"),
    ]


def test_a_page_that_is_broken_is_found_by_call_check(copied):
    _, lake = copied
    [row] = lake.table("t").files().collect()
    path = Path(row.file_path)
    content = path.read_bytes()
    try:
        path.write_bytes(content[:60] + bytes(40) + content[100:])
        without = lake.execute("CALL check('t')").rows
        rows = lake.execute("CALL check('t', rows => true)").rows
    finally:
        path.write_bytes(content)

    assert without == []
    assert [(row[0], row[1]) for row in rows] == [("main.t", "rows")]


def test_published_jobs_are_compared_with_what_they_began_with(spark, copied, monkeypatch):
    # Each file of a job is a copy of its own, with the row ids of the older one.
    monkeypatch.setattr(lots, "SMALL", 0)
    catalog, lake = copied
    lake.sql("CREATE TABLE j (id BIGINT, v STRING, w STRING, s STRUCT<a STRING>)")
    for n in (0, 30):
        text = "CAST(id AS STRING)"
        made = f"SELECT id, {text}, IF(id % 2 = 0, 'x', {text}), named_struct('a', {text})"
        lake.sql(f"INSERT INTO j {made} FROM range({n}, {n + 10}, 1, 1)")
    lake.sql("ALTER TABLE j ALTER COLUMN v TYPE INT, ALTER COLUMN w TYPE INT ON ERROR NULL")
    lake.sql("ALTER TABLE j ALTER COLUMN s.a TYPE INT")
    lake.sql("ALTER TABLE j ALTER COLUMN w TYPE DOUBLE USING w + rand()")
    lake.sql("UPDATE j SET v = 7 WHERE id = 3")
    _, second, first = (job.look().published for job in lake.jobs())
    assert lake.check(rows=True).is_sound

    # Another writer puts values of other rows below the ids of those that the first job made.
    change(
        catalog,
        "UPDATE ducklake_data_file SET row_id_start = 10 - row_id_start"
        " WHERE table_id = (SELECT max(table_id) FROM ducklake_table)"
        f" AND begin_snapshot <= {first} AND end_snapshot > {first}",
    )

    with shelduck.connect(f"sqlite:///{catalog}", spark=spark) as fresh:
        found = {p.object: p.wrong for p in fresh.check("j", rows=True).problems}
        told = "20 row(s) do not have the values into which it converts"
        # What the second job began with are the rows that the first one made.
        assert found == {
            f"job 2, snapshot {second}": f"{told} 's'",
            f"job 1, snapshot {first}": f"{told} 'v', 'w'",
        }
        fresh.expire_snapshots(versions=[first - 1])
        [problem] = fresh.check("j", rows=True).problems
        assert problem.object == f"job 2, snapshot {second}"


def test_an_undo_after_an_expiry_is_no_problem(copied):
    _, lake = copied
    lake.sql("CREATE TABLE u (v STRING)")
    lake.sql("INSERT INTO u VALUES ('007'), ('8')")
    lake.sql("ALTER TABLE u ALTER COLUMN v TYPE INT")
    lake.expire_snapshots(retain_last=1)
    lake.sql("ALTER TABLE u UNDO JOB 1")

    assert sorted(lake.sql("SELECT v FROM u").collect()) == [("007",), ("8",)]
    assert found(lake) == []
