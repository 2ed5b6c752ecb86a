"""The same light statements by Shelduck and by ducklakepy leave the same rows in the catalog."""

from __future__ import annotations

from typing import Any

import pytest

import shelduck
from tests.support.ducklakepy_oracle import DuckLakePyOracle

# Statements for Shelduck, and those for ducklakepy where it uses other words.
PROGRAM: tuple[tuple[str, ...], ...] = (
    ("CREATE SCHEMA s",),
    (
        (
            "CREATE TABLE t (id BIGINT NOT NULL, n INT, st STRUCT<a: INT, b: STRING>, l ARRAY<INT>,"
            " m MAP<STRING, STRUCT<k: INT>>)"
        ),
        (
            "CREATE TABLE t (id BIGINT NOT NULL, n INTEGER, st STRUCT(a INTEGER, b VARCHAR),"
            " l INTEGER[], m MAP(VARCHAR, STRUCT(k INTEGER)))"
        ),
    ),
    (
        "CREATE TABLE s.p (id INT, d DATE, x STRING, ts TIMESTAMP_NTZ, b BOOLEAN)",
        "CREATE TABLE s.p (id INTEGER, d DATE, x VARCHAR, ts TIMESTAMP, b BOOLEAN)",
    ),
    (
        (
            "INSERT INTO s.p VALUES (1, DATE '2024-01-02', 'x',"
            " TIMESTAMP_NTZ '2024-01-02 03:04:05', true), (2, NULL, NULL, NULL, NULL)"
        ),
        (
            "INSERT INTO s.p VALUES (1, DATE '2024-01-02', 'x',"
            " TIMESTAMP '2024-01-02 03:04:05', true), (2, NULL, NULL, NULL, NULL)"
        ),
    ),
    ("INSERT INTO s.p VALUES (3, DATE '2023-01-02', 'it''s', NULL, false)",),
    ("ALTER TABLE t ADD COLUMN c INT DEFAULT 5",),
    ("ALTER TABLE t ADD COLUMN st.z BIGINT",),
    ("ALTER TABLE t RENAME COLUMN n TO nn",),
    ("ALTER TABLE t RENAME COLUMN st.b TO bb",),
    ("ALTER TABLE t ALTER COLUMN nn TYPE BIGINT",),
    ("ALTER TABLE t ALTER COLUMN nn SET DEFAULT 7",),
    ("ALTER TABLE t ALTER COLUMN nn DROP DEFAULT",),
    ("ALTER TABLE t DROP COLUMN st.z",),
    ("ALTER TABLE t DROP COLUMN c",),
    ("COMMENT ON TABLE t IS 'things'",),
    ("COMMENT ON COLUMN t.nn IS 'number'",),
    ("COMMENT ON TABLE t IS NULL",),
    ("ALTER TABLE t SET PARTITIONED BY (nn)",),
    ("ALTER TABLE t RESET PARTITIONED BY",),
    ("ALTER TABLE t SET SORTED BY (id)",),
    ("ALTER TABLE t RESET SORTED BY",),
    ("ALTER TABLE t ALTER COLUMN id DROP NOT NULL",),
    ("ALTER TABLE t RENAME TO u",),
    ("CREATE VIEW v AS SELECT id FROM main.u",),
    ("DROP VIEW v",),
    ("INSERT INTO s.p (id, x) VALUES (4, 'l')",),
    ("ALTER TABLE s.p RENAME COLUMN x TO y",),
    ("INSERT INTO s.p (id, y) VALUES (5, 'm')",),
    ("CREATE TABLE main.w (a INT)",),
    ("DROP TABLE u",),
    ("DROP TABLE s.p",),
    ("DROP SCHEMA s",),
)

# Columns in which the two may differ, by table, and why.
DIFFERENT: dict[str, dict[str, str]] = {
    "ducklake_metadata": {"value": "who made the lake, and where its files are"},
    "ducklake_snapshot": {
        "snapshot_time": "a time",
        "next_file_id": "rows in the catalog raise it in DuckDB and for us, not in ducklakepy",
    },
    "ducklake_snapshot_changes": {"commit_extra_info": "ducklakepy notes its own transaction"},
    "ducklake_schema": {"schema_uuid": "a uuid"},
    "ducklake_table": {"table_uuid": "a uuid"},
    "ducklake_view": {"view_uuid": "a uuid", "sql": "the text is that of who made the view"},
    "ducklake_column": {
        "default_value": "without a default, DuckDB and we store the text NULL, ducklakepy NULL",
        "default_value_type": "DuckDB and we say 'literal', or '' for nested columns",
        "default_value_dialect": "DuckDB and we say 'duckdb'",
        "nulls_allowed": "means nothing for fields, where ducklakepy stores false after an ALTER",
    },
    "ducklake_sort_expression": {"expression": "DuckDB and we quote only names that need it"},
}
# Rows that one of them has alone, by what identifies them, and why.
ALONE = {
    # As DuckDB 2.0, ducklakepy makes a place for inlined rows when DROP NOT NULL and RENAME TO
    # are said; we make one when rows need it.
    ("ducklake_inlined_data_tables", "ducklake_inlined_data_2_20"),
    ("ducklake_inlined_data_tables", "ducklake_inlined_data_2_21"),
    # Empty, and replaced by later ones: our ALTER takes them off the list.
    *(
        ("ducklake_inlined_data_tables", f"ducklake_inlined_data_2_{number}")
        for number in (2, 4, 5, 6, 7, 8, 11, 12)
    ),
    # The text of a view in Spark's words.
    ("ducklake_tag", "shelduck.spark_sql"),
}


@pytest.fixture
def dumps(tmp_path, spark) -> tuple[Any, Any]:
    """What the two catalogs hold after the program."""
    ours_url, theirs_url = (f"sqlite:///{tmp_path}/{who}.db" for who in ("ours", "theirs"))
    with (
        shelduck.connect(ours_url, f"{tmp_path}/ours/", spark, ducklake_version="1.1") as lake,
        DuckLakePyOracle(theirs_url, f"{tmp_path}/theirs/") as theirs,
        DuckLakePyOracle(ours_url) as ours,
    ):
        for said in PROGRAM:
            lake.execute(said[0])
            theirs.execute(said[-1])
            assert ours.snapshot() == theirs.snapshot(), said
        return ours.dump_metadata(), theirs.dump_metadata()


def test_the_catalog_rows_of_light_statements_are_those_of_ducklakepy(dumps):
    ours, theirs = map(compared, dumps)
    assert ours == theirs


def compared(dump: dict[str, list[dict[str, Any]]]) -> dict[str, list[list[tuple[str, Any]]]]:
    """What must be equal: rows in the order of their text, without what may differ."""
    found = {}
    for table, rows in dump.items():
        left_out = DIFFERENT.get(table, {})
        kept = [
            [(n, v) for n, v in row.items() if n not in left_out]
            for row in rows
            if not any((table, value) in ALONE for value in row.values())
        ]
        if ("ducklake_inlined_data_tables", table) not in ALONE:
            found[table] = sorted(kept, key=repr)
    return found
