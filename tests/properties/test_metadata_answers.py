"""COUNT, MIN and MAX from the catalog are those of the rows, whoever wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import shelduck
from tests.properties.test_evolution import SETTINGS
from tests.support.lengths import long
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.shelduck.metadataAnswers"
# Each literal means the same to Spark and to DuckDB.
FLOATS = ["0.0", "-0.0", "0.1", "-0.1", "1e30", "'NaN'", "'Infinity'", "'-Infinity'", "16777217"]
TIMES = ["1969-12-31 23:59:59.999999", "2026-01-31 12:00:00.5", "1700-01-01 00:00:00"]
VALUES = {
    "BIGINT": ["0", "-9223372036854775807", "9223372036854775807", "7"],
    "SMALLINT": ["0", "-32768", "32767"],
    "DOUBLE": FLOATS,
    "FLOAT": FLOATS,
    "DECIMAL(20, 3)": ["0", "-0.001", "12345678901234567.125", "7.5"],
    "DATE": ["'1969-12-31'", "'2026-01-31'", "'0001-01-01'", "'9999-12-31'"],
    "TIMESTAMP": [f"'{time}+00:00'" for time in TIMES],
    "TIMESTAMP_NTZ": [f"'{time}'" for time in TIMES],
    "BOOLEAN": ["true", "false"],
}
OF_DUCKDB = {"TIMESTAMP": "TIMESTAMPTZ", "TIMESTAMP_NTZ": "TIMESTAMP"}
WIDER = {"SMALLINT": "BIGINT", "FLOAT": "DOUBLE", "DECIMAL(20, 3)": "DECIMAL(25, 5)"}
WIDER["DATE"] = "TIMESTAMP_NTZ"
NAMES = [f"c{n}" for n in range(len(VALUES))]
QUERY = "SELECT count(*)" + "".join(f", count({n}), min({n}), max({n})" for n in NAMES) + " FROM t"


def _row(data: st.DataObject, types: dict[str, str] | None) -> str:
    cells = []
    for kind, values in VALUES.items():
        value = data.draw(st.sampled_from(["NULL", *values]))
        cells.append(f"CAST({value} AS {kind if types is None else types.get(kind, kind)})")
    return f"({', '.join(cells)})"


def _answers(spark: SparkSession, lake: shelduck.Lake) -> list[str]:
    found = []
    for setting in ("true", "false"):
        spark.conf.set(SETTING, setting)
        try:
            found.append(repr(lake.sql(QUERY).collect()))
        finally:
            spark.conf.unset(SETTING)
    return found


@pytest.mark.slow
@settings(SETTINGS, max_examples=long(300, 40))
@given(data=st.data())
def test_an_answer_of_the_catalog_is_that_of_the_rows(spark, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("answers")
    url = f"sqlite:///{folder}/lake.db"
    columns = ", ".join(f"{n} {k}" for n, k in zip(NAMES, VALUES, strict=True))
    with shelduck.connect(url, f"{folder}/data", spark, progress=False) as lake:
        lake.set_option("data_inlining_row_limit", data.draw(st.sampled_from([0, 2])))
        lake.sql(f"CREATE TABLE t ({columns}) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        for _ in range(data.draw(st.integers(1, 3))):
            is_duckdb = data.draw(st.booleans())
            rows = [_row(data, OF_DUCKDB if is_duckdb else None) for _ in range(3)]
            statement = f"INSERT INTO {'lake.' * is_duckdb}t VALUES {', '.join(rows)}"
            note(statement)
            if is_duckdb:
                with DuckDBOracle(url) as duckdb:
                    duckdb.execute(statement)
            else:
                lake.sql(statement)
        answered, counted = _answers(spark, lake)
        assert answered == counted
        for name, kind in zip(NAMES, VALUES, strict=True):
            if kind in WIDER and data.draw(st.booleans()):
                lake.sql(f"ALTER TABLE t ALTER COLUMN {name} TYPE {WIDER[kind]}")
        answered, counted = _answers(spark, lake)
        assert answered == counted
