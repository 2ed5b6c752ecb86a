"""Every pair of the lattice through the public API, with the values at the ends of each type.

One table for each type, with five columns (top level, struct, list, map key, map value) for each
type that it widens to. What is expected is arithmetic on the values that were written; DuckDB reads
the same table, and filters it alike where the verdict says so.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
import operator
import struct
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

import shelduck
from shelduck import Unsupported, change_type, set_properties
from shelduck.model.types.data_types import ducklake_type
from shelduck.model.types.promotions import Verdict, promotion
from tests.support.lengths import turns
from tests.support.normal import duckdb_rows, in_order, spark_rows, spark_rows_by_key
from tests.support.oracle import DuckDBOracle

FACTS = Path(__file__).parents[1] / "data" / "promotions.csv"
ON = set_properties({"delta.enableTypeWidening": "true"})


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def _pairs():
    light, heavy = defaultdict(list), []
    with FACTS.open() as file:
        for row in csv.DictReader(file):
            source, target = row["source"], row["target"]
            found = promotion(ducklake_type(source), ducklake_type(target))
            if found.is_light:
                light[source].append(target)
            else:
                heavy.append((source, target, found.reason))
    return light, heavy


LIGHT, HEAVY = _pairs()


def _ends(bits, *, signed):
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return [least, 0, 1, 6, 7, most - 1, most]


def _day(year, month, day):
    return dt.datetime(year, month, day)  # noqa: DTZ001 - a local time


# What is written while the column has its old type, as numbers and times that Python compares.
VALUES = {
    **{f"int{n}": _ends(n, signed=True) for n in (8, 16, 32, 64)},
    **{f"uint{n}": _ends(n, signed=False) for n in (8, 16, 32, 64)},
    "float32": [
        *map(float32, (0.0, -0.0, 1.1, -1.1, 1e-45, 3.4028234663852886e38, 16777217.0)),
        *(math.inf, -math.inf, math.nan),
    ],
    "date": [_day(1, 1, 1), _day(1582, 10, 15), _day(1969, 12, 31), _day(2024, 2, 29)],
    "timestamp_s": [_day(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), _day(2024, 2, 29)],  # noqa: DTZ001
    "timestamp_ms": [
        *(_day(1, 1, 1), _day(2024, 2, 29)),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999000),  # noqa: DTZ001
    ],
    "decimal(4,2)": list(map(Decimal, ("-99.99", "0.00", "1.23", "1.24", "99.99"))),
    "decimal(9,0)": list(map(Decimal, ("-999999999", "0", "6", "7", "999999999"))),
    "decimal(9,2)": list(map(Decimal, ("-9999999.99", "0.00", "1.23", "1.24", "9999999.99"))),
    "decimal(18,2)": [
        *map(Decimal, ("-9999999999999999.99", "0.00", "1.23", "1.24", "9999999999999999.99"))
    ],
    "decimal(20,0)": [
        *map(Decimal, ("-99999999999999999999", "0", "6", "7", "99999999999999999999"))
    ],
}
OPERATORS = {"<": operator.lt, ">": operator.gt, "<=": operator.le, "=": operator.eq}
POSITIONS = ("top", "in_struct", "in_list", "map_key", "map_value")


def seam(source, target):
    """A value of ``target`` that lies between two that ``source`` has, or one that both have."""
    if target.startswith("timestamp"):
        fraction = 0 if target == "timestamp_s" else 500000
        return dt.datetime(2024, 2, 28, 12, 0, 0, fraction)  # noqa: DTZ001 - a local time
    if source == "float32":
        return 1.1
    if source.startswith("decimal"):
        scale, finer = (int(t.rpartition(",")[2][:-1]) for t in (source, target))
        low = Decimal("1.23") if scale == 2 else Decimal(6)
        return low + (Decimal(5).scaleb(-scale - 1) if finer > scale else 0)
    if target.startswith("float"):
        return 6.5
    scale = int(target.rpartition(",")[2][:-1]) if target.startswith("decimal") else 0
    return Decimal("6.5") if scale else 6


def literal(value, kind):
    """A value as Spark SQL writes it, of the Spark type that holds the DuckLake type."""
    if value is None:
        return f"CAST(NULL AS {spark_word(kind)})"
    if isinstance(value, dt.datetime):
        text = value.isoformat(" ")
        return f"DATE'{text[:10]}'" if kind == "date" else f"TIMESTAMP_NTZ'{text}'"
    text = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, str(value))
    return f"CAST('{text}' AS {spark_word(kind)})"


def spark_word(kind):
    words = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT"}
    words |= {"uint8": "SMALLINT", "uint16": "INT", "uint32": "BIGINT", "uint64": "DECIMAL(20,0)"}
    words |= {"float32": "FLOAT", "float64": "DOUBLE", "date": "DATE"}
    words |= dict.fromkeys(("int128", "uint128"), "DECIMAL(38,0)")
    return words.get(kind, "TIMESTAMP_NTZ" if kind.startswith("timestamp") else kind)


def form(value, kind):
    """What the normal form of a value is once its column has a type."""
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if kind.startswith("float"):
        return "nan" if math.isnan(value) else repr(float(value))
    whole = value == int(value)
    return int(value) if whole else Decimal(value).normalize()


def expected_row(number, value, targets, part):
    cells = [number, *part]
    for target in targets:
        made = form(value, target)
        if value is None:
            cells += [None] * len(POSITIONS)
            continue
        # Spark knows one zero among the keys of maps.
        key = "0.0" if made == "-0.0" else made
        cells += [made, (made,), [made], ("map", [(key, 1)]), ("map", [(1, made)])]
    return tuple(cells)


def columns_of(source, targets):
    shapes = ("{}", "struct<v: {}>", "array<{}>", "map<{}, int>", "map<int, {}>")
    return {
        f"{position}_{n}": shape.format(source)
        for n in range(len(targets))
        for position, shape in zip(POSITIONS, shapes, strict=True)
    }


def selected(value, kinds):
    """The columns of one row; ``kinds`` has the type of each target's columns just then."""
    cells = []
    for n, kind in enumerate(kinds):
        one = literal(value, kind)
        word = spark_word(kind)
        shapes = [one, f"named_struct('v', {one})", f"array({one})", f"map({one}, 1)"]
        shapes.append(f"map(1, {one})")
        if value is None:
            nested = (f"STRUCT<v: {word}>", f"ARRAY<{word}>", f"MAP<{word}, INT>")
            shapes = [one, *(f"CAST(NULL AS {k})" for k in (*nested, f"MAP<INT, {word}>"))]
        cells += [f"{s} AS {p}_{n}" for s, p in zip(shapes, POSITIONS, strict=True)]
    return ", ".join(cells)


def paths(n):
    """Where a value of the n-th target is, as ALTER names it, and as a filter does."""
    parts = (f"top_{n}", f"in_struct_{n}.v", f"in_list_{n}.element", f"map_key_{n}.key")
    return (*parts, f"map_value_{n}.value")


# One target of each kind; all of them, of all sources, take long.
FAST, SOME = "uint32", ("int64", "uint64", "float64", "decimal(12,2)", "decimal(38,10)")
_ALL = [(source, way) for way in ("vectorized", "partitioned, row reader") for source in VALUES]
CASES = [
    pytest.param(FAST, "some targets", id=f"{FAST}-some targets"),
    *(
        pytest.param(source, way, id=f"{source}-{way}", marks=pytest.mark.slow)
        for stretch in turns(_ALL, 10)
        for source, way in stretch
    ),
]


@pytest.fixture
def partitioned(way, spark):
    """Whether the table is partitioned by a column that widens; then Spark reads row by row."""
    if not way.startswith("partitioned"):
        yield False
        return
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    yield True
    spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@pytest.mark.parametrize(("source", "way"), CASES)
def test_values_survive_and_filters_find_them(  # noqa: PLR0917 - fixtures
    sqlite_url, data_path, spark, source, way, partitioned
):
    targets = list(SOME) if way == "some targets" else LIGHT[source]
    assert set(targets) <= set(LIGHT[source])
    values = [*VALUES[source], None]
    with shelduck.connect(sqlite_url, data_path, spark) as lake:
        table = made_and_widened(lake, source, targets, values, partitioned=partitioned)
        beside = [(len(values) + n, seam(source, t), n) for n, t in enumerate(targets)]
        append_beside(lake, table, targets, beside, partitioned=partitioned)
        expected = [
            expected_row(n, v, targets, [form(v, targets[-1])] if partitioned else [])
            for n, v in enumerate(values)
        ]
        expected += [
            beside_row(number, value, n, targets, partitioned=partitioned)
            for number, value, n in beside
        ]

        assert spark_rows(table.read()) == in_order(expected)
        assert table.read().count() == len(expected)
        wanted = dict(filters(source, targets, values, beside))
        found = spark_rows_by_key(
            {
                condition: table.read(columns=["id", condition.split()[0].partition(".")[0]])
                .where(condition)
                .select("id")
                for condition in wanted
            }
        )
        assert {c: {r[0] for r in rows} for c, rows in found.items()} == wanted
    with DuckDBOracle(sqlite_url) as duckdb:
        assert duckdb_rows(duckdb, "t") == in_order(expected)
        ends = ", ".join(f"min(top_{n}), max(top_{n})" for n in range(len(targets)))
        assert duckdb_rows(duckdb, f"(SELECT {ends} FROM t)") == [
            tuple(e for n, t in enumerate(targets) for e in ends_of(n, t, values, beside))
        ]
        shared = agreed_by_duckdb(source, targets, wanted)
        answers = {c: {i for (i,) in duckdb.sql(f"SELECT id FROM t WHERE {c}")} for c in shared}
        assert answers == shared


def made_and_widened(lake, source, targets, values, *, partitioned):
    """A table of the old type with one file of values, whose columns then widen in one ALTER."""
    columns = {"id": "int", **({"part": source} if partitioned else {})}
    columns |= columns_of(source, targets)
    keys = ["part"] if partitioned else []
    table = lake.create_table("t", columns, partitioned_by=keys)
    lake.set_option("data_inlining_row_limit", 0)
    part = [f"{literal(v, source)} AS part, " if partitioned else "" for v in values]
    rows = " UNION ALL ".join(
        f"SELECT {n} AS id, {part[n]}{selected(v, [source] * len(targets))}"
        for n, v in enumerate(values)
    )
    table.append(lake.spark.sql(rows).coalesce(1))
    changes = [change_type(p, spelled(t)) for n, t in enumerate(targets) for p in paths(n)]
    if partitioned:
        changes.append(change_type("part", spelled(targets[-1])))
    table.alter(ON, *changes)
    return table


def append_beside(lake, table, targets, beside, *, partitioned):
    """One row for each target with a value of the new type, NULL in the others' columns."""
    rows = []
    for number, value, n in beside:
        cells = [f"{number} AS id"]
        if partitioned and n == len(targets) - 1:
            cells.append(f"{literal(value, targets[n])} AS part")
        elif partitioned:
            cells.append(f"{literal(None, targets[-1])} AS part")
        for at, target in enumerate(targets):
            given = selected(value if at == n else None, [target])
            cells.append(given.replace("_0", f"_{at}") if at else given)
        rows.append(f"SELECT {', '.join(cells)}")
    table.append(lake.spark.sql(" UNION ALL ".join(rows)).coalesce(1))


def beside_row(number, value, n, targets, *, partitioned):
    part = [form(value, targets[n]) if n == len(targets) - 1 else None] if partitioned else []
    cells = [number, *part]
    for at, target in enumerate(targets):
        cells += expected_row(0, value if at == n else None, [target], [])[1:]
    return tuple(cells)


def ends_of(n, target, values, beside):
    """The least and the greatest value of the n-th target; NaN is above all others."""
    known = [v for v in values if v is not None] + [v for _, v, at in beside if at == n]
    order = sorted(known, key=lambda v: (isinstance(v, float) and math.isnan(v), v))
    return form(order[0], target), form(order[-1], target)


def filters(source, targets, values, beside):
    """Conditions at the seams with the ids of the rows for which they are true."""
    for n, target in enumerate(targets):
        edge = seam(source, target)
        known = [*enumerate(values), *((number, v) for number, v, at in beside if at == n)]
        for place, symbols in (("top_{}", ("<", ">", "=")), ("in_struct_{}.v", ("<=",))):
            for symbol in symbols:
                ids = {i for i, v in known if v is not None and holds(symbol, v, edge)}
                yield f"{place.format(n)} {symbol} {constant(edge, target)}", ids


def holds(symbol, value, edge):
    if isinstance(value, float) and math.isnan(value):
        return symbol == ">"  # NaN is above all others, in Spark as in DuckDB.
    return OPERATORS[symbol](value, edge)


def constant(edge, target):
    """A constant that Spark and DuckDB read alike."""
    if isinstance(edge, dt.datetime):
        return f"'{edge.isoformat(' ')}'"
    if target.startswith("float"):
        return f"CAST('{edge}' AS DOUBLE)"
    return str(edge)


def agreed_by_duckdb(source, targets, wanted):
    """The filters on columns whose verdict says that every reader filters them right."""
    verdicts = [promotion(ducklake_type(source), ducklake_type(t)).verdict for t in targets]
    safe = {f"_{n}" for n, v in enumerate(verdicts) if v is Verdict.SAFE}
    columns = {c: c.split()[0].removesuffix(".v") for c in wanted}
    return {c: ids for c, ids in wanted.items() if columns[c][columns[c].rindex("_") :] in safe}


def test_all_other_pairs_are_converted_by_a_job_or_refused_with_the_reason(sqlite_url, data_path):
    """Needs no Spark: nothing is read to refuse a type, or to begin a job."""
    with shelduck.connect(sqlite_url, data_path) as lake:
        sources = sorted({source for source, _, _ in HEAVY})
        for source in sources:
            # A job writes whole files, so a column that cannot be written would be in its way.
            table = lake.create_table(f"of_{sources.index(source)}", {"c": spelled(source)})
            table.alter(ON)
        for source, target, reason in HEAVY:
            table = lake.table(f"of_{sources.index(source)}")
            change = change_type("c", spelled(target))
            if is_converted(source, target):
                table.alter(change).cancel()
                continue
            before = lake.snapshots()[-1].id
            with pytest.raises(Unsupported) as refused:
                table.alter(change)
            told = f"cannot change c of {table.name} from {source} to {target}: {reason}"
            assert str(refused.value).startswith(told)
            assert lake.snapshots()[-1].id == before
    assert len(HEAVY) + sum(map(len, LIGHT.values())) == 307


def is_converted(source, target):
    verdict = promotion(ducklake_type(source), ducklake_type(target)).verdict
    return verdict is Verdict.CONVERT


def spelled(kind):
    """A DuckLake type as Spark SQL names it; the other words are the same."""
    return {"timestamp": "timestamp_ntz", "timestamptz": "timestamp"}.get(kind, kind)
