"""Partition values of every type and transform are those of DuckDB's extension."""

from __future__ import annotations

import pytest

import shelduck
from shelduck.engine.files.storage import carry_file
from shelduck.write.parquet import clustering
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.no_bridge import without_bridge

pytestmark = pytest.mark.usefixtures("ducklake_version")

IDENTITY, BUCKET = "x", "bucket(1000000, x)"
FIELDS = ("year(x)", "month(x)", "day(x)")
MOMENTS = (
    "'2017-11-16 22:31:08.12'",
    "'1969-12-31 23:59:59.999999'",
    "'1500-03-01 00:00:00'",
    "'0001-01-01 00:00:00'",
    "'9999-12-31 23:59:59'",
)
# Type, keys, and values as Spark writes them.
TYPES = {
    "BOOLEAN": ((IDENTITY, BUCKET), ("true", "false")),
    "TINYINT": ((IDENTITY, BUCKET), ("-5Y", "127Y")),
    "SMALLINT": ((IDENTITY, BUCKET), ("-5S", "0S")),
    "INT": ((IDENTITY, BUCKET), ("-34", "34")),
    "BIGINT": ((IDENTITY, BUCKET), ("34L", "9223372036854775807L", "-9223372036854775807L")),
    "UINT8": ((IDENTITY, BUCKET), ("200",)),
    "UINT16": ((IDENTITY, BUCKET), ("60000",)),
    "UINT32": ((IDENTITY, BUCKET), ("34", "4000000000")),
    "UINT64": ((IDENTITY, BUCKET), ("18446744073709551615",)),
    # DuckDB cannot read the largest values of int128 back, as which it writes a DOUBLE.
    "INT128": ((IDENTITY, BUCKET), ("1", "-99")),
    "FLOAT": (
        (IDENTITY, BUCKET),
        ("1.1F", "-0.0F", "float('NaN')", "float('inf')", "1e30F", "1e-5F", "16777216F", "1e16F"),
    ),
    "DOUBLE": (
        (IDENTITY, BUCKET),
        ("0.1D", "-0.0D", "double('NaN')", "double('-inf')", "1e300D", "123456789.125D", "1e17D"),
    ),
    "DECIMAL(3,3)": ((IDENTITY, BUCKET), ("0.001", "-0.5")),
    "DECIMAL(9,2)": ((IDENTITY, BUCKET), ("14.20", "-14.2", "0")),
    "DECIMAL(18,18)": ((IDENTITY, BUCKET), ("0.000000000000000001", "-0.999999999999999999")),
    "DECIMAL(38,2)": ((IDENTITY, BUCKET), ("14.20", "-0.01", "999999999999999999999999999.99")),
    "DECIMAL(38,18)": ((IDENTITY, BUCKET), ("0.000000000000000001", "0")),
    "DECIMAL(38,38)": ((IDENTITY, BUCKET), ("0.5", "-0.25")),
    "DATE": (
        (IDENTITY, BUCKET, *FIELDS),
        ("DATE '2017-11-16'", "DATE '1969-12-31'", "DATE '0001-01-01'", "DATE '12345-01-01'"),
    ),
    "TIME": ((IDENTITY, BUCKET, "hour(x)"), ("'22:31:08.5'", "'00:00:00'", "'01:02:03.000004'")),
    "TIMETZ": ((IDENTITY, BUCKET, "hour(x)"), ("'22:31:08+02'", "'22:31:08.5-03:30'")),
    "TIMESTAMP_NTZ": (
        (IDENTITY, BUCKET, *FIELDS, "hour(x)"),
        tuple(f"TIMESTAMP_NTZ {m}" for m in MOMENTS),
    ),
    "TIMESTAMP_S": (
        (IDENTITY, BUCKET, *FIELDS, "hour(x)"),
        ("TIMESTAMP_NTZ '2017-11-16 22:31:08'", "TIMESTAMP_NTZ '1969-12-31 23:59:59'"),
    ),
    "TIMESTAMP_MS": (
        (IDENTITY, BUCKET, *FIELDS, "hour(x)"),
        ("TIMESTAMP_NTZ '2017-11-16 22:31:08.12'", "TIMESTAMP_NTZ '1969-12-31 23:59:59.999'"),
    ),
    "TIMESTAMP": (
        (IDENTITY, BUCKET, *FIELDS, "hour(x)"),
        tuple(f"TIMESTAMP {m[:-1]}Z'" for m in MOMENTS),
    ),
    "STRING": (
        (IDENTITY, BUCKET),
        (
            "'iceberg'",
            "''",
            "' '",
            "'a b/c=%?é#\"\\'\\\\:*'",
            "'__HIVE_DEFAULT_PARTITION__'",
            "'NULL'",
            "'.x'",
            "'..'",
            "'a\\nb\\tc'",
            "'%41'",
            "'\\u0001x'",
            "'+&~!@$^()[]{}|;,<>`'",
            "'Ä'",
            "'ä'",
            "repeat('x', 200)",
            "'日本語🦆'",
            "'Республика Северная Осетия ~ Алания'",
            "repeat('鴨', 25)",
            "repeat('x', 230)",
            "repeat('/', 77)",
        ),
    ),
    "JSON": ((IDENTITY, BUCKET), ("'{\"a\": 1}'", "'[]'")),
    "BINARY": ((IDENTITY, BUCKET), ("X'6120622F'", "X''")),
    "UUID": ((IDENTITY, BUCKET), ("'f79c3e09-677c-4bbd-a479-3f349cb785e7'",)),
}
_FILES = (
    "SELECT v.partition_key_index, v.partition_value, sum(f.record_count)"
    " FROM __ducklake_metadata_lake.ducklake_data_file f"
    " JOIN __ducklake_metadata_lake.ducklake_file_partition_value v USING (data_file_id)"
    " JOIN __ducklake_metadata_lake.ducklake_table t ON t.table_id = f.table_id"
    " WHERE t.table_name = '{}' AND f.partition_id IS NOT NULL GROUP BY ALL ORDER BY ALL"
)


_DIRECTORIES = (
    "SELECT DISTINCT regexp_extract(f.path, '^(.*/)[^/]*$', 1)"
    " FROM __ducklake_metadata_lake.ducklake_data_file f"
    " JOIN __ducklake_metadata_lake.ducklake_table t ON t.table_id = f.table_id"
    " WHERE t.table_name = '{}' AND f.partition_id IS NOT NULL ORDER BY ALL"
)
# Types of which Spark writes some values in another way than DuckDB.
MOVED = {"FLOAT", "DOUBLE", "DECIMAL(3,3)", "DECIMAL(18,18)", "DECIMAL(38,38)", "DATE"}


# ducklakepy does not partition by fractions, reads no texts as times and UUIDs, and stores -0.5
# where DuckDB and we store -.5 for decimals without a place before the point.
LACKING = {
    "1.0": set(),
    "1.1": {"FLOAT", "DOUBLE", "TIME", "TIMETZ", "UUID"}
    | {f"DECIMAL({n},{n})" for n in (3, 18, 38)},
}
# One for each way in which bytes to hash are made.
HASHES = ("BIGINT", "DOUBLE", "DECIMAL(38,2)", "TIMETZ", "TIMESTAMP", "STRING", "BINARY")


# One for each kind of value; some of DOUBLE, DECIMAL and DATE have files that are moved.
SOME = ("UINT64", "DOUBLE", "DECIMAL(18,18)", "DATE", "TIME", "TIMESTAMP", "STRING")
FEW_HASHES = ("DOUBLE", "DECIMAL(38,2)", "TIMETZ", "BINARY")


@pytest.fixture(
    params=[
        "some",
        "some by sql alone",
        pytest.param("bridge", marks=pytest.mark.slow),
        pytest.param("sql alone", marks=pytest.mark.slow),
    ]
)
def types(request, monkeypatch, ducklake_version):
    """Types to write through the JVM, and by the public API alone, as over Spark Connect."""
    if "sql alone" not in request.param:
        chosen = tuple(TYPES) if request.param == "bridge" else SOME
        return tuple(kind for kind in chosen if kind not in LACKING[ducklake_version])
    without_bridge(monkeypatch)
    chosen = HASHES if request.param == "sql alone" else FEW_HASHES
    return tuple(kind for kind in chosen if kind not in LACKING[ducklake_version])


@pytest.fixture
def moved(monkeypatch):
    """The files that did not begin in the directories of their partitions."""
    found = []

    def carried(source, target):
        found.append(target)
        carry_file(source, target)

    monkeypatch.setattr(clustering, "carry_file", carried)
    return found


def test_partition_values_are_those_of_duckdb(types, spark, sqlite_url, data_path, moved):
    """Each row gets the partition that DuckDB gives it, and each file is of one partition."""
    tables = {f"t{n}": kind for n, kind in enumerate(types)}
    with oracle_at(sqlite_url, data_path) as duckdb:
        duckdb.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
    # Wherever the session is, partitions of timestamps go by UTC.
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        with shelduck.connect(sqlite_url, data_path, spark) as lake:
            for table, kind in tables.items():
                keys, values = TYPES[kind]
                lake.sql(f"CREATE TABLE {table} (x {kind}) PARTITIONED BY ({', '.join(keys)})")
                rows = ", ".join(f"({v})" for v in (*values, "NULL"))
                lake.sql(f"INSERT INTO {table} VALUES {rows}")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    with oracle_at(sqlite_url) as duckdb:
        for table, kind in tables.items():
            keys, values = TYPES[kind]
            duckdb.execute(f"CREATE TABLE d_{table} AS FROM {table} LIMIT 0")
            duckdb.execute(f"ALTER TABLE d_{table} SET PARTITIONED BY ({', '.join(keys)})")
            duckdb.execute(f"INSERT INTO d_{table} FROM {table}")
            assert len(duckdb.rows(table)) == len(values) + 1
            ours, its = (duckdb.sql(_FILES.format(t)) for t in (table, f"d_{table}"))
            # To DuckDB both zeros are one value too; it names the partition by the one it met.
            its = [(n, "0.0" if v == "-0.0" else v, c) for n, v, c in its]
            assert sorted(ours, key=str) == sorted(its, key=str), kind
            ours, its = (duckdb.sql(_DIRECTORIES.format(t)) for t in (table, f"d_{table}"))
            assert set(ours) == {(d.replace("=-0.0/", "=0.0/"),) for (d,) in its}, kind
    if not set(types) <= set(HASHES):
        kinds = {tables[path.removeprefix(data_path).split("/")[1]] for path in moved}
        assert kinds == MOVED & set(types)
