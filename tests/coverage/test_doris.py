"""Apache Doris' page on schema evolution, claim by claim."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from shelduck import AlreadyExists, InvalidRequest, NotFound, Unsupported, change_type
from shelduck.doors.sql.parse import parse
from tests.coverage.pages import Page
from tests.support.lakes import rows

PAGE = Page("doris", "Apache Doris: schema evolution")
TERMS, ADD, SEVERAL = "Terms and kinds of change", "Adding a column", "Adding several columns"
CONFIG = "Configurations"
DROP, MODIFY, ORDER = "Dropping a column", "Modifying a column", "Ordering columns"
AT_ONCE, JOBS, NOTES, FAQ = "Several changes at once", "Jobs", "Notes", "Questions and settings"

DUPLICATE = """CREATE TABLE IF NOT EXISTS example_db.my_table(
col1 int,
col2 int,
col3 int,
col4 int,
col5 int
) DUPLICATE KEY(col1, col2, col3)
DISTRIBUTED BY RANDOM BUCKETS 1
ROLLUP (
example_rollup_index (col1, col3, col4, col5)
)
PROPERTIES (
"replication_num" = "1"
)"""
AGGREGATE = """CREATE TABLE IF NOT EXISTS example_db.my_table(
col1 int,
col2 int,
col3 int,
col4 int SUM,
col5 varchar(32) REPLACE DEFAULT "abc"
) AGGREGATE KEY(col1, col2, col3)
DISTRIBUTED BY HASH(col1) BUCKETS 1
ROLLUP (
example_rollup_index (col1, col3, col4, col5)
)
PROPERTIES (
"replication_num" = "1"
)"""
# As the document has it, but for the REPLACE column, which a rollup without col2 cannot hold.
SUMS = AGGREGATE.replace("(col1, col3, col4, col5)", "(col1, col3, col4)")
MODIFIED = """CREATE TABLE IF NOT EXISTS example_db.my_table(
col0 int,
col1 int DEFAULT "1",
col2 int,
col3 varchar(32),
col4 int SUM,
col5 varchar(32) REPLACE DEFAULT "abc"
) AGGREGATE KEY(col0, col1, col2, col3)
DISTRIBUTED BY HASH(col0) BUCKETS 1
PROPERTIES (
"replication_num" = "1"
)"""
ORDERED = """CREATE TABLE IF NOT EXISTS example_db.my_table(
k1 int DEFAULT "1",
k2 int,
k3 varchar(32),
k4 date,
v1 int SUM,
v2 int MAX,
) AGGREGATE KEY(k1, k2, k3, k4)
DISTRIBUTED BY HASH(k1) BUCKETS 1
ROLLUP (
example_rollup_index(k1, k2, k3, v1, v2)
)
PROPERTIES (
"replication_num" = "1"
)"""
KEYS_ONLY = """CREATE TABLE IF NOT EXISTS example_db.tbl1(
k1 int,
k2 int,
k3 int
) AGGREGATE KEY(k1, k2, k3)
DISTRIBUTED BY HASH(k1) BUCKETS 1
ROLLUP (
rollup1 (k1, k2),
rollup2 (k2)
)
PROPERTIES (
"replication_num" = "1"
)"""
ONE_VALUE = """CREATE TABLE IF NOT EXISTS example_db.my_table(
k1 int DEFAULT "1",
k2 int,
k3 varchar(32),
k4 date,
v1 int SUM,
) AGGREGATE KEY(k1, k2, k3, k4)
DISTRIBUTED BY HASH(k1) BUCKETS 1
ROLLUP (
example_rollup_index(k1, k3, k2, v1)
)
PROPERTIES (
"replication_num" = "1"
)"""
TABLE, ROLLUP = "example_db.my_table", "example_db.`my_table$example_rollup_index`"


@pytest.fixture
def lake(case):
    case.lake.sql("CREATE SCHEMA example_db")
    return case.lake


def names(lake, table=TABLE):
    return lake.table(table).columns.names


def wide(lake):
    """A table without keys, with a row in a file."""
    lake.sql("CREATE TABLE t (k INT, v INT)")
    lake.sql("INSERT INTO t VALUES (1, 7)")


@PAGE.row(
    *("D1", TERMS, "Base tables and rollups are both materialized indexes"),
    statement="DESC tbl1 ALL",
)
def test_d1_a_table_and_its_rollups_are_indexes(lake):
    lake.sql(KEYS_ONLY)
    found = rows(lake.sql("DESC example_db.tbl1 ALL"))
    assert [row[0] for row in found if row[0]] == ["tbl1", "rollup1", "rollup2"]


@PAGE.row(
    *("D2", TERMS, "Each load is a transaction with an increasing id"),
    does="the id is that of the snapshot",
)
def test_d2_loads_have_increasing_ids(case):
    wide(case.lake)
    before = case.lake.snapshots()[-1].id
    case.lake.sql("INSERT INTO t VALUES (2, 8)")
    assert case.lake.snapshots()[-1].id == before + 1


@pytest.mark.parametrize(
    "change",
    [
        "ADD COLUMN n INT",
        "DROP COLUMN v",
        "RENAME COLUMN v TO w",
        "ADD COLUMN s VARCHAR(10), MODIFY COLUMN s VARCHAR(20)",
    ],
)
@PAGE.row(
    *("D3", TERMS, "Light: add or drop values, rename, longer VARCHAR"),
    beyond="key columns of DUPLICATE tables, orders and lossless types are light as well",
)
def test_d3_light_changes_write_no_file(case, change):
    wide(case.lake)
    case.light(f"ALTER TABLE t {change}")


@PAGE.row(
    *("D4", TERMS, "Heavy: a background job converts the data; the command returns at once"),
    does="with `PROPERTIES ('wait' = 'false')`; without it the statement does the job",
)
def test_d4_a_heavy_change_is_a_job(case):
    wide(case.lake)
    case.lake.sql("ALTER TABLE t MODIFY COLUMN v STRING PROPERTIES ('wait' = 'false')")
    assert case.told()[0][:2] == (1, "PENDING")
    assert rows(case.lake.sql("SELECT v FROM t")) == [(7,)]
    case.lake.run_jobs()
    assert case.told()[0][:2] == (1, "FINISHED")
    assert case.both("SELECT v FROM t") == [("7",)]


@PAGE.row(
    *("D5", TERMS, "Loads during a job write both the old and the new form"),
    does="data that fits only one of them is refused, and names the value",
)
def test_d5_loads_beside_a_job_land_in_both_forms(case):
    case.lake.sql("CREATE TABLE t (k INT, v STRING)")
    case.lake.sql("INSERT INTO t VALUES (1, '7')")
    job = case.lake.table("t").alter(*parse("ALTER TABLE t ALTER v TYPE INT")[0].changes)
    case.lake.sql("INSERT INTO t VALUES (2, '8')")
    assert rows(case.lake.sql("SELECT v FROM t ORDER BY k")) == [("7",), ("8",)]
    job.wait()
    assert case.both("SELECT v FROM t ORDER BY k") == [(7,), (8,)]


@pytest.mark.parametrize(
    ("key", "how", "expected"),
    [
        ("DUPLICATE KEY (k)", "", [(1, 7), (2, 5), (2, 6), (10, 8)]),
        ("UNIQUE KEY (k)", " ON DUPLICATE KEYS KEEP NEWEST", [(1, 7), (2, 6), (10, 8)]),
        ("AGGREGATE KEY (k)", "", [(1, 7), (2, 11), (10, 8)]),
    ],
    ids=["duplicate", "unique", "aggregate"],
)
@PAGE.row(
    *("D58", TERMS, "Sort: the data type of key columns rewrites and reorders the files"),
    beyond="keys that become equal are named before, and refused or folded",
)
def test_d58_keys_get_another_type_and_order(case, key, how, expected):
    value = "BIGINT SUM" if key.startswith("AGG") else "BIGINT"
    case.lake.sql(f"CREATE TABLE t (k VARCHAR, v {value}) {key}")
    case.lake.sql("INSERT INTO t VALUES ('2', 5), ('10', 8), ('1', 7)")
    case.lake.sql("INSERT INTO t VALUES ('02', 6)")
    change = "ALTER TABLE t ALTER COLUMN k TYPE INT"
    if "UNIQUE" in key:
        assert "('02') and ('2') become (2)" in case.refused(InvalidRequest, change)
    case.lake.sql(change + how)
    assert case.both("SELECT k, v FROM t ORDER BY k, v") == expected
    for file in case.lake.table("t").files().collect():
        if file.end_snapshot is None:
            held = f"read_parquet('{file.file_path}')"
            told = duckdb.sql(f"DESCRIBE SELECT * FROM {held}").fetchall()
            [new] = [name for name, kind, *_ in told if kind == "INTEGER"]
            found = duckdb.sql(f'SELECT "{new}" FROM {held}').fetchall()
            assert found == sorted(found)


@PAGE.row(*("D6", ADD, "The table of the examples without aggregation"), statement=DUPLICATE)
def test_d6_the_duplicate_table_is_made(lake):
    lake.sql(DUPLICATE)
    assert names(lake) == ["col1", "col2", "col3", "col4", "col5"]
    assert names(lake, ROLLUP) == ["col1", "col3", "col4", "col5"]


@PAGE.row(
    *("D7", ADD, "A key column in a rollup"),
    statement='ALTER TABLE example_db.my_table ADD COLUMN new_col INT KEY DEFAULT "0" AFTER col1'
    " TO example_rollup_index;",
    does="it becomes the last key of the base table",
)
def test_d7_a_key_in_a_rollup(lake):
    lake.sql(DUPLICATE)
    lake.sql(PAGE.statement("D7"))
    assert names(lake) == ["col1", "col2", "col3", "new_col", "col4", "col5"]
    assert names(lake, ROLLUP) == ["col1", "new_col", "col3", "col4", "col5"]


@PAGE.row(
    *("D8", ADD, "A value column in a rollup, after a key"),
    statement='ALTER TABLE example_db.my_table ADD COLUMN new_col INT DEFAULT "0" AFTER col1'
    " TO example_rollup_index;",
    differs="it comes after the last key of the rollup, because values come after keys (Doris"
    " refuses the statement)",
)
def test_d8_a_value_after_a_key(lake):
    lake.sql(DUPLICATE)
    statement = PAGE.statement("D8")
    plan = lake.table(TABLE).plan_alter(*parse(statement)[0].changes)
    assert plan.note.endswith("is placed AFTER col4, not AFTER col1: values come after the keys")
    lake.sql(statement)
    assert names(lake, ROLLUP) == ["col1", "col3", "col4", "new_col", "col5"]
    assert names(lake)[-1] == "new_col"


@PAGE.row(
    *("D9", ADD, "The table of the examples with aggregation"),
    statement=AGGREGATE,
    differs="a REPLACE column needs a rollup with all keys, because the order of rows of other keys"
    " is unknown; Doris refuses it with the same reason. Without col5 in the rollup it is made",
)
def test_d9_the_aggregate_table(lake):
    told = "should contain all keys if there is a REPLACE value, as col5 is"
    with pytest.raises(InvalidRequest, match=told):
        lake.sql(AGGREGATE)
    lake.sql(SUMS)
    assert names(lake, ROLLUP) == ["col1", "col3", "col4"]


@PAGE.row(
    *("D10", ADD, "A key column in a rollup of an AGGREGATE table"),
    statement='ALTER TABLE example_db.my_table ADD COLUMN new_col INT DEFAULT "0" AFTER col1'
    " TO example_rollup_index;",
)
def test_d10_a_key_in_an_aggregate_rollup(lake):
    lake.sql(SUMS)
    lake.sql(PAGE.statement("D10"))
    assert names(lake) == ["col1", "col2", "col3", "new_col", "col4", "col5"]
    assert names(lake, ROLLUP) == ["col1", "new_col", "col3", "col4"]


@PAGE.row(
    *("D11", ADD, "A value column with SUM in a rollup, after a key"),
    statement='ALTER TABLE example_db.my_table ADD COLUMN new_col INT SUM DEFAULT "0" AFTER col1'
    " TO example_rollup_index;",
    differs="it comes after the last key of the rollup, because values come after keys (Doris"
    " refuses the statement)",
)
def test_d11_a_sum_after_a_key(lake):
    lake.sql(SUMS)
    lake.sql(PAGE.statement("D11"))
    assert names(lake, ROLLUP) == ["col1", "col3", "new_col", "col4"]


@PAGE.row(
    *("D12", ADD, "A column that the base table has cannot be added to a rollup"),
    statement="ALTER TABLE my_table ADD COLUMN col2 INT TO example_rollup_index",
)
def test_d12_a_column_of_the_base_is_not_added_to_a_rollup(lake):
    lake.sql(DUPLICATE)
    with pytest.raises(AlreadyExists, match=r"base table example_db\.my_table already has it"):
        lake.sql(f"ALTER TABLE {TABLE} ADD COLUMN col2 INT TO example_rollup_index")


@PAGE.row(
    *("D13", SEVERAL, "Columns in brackets, of a rollup"),
    statement='ALTER TABLE example_db.my_table ADD COLUMN (c1 INT DEFAULT "1", c2 FLOAT SUM'
    ' DEFAULT "0") TO example_rollup_index;',
)
def test_d13_columns_in_brackets(lake):
    lake.sql(SUMS)
    lake.sql(PAGE.statement("D13"))
    assert names(lake, ROLLUP) == ["col1", "col3", "c1", "col4", "c2"]


@PAGE.row(
    *("D14", DROP, "A column of a rollup"),
    statement="ALTER TABLE example_db.my_table DROP COLUMN col3 FROM example_rollup_index;",
)
def test_d14_a_column_of_a_rollup_is_dropped(lake):
    lake.sql(DUPLICATE)
    lake.sql(PAGE.statement("D14"))
    assert names(lake, ROLLUP) == ["col1", "col4", "col5"]
    assert names(lake) == ["col1", "col2", "col3", "col4", "col5"]


@PAGE.row(*("D15", DROP, "A column that is dropped from the base leaves its rollups too"))
def test_d15_a_drop_reaches_rollups(lake):
    lake.sql(DUPLICATE)
    lake.sql(f"ALTER TABLE {TABLE} DROP COLUMN col4")
    assert names(lake, ROLLUP) == ["col1", "col3", "col5"]


@PAGE.row(*("D16", DROP, "Partition columns cannot be dropped"))
def test_d16_partition_columns_stay(lake):
    lake.sql("CREATE TABLE p (k INT, d DATE) PARTITIONED BY (d)")
    with pytest.raises(Unsupported, match="partition"):
        lake.sql("ALTER TABLE p DROP COLUMN d")


@PAGE.row(
    *("D17", MODIFY, "The type and the place of a key"),
    statement='ALTER TABLE example_db.my_table MODIFY COLUMN col1 BIGINT KEY DEFAULT "1" AFTER'
    " col2;",
)
def test_d17_a_key_gets_wider_and_moves(lake):
    lake.sql(MODIFIED)
    lake.sql(PAGE.statement("D17"))
    assert names(lake)[:3] == ["col0", "col2", "col1"]
    assert str(lake.table(TABLE).columns.find(("col1",)).type) == "int64"


@PAGE.row(
    *("D52", MODIFY, "The place of a column in a rollup"),
    statement="ALTER TABLE t MODIFY COLUMN w BIGINT SUM AFTER k FROM r",
    differs="a column has one type in a table and its rollups, so FROM moves it; another type is"
    " refused there and follows the base table",
)
def test_d52_from_moves_a_column_in_a_rollup(case):
    case.lake.sql(
        "CREATE TABLE t (k INT, l INT, v BIGINT SUM, w BIGINT SUM) AGGREGATE KEY (k, l)"
        " ROLLUP (r (k, v, w))"
    )
    case.lake.sql("INSERT INTO t VALUES (1, 1, 1, 1), (1, 2, 1, 2)")
    case.lake.sql(PAGE.statement("D52"))
    assert names(case.lake, "t$r") == ["k", "w", "v"]
    with pytest.raises(InvalidRequest, match="FROM r is only for moving a column"):
        case.lake.sql("ALTER TABLE t MODIFY COLUMN w DOUBLE SUM FROM r")
    with case.duckdb() as duckdb:
        assert duckdb.rows("t$r") == [(1, 3, 2)]


@PAGE.row(
    *("D18", MODIFY, "The length of a value"),
    statement="ALTER TABLE example_db.my_table MODIFY COLUMN col5 VARCHAR(64) REPLACE"
    ' DEFAULT "abc";',
)
def test_d18_the_length_of_a_value(lake):
    lake.sql(MODIFIED)
    lake.sql(PAGE.statement("D18"))
    assert "col5 VARCHAR(64) REPLACE" in lake.sql(f"SHOW CREATE TABLE {TABLE}").first()[0]
    with pytest.raises(InvalidRequest, match=r"is VARCHAR\(64\), got a text of 65 characters"):
        lake.sql(f"INSERT INTO {TABLE} (col1, col5) VALUES (1, '{'x' * 65}')")
    with pytest.raises(InvalidRequest, match=r"have up to 64 characters, and VARCHAR\(32\)"):
        lake.sql(f'ALTER TABLE {TABLE} MODIFY COLUMN col5 VARCHAR(32) REPLACE DEFAULT "abc"')


@PAGE.row(
    *("D19", MODIFY, "The length of a key"),
    statement="ALTER TABLE example_db.my_table MODIFY COLUMN col3 varchar(50) KEY NULL comment"
    " 'to 50'",
)
def test_d19_the_length_of_a_key(lake):
    lake.sql(MODIFIED)
    lake.sql(PAGE.statement("D19"))
    shown = {row[0]: row[1:] for row in rows(lake.sql(f"DESCRIBE {TABLE}"))}
    assert shown["col3"] == ("varchar(50)", "to 50")


@PAGE.row(*("D20", MODIFY, "Key columns that are modified need the word KEY"))
def test_d20_a_key_needs_the_word(lake):
    lake.sql(DUPLICATE)
    with pytest.raises(InvalidRequest, match="must stay one: repeat KEY"):
        lake.sql(f"ALTER TABLE {TABLE} MODIFY COLUMN col1 BIGINT")


@PAGE.row(*("D21", MODIFY, "Aggregations cannot be changed, and have to be repeated"))
def test_d21_aggregations_are_repeated(lake):
    lake.sql(MODIFIED)
    with pytest.raises(InvalidRequest, match="it is SUM; repeat that"):
        lake.sql(f"ALTER TABLE {TABLE} MODIFY COLUMN col4 BIGINT")


@PAGE.row(*("D22", MODIFY, "Partition and bucket columns cannot be modified"))
def test_d22_bucket_columns_stay(lake):
    lake.sql(MODIFIED)
    with pytest.raises(InvalidRequest, match="cannot modify partition or distribution column col0"):
        lake.sql(f"ALTER TABLE {TABLE} MODIFY COLUMN col0 BIGINT")


TYPES = [
    ("INT", "7", "BIGINT", 7),
    ("INT", "7", "DOUBLE", 7.0),
    ("FLOAT", "0.5", "DOUBLE", 0.5),
    ("BIGINT", "7", "VARCHAR(10)", "7"),
    ("LARGEINT", "7", "STRING", "7"),
    ("INT", "7", "LARGEINT", 7),
    ("DECIMAL(5,2)", "1.5", "STRING", "1.50"),
    ("VARCHAR(10)", "'7'", "INT", 7),
    ("CHAR(10)", "'7.5'", "DOUBLE", 7.5),
    ("DATETIME", "TIMESTAMP_NTZ'2019-12-09 00:00:00'", "DATE", "2019-12-09"),
    ("DATE", "DATE'2019-12-09'", "DATETIME", "2019-12-09 00:00:00"),
    ("INT", "20191209", "DATE", "2019-12-09"),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("old", "value", "new", "made"), TYPES)
@PAGE.row(
    *("D23", MODIFY, "Conversions between numbers, texts, dates and times"),
    beyond="DECIMAL, BOOLEAN, UUID, JSON, BINARY and texts in STRING are converted too",
)
def test_d23_types_are_converted(case, old, value, new, made):
    case.lake.sql(f"CREATE TABLE t (k INT, v {old})")
    in_spark = {"LARGEINT": "DECIMAL(38,0)", "DATETIME": "TIMESTAMP_NTZ"}.get(old, old)
    case.lake.sql(f"INSERT INTO t SELECT 1, CAST({value} AS {in_spark})")
    case.lake.sql(f"ALTER TABLE t MODIFY COLUMN v {new}")
    [(found,)] = case.both("SELECT v FROM t")
    assert str(found) == str(made)


@PAGE.row(
    *("D51", MODIFY, "Texts to DATE in six formats"),
    does="two digits mean 1970 to 2069, as in MySQL",
)
def test_d51_six_formats_are_dates(case):
    wanted = {f"{y}{s}{m}{s}{d}" for s in ("-", "/", "") for y, m, d in [("2024", "02", "29")]}
    wanted |= {text[2:] for text in wanted}
    case.lake.sql("CREATE TABLE t (k VARCHAR(10), v VARCHAR(10))")
    years = {"691231": "2069-12-31", "70-01-01": "1970-01-01", "99/12/31": "1999-12-31"}
    texts = dict.fromkeys(wanted, "2024-02-29") | years
    case.lake.sql("INSERT INTO t VALUES " + ", ".join(f"('{t}', '{t}')" for t in texts))
    case.lake.sql("ALTER TABLE t MODIFY COLUMN v DATE")
    assert {k: str(v) for k, v in case.both("SELECT k, v FROM t")} == texts


@PAGE.row(*("D24", MODIFY, "DATETIME to DATE keeps year, month and day"))
def test_d24_the_day_of_a_time_is_kept(case):
    case.lake.sql("CREATE TABLE t (k INT, v DATETIME)")
    case.lake.sql("INSERT INTO t SELECT 1, TIMESTAMP_NTZ'2019-12-09 21:47:05'")
    case.lake.sql("ALTER TABLE t MODIFY COLUMN v DATE")
    assert str(case.both("SELECT v FROM t")[0][0]) == "2019-12-09"


@PAGE.row(*("D25", MODIFY, "An INT that is not a date fails the change; the data stays"))
def test_d25_a_bad_value_changes_nothing(case):
    case.lake.sql("CREATE TABLE t (k INT, v INT)")
    case.lake.sql("INSERT INTO t VALUES (1, 20191332)")
    with pytest.raises(InvalidRequest, match="20191332"):
        case.lake.sql("ALTER TABLE t MODIFY COLUMN v DATE")
    assert case.both("SELECT v FROM t") == [(20191332,)]


@PAGE.row(
    *("D26", ORDER, "The table of the example (a comma follows the last column)"), statement=ORDERED
)
def test_d26_the_table_is_made(lake):
    lake.sql(ORDERED)
    assert names(lake, ROLLUP) == ["k1", "k2", "k3", "v1", "v2"]


@PAGE.row(
    *("D27", ORDER, "The columns of a rollup in another order"),
    statement="ALTER TABLE example_db.my_table ORDER BY (k3,k1,k2,v2,v1) FROM"
    " example_rollup_index;",
)
def test_d27_the_order_of_a_rollup(lake):
    lake.sql(ORDERED)
    lake.sql(PAGE.statement("D27"))
    assert names(lake, ROLLUP) == ["k3", "k1", "k2", "v2", "v1"]


@PAGE.row(*("D28", ORDER, "All columns are listed, values after keys"))
def test_d28_an_order_is_whole(lake):
    lake.sql(ORDERED)
    for listed in ("k1, k2, k3", "v1, k1, k2, k3, k4, v2"):
        with pytest.raises(InvalidRequest):
            lake.sql(f"ALTER TABLE {TABLE} ORDER BY ({listed})")


@PAGE.row(*("D29", AT_ONCE, "The table of the example"), statement=KEYS_ONLY)
def test_d29_the_table_of_keys_is_made(lake):
    lake.sql(KEYS_ONLY)
    assert names(lake, "example_db.`tbl1$rollup2`") == ["k2"]


@PAGE.row(
    *("D30", AT_ONCE, "Columns for two rollups in one statement; the base gets them too"),
    statement='ALTER TABLE tbl1 ADD COLUMN k4 INT default "1" to rollup1, ADD COLUMN k4 INT default'
    ' "1" to rollup2, ADD COLUMN k5 INT default "1" to rollup2;',
    does="columns are nullable unless NOT NULL is said",
)
def test_d30_one_statement_for_several_rollups(lake):
    lake.sql(KEYS_ONLY)
    lake.sql("USE example_db")
    lake.sql(PAGE.statement("D30"))
    old, new = ("INT", "Yes", "true", "N/A", ""), ("INT", "Yes", "true", "1", "")
    assert rows(lake.sql("DESC tbl1 ALL")) == [
        *[("tbl1", "k1", *old), ("", "k2", *old), ("", "k3", *old), ("", "k4", *new)],
        *[("", "k5", *new), ("",) * 7, ("rollup1", "k1", *old), ("", "k2", *old), ("", "k4", *new)],
        *[("",) * 7, ("rollup2", "k2", *old), ("", "k4", *new), ("", "k5", *new)],
    ]


@PAGE.row(
    *("D31", AT_ONCE, "A column for a rollup and its order in one statement"),
    statement='ALTER TABLE example_db.my_table ADD COLUMN v2 INT MAX DEFAULT "0" TO'
    " example_rollup_index, ORDER BY (k3,k1,k2,v2,v1) FROM example_rollup_index;",
)
def test_d31_a_column_and_an_order(lake):
    lake.sql(ONE_VALUE)
    lake.sql(PAGE.statement("D31"))
    assert names(lake, ROLLUP) == ["k3", "k1", "k2", "v2", "v1"]
    assert names(lake) == ["k1", "k2", "k3", "k4", "v1", "v2"]


@PAGE.row(
    *("D32", AT_ONCE, "A column is renamed"),
    statement="ALTER TABLE t RENAME COLUMN old_column_name new_column_name;",
)
def test_d32_a_rename(case):
    wide(case.lake)
    case.light("ALTER TABLE t RENAME COLUMN v w;")
    assert case.both("SELECT w FROM t") == [(7,)]


@PAGE.row(
    *("D33", JOBS, "All changes and their columns"),
    statement="SHOW ALTER TABLE COLUMN",
    does="a row for each index. Changes without a job have no JobId; TransactionId is their"
    " snapshot",
)
def test_d33_changes_are_shown(lake):
    lake.sql(KEYS_ONLY)
    lake.sql("ALTER TABLE example_db.tbl1 ADD COLUMN k4 INT TO rollup1")
    found = lake.sql("SHOW ALTER TABLE COLUMN").collect()
    assert found[0].__fields__ == (
        "JobId TableName CreateTime FinishTime IndexName IndexId OriginIndexId SchemaVersion"
        " TransactionId State Msg Progress Timeout".split()
    )
    assert {row.IndexName for row in found} == {"tbl1", "rollup1"}
    assert {(row.JobId, row.TransactionId) for row in found} == {(None, lake.snapshots()[-1].id)}


@PAGE.row(*("D34", JOBS, "SchemaVersion is M:N: the version of the columns and a hash of them"))
def test_d34_schema_versions_increase(case):
    wide(case.lake)
    case.lake.sql("ALTER TABLE t ADD COLUMN a INT")
    case.lake.sql("ALTER TABLE t DROP COLUMN a")
    found = case.lake.sql("SHOW ALTER TABLE COLUMN ORDER BY TransactionId").collect()
    assert [row.SchemaVersion.split(":")[0] for row in found] == ["2", "3"]
    assert len({row.SchemaVersion.split(":")[1] for row in found}) == 2


@PAGE.row(
    *("D35", JOBS, "IndexId is a new index, OriginIndexId the old one"),
    differs="both are the id of the table: it stays the same, so that readers keep their place",
)
def test_d35_a_table_keeps_its_id(case):
    wide(case.lake)
    case.lake.sql("ALTER TABLE t MODIFY COLUMN v STRING")
    [row] = case.lake.sql("SHOW ALTER TABLE COLUMN").collect()
    with case.duckdb() as duckdb:
        tables = duckdb.sql("SELECT table_name, table_id FROM ducklake_table_info('lake')")
    assert dict(tables)["t"] == row.IndexId == row.OriginIndexId


@PAGE.row(
    *("D36", JOBS, "States PENDING, WAITING_TXN, RUNNING, FINISHED, CANCELLED; Msg of a failure")
)
def test_d36_a_failure_is_told(case):
    case.lake.sql("CREATE TABLE t (k INT, v STRING)")
    case.lake.sql("INSERT INTO t VALUES (1, 'x')")
    with pytest.raises(InvalidRequest):
        case.lake.sql("ALTER TABLE t MODIFY COLUMN v INT")
    [row] = case.lake.sql("SHOW ALTER TABLE COLUMN").collect()
    assert row.State == "CANCELLED"
    assert "'x'" in row.Msg


@PAGE.row(
    *("D37", JOBS, "Timeout is in seconds, 86400 by default"),
    statement="PROPERTIES ('timeout' = '60')",
)
def test_d37_the_timeout(case):
    wide(case.lake)
    case.lake.sql("ALTER TABLE t MODIFY COLUMN v STRING PROPERTIES ('timeout' = '60')")
    [row] = case.lake.sql("SHOW ALTER TABLE COLUMN").collect()
    assert row.Timeout == 60


@PAGE.row(
    *("D38", JOBS, "A job that has not ended is cancelled"),
    statement="CANCEL ALTER TABLE COLUMN FROM tbl_name;",
)
def test_d38_a_job_is_cancelled(case):
    wide(case.lake)
    case.lake.sql("ALTER TABLE t MODIFY COLUMN v STRING PROPERTIES ('wait' = 'false')")
    case.lake.sql("CANCEL ALTER TABLE COLUMN FROM t;")
    assert case.told()[0][:2] == (1, "CANCELLED")
    assert case.both("SELECT v FROM t") == [(7,)]


@PAGE.row(*("D39", NOTES, "A table has at most one job at a time"))
def test_d39_one_job_at_a_time(case):
    wide(case.lake)
    heavy = "ALTER TABLE t MODIFY COLUMN {} STRING PROPERTIES ('wait' = 'false')"
    case.lake.sql(heavy.format("v"))
    told = case.refused(AlreadyExists, heavy.format("k"))
    assert "table main.t is under SCHEMA_CHANGE by job 1 (PENDING)" in told


@PAGE.row(*("D40", NOTES, "A job blocks no load and no query"))
def test_d40_queries_and_loads_go_on(case):
    wide(case.lake)
    case.lake.sql("ALTER TABLE t MODIFY COLUMN v STRING PROPERTIES ('wait' = 'false')")
    case.lake.sql("INSERT INTO t VALUES (2, 8)")
    assert case.both("SELECT v FROM t ORDER BY k") == [(7,), (8,)]


@PAGE.row(*("D41", NOTES, "No key is dropped where a value is REPLACE"))
def test_d41_replace_keeps_all_keys(lake):
    lake.sql(MODIFIED)
    with pytest.raises(InvalidRequest, match="value column with REPLACE aggregation"):
        lake.sql(f"ALTER TABLE {TABLE} DROP COLUMN col2")


@PAGE.row(*("D42", NOTES, "All values of a UNIQUE table are replaced: no key of it is dropped"))
def test_d42_unique_tables_keep_their_keys(lake):
    lake.sql("CREATE TABLE u (k1 INT, k2 INT, v INT) UNIQUE KEY (k1, k2)")
    with pytest.raises(InvalidRequest, match="which is a UNIQUE KEY table"):
        lake.sql("ALTER TABLE u DROP COLUMN k2")


@PAGE.row(
    *("D43", NOTES, "A default of a SUM column has no meaning for older rows"),
    differs="a default other than 0 is refused, because combined rows would show it once or many"
    " times; REPLACE columns may have one",
)
def test_d43_sums_have_no_default_but_zero(lake):
    lake.sql(MODIFIED)
    with pytest.raises(InvalidRequest, match="default"):
        lake.sql(f'ALTER TABLE {TABLE} ADD COLUMN n INT SUM DEFAULT "1"')
    lake.sql(f'ALTER TABLE {TABLE} ADD COLUMN n INT SUM DEFAULT "0"')
    lake.sql(f'ALTER TABLE {TABLE} ADD COLUMN r INT REPLACE DEFAULT "1"')


@PAGE.row(
    *("D44", NOTES, "Nullability and defaults cannot be modified, and have to be repeated"),
    statement='ALTER TABLE tbl1 MODIFY COLUMN k1 BIGINT SUM NULL DEFAULT "1";',
    beyond="SET NOT NULL, DROP NOT NULL, SET DEFAULT and DROP DEFAULT change them",
)
def test_d44_nullability_changes_by_itself(case):
    case.lake.sql("CREATE TABLE t (k INT NOT NULL, v INT)")
    told = case.refused(InvalidRequest, "ALTER TABLE t MODIFY COLUMN v INT NOT NULL")
    assert "from nullable to NOT NULL with MODIFY COLUMN" in told
    case.light("ALTER TABLE t ALTER v SET NOT NULL")


@PAGE.row(*("D45", FAQ, "The grammar is in the help"), statement="HELP ALTER TABLE COLUMN")
def test_d45_help_has_examples_that_parse(lake):
    found = lake.sql("HELP ALTER TABLE COLUMN").collect()
    assert [row.name for row in found] == ["ALTER TABLE COLUMN"]
    for row in lake.sql("HELP").collect():
        assert parse(row.example)
    with pytest.raises(NotFound, match="HELP has no topic 'nothing'; its topics are ALTER TABLE"):
        lake.sql("HELP nothing")


@PAGE.row(
    *("D46", FAQ, "Light schema change is a property of a table"),
    statement='ALTER TABLE t SET ("light_schema_change" = "true")',
    differs="it is always on, so `false` is refused",
)
def test_d46_light_changes_are_always_on(case):
    wide(case.lake)
    case.lake.sql('ALTER TABLE t SET ("light_schema_change" = "true")')
    with pytest.raises(Unsupported, match="light_schema_change = false"):
        case.lake.sql('ALTER TABLE t SET ("light_schema_change" = "false")')
    with pytest.raises(InvalidRequest, match="cannot have the property 'x' of Doris"):
        case.lake.sql('ALTER TABLE t SET ("x" = "1")')


@PAGE.row(
    *("D47", FAQ, "“Table is not stable”: replicas are looked at, repaired and balanced"),
    statement='SHOW REPLICA STATUS FROM tbl; ADMIN REPAIR TABLE tbl1; SHOW PROC "…"; ADMIN SET'
    " FRONTEND CONFIG (…)",
    differs="refused: a lake has no replicas, the storage keeps the copies of files",
)
def test_d47_a_lake_has_no_replicas(case):
    wide(case.lake)
    for statement in (
        'SHOW REPLICA STATUS FROM t WHERE STATUS != "OK"',
        "ADMIN REPAIR TABLE t",
        'SHOW PROC "/cluster_balance/pending_tablets"',
        'ADMIN SET FRONTEND CONFIG ("disable_balance" = "true")',
    ):
        with pytest.raises((Unsupported, InvalidRequest)):
            case.lake.sql(statement)


@PAGE.row(
    *("D48", CONFIG, "`alter_table_timeout_second`: when jobs give up, a day by default"),
    differs="an option of the lake, a schema or a table, as the lake has no servers",
)
def test_d48_the_timeout_is_an_option(case):
    case.lake.sql("CREATE TABLE t (a INT)")
    case.lake.sql("ALTER TABLE t ALTER a TYPE STRING PROPERTIES ('wait' = 'false')")
    case.lake.sql("CALL set_option('alter_table_timeout_second', 60)")
    case.lake.sql("CREATE TABLE u (a INT)")
    case.lake.sql("ALTER TABLE u ALTER a TYPE STRING PROPERTIES ('wait' = 'false')")
    found = case.lake.sql("SHOW ALTER TABLE COLUMN").collect()
    assert {row.TableName: row.Timeout for row in found} == {"t": 86_400, "u": 60}


@PAGE.row(
    *("D49", CONFIG, "`alter_tablet_worker_count`: how many threads convert data, 3 by default"),
    differs="an option of the lake, a schema or a table: the most Spark tasks of a job at the same"
    " time; by default all cores of the session",
)
def test_d49_the_tasks_of_a_job_are_an_option(case):
    case.lake.sql("CREATE TABLE t (a INT)")
    case.lake.sql("CALL set_option('alter_tablet_worker_count', 1)")
    case.lake.sql("INSERT INTO t VALUES (1)")
    case.lake.sql("ALTER TABLE t ALTER a TYPE STRING")
    assert case.both("SELECT a FROM t") == [("1",)]
    with pytest.raises(InvalidRequest, match="give a number of tasks, at least 1"):
        case.lake.sql("CALL set_option('alter_tablet_worker_count', 0)")


@PAGE.row(
    *("D50", CONFIG, "`alter_index_worker_count`: how many threads build inverted indexes"),
    differs="a lake has no inverted indexes, so there is no such option",
)
def test_d50_there_is_no_option_for_indexes(case):
    with pytest.raises(NotFound, match="did you mean 'alter_tablet_worker_count'"):
        case.lake.sql("CALL set_option('alter_index_worker_count', 3)")


@PAGE.row(
    *("D53", TERMS, "After a job, the old data is deleted"),
    differs="older snapshots still read it; `CALL expire_snapshots` and `cleanup_old_files` delete"
    " it as soon as you like",
)
def test_d53_old_files_go_with_their_snapshots(case):
    case.lake.sql("CALL set_option('data_inlining_row_limit', 0)")
    case.lake.sql("CREATE TABLE t (k INT, v STRING)")
    case.lake.sql("INSERT INTO t VALUES (1, '7')")
    [old] = case.lake.table("t").files().collect()
    case.lake.sql("ALTER TABLE t ALTER v TYPE INT")
    assert Path(old.file_path).exists()
    case.lake.sql("CALL expire_snapshots(older_than => INTERVAL '0 seconds')")
    case.lake.sql("CALL cleanup_old_files(older_than => INTERVAL '0 seconds')")
    assert not Path(old.file_path).exists()
    assert case.both("SELECT k, v FROM t") == [(1, 7)]


@PAGE.row(
    *("D54", NOTES, "Jobs block loads only if those make partitions"),
    does="and such loads go on as well",
)
def test_d54_a_load_makes_partitions_while_a_job_runs(case):
    case.lake.sql("CREATE TABLE t (k INT, v STRING) PARTITIONED BY (k)")
    case.lake.sql("INSERT INTO t VALUES (1, '1')")
    case.lake.sql("ALTER TABLE t ALTER v TYPE INT PROPERTIES ('wait' = 'false')")
    case.lake.sql("INSERT INTO t VALUES (2, '2')")
    case.lake.run_jobs()
    case.lake.sql("INSERT INTO t VALUES (3, 3)")
    assert case.both("SELECT k, v FROM t ORDER BY k") == [(1, 1), (2, 2), (3, 3)]


@PAGE.row(
    *("D55", FAQ, "The worst case is 10 MB/s, by which you set a timeout"),
    does="the plan estimates the time from this speed, and later from that of earlier jobs",
)
def test_d55_the_plan_estimates_the_time(case):
    case.lake.sql("CREATE TABLE t (k INT, v STRING)")
    case.lake.sql("INSERT INTO t VALUES (1, '7')")
    plan = case.lake.table("t").plan_alter(change_type("v", "int"))
    assert (plan.speed.bytes_per_second, plan.speed.jobs) == (10 << 20, 0)
    assert "a guess before any job" in str(plan)
    case.lake.sql("ALTER TABLE t ALTER v TYPE INT PROPERTIES ('timeout' = '60')")
    assert "60" in {str(row.Timeout) for row in case.lake.sql("SHOW ALTER TABLE COLUMN").collect()}


@PAGE.row(
    *("D56", TERMS, "Indexes are modified: Bloom filters of columns"),
    statement="ALTER TABLE t ADD INDEX i (k) USING BLOOMFILTER",
    does="a job writes this column again and copies the others",
)
def test_d56_bloom_filters_are_added_and_dropped(case):
    case.lake.sql("CREATE TABLE t (k INT, v INT) PROPERTIES ('bloom_filter_columns' = 'v')")
    case.lake.sql("INSERT INTO t SELECT id * 2, id FROM range(20)")
    case.lake.sql(PAGE.statement("D56"))
    assert case.both("SELECT v FROM t WHERE k = 8") == [(4,)]
    assert _filtered(case) == [("k",), ("v",)]
    case.lake.sql("ALTER TABLE t DROP INDEX i, DROP COLUMN v")
    assert case.lake.sql("SHOW INDEX FROM t").collect() == []
    case.lake.sql("ALTER TABLE t REWRITE")
    assert _filtered(case) == []


def _filtered(case):
    """The columns of the files of t that have a Bloom filter, as DuckDB tells."""
    live = [f.file_path for f in case.lake.table("t").files().collect() if f.end_snapshot is None]
    query = f"SELECT path_in_schema FROM parquet_metadata({live})"
    return duckdb.sql(f"{query} WHERE bloom_filter_offset IS NOT NULL ORDER BY 1").fetchall()


@PAGE.row(
    *("D57", TERMS, "Indexes are modified: inverted, and of n-grams"),
    differs="refused: Parquet has Bloom filters only",
)
def test_d57_other_indexes_are_refused(case):
    wide(case.lake)
    for kind in ("INVERTED", "NGRAM_BF"):
        with pytest.raises(Unsupported, match="use USING BLOOMFILTER"):
            case.lake.sql(f"CREATE INDEX i ON t (v) USING {kind}")
