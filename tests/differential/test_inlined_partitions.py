"""Rows in the catalog are shown in the partitions into which DuckDB flushes them."""

from __future__ import annotations

import pytest

from shelduck.catalog.read.overview.table_files import inlined_partitions, partition_rows
from tests.support.lake import Lake

CALENDAR = ("year", "month", "day", "hour")
MOMENTS = (
    "'2024-02-29 23:30:00'",
    "'1969-12-31 23:59:59.5'",
    "'1500-01-01'",
    "'9999-12-31 00:00:00'",
)
TYPES = {
    "DATE": ("'2024-02-29'", "'1969-12-31'", "'0044-03-15 (BC)'", "'9999-12-31'"),
    "TIMESTAMP": MOMENTS,
    "INTEGER": ("-5", "0", "2147483647"),
    "VARCHAR": ("'a b'", "''", "'ü/=%'", "'__HIVE_DEFAULT_PARTITION__'"),
    "BOOLEAN": ("true", "false"),
    "BIGINT": ("34", "-34", "9223372036854775807"),
    "UTINYINT": ("0", "200"),
    "UBIGINT": ("18446744073709551615",),
    "FLOAT": ("0.1", "-0.0", "'inf'"),
    "DOUBLE": ("0.1", "-0.0", "1e300"),
    "DECIMAL(9, 2)": ("14.20", "-0.20", "0"),
    "DECIMAL(3, 3)": ("0.125", "-0.5"),
    "DECIMAL(30, 4)": ("123456789012345678901.5", "-0.5"),
    "TIMESTAMPTZ": tuple(f"{m[:-1]}+00'" if " " in m else m for m in MOMENTS),
    "TIMESTAMP_S": ("'2024-02-29 23:30:00'",),
    "TIMESTAMP_MS": ("'2024-02-29 23:30:00.12'",),
    "UUID": ("'f79c3e09-677c-4bbd-a479-3f349cb785e7'",),
    "TIME": ("'22:31:08.5'", "'00:00:00'"),
}


def keys_of(kind):
    if kind == "TIME":
        # DuckDB 1.5.5 cannot flush these partitioned by `hour` alone.
        return ("v", "bucket(7, v)")
    units = CALENDAR if kind.startswith("TIMESTAMP") else CALENDAR[:3] if kind == "DATE" else ()
    return ("v", "bucket(7, v)", *(f"{unit}(v)" for unit in units))


def shown(lake, number, read):
    with lake.store.read() as connection:
        found = read(connection, lake.table(f"t{number}"))
    return [(p.partition, p.rows - p.deleted) for p in found]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", TYPES)
def test_rows_are_in_the_partitions_to_which_a_flush_brings_them(kind, tmp_path):
    lake = Lake(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/")
    keys = keys_of(kind)
    values = ", ".join(f"({n}, {v})" for n, v in enumerate((*TYPES[kind], "NULL", "NULL")))
    lake.tell(
        *(f"CREATE TABLE t{n} (id INTEGER, v {kind})" for n, _ in enumerate(keys)),
        *(f"ALTER TABLE t{n} SET PARTITIONED BY ({key})" for n, key in enumerate(keys)),
        *(f"INSERT INTO t{n} VALUES {values}" for n, _ in enumerate(keys)),
        inline=10,
    )
    kept = [shown(lake, n, inlined_partitions) for n, _ in enumerate(keys)]
    assert kept == [shown(lake, n, partition_rows) for n, _ in enumerate(keys)]

    lake.tell("CALL ducklake_flush_inlined_data('lake')")
    assert [shown(lake, n, inlined_partitions) for n, _ in enumerate(keys)] == [[]] * len(keys)
    assert kept == [shown(lake, n, partition_rows) for n, _ in enumerate(keys)]


def test_rows_written_before_a_change_of_the_columns_are_in_their_partitions(tmp_path):
    lake = Lake(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/")
    lake.tell(
        "CREATE TABLE t0 (id INTEGER, d INTEGER)",
        "ALTER TABLE t0 SET PARTITIONED BY (d, bucket(4, id))",
        "INSERT INTO t0 VALUES (1, 7), (2, NULL)",
        "ALTER TABLE t0 RENAME d TO e",
        "ALTER TABLE t0 ALTER e TYPE BIGINT",
        "INSERT INTO t0 VALUES (3, 5000000000)",
        inline=10,
    )
    kept = shown(lake, 0, inlined_partitions)
    assert [(place[0], rows) for place, rows in kept] == [
        (("e", "5000000000"), 1),
        (("e", "7"), 1),
        (("e", None), 1),
    ]

    lake.tell("CALL ducklake_flush_inlined_data('lake')")
    assert shown(lake, 0, partition_rows) == kept
