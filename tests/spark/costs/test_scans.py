"""A statement of one table does not read what the catalog knows of all others."""

from __future__ import annotations

import pytest

import shelduck
from tests.support.catalog_scans import noted_scans

pytestmark = pytest.mark.guard

LARGE = {
    *("ducklake_data_file", "ducklake_delete_file", "ducklake_file_column_stats"),
    *("ducklake_file_partition_value", "shelduck_file_layout", "ducklake_column"),
    *("ducklake_partition_info", "ducklake_partition_column", "ducklake_tag"),
    *("ducklake_sort_info", "ducklake_sort_expression", "ducklake_column_tag"),
    *("ducklake_inlined_data_tables", "shelduck_layout"),
}


def by_cost(lake):
    setting = "spark.sql.cbo.enabled"
    lake.spark.conf.set(setting, "true")
    try:
        lake.sql("SELECT * FROM t WHERE id = 8").collect()
    finally:
        lake.spark.conf.unset(setting)


VERBS = {
    "append": lambda lake: lake.sql("INSERT INTO t SELECT id, id % 3, 'a' FROM range(100)"),
    "DELETE": lambda lake: lake.sql("DELETE FROM t WHERE id % 10 = 3"),
    "DELETE again": lambda lake: lake.sql("DELETE FROM t WHERE id % 10 = 4"),
    "UPDATE": lambda lake: lake.sql("UPDATE t SET v = 'b' WHERE id % 10 = 5"),
    "MERGE": lambda lake: lake.sql(
        "MERGE INTO t USING (SELECT 7 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'c'"
    ),
    "SELECT": lambda lake: lake.sql("SELECT * FROM t WHERE id = 8").collect(),
    "count": lambda lake: lake.sql("SELECT count(*), min(id) FROM t").collect(),
    "older version": lambda lake: lake.sql("SELECT * FROM t VERSION AS OF 3").collect(),
    "change feed": lambda lake: lake.sql("SELECT * FROM table_changes('t', 2)").collect(),
    "ADD COLUMN": lambda lake: lake.sql("ALTER TABLE t ADD COLUMN w INT DEFAULT 1"),
    "heavy ALTER": lambda lake: lake.sql("ALTER TABLE t ALTER COLUMN w TYPE STRING").collect(),
    "compaction": lambda lake: lake.table("t").compact(),
    "ANALYZE": lambda lake: lake.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS"),
    "planned by cost": by_cost,
    "column_stats": lambda lake: lake.sql("SELECT * FROM t.column_stats").collect(),
    "files": lambda lake: lake.sql("SELECT * FROM t.files").collect(),
    "DESCRIBE": lambda lake: lake.sql("DESCRIBE DETAIL t").collect(),
}


@pytest.fixture(scope="module")
def scans(spark, tmp_path_factory):
    """The scans of each verb; the verbs run one after another."""
    folder = tmp_path_factory.mktemp("scans")
    found = {}
    with shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark) as lake:
        lake.set_option("data_inlining_row_limit", "0")
        lake.sql("CREATE TABLE t (id BIGINT, p INT, v STRING) PARTITIONED BY (p)")
        lake.sql("INSERT INTO t SELECT id, id % 3, 'a' FROM range(100)")
        for verb, run in VERBS.items():
            with noted_scans(LARGE) as found[verb]:
                run(lake)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_reads_the_rows_of_other_tables(scans, verb):
    assert scans[verb] == []
