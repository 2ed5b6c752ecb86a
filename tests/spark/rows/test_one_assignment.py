"""Which values a column takes, through every door by which rows come into a table.

The cases are the table of docs/types.md in literal values. Each door takes, refuses and fails the
same ones, whatever Spark's rules of store assignment are.
"""

from __future__ import annotations

import uuid

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck import ShelduckError
from tests.support.attaching import attached_lake, duck, url_of
from tests.support.lakes import rows

pytestmark = [pytest.mark.guard, pytest.mark.every_spark]

T = "lake.main.t"


def _statement(text):
    return lambda spark, _, query: spark.sql(text.format(query=query))


def _listed(text):
    def write(spark, _, query):
        columns = ", ".join(spark.table(T).columns)
        spark.sql(text.format(query=query, t=f"{T} ({columns})"))

    return write


def _frame(write):
    return lambda spark, _, query: write(spark.sql(query))


def _table(write):
    return lambda spark, lake, query: write(lake.table("t"), spark.sql(query))


DOORS = {
    "INSERT": _statement("INSERT INTO lake.main.t {query}"),
    "WITH": _statement("WITH q AS ({query}) INSERT INTO lake.main.t SELECT * FROM q"),
    "writeTo": _frame(lambda df: df.writeTo(T).append()),
    "insertInto": _frame(lambda df: df.write.insertInto(T)),
    "FROM, a list": _listed("FROM ({query}) INSERT INTO {t} SELECT *"),
    "INSERT BY NAME": _statement("INSERT INTO lake.main.t BY NAME {query}"),
    "INSERT OVERWRITE": _statement("INSERT OVERWRITE lake.main.t {query}"),
    "REPLACE WHERE": _statement("INSERT INTO lake.main.t REPLACE WHERE true {query}"),
    "WITH, BY NAME": _statement(
        "WITH q AS ({query}) INSERT INTO lake.main.t BY NAME SELECT * FROM q"
    ),
    "WITH, OVERWRITE": _statement(
        "WITH q AS ({query}) INSERT OVERWRITE lake.main.t SELECT * FROM q"
    ),
    "FROM": _statement("FROM ({query}) INSERT INTO lake.main.t SELECT *"),
    "FROM, twice": _statement(
        "FROM ({query}) INSERT INTO lake.main.t SELECT * WHERE false"
        " INSERT INTO lake.main.t SELECT *"
    ),
    "FROM, two lists": _listed(
        "FROM ({query}) INSERT INTO {t} SELECT * WHERE false INSERT INTO {t} SELECT *"
    ),
    "a list": _listed("INSERT INTO {t} {query}"),
    "EXECUTE IMMEDIATE, a list": _listed(
        'EXECUTE IMMEDIATE "FROM ({query}) INSERT INTO {t} SELECT *"'
    ),
    "a script, a list": _listed("BEGIN FROM ({query}) INSERT INTO {t} SELECT *; END"),
    "EXECUTE IMMEDIATE": _statement('EXECUTE IMMEDIATE "INSERT INTO lake.main.t {query}"'),
    "a script": _statement("BEGIN INSERT INTO lake.main.t {query}; END"),
    "writeTo, overwrite": _frame(lambda df: df.writeTo(T).overwrite(F.lit(True))),
    "saveAsTable": _frame(lambda df: df.write.mode("append").saveAsTable(T)),
    "insertInto, overwrite": _frame(lambda df: df.write.insertInto(T, overwrite=True)),
    "foreachBatch": _table(lambda table, df: table.sink(uuid.uuid4().hex)(df, 0)),
    "append": _table(lambda table, df: table.append(df)),
    "append by position": _table(lambda table, df: table.append(df, by_position=True)),
    "overwrite": _table(lambda table, df: table.overwrite(df)),
}
if pyspark.__version__.startswith("4.0."):
    # There, a script cannot change a lake.
    del DOORS["a script"], DOORS["a script, a list"]

# They have the same rule with words of their own, and a rule of their own for fields that a source
# lacks.
MERGES = {
    "MERGE": _statement(
        "MERGE INTO lake.main.t USING ({query}) s ON false WHEN NOT MATCHED THEN INSERT *"
    ),
    "mergeInto": _frame(
        lambda df: df.alias("s").mergeInto(T, F.lit(False)).whenNotMatched().insertAll().merge()
    ),
}

# The type of a column, a value, and the text of what is stored.
TAKEN = [
    ("BIGINT", "7", "7"),
    ("INT", "7L", "7"),
    ("SMALLINT", "7BD", "7"),
    ("DECIMAL(5,2)", "1.500", "1.50"),
    ("DECIMAL(5,2)", "3", "3.00"),
    ("FLOAT", "16777216", "1.6777216E7"),
    ("DOUBLE", "9007199254740992L", "9.007199254740992E15"),
    ("DOUBLE", "0.1", "0.1"),
    ("FLOAT", "0.1", "0.1"),
    ("DOUBLE", "0.5F", "0.5"),
    ("TIMESTAMP", "DATE'2026-01-02'", "2026-01-02 00:00:00"),
    ("TIMESTAMP_NTZ", "DATE'2026-01-02'", "2026-01-02 00:00:00"),
    ("TIMESTAMP_NTZ", "TIMESTAMP'2026-01-02 03:04:05'", "2026-01-02 03:04:05"),
    ("TIMESTAMP", "TIMESTAMP_NTZ'2026-01-02 03:04:05'", "2026-01-02 03:04:05"),
    ("VARCHAR(2)", "'ab'", "ab"),
    ("INT", "NULL", None),
    ("STRUCT<a: INT, b: STRING>", "NULL", None),
    ("STRUCT<a: INT, b: INT>", "named_struct('b', 1L, 'A', 2)", "{2, 1}"),
    ("STRUCT<a: INT, b: INT>", "named_struct('a', 1)", "{1, null}"),
    ("ARRAY<INT>", "array(7L)", "[7]"),
    ("ARRAY<STRUCT<a: INT, b: INT>>", "array(named_struct('b', 1, 'a', 2))", "[{2, 1}]"),
    ("MAP<INT, DOUBLE>", "map(7L, 2)", "{7 -> 2.0}"),
    (
        "MAP<STRING, STRUCT<a: INT, b: ARRAY<STRUCT<c: INT, d: INT>>>>",
        "map('k', named_struct('b', array(named_struct('d', 1, 'c', 2)), 'a', 3))",
        "{k -> {3, [{2, 1}]}}",
    ),
]

# The type of a column, values of a type that it does not take, and what is told of column {c}.
_CAST = "; cast it explicitly if that is what you want"
REFUSED = [
    ("INT", "1.4D", f"column {{c}}: double cannot be stored as int32{_CAST}"),
    ("INT", "1F", f"column {{c}}: float cannot be stored as int32{_CAST}"),
    ("INT", "1.4", f"column {{c}}: decimal(2,1) cannot be stored as int32{_CAST}"),
    ("SMALLINT", "3.7D", f"column {{c}}: double cannot be stored as int16{_CAST}"),
    ("INT", "'5'", f"column {{c}}: string cannot be stored as int32{_CAST}"),
    ("INT", "true", f"column {{c}}: boolean cannot be stored as int32{_CAST}"),
    ("FLOAT", "1e300D", f"column {{c}}: double cannot be stored as float32{_CAST}"),
    ("FLOAT", "0.1D", f"column {{c}}: double cannot be stored as float32{_CAST}"),
    ("DECIMAL(5,2)", "1D", f"column {{c}}: double cannot be stored as decimal(5,2){_CAST}"),
    (
        "DATE",
        "TIMESTAMP'2020-01-01 23:59:59'",
        f"column {{c}}: timestamp cannot be stored as date{_CAST}",
    ),
    (
        "DATE",
        "TIMESTAMP_NTZ'2020-01-01 00:00:00'",
        f"column {{c}}: timestamp_ntz cannot be stored as date{_CAST}",
    ),
    ("TIMESTAMP", "'2020-01-01'", f"column {{c}}: string cannot be stored as timestamptz{_CAST}"),
    ("BOOLEAN", "1", f"column {{c}}: int cannot be stored as boolean{_CAST}"),
    ("BINARY", "'a'", f"column {{c}}: string cannot be stored as blob{_CAST}"),
    ("STRING", "5", f"column {{c}}: int cannot be stored as varchar{_CAST}"),
    ("STRING", "1.5D", f"column {{c}}: double cannot be stored as varchar{_CAST}"),
    ("STRING", "DATE'2020-01-01'", f"column {{c}}: date cannot be stored as varchar{_CAST}"),
    ("STRING", "true", f"column {{c}}: boolean cannot be stored as varchar{_CAST}"),
    ("STRING", "X'00'", f"column {{c}}: binary cannot be stored as varchar{_CAST}"),
    (
        "STRUCT<a: INT>",
        "named_struct('a', 1.4D)",
        f"column {{c}}.a: double cannot be stored as int32{_CAST}",
    ),
    ("ARRAY<INT>", "array(1.4D)", f"column {{c}}.element: double cannot be stored as int32{_CAST}"),
    (
        "MAP<STRING, INT>",
        "map('k', 1.4D)",
        f"column {{c}}.value: double cannot be stored as int32{_CAST}",
    ),
    (
        "MAP<INT, STRING>",
        "map(1.4D, 'v')",
        f"column {{c}}.key: double cannot be stored as int32{_CAST}",
    ),
    ("STRUCT<a: INT>", "named_struct('x', 1)", "column {c} has no field x"),
    ("ARRAY<STRUCT<a: INT>>", "array(named_struct('x', 1))", "column {c}.element has no field x"),
    (
        "MAP<STRING, STRUCT<a: INT>>",
        "map('k', named_struct('x', 1))",
        "column {c}.value has no field x",
    ),
    ("STRUCT<a: INT>", "1", "column {c}: int cannot be stored as struct<a: int32>"),
]

# The type of a column, a value that it cannot hold, and what the failed write tells of column c.
_OF = "column c of main.t is"
FAILED = [
    ("INT", "3000000000", f"{_OF} int32, which must hold every value exactly, got 3000000000"),
    (
        "DECIMAL(5,2)",
        "1.239",
        f"{_OF} decimal(5,2), which must hold every value exactly, got 1.239",
    ),
    ("DECIMAL(5,2)", "1000", f"{_OF} decimal(5,2), which must hold every value exactly, got 1000"),
    ("FLOAT", "16777217", f"{_OF} float32, which is exact only for whole numbers from -16777216"),
    (
        "DOUBLE",
        "9007199254740993L",
        f"{_OF} float64, which is exact only for whole numbers from -9",
    ),
    ("VARCHAR(2)", "'abc'", f"{_OF} VARCHAR(2), got a text of 3 characters"),
    ("INT NOT NULL", "CAST(NULL AS INT)", "column c of main.t is NOT NULL, got NULL"),
    (
        "ARRAY<STRUCT<a: MAP<STRING, INT>>>",
        "array(named_struct('a', map('k', 3000000000)))",
        "column c.element.a.value of main.t is int32, which must hold every value exactly",
    ),
]


@pytest.fixture
def lake(spark, tmp_path):
    with attached_lake(spark, tmp_path) as found:
        yield found


@pytest.mark.sampled(5)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_every_door_takes_the_same_values(spark, lake, tmp_path, door):
    door(spark, lake, _make(lake, TAKEN))
    assert _texts(spark) == [tuple(text for *_, text in TAKEN)]
    nested = duck(url_of(tmp_path), "SELECT c17, c20[1].a, c22['k'].b[1].d FROM t")
    assert nested == [({"a": 2, "b": 1}, 2, 1)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_every_door_refuses_the_same_types_before_it_writes(spark, lake, door):
    _refuses(spark, lake, door)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("case", "door"),
    [(case, door) for case in FAILED for door in (DOORS | MERGES).values()],
    ids=[f"{kind} {door}" for kind, *_ in FAILED for door in DOORS | MERGES],
)
def test_every_door_fails_at_a_value_that_does_not_fit(spark, lake, case, door):
    kind, value, why = case
    lake.sql(f"CREATE TABLE t (c {kind})")
    assert why in _told(lambda: door(spark, lake, f"SELECT {value} AS c"))
    assert _texts(spark) == []


@pytest.mark.slow
@pytest.mark.parametrize("door", MERGES.values(), ids=MERGES)
def test_a_merge_has_the_same_rule(spark, lake, door):
    taken = [case for case in TAKEN if case[1] != "named_struct('a', 1)"]
    door(spark, lake, _make(lake, taken))
    assert _texts(spark) == [tuple(text for *_, text in taken)]
    for kind, value, why in REFUSED:
        if "has no field" not in why:
            lake.sql(f"CREATE OR REPLACE TABLE t (c {kind})")
            told = _told(lambda v=value: door(spark, lake, f"SELECT {v} AS c"))
            assert why.format(c="c").removeprefix("column ") in told


SETTINGS = {
    "LEGACY": ("spark.sql.storeAssignmentPolicy", "LEGACY"),
    "STRICT": ("spark.sql.storeAssignmentPolicy", "STRICT"),
    "not ANSI": ("spark.sql.ansi.enabled", "false"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("door", list(DOORS.values())[1:], ids=list(DOORS)[1:])
def test_settings_of_spark_change_no_rule(spark, lake, door, setting):
    name, value = setting
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        _refuses(spark, lake, door)
        lake.sql("DROP TABLE t")
        door(spark, lake, _make(lake, TAKEN))
        assert _texts(spark) == [tuple(text for *_, text in TAKEN)]
    finally:
        spark.conf.set(name, before)


def _make(lake, cases):
    """Make a table with a column for each case, and return the query of its values."""
    kinds = ", ".join(f"c{n} {case[0]}" for n, case in enumerate(cases))
    lake.sql(f"CREATE TABLE t ({kinds})")
    return "SELECT " + ", ".join(f"{case[1]} AS c{n}" for n, case in enumerate(cases))


def _refuses(spark, lake, door):
    query = _make(lake, REFUSED)
    told = _told(lambda: door(spark, lake, query)).splitlines()
    problems = [line for line in told if line.startswith("  - ")]
    assert problems == [f"  - {why.format(c=f'c{n}')}" for n, (*_, why) in enumerate(REFUSED)]
    assert _texts(spark) == []


def _told(write):
    with pytest.raises((ShelduckError, PySparkException)) as caught:
        write()
    return str(caught.value)


def _texts(spark):
    frame = spark.table(T)
    return rows(frame.select([F.col(name).cast("string") for name in frame.columns]))
