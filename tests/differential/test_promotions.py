"""Types that DuckDB changes beyond the specification: read right, or refused by name; none wrong.

One table for each type, one column for each type that DuckDB promotes it to.
"""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

import shelduck
from shelduck.errors import ShelduckError
from tests.support.normal import duckdb_rows, spark_rows
from tests.support.oracle import DuckDBOracle

VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "2147483647", "16777217"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807", "9007199254740993"],
    # DuckDB stores doubles: larger values have lost digits before anybody reads them.
    "HUGEINT": ["-9007199254740992", "12"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["0", "65535"],
    "UINTEGER": ["0", "4294967295"],
    "UBIGINT": ["0", "18446744073709551615"],
    "UHUGEINT": ["0", "12"],
    "FLOAT": ["1.1", "-0.0", "'NaN'", "'Infinity'", "3.4028235e38", "1e-45"],
    "DOUBLE": ["1.1", "-0.0", "'NaN'", "'-Infinity'", "1.7976931348623157e308", "5e-324"],
    "DECIMAL(4,1)": ["-999.9", "0.5"],
    "DECIMAL(9,2)": ["-9999999.99", "0.05"],
    "DECIMAL(18,3)": ["-999999999999999.999", "0.005"],
    **{
        f"DECIMAL({p},{s})": [f"-{'9' * (p - s)}{'.' * (s > 0)}{'9' * s}", "0"]
        for p, s in [
            *((4, 2), (5, 0), (9, 0), (10, 0), (10, 2), (12, 2), (12, 3), (12, 4), (18, 2)),
            *((19, 0), (20, 0), (20, 2), (22, 4), (38, 2), (38, 10)),
        ]
    },
    "DECIMAL(38,0)": ["99999999999999999999999999999999999999", "1"],
    "DATE": ["'1500-02-28'", "'2024-02-29'", "'1969-12-31'"],
    "TIME": ["'23:59:59.999999'", "'00:00:00'"],
    "TIMETZ": ["'23:59:59.999999+00'", "'01:02:03+02'"],
    "TIMESTAMP_S": ["'1500-03-01 00:00:01'", "'2024-01-01 00:00:00'"],
    "TIMESTAMP_MS": ["'1969-12-31 23:59:59.999'", "'2024-01-01 00:00:00'"],
    "TIMESTAMP": ["'1969-12-31 23:59:59.999999'", "'2024-01-01 00:00:00'"],
    "TIMESTAMP_NS": ["'1969-12-31 23:59:59.999999999'", "'2024-01-01 00:00:00'"],
    "TIMESTAMPTZ": ["'1969-12-31 23:59:59.999999+00'", "'2024-01-01 00:00:00+02'"],
    "VARCHAR": ["'1'", "'née'", "''"],
    "UUID": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "BLOB": ["'\\x00\\xFF'", "''"],
    "INTERVAL": ["INTERVAL 1 MONTH", "INTERVAL -3 DAY"],
    "JSON": ["'{\"a\": 1}'", "'null'"],
}
# DuckDB 1.5.5 cannot write TIME_NS into a file; nothing is promoted to it or to GEOMETRY.
TARGETS = (*VALUES, "VARIANT", "TIME_NS", "GEOMETRY")


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 1000], ids=["files", "inlined"])
def test_every_promotion_that_duckdb_accepts_reads_as_it_reads_it_or_is_refused(
    sqlite_url, data_path, spark, limit
):
    with DuckDBOracle(sqlite_url, data_path, {"DATA_INLINING_ROW_LIMIT": limit}) as oracle:
        expected = {kind: _promoted(oracle, kind) for kind in VALUES}
    with shelduck.connect(sqlite_url, spark=spark) as lake:
        outcomes = {
            (kind, target): _outcome(lake, kind, target, rows)
            for kind, columns in expected.items()
            for target, rows in columns.items()
        }

    wrong = {pair: found for pair, found in outcomes.items() if found not in KNOWN}
    assert wrong == {}
    assert Counter(outcomes.values()) == COUNTS[limit]
    # What becomes text or a variant is not stored as one, and nobody but DuckDB knows how to cast.
    refused = {pair for pair, found in outcomes.items() if found == "refused"}
    others = {(kind, target) for kind, target in refused if target not in ("JSON", "VARIANT")}
    assert others == REFUSED[limit]


KNOWN = ("right", "refused", "not even DuckDB reads it")
# All pairs of one type and itself count too: 28 are right without a promotion.
COUNTS = {0: {"right": 154, "refused": 57}, 1000: {"right": 156, "refused": 55}}
# Stored as doubles, and a float could not hold them all.
REFUSED = {0: {("HUGEINT", "FLOAT"), ("UHUGEINT", "FLOAT")}, 1000: set()}


def _promoted(oracle: DuckDBOracle, kind: str) -> dict[str, list[object] | None]:
    """The rows of each column that DuckDB promoted, by the new type; None where it reads none."""
    name = _name(kind)
    listed = ", ".join(f"{_column(t)} {kind}" for t in TARGETS)
    oracle.execute(f"CREATE TABLE {name} ({listed})")
    rows = ", ".join(f"({', '.join([v] * len(TARGETS))})" for v in [*VALUES[kind], "NULL"])
    oracle.execute(f"INSERT INTO {name} VALUES {rows}")
    found = {}
    for target in TARGETS:
        try:
            if target != kind:
                oracle.execute(f"ALTER TABLE {name} ALTER {_column(target)} TYPE {target}")
        except (duckdb.CatalogException, duckdb.NotImplementedException):
            continue
        try:
            found[target] = duckdb_rows(oracle, name, _column(target))
        except duckdb.Error:
            # DuckDB itself cannot read what it promoted; drop it so that the others can be read.
            oracle.execute(f"ALTER TABLE {name} DROP COLUMN {_column(target)}")
            found[target] = None
    return found


def _outcome(lake, kind, target, expected):
    column = _column(target)
    if expected is None:
        return "not even DuckDB reads it"
    try:
        found = spark_rows(lake.table(_name(kind)).read(columns=[column]))
    except ShelduckError as error:
        return "refused" if column in str(error) else f"refused without its name: {error}"
    except Exception as error:  # noqa: BLE001 - Spark's own errors are told apart by their text
        return f"failed: {error}"[:300]
    return "right" if found == expected else f"{found} for {expected}"


def _name(kind: str) -> str:
    return "from_" + "".join(c if c.isalnum() else "_" for c in kind.lower())


def _column(target: str) -> str:
    return "to_" + "".join(c if c.isalnum() else "_" for c in target.lower())
