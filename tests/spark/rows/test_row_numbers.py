"""A law: every number of rows counts those in files and those that the catalog keeps."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.lakes import newest, rows

pytestmark = pytest.mark.guard

FEW = [
    "INSERT INTO t VALUES (1, 1, TIMESTAMP'2024-02-29 23:30:00'), (2, NULL, NULL), (3, 2, NULL)",
    "UPDATE t SET id = id + 0 WHERE id < 3",
    "DELETE FROM t WHERE id = 3",
]
MANY = (
    "INSERT INTO t SELECT CAST(10 + id AS INT), CAST(id % 2 AS INT),"
    " TIMESTAMP'2024-03-01 00:00:00' FROM range(60)"
)
MERGE = (
    "MERGE INTO t USING (SELECT 1 AS id, 9 AS p UNION ALL SELECT 1000, 9) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT (id, p) VALUES (id, p)"
)
MORE = [
    *FEW,
    MANY,
    "DELETE FROM t WHERE id = 11",
    "DELETE FROM t WHERE id IN (12, 13)",
    "DELETE FROM t WHERE id BETWEEN 14 AND 40",
    "UPDATE t SET p = 7 WHERE id IN (50, 51)",
    "UPDATE t SET p = 8 WHERE id > 40",
    MERGE,
    "DELETE FROM t WHERE id = 60",
    "INSERT INTO t REPLACE WHERE p = 8 SELECT 5, 8, NULL",
    "DELETE FROM t WHERE p IS NULL",
    "INSERT OVERWRITE t SELECT 4, 4, TIMESTAMP'1969-12-31 00:00:00'",
    "TRUNCATE TABLE t",
]
KEYS = {
    "p": "p",
    "year(at)": "year(at)",
    "month(at)": "month(at)",
    "day(at)": "day(at)",
    "hour(at)": "hour(at)",
}


def made(spark, folder, key=None):
    lake = shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark)
    by = "" if key is None else f" PARTITIONED BY ({key})"
    lake.sql(f"CREATE TABLE t (id INT, p INT, at TIMESTAMP){by}")
    return lake


def feed(lake):
    """The rows that came and that went in the newest snapshot, by the change feed."""
    table, at = lake.table("t"), newest(lake)
    kinds = dict(rows(table.changes(at, at).groupBy("_change_type").count()))
    went = kinds.get("delete", 0) + kinds.get("update_preimage", 0)
    return kinds.get("insert", 0) + kinds.get("update_postimage", 0), went


def history(lake):
    [(metrics,)] = rows(lake.sql("DESCRIBE HISTORY t LIMIT 1").select("operationMetrics"))
    return int(metrics["numOutputRows"]), int(metrics["numDeletedRows"])


def by_partition(lake):
    """The rows of each partition, by its first key; those without rows are left out."""
    found = lake.table("t").partitions().collect()
    left = [
        (next(iter(p.partition.values()), None), p.record_count - p.position_delete_record_count)
        for p in found
    ]
    return sorted((pair for pair in left if pair[1]), key=str)


def groups(lake, expression):
    query = f"SELECT CAST({expression} AS STRING), count(*) FROM t GROUP BY ALL"
    return sorted(rows(lake.sql(query)), key=str)


def test_partitions_and_history_count_rows_in_the_catalog(spark, tmp_path):
    with made(spark, tmp_path, "p") as lake:
        lake.sql(FEW[0])

        shown = rows(lake.sql("SHOW PARTITIONS t"))
        assert shown == [("p=1",), ("p=2",), ("p=__HIVE_DEFAULT_PARTITION__",)]
        assert by_partition(lake) == [("1", 1), ("2", 1), (None, 1)]
        lake.sql(FEW[1])
        assert history(lake) == (2, 2)
        stats = lake.sql("SELECT column_name, value_count, null_count FROM t.column_stats")
        assert rows(stats) == [("id", 3, 0), ("p", 2, 1), ("at", 1, 2)]
        assert lake.table("t").files().count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, *KEYS])
def test_every_number_of_rows_is_that_of_the_rows(key, spark, tmp_path):
    with made(spark, tmp_path, key) as lake:
        if key == "p":
            lake.sql("ALTER TABLE t ADD COLUMN more INT DEFAULT 3")
            lake.sql("ALTER TABLE t DROP COLUMN more")
        for act in MORE:
            lake.sql(act)
            assert history(lake) == feed(lake), act
            assert by_partition(lake) == groups(lake, KEYS.get(key, "NULL")), act
            if key is not None:
                places = {text.partition("=")[2] for (text,) in rows(lake.sql("SHOW PARTITIONS t"))}
                wanted = {value or "__HIVE_DEFAULT_PARTITION__" for value, _ in by_partition(lake)}
                assert places == wanted, act


@pytest.mark.slow
def test_numbers_that_nobody_knows_any_more_are_left_out(spark, tmp_path):
    with made(spark, tmp_path) as lake:
        for act in MORE[:5]:
            lake.sql(act)
        lake.sql("CALL flush_inlined_data('t')")

        found = rows(lake.sql("SELECT version, operationMetrics['numOutputRows'] FROM t.history"))
        assert dict(found)[5] == "60"
        assert {number: text for number, text in found if text is None} == {2: None, 3: None}
