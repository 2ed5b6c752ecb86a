"""Delta's and Iceberg's own Spark readers, and tables of every type for them to read.

Their JARs are not on PyPI: `make jars` puts them into `.jars`, for Spark 4.1. The newest
Iceberg is the one that reads, or with SHELDUCK_TEST_ICEBERG=oldest the one that refuses most.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark
import pytest

from tests.support.jars import locked, runs_in_ci
from tests.support.spark import local_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.jars import Jar

_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta reads its log in 50 tasks, which is for larger logs.
    "spark.databricks.delta.snapshotPartitions": "1",
}


@contextmanager
def session_with_readers(
    folder: Path, more: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session that has both readers, and the connector for S3; `more` are further settings.

    Without their JARs a skip, or in CI a failure.
    """
    newest_first = locked("readers")
    if os.environ.get("SHELDUCK_TEST_ICEBERG") == "oldest":
        newest_first.reverse()
    # Of the connectors, the one of Spark 4.1's Hadoop; the SDK serves all.
    listed = [*newest_first, *locked("readers-s3"), *locked("s3")]
    jars = [j for n, j in enumerate(listed) if not _is_among(j, listed[:n])]
    missing = [j.package for j in jars if not j.is_right]
    why = ""
    if not pyspark.__version__.startswith("4.1."):
        why = f"the readers are for Spark 4.1, and this is {pyspark.__version__}"
    elif missing:
        why = f"not here: {', '.join(missing)}; run `make jars`, which needs Maven Central"
    if why and runs_in_ci():
        pytest.fail(why)
    if why:
        pytest.skip(why)
    # Spark would copy what it gets as spark.jars.
    own = {"spark.driver.extraClassPath": os.pathsep.join(str(j.path) for j in jars)}
    with local_session(folder, _SETTINGS | own | dict(more or {})) as session:
        # What a reader fails with comes back as an error; its log is too long to read.
        session.sparkContext.setLogLevel("OFF")
        yield session


def _is_among(jar: Jar, others: list[Jar]) -> bool:
    return any(jar.is_another_of(other) for other in others)


@dataclass(frozen=True)
class Kind:
    """A type in DuckDB's words, values of it, and the types that it widens to.

    ``is_key`` is False where values cannot be keys of maps or partitions.
    """

    name: str
    values: tuple[str, ...]
    wider: tuple[str, ...] = ()
    is_key: bool = True
    by: tuple[str, ...] = ("duckdb", "shelduck")


def _ends(bits: int, *, signed: bool) -> tuple[str, ...]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return str(low), "7", str(high)


_DECIMALS = ("DECIMAL(10,0)", "DECIMAL(12,2)", "DECIMAL(20,2)", "DECIMAL(38,10)")
_MOMENTS = ("'0001-01-01 00:00:00'", "'1969-12-31 23:59:59'", "'2024-02-29 12:34:56'")

KINDS = (
    Kind("BOOLEAN", ("true", "false")),
    Kind("TINYINT", _ends(8, signed=True), ("SMALLINT", "INT", "BIGINT", "DOUBLE", *_DECIMALS)),
    Kind("SMALLINT", _ends(16, signed=True), ("INT", "BIGINT", "FLOAT", "DOUBLE", *_DECIMALS)),
    Kind("INTEGER", _ends(32, signed=True), ("BIGINT", "DOUBLE", *_DECIMALS)),
    Kind("BIGINT", _ends(64, signed=True), ("DECIMAL(20,0)", "DECIMAL(38,2)")),
    Kind("HUGEINT", ("-9007199254740992", "7", "9007199254740992")),
    Kind("UTINYINT", _ends(8, signed=False), ("SMALLINT", "INT", "BIGINT", "DOUBLE", *_DECIMALS)),
    Kind("USMALLINT", _ends(16, signed=False), ("INT", "BIGINT", "DOUBLE", *_DECIMALS)),
    Kind("UINTEGER", _ends(32, signed=False), ("BIGINT", "DOUBLE", *_DECIMALS)),
    Kind("UBIGINT", _ends(64, signed=False), ("DECIMAL(20,0)", "DECIMAL(38,2)")),
    Kind("FLOAT", ("-1.1", "'nan'", "'infinity'", "3.4028235e38"), ("DOUBLE",), is_key=False),
    Kind("DOUBLE", ("-1.1", "'nan'", "'-infinity'", "1e300"), is_key=False),
    Kind(
        "DECIMAL(4,2)",
        ("-99.99", "0.01", "99.99"),
        ("DECIMAL(9,2)", "DECIMAL(12,2)", "DECIMAL(12,4)", "DECIMAL(38,2)", "DECIMAL(38,10)"),
    ),
    Kind(
        "DECIMAL(9,2)",
        ("-9999999.99", "0.01", "9999999.99"),
        ("DECIMAL(12,2)", "DECIMAL(12,4)", "DECIMAL(38,2)", "DECIMAL(38,10)"),
    ),
    Kind(
        "DECIMAL(18,2)",
        ("-9999999999999999.99", "0.01", "9999999999999999.99"),
        ("DECIMAL(20,2)", "DECIMAL(38,10)"),
    ),
    Kind("DECIMAL(30,5)", ("-9999999999999999999999999.99999", "0.00001"), ("DECIMAL(38,5)",)),
    Kind("DATE", ("'0001-01-01'", "'1969-12-31'", "'2024-02-29'"), ("TIMESTAMP_NTZ",)),
    Kind("TIMESTAMP", (*_MOMENTS, "'2024-02-29 12:34:56.123456'")),
    Kind("TIMESTAMP_S", _MOMENTS, ("TIMESTAMP_NTZ",)),
    Kind("TIMESTAMP_MS", (*_MOMENTS, "'2024-02-29 12:34:56.123'"), ("TIMESTAMP_NTZ",)),
    Kind("TIMESTAMP_NS", ("'2024-02-29 12:34:56.123456789'",), by=("duckdb",)),
    Kind("TIMESTAMPTZ", ("'1969-12-31 23:59:59+00'", "'2024-02-29 12:34:56.123456+00'")),
    Kind("TIME", ("'00:00:00'", "'12:34:56.123456'")),
    Kind("TIMETZ", ("'00:00:00+00'", "'12:34:56.5+00'")),
    Kind("VARCHAR", ("''", "'größe'", "'it''s'")),
    Kind("JSON", ("'{\"a\": 1}'", "'[1]'"), is_key=False),
    Kind("UUID", ("'00000000-0000-0000-0000-000000000001'",)),
    Kind("BLOB", ("'\\x00\\xFF'::BLOB", "''::BLOB"), is_key=False),
)


@dataclass(frozen=True)
class Entry:
    """A type at every place that it can have, and what it is widened to, if at all.

    The columns of entry 3 are c3 (the value itself), s3 (a struct), l3 (a list), m3 (a map of text
    to it) and k3 (a map of it to a number).
    """

    number: int
    kind: Kind
    wider: str | None = None

    @property
    def flat(self) -> str:
        """The column that is neither struct nor list nor map."""
        return f"c{self.number}"

    @property
    def columns(self) -> dict[str, str]:
        """Columns with their types, in DuckDB's words."""
        t, n = self.kind.name, self.number
        found = {
            f"c{n}": t,
            f"s{n}": f"STRUCT(x {t}, y INTEGER)",
            f"l{n}": f"{t}[]",
            f"m{n}": f"MAP(VARCHAR, {t})",
        }
        return found | ({f"k{n}": f"MAP({t}, INTEGER)"} if self.kind.is_key else {})

    @property
    def leaves(self) -> list[str]:
        """Where the type stands, as ALTER names it."""
        inside = {"c": "", "s": ".x", "l": ".element", "m": ".value", "k": ".key"}
        return [name + inside[name[0]] for name in self.columns]

    def values(self, row: int) -> list[str]:
        """The columns of a row, in DuckDB's SQL; of row -1 NULL inside of others, of -2 NULL."""
        if row == -2:
            return ["NULL"] * len(self.columns)
        t = self.kind.name
        text = "NULL" if row < 0 else self.kind.values[row % len(self.kind.values)]
        v = f"CAST({text} AS {t})"
        cells = {
            "c": v,
            "s": f"{{'x': {v}, 'y': {row}}}",
            "l": f"[{v}, NULL]::{t}[]",
            "m": f"MAP {{'a': {v}}}",
            "k": f"MAP {{}}::MAP({t}, INTEGER)" if row < 0 else f"MAP {{{v}: {row}}}",
        }
        return [cells[name[0]] for name in self.columns]


def declared(entries: Sequence[Entry]) -> str:
    """The columns of a table as CREATE TABLE takes them."""
    columns = [f"{name} {kind}" for one in entries for name, kind in one.columns.items()]
    return ", ".join(["id INTEGER", *columns])


def rows(entries: Sequence[Entry], first: int = 0) -> str:
    """A SELECT of some rows with every value, one of NULLs inside of others and one of NULLs."""
    count = max(len(one.kind.values) for one in entries)
    listed = [*range(count), -1, -2]
    selects = []
    for number, row in enumerate(listed, start=first):
        cells = [cell for one in entries for cell in one.values(row)]
        selects.append(f"SELECT {', '.join([str(number), *cells])}")
    return " UNION ALL ".join(selects)
