"""Loads into AGGREGATE tables, whose values are combined, and into DUPLICATE ones, which sort."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import shelduck
from shelduck import InvalidRequest
from shelduck.model.tables.keys import DELETE_SIGN
from tests.support.lakes import newest, refusal, rows
from tests.support.oracle import DuckDBOracle

FRACTIONS = ["20,10", "18,8", "38,7", "38,10", "38,18", "38,37", "38,38"]
STATEMENTS = [
    (
        "CREATE TABLE a (k INT, s INT SUM, lo BIGINT MIN, hi DATE MAX, r STRING REPLACE,"
        " l STRING REPLACE_IF_NOT_NULL) AGGREGATE KEY (k)"
    ),
    (
        "INSERT INTO a VALUES (1, 1, 10, DATE'2024-01-01', 'x', 'x'),"
        " (2, NULL, NULL, NULL, NULL, NULL), (1, 2, 9, DATE'2020-01-01', NULL, NULL),"
        " (2, NULL, NULL, NULL, NULL, NULL), (3, -5, NULL, NULL, 'only', NULL),"
        " (NULL, 1, 1, NULL, 'n', 'n'), (NULL, 2, 2, NULL, 'm', 'm')"
    ),
    (
        "CREATE TABLE n (k INT, i INT SUM, b BIGINT SUM, d DECIMAL(38, 2) SUM, e DECIMAL(5, 2) SUM,"
        " f FLOAT SUM, g DOUBLE SUM, u UTINYINT SUM, w UBIGINT SUM, t TINYINT SUM, m DOUBLE MAX,"
        " c STRING MIN) AGGREGATE KEY (k)"
    ),
    (
        "INSERT INTO n VALUES (1, 2147483647, 9223372036854775807,"
        " 999999999999999999999999999999999999.99, 999.99, 0.5, 1.5, 200, 18446744073709551615,"
        " 100, 1, 'b'), (1, -7, -7, -0.99, -0.99, 0.25, 1e300, 50, NULL, -1, DOUBLE('NaN'), 'B')"
    ),
    "CREATE TABLE d (k INT, s STRING, v INT) DUPLICATE KEY (k, s)",
    "CREATE TABLE x (j INT, k INT, {}) AGGREGATE KEY (j, k) ROLLUP (by_k (k, s0))".format(
        ", ".join(f"s{n} DECIMAL({kind}) SUM" for n, kind in enumerate(FRACTIONS))
    ),
    "CREATE TABLE y (k INT, s DECIMAL(38, 18) SUM) AGGREGATE KEY (k)",
]
LOADED = [
    (1, 3, 9, dt.date(2024, 1, 1), None, "x"),
    (2, *[None] * 5),
    (3, -5, None, None, "only", None),
    (None, 3, 1, None, "m", "m"),
]


@pytest.fixture
def in_order():
    """Rows by their texts; NaN, which is equal to nothing, is a text."""

    def in_order(found):
        rows = (tuple("nan" if v != v else v for v in row) for row in found)  # noqa: PLR0124
        return sorted(rows, key=str)

    return in_order


def test_rows_of_one_load_are_combined(both):
    assert both("a") == LOADED


def test_a_load_is_combined_with_what_is_there(copied, both):
    catalog, lake = copied
    done = lake.sql(
        "INSERT INTO a VALUES (1, 4, 20, DATE'2025-01-01', 'y', NULL), (1, NULL, NULL, NULL, 'z',"
        " 'z'), (2, 1, 2, DATE'2020-01-01', 'q', 'q'), (4, 1, 1, NULL, NULL, NULL),"
        " (NULL, NULL, NULL, NULL, NULL, NULL)"
    ).first()

    assert (done.inserted, done.updated, done.deleted) == (1, 3, 0)
    assert both("a") == [
        (1, 7, 9, dt.date(2025, 1, 1), "z", "z"),
        (2, 1, 2, dt.date(2020, 1, 1), "q", "q"),
        LOADED[2],
        (4, 1, 1, None, None, None),
        (None, 3, 1, None, None, "m"),
    ]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        old = "SELECT rowid FROM a WHERE k IN (1, 2, 3) ORDER BY k"
        assert duckdb.sql(old) == duckdb.sql(old.replace("WHERE", "AT (VERSION => 2) WHERE"))


@pytest.mark.slow
def test_columns_that_are_left_out_get_their_defaults(lake, both):
    lake.sql(
        "ALTER TABLE a ADD COLUMN p INT SUM DEFAULT 0, ADD COLUMN z STRING REPLACE DEFAULT 'd'"
    )
    lake.sql("UPDATE a SET p = 5, z = 'old' WHERE k = 1")
    lake.sql("INSERT INTO a (k, s) VALUES (1, 1), (7, 1)")

    found = {row[0]: row[1:] for row in both("a")}
    assert found[1] == (4, 9, dt.date(2024, 1, 1), None, "x", 5, "d")
    assert found[7] == (1, None, None, None, None, 0, "d")
    assert found[2] == (*[None] * 5, 0, "d")


@pytest.mark.slow
def test_sums_are_made_in_the_type_of_their_column(lake, both):
    big, most = (Decimal(f"{'9' * 36}.{cents}") for cents in ("00", "99"))
    [found] = both("n")
    assert found[:10] == (
        *(1, 2**31 - 8, 2**63 - 8, big, Decimal("999.00"), 0.75, 1e300),
        *(250, 2**64 - 1, 99),
    )
    assert found[10:] == ("nan", "B")
    lake.sql("INSERT INTO n VALUES (1, 7, 7, 0.99, 0.99, 0.25, 1e300, 5, 0, 28, 5, 'A')")
    [found] = both("n")
    assert found[1:5] == (2**31 - 1, 2**63 - 1, most, Decimal("999.99"))
    assert found[5:10] == (1.0, 2e300, 255, 2**64 - 1, 127)
    assert found[10:] == ("nan", "A")


@pytest.mark.slow
@pytest.mark.parametrize("ansi", [True, False])
def test_sums_of_fractions_are_exact(lake, both, spark, ansi):
    """Spark adds decimals of 38 digits with one fraction digit less."""
    least = [Decimal(1).scaleb(-int(kind.split(",")[1])) for kind in FRACTIONS]
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        for times in (1, 2, -5):
            values = ", ".join(f"{times * one:f}" for one in least)
            lake.sql(f"INSERT INTO x VALUES (0, 1, {values})")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")

    assert both("x") == [(0, 1, *[-2 * one for one in least])]
    assert both("x$by_k") == [(1, -2 * least[0])]


def test_a_sum_of_fractions_may_have_38_digits(lake, both):
    most = "9" * 20 + "." + "9" * 18
    lake.sql(f"INSERT INTO y VALUES (1, {most}), (2, -{most}), (3, {most})")
    lake.sql(f"INSERT INTO y VALUES (1, -{most}), (2, 0.000000000000000001), (3, 0)")
    with pytest.raises(InvalidRequest, match=r"column s of main.y \(its sum\) has more"):
        lake.sql("INSERT INTO y VALUES (3, 0.000000000000000001)")

    assert both("y") == [(1, 0), (2, Decimal(f"-{most[:-1]}8")), (3, Decimal(most))]


TOO_MUCH = [
    ("i", "8", "column i of main.n (its sum) is int32, which must hold every value exactly, got"),
    ("b", "8", "column b of main.n (its sum) is int64, which must hold every value exactly, got"),
    ("d", "1.00", "column d of main.n (its sum) has more than 38 digits"),
    ("e", "1.00", "column e of main.n (its sum) is decimal(5,2), which must hold every value"),
    ("u", "6", "column u of main.n (its sum) is uint8, which holds numbers from 0 to 255, got 256"),
    ("w", "1", "column w of main.n (its sum) is uint64"),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("column", "value", "message"), TOO_MUCH)
def test_a_sum_that_its_column_cannot_hold_fails_the_load(copied, base, column, value, message):
    catalog, lake = copied
    told = refusal(
        InvalidRequest,
        lambda: lake.sql(f"INSERT INTO n (k, {column}) VALUES (1, {value}), (2, 1)"),
        *(catalog, base.folder / "data"),
    )
    assert message in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("i", "2147483647", "column i of main.n (its sum) is int32"),
        ("b", "9223372036854775807", "column b of main.n (its sum) is int64"),
        ("d", "999999999999999999999999999999999999.99", "(its sum) has more than 38 digits"),
        ("t", "127", "column t of main.n (its sum) is int8"),
    ],
)
def test_nor_may_a_load_be_too_much_for_itself(copied, base, column, value, message):
    catalog, lake = copied
    told = refusal(
        InvalidRequest,
        lambda: lake.sql(f"INSERT INTO n (k, {column}) VALUES (9, {value}), (9, {value})"),
        *(catalog, base.folder / "data"),
    )
    assert message in told


@pytest.mark.slow
def test_a_key_alone_is_kept_once(lake, both):
    lake.sql("CREATE TABLE k (a INT, b STRING) AGGREGATE KEY (a, b)")
    lake.sql("INSERT INTO k VALUES (1, 'x'), (1, 'x'), (NULL, NULL)")
    lake.sql("INSERT INTO k VALUES (1, 'x'), (2, 'x')")

    assert rows(lake.sql("SELECT * FROM k ORDER BY a")) == [(None, None), (1, "x"), (2, "x")]


def test_python_makes_a_table_that_combines(copied, spark):
    catalog, lake = copied
    table = lake.create_table(
        "p",
        {"day": "date NOT NULL", "Site": "string", "pv": "bigint", "last": "array<int>"},
        keys=shelduck.aggregate("DAY", "site"),
        aggregates={"PV": "sum", "last": "replace"},
        partitioned_by=["day"],
    )
    frame = spark.sql(
        "SELECT pv, DATE'2024-01-01' AS day, 'x' AS site, array(pv) AS last FROM"
        " VALUES (1L), (2L) AS v(pv)"
    )
    for _ in range(2):
        table.append(frame)

    assert rows(table.read()) == [(dt.date(2024, 1, 1), "x", 6, [2])]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        assert duckdb.rows("p") == rows(table.read())
        assert duckdb.rows("p", version=newest(lake) - 1) == [(dt.date(2024, 1, 1), "x", 3, [2])]
    with pytest.raises(InvalidRequest, match="aggregate type SUM is not compatible with column v"):
        lake.create_table(
            "r", {"k": "int", "v": "string"}, keys=shelduck.aggregate("k"), aggregates={"v": "sum"}
        )


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (f"INSERT INTO a (k, {DELETE_SIGN}) VALUES (1, 1)", "is not a UNIQUE KEY table"),
        (f"INSERT INTO d (k, {DELETE_SIGN}) VALUES (1, 1)", f"has no column {DELETE_SIGN}"),
        (
            "INSERT WITH SCHEMA EVOLUTION INTO a BY NAME SELECT 1 AS k, 1 AS more",
            "cannot add column more to main.a: its columns need an aggregation type; use",
        ),
        (
            (
                "MERGE WITH SCHEMA EVOLUTION INTO a USING (SELECT 1 AS k, 1 AS more) b ON a.k = b.k"
                " WHEN MATCHED THEN UPDATE SET *"
            ),
            "cannot add column more to main.a: its columns need an aggregation type; use",
        ),
        (
            "INSERT WITH SCHEMA EVOLUTION OVERWRITE TABLE a BY NAME SELECT 1 AS k, 1 AS more",
            "cannot add column more to main.a: its columns need an aggregation type; use",
        ),
        ("CALL fold('d')", "cannot fold main.d: it has no UNIQUE or AGGREGATE KEY"),
    ],
)
def test_what_only_other_models_know_is_refused(copied, base, statement, message):
    catalog, lake = copied
    told = refusal(InvalidRequest, lambda: lake.sql(statement), *(catalog, base.folder / "data"))
    assert message in told


@pytest.mark.slow
def test_duplicate_keys_sort_the_rows_and_keep_all(copied, both, spark):
    catalog, lake = copied
    frame = spark.range(0, 60, 1, 4).selectExpr(
        "CAST(9 - id % 10 AS INT) AS k", "IF(id % 3 = 0, 'b', 'a') AS s", "CAST(id AS INT) AS v"
    )
    done = lake.table("d").append(frame.unionAll(frame))
    lake.sql("INSERT INTO d VALUES (0, 'a', 0), (0, 'a', 0), (NULL, NULL, NULL)")

    assert (done.inserted, len(both("d"))) == (120, 123)
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        for file in lake.table("d").files().collect():
            found = duckdb.sql("SELECT k, s FROM read_parquet(?)", [file.file_path])
            assert found == sorted(found, key=lambda key: (key[0] is None, key))


@pytest.mark.slow
def test_statements_change_duplicate_keys_as_they_like(lake, both):
    lake.sql("INSERT INTO d VALUES (1, 'a', 1), (2, 'a', 2); UPDATE d SET k = 1")
    lake.sql(
        "MERGE INTO d USING (SELECT 1 AS k, 'a' AS s, 3 AS v) AS s ON d.v = s.v"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    assert both("d") == [(1, "a", 1), (1, "a", 2), (1, "a", 3)]
