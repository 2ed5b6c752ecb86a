"""What the catalog knows of a table, as tables."""

from __future__ import annotations

import pytest

from shelduck import InvalidRequest, NotFound
from tests.support.lakes import newest, rows

STATEMENTS = [
    "CREATE TABLE t (a INT, s STRUCT<x: STRING>)",
    "CREATE SCHEMA o",
    "CREATE TABLE o.p (k INT, v INT)",
]


def write(lake, table, *values):
    """Rows in one file."""
    text = ", ".join(values)
    lake.table(table).append(lake.sql(f"VALUES {text}").coalesce(1), by_position=True)


@pytest.fixture
def filled(lake, spark):
    frame = spark.range(0, 40, 1, 1)
    for low in (0, 20):
        lake.table("t").append(
            frame.where(f"id >= {low} AND id < {low + 20}")
            .selectExpr("CAST(id AS INT) AS a", "named_struct('x', CAST(id AS STRING)) AS s")
            .coalesce(1)
        )
    return lake


def test_files_show_each_data_file_and_what_is_deleted_from_it(filled):
    filled.sql("DELETE FROM t WHERE a < 12")
    found = filled.sql(
        "SELECT record_count, delete_count, row_id_start, begin_snapshot, end_snapshot,"
        " file_format, partition FROM t.files ORDER BY data_file_id"
    )

    assert rows(found) == [(20, 12, 0, 4, None, "parquet", {}), (20, 0, 20, 5, None, "parquet", {})]
    paths = [r.file_path for r in filled.table("t").files().collect()]
    assert len(set(paths)) == 2
    assert all(path.startswith(filled.data_path) for path in paths)


def test_a_metadata_table_is_read_at_a_snapshot(filled):
    assert filled.sql("SELECT * FROM t.files VERSION AS OF 4").count() == 1
    assert filled.sql("SELECT * FROM main.t.files AT (VERSION => 3)").count() == 0
    assert filled.table("t").files(version=4).count() == 1
    assert rows(filled.table("t").column_stats(version=3).select("file_count")) == [(0,), (0,)]
    with pytest.raises(NotFound, match="snapshot 99 does not exist"):
        filled.sql("SELECT * FROM t.files VERSION AS OF 99")


def test_column_stats_show_each_leaf(filled):
    found = filled.sql(
        "SELECT column_name, field_id, data_type, file_count, value_count, null_count,"
        " lower_bound, upper_bound, contains_null FROM t.column_stats"
    )

    assert rows(found) == [
        ("a", 1, "int32", 2, 40, 0, "0", "39", False),
        ("s.x", 3, "varchar", 2, 40, 0, "0", "9", False),
    ]


def test_snapshots_and_history_tell_what_was_done_in_words(filled):
    filled.sql("ALTER TABLE t ADD COLUMN n INT")
    filled.sql("DELETE FROM t WHERE a < 12")
    filled.table("t").rename("u")
    with filled.transaction("two things", "extra") as tx:
        tx.sql("ALTER TABLE u DROP COLUMN n")
        tx.sql("CREATE TABLE other (a INT)")
    found = filled.sql("SELECT snapshot_id, parent_id, operation, message FROM u.snapshots")

    assert rows(found) == [
        (1, None, "CREATE TABLE", None),
        (4, 1, "WRITE", None),
        (5, 4, "WRITE", None),
        (6, 5, "ALTER TABLE", None),
        (7, 6, "DELETE", None),
        (8, 7, "RENAME TABLE", None),
        (9, 8, "ALTER TABLE", "two things"),
    ]
    history = filled.sql("DESCRIBE HISTORY u LIMIT 2")
    assert history.columns == [
        "version",
        "timestamp",
        "userName",
        "operation",
        "operationParameters",
        "operationMetrics",
        "userMetadata",
    ]
    assert rows(history.select("version", "operation", "userMetadata", "operationParameters")) == [
        (
            9,
            "ALTER TABLE",
            "two things",
            {"changes": 'created_table:"main"."other",altered_table:1', "extraInfo": "extra"},
        ),
        (8, "RENAME TABLE", None, {"changes": 'created_table:"main"."u"'}),
    ]
    [(metrics,)] = rows(filled.sql("SELECT operationMetrics FROM u.history WHERE version = 5"))
    assert (metrics["numAddedFiles"], metrics["numOutputRows"]) == ("1", "20")
    assert filled.sql("SELECT * FROM u.history").count() == 7


def test_partitions_show_files_and_rows_of_each(lake, spark):
    lake.sql("ALTER TABLE o.p SET PARTITIONED BY (k, bucket(2, v))")
    frame = spark.range(0, 30, 1, 1).selectExpr("CAST(id % 2 AS INT) AS k", "1 AS v")
    lake.table("o.p").append(frame)
    lake.table("o.p").append(frame.where("k = 0"))
    found = lake.sql(
        "SELECT partition['k'], map_keys(partition), record_count, file_count,"
        " last_updated_snapshot_id FROM o.p.partitions"
    )

    assert rows(found) == [
        ("0", ["k", "bucket(2, v)"], 30, 2, newest(lake)),
        ("1", ["k", "bucket(2, v)"], 15, 1, newest(lake) - 1),
    ]
    shown = rows(lake.sql("SHOW PARTITIONS o.p"))
    assert [text.partition("/")[0] for (text,) in shown] == ["k=0", "k=1"]


def test_partitions_of_a_table_that_has_none_are_refused(lake):
    with pytest.raises(InvalidRequest, match=r"main\.t is not partitioned"):
        lake.sql("SHOW PARTITIONS t")


def test_a_real_table_of_that_name_wins(lake):
    lake.sql("CREATE SCHEMA t")
    lake.sql("CREATE TABLE t.files (mine INT)")

    assert lake.sql("SELECT * FROM t.files").columns == ["mine"]
    assert "file_path" in lake.sql("SELECT * FROM main.t.files").columns


def test_a_metadata_table_of_nothing_is_not_there(lake):
    for name in ("nope.files", "main.nope.files", "t.nope"):
        with pytest.raises(InvalidRequest):
            lake.sql(f"SELECT * FROM {name}")


def test_metadata_tables_join_with_others(filled):
    found = filled.sql(
        "SELECT count(*) FROM t.files f JOIN main.t.snapshots s ON f.begin_snapshot = s.snapshot_id"
    )

    assert rows(found) == [(2,)]
