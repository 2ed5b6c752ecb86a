"""Doris' published acceptance cases of schema change: columns, types, order and refusals.

A test's name begins with the case's id. Tables have no keys here, and KEY is left out. Where
Shelduck differs deliberately from Doris, a test says so in its docstring: what Doris writes all
rows anew for is metadata only here when old files can be read as the new columns (``light``).
"""

from __future__ import annotations

import datetime as dt

import pytest

from shelduck import AlreadyExists, InvalidRequest, JobState, NotFound, Unsupported
from tests.support.cases import DorisCase
from tests.support.lakes import everything, newest, rows

SITES = "siteid INT, citycode INT, username VARCHAR(32), pv BIGINT NOT NULL DEFAULT '0'"
STATEMENTS = [
    "CREATE TABLE t (k1 INT, value1 STRING)",
    "INSERT INTO t VALUES (1, '7'), (2, NULL)",
    f"CREATE TABLE sites ({SITES})",
    "INSERT INTO sites VALUES (1, 1, 'jim', 2), (2, 1, 'grace', 2), (3, 2, 'tom', 2)",
    "CREATE TABLE many (k INT NOT NULL, v VARCHAR(16) NOT NULL)",
    "INSERT INTO many SELECT CAST(id AS INT), '11' FROM range(0, 8193, 1, 1)",
    "CREATE TABLE words (k INT, a CHAR(5) NOT NULL, b VARCHAR(5) NOT NULL)",
    "INSERT INTO words VALUES (1, 'abc', 'zz'), (2, 'd', '11')",
    (
        "CREATE TABLE p (k1 INT, k2 INT, k3 INT, v INT)"
        " PARTITIONED BY (k2, bucket(4, k3)) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    ),
    "INSERT INTO p VALUES (1, 1, 1, 1), (2, 2, 2, 2), (3, 2, 3, 3)",
    "CREATE TABLE st (k INT, s STRUCT<col: VARCHAR(10)>, m MAP<STRING, INT>)",
    "INSERT INTO st VALUES (1, named_struct('col', 'x'), map('a', 1)), (2, NULL, NULL)",
]


class Case(DorisCase):
    """A lake whose columns are looked at."""

    def columns(self, table):
        """The columns of a table in their order, and what they hold."""
        fields = self.lake.table(table).columns
        return {f.name: f"{f.type}{'' if f.nullable else ' NOT NULL'}" for f in fields}


@pytest.fixture
def case(copied, base):
    return Case(*copied, base.folder / "data")


D01 = (
    "ALTER TABLE t ADD COLUMN k2 INT AFTER k1, ADD COLUMN value2 VARCHAR(16) AFTER value1,"
    " ADD COLUMN value3 INT AFTER value2, MODIFY COLUMN value2 INT AFTER value3"
)


@pytest.mark.slow
def test_d01_clauses_build_upon_each_other(case):
    """Heavy in Doris; light here: ``value2`` is new, so it has no values to convert."""
    case.light(D01)

    assert list(case.columns("t")) == ["k1", "k2", "value1", "value3", "value2"]
    assert case.columns("t")["value2"] == "int32"
    assert case.both("SELECT * FROM t ORDER BY k1") == [
        *[(1, None, "7", None, None), (2, None, None, None, None)]
    ]


def test_d02_all_columns_are_ordered_and_one_is_dropped(case):
    """ORDER BY is heavy in Doris; light here: columns are found by id, in any order."""
    case.lake.sql(D01)
    case.light("ALTER TABLE t ORDER BY (k1, k2, value1, value2, value3), DROP COLUMN value3")
    case.lake.sql("DELETE FROM t; INSERT INTO t VALUES (1, 1, '10', 20), (1, 1, '30', 40)")

    assert list(case.columns("t")) == ["k1", "k2", "value1", "value2"]
    assert case.both("SELECT * FROM t ORDER BY value2") == [(1, 1, "10", 20), (1, 1, "30", 40)]


def test_d04_a_list_is_added_without_a_default(case):
    """Doris takes ``DEFAULT '[]'``; DuckLake keeps defaults for leaves only, so it is refused."""
    for column in ("a ARRAY<INT> DEFAULT '[]'", "a ARRAY<INT> NOT NULL DEFAULT '[]'"):
        told = case.refused(Unsupported, f"ALTER TABLE t ADD COLUMN {column}")
        assert (
            "cannot set a default for a of main.t, which is array<int32>: DuckLake supports no"
            " defaults for structs, lists and maps"
        ) in told
    case.light("ALTER TABLE t ADD COLUMN a ARRAY<INT>")
    case.lake.sql("INSERT INTO t VALUES (3, 'x', array())")

    assert case.both("SELECT k1, a FROM t ORDER BY k1") == [(1, None), (2, None), (3, [])]


def test_d06_several_columns_are_added_with_defaults(case):
    case.light("ALTER TABLE sites ADD COLUMN (new_v1 INT DEFAULT '1', new_v2 INT DEFAULT '2')")
    case.lake.sql("INSERT INTO sites VALUES (4, 3, 'kim', 5, 6, 7)")

    assert case.both("SELECT siteid, pv, new_v1, new_v2 FROM sites ORDER BY siteid") == [
        *[(1, 2, 1, 2), (2, 2, 1, 2), (3, 2, 1, 2), (4, 5, 6, 7)]
    ]


def test_d11_a_column_that_is_there_cannot_be_added(case):
    told = case.refused(AlreadyExists, "ALTER TABLE t ADD COLUMN VALUE1 INT")

    assert told == "column 'VALUE1' already exists in main.t"


def test_d21_a_column_that_puts_rows_into_buckets_cannot_be_dropped(case):
    """Doris' DISTRIBUTED BY HASH is a partition key ``bucket(n, c)`` here."""
    told = case.refused(Unsupported, "ALTER TABLE p DROP COLUMN k3")

    assert "cannot drop 'k3' of main.p: the table is partitioned by it" in told


def test_d22_a_partition_column_cannot_be_dropped(case):
    told = case.refused(Unsupported, "ALTER TABLE p DROP COLUMN k2")

    assert "cannot drop 'k2' of main.p: the table is partitioned by it" in told


def test_d24_text_grows_and_takes_null(case):
    """Heavy in Doris; light here: files keep no length, and NOT NULL is lifted by the catalog."""
    case.light("ALTER TABLE many MODIFY COLUMN v VARCHAR(128) NULL")
    case.lake.sql("INSERT INTO many VALUES (8193, NULL)")

    assert case.columns("many") == {"k": "int32 NOT NULL", "v": "varchar"}
    assert case.both("SELECT v, count(*), sum(k) FROM many GROUP BY v ORDER BY count(*)") == [
        *[(None, 1, 8193), ("11", 8193, 8192 * 8193 // 2)]
    ]


def test_d25_a_column_takes_null_from_now_on(case):
    """Heavy in Doris, as a copy by links; light here."""
    case.light("ALTER TABLE many MODIFY COLUMN k INT NULL")
    case.lake.sql("INSERT INTO many VALUES (NULL, '12')")

    assert case.both("SELECT count(*), count(k), min(k), max(k) FROM many") == [
        (8194, 8193, 0, 8192)
    ]


def test_d26_a_column_does_not_become_not_null_again(case):
    told = case.refused(InvalidRequest, "ALTER TABLE t MODIFY COLUMN k1 INT NOT NULL")

    assert "cannot change k1 of main.t from nullable to NOT NULL with MODIFY COLUMN" in told


@pytest.mark.slow
def test_d27_a_value_that_is_no_number_cancels_the_job(case):
    case.lake.sql("ALTER TABLE words MODIFY COLUMN b INT NOT NULL PROPERTIES ('wait' = 'false')")
    [job] = case.lake.jobs()
    assert job.state is JobState.PENDING
    with pytest.raises(
        InvalidRequest, match=r"1 value\(s\) of column 'b' cannot be converted to int32"
    ):
        job.wait()

    [(_, state, message)] = case.told()
    assert state == "CANCELLED"
    assert "such as 'zz'" in message
    assert case.columns("words")["b"] == "varchar NOT NULL"
    assert case.both("SELECT k, b FROM words ORDER BY k") == [(1, "zz"), (2, "11")]


@pytest.mark.slow
def test_d28_text_becomes_numbers(case):
    case.lake.sql("ALTER TABLE many MODIFY COLUMN v INT NOT NULL")

    assert case.told() == [(1, "FINISHED", "")]
    assert case.columns("many") == {"k": "int32 NOT NULL", "v": "int32 NOT NULL"}
    assert case.both("SELECT v, count(*), sum(k) FROM many GROUP BY v") == [
        (11, 8193, 8192 * 8193 // 2)
    ]


@pytest.mark.parametrize("kind", ["CHAR", "VARCHAR"])
def test_d31_texts_may_become_longer_and_not_shorter(case, kind):
    before = newest(case.lake)
    with pytest.raises(InvalidRequest, match="have up to"):
        case.lake.sql(f"ALTER TABLE words MODIFY COLUMN a {kind}(3) NOT NULL")

    assert newest(case.lake) == before
    case.light(f"ALTER TABLE words MODIFY COLUMN a {kind}(6) NOT NULL")
    assert case.both("SELECT a FROM words ORDER BY k") == [("abc",), ("d",)]


def test_d33_two_columns_grow_in_one_statement(case):
    case.light("ALTER TABLE words MODIFY COLUMN a CHAR(50) NULL, MODIFY COLUMN b VARCHAR(50) NULL")
    case.lake.sql(f"INSERT INTO words VALUES (3, '{'x' * 50}', NULL)")

    assert case.both("SELECT a, b FROM words ORDER BY k") == [
        *[("abc", "zz"), ("d", "11"), ("x" * 50, None)]
    ]


@pytest.mark.parametrize(
    ("kind", "clause", "told"),
    [
        (
            NotFound,
            "MODIFY COLUMN q INT",
            "column 'q' does not exist in main.t; existing columns: 'k1'",
        ),
        (
            InvalidRequest,
            "MODIFY COLUMN k1 INT AFTER q",
            "cannot place a column after 'q', which does not exist",
        ),
        (
            InvalidRequest,
            "MODIFY COLUMN k1 INT AFTER k1",
            "cannot move column k1 of main.t after itself",
        ),
        (InvalidRequest, "MODIFY COLUMN k1 INT", "changes nothing in main.t"),
    ],
)
def test_d36_what_names_nothing_or_changes_nothing(case, kind, clause, told):
    assert told in case.refused(kind, f"ALTER TABLE t {clause}")


@pytest.mark.slow
@pytest.mark.parametrize("column", ["k2", "k3"])
def test_d39_values_of_a_column_that_places_rows_are_not_converted(case, column):
    """Doris refuses every change of it; wider numbers stay in their files, so those are light."""
    told = case.refused(Unsupported, f"ALTER TABLE p MODIFY COLUMN {column} STRING")
    assert f"cannot change {column} of main.p from int32 to STRING" in told
    assert "the table is partitioned by it" in told
    case.light(f"ALTER TABLE p MODIFY COLUMN {column} BIGINT")
    case.lake.sql("INSERT INTO p VALUES (4, 2, 2, 4)")

    assert case.both("SELECT k1 FROM p WHERE k2 = 2 ORDER BY k1") == [(2,), (3,), (4,)]
    assert case.both("SELECT k1 FROM p WHERE k3 = 2 ORDER BY k1") == [(2,), (4,)]


@pytest.mark.parametrize("default", ["", " DEFAULT '1'"])
def test_d40_another_default_is_refused(case, default):
    told = case.refused(
        InvalidRequest, f"ALTER TABLE sites MODIFY COLUMN pv BIGINT NOT NULL{default}"
    )

    assert "cannot change the default of pv of main.sites with MODIFY COLUMN" in told
    assert "it has the default '0'; repeat that, or use" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    "new",
    "BOOLEAN TINYINT INT BIGINT FLOAT DOUBLE DECIMAL(9,2) DATE DATETIME CHAR(9) VARCHAR(9) STRING"
    " JSON".split(),
)
def test_d42_a_map_does_not_become_a_scalar(case, new):
    told = case.refused(Unsupported, f"ALTER TABLE st MODIFY COLUMN m {new}")

    assert "cannot change m of main.st from map<varchar, int32> to " in told


@pytest.mark.parametrize("widens", [True, False])
def test_d43_a_date_becomes_a_datetime(case, widens):
    """Heavy in Doris; light here where type widening is enabled: days are read as midnights."""
    if not widens:
        case.lake.sql("ALTER TABLE p SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")
    case.lake.sql("ALTER TABLE p ADD COLUMN day DATE DEFAULT '2024-02-29'")
    statement = "ALTER TABLE p MODIFY COLUMN day DATETIME DEFAULT '2024-02-29'"
    if widens:
        case.light(statement)
    else:
        case.lake.sql(statement)
        assert case.told()[0] == (1, "FINISHED", "")
    case.lake.sql("INSERT INTO p VALUES (4, 2, 2, 4, TIMESTAMP_NTZ'2024-03-01 00:00:01')")

    midnight = dt.datetime(2024, 2, 29)  # noqa: DTZ001 - a local time
    assert case.both("SELECT k1, day FROM p ORDER BY k1") == [
        *[(1, midnight), (2, midnight), (3, midnight)],
        (4, dt.datetime(2024, 3, 1, 0, 0, 1)),  # noqa: DTZ001 - a local time
    ]


@pytest.mark.parametrize(
    ("kind", "order", "told"),
    [
        (
            InvalidRequest,
            "k, b",
            "ORDER BY must list all columns of main.words, but 'a' is missing",
        ),
        (InvalidRequest, "k, a, A, b", "ORDER BY lists column 'a' of main.words twice"),
        (NotFound, "k, a, b, c", "column 'c' does not exist in main.words"),
    ],
)
def test_d46_an_order_names_every_column_once(case, kind, order, told):
    assert told in case.refused(kind, f"ALTER TABLE words ORDER BY ({order})")


@pytest.mark.slow
def test_d47_rows_old_and_new_are_found_under_the_new_name(case):
    """Doris renames in a statement of its own; here it may stand among others."""
    case.light("ALTER TABLE sites RENAME COLUMN citycode TO city, RENAME COLUMN pv TO views")
    case.lake.sql("INSERT INTO sites VALUES (4, 2, 'kim', 5)")

    query = "SELECT city, sum(views), count(*) FROM sites GROUP BY city ORDER BY city"
    assert case.both(query) == [(1, 4, 2), (2, 7, 2)]


def test_d48_a_name_that_is_used_and_one_that_is_missing(case):
    """Doris refuses the same name again; here it changes nothing, and makes no snapshot."""
    told = case.refused(AlreadyExists, "ALTER TABLE words RENAME COLUMN a TO B")
    assert told == "column 'B' already exists in main.words"
    told = case.refused(NotFound, "ALTER TABLE words RENAME COLUMN q TO r")
    assert "column 'q' does not exist in main.words; existing columns: 'k', 'a', 'b'" in told
    before = everything(case.catalog, case.data)
    case.lake.sql("ALTER TABLE words RENAME COLUMN a TO a")

    assert everything(case.catalog, case.data) == before


def test_d49_a_column_is_renamed_whatever_light_schema_change_says(case):
    """Doris cannot rename without it; here it has no meaning, since all columns have ids."""
    case.lake.sql("ALTER TABLE t SET TBLPROPERTIES ('light_schema_change' = 'false')")
    case.light("ALTER TABLE t RENAME COLUMN value1 TO v")

    assert case.both("SELECT k1, v FROM t ORDER BY k1") == [(1, "7"), (2, None)]


@pytest.mark.slow
def test_d67_light_schema_change_goes_on_and_off(case):
    """Doris refuses to switch it off; here it is a property of the user's own, without meaning."""
    for value in ("true", "false"):
        case.lake.sql(f"ALTER TABLE t SET TBLPROPERTIES ('light_schema_change' = '{value}')")
        assert rows(case.lake.sql("SHOW TBLPROPERTIES t")) == [("light_schema_change", value)]
    case.light("ALTER TABLE t ADD COLUMN w INT DEFAULT 3")

    assert case.both("SELECT k1, w FROM t ORDER BY k1") == [(1, 3), (2, 3)]


def test_d68_fields_are_appended_to_a_struct(case):
    known = "col: VARCHAR(10)"
    added = ["a: INT", "b: DECIMAL(9, 2), c: DATETIME", "d: ARRAY<INT>, e: MAP<STRING, INT>"]
    for fields in (*added, "f: STRUCT<g: INT>"):
        known = f"{known}, {fields}".replace("(10)", "(20)")
        case.light(f"ALTER TABLE st MODIFY COLUMN s STRUCT<{known}>")
    case.lake.sql(
        "INSERT INTO st VALUES (3, named_struct('col', 'y', 'a', 1, 'b', 1.5,"
        " 'c', TIMESTAMP_NTZ'2024-02-29 00:00:01', 'd', array(1), 'e', map('k', 1),"
        " 'f', named_struct('g', 7)), NULL)"
    )

    found = case.both("SELECT s.col, s.a, s.b, s.c, s.d, s.e, s.f.g FROM st ORDER BY k")
    at = dt.datetime(2024, 2, 29, 0, 0, 1)  # noqa: DTZ001 - a local time
    assert found == [("x", *[None] * 6), (None, *[None] * 6), ("y", 1, 1.5, at, [1], {"k": 1}, 7)]


# Two of the six refusals of D69 are open: a type with fewer fields drops the others, and one with
# another name in the place of ``col`` drops ``col`` and adds that name, which reads NULL.
@pytest.mark.parametrize(
    ("kind", "new", "told"),
    [
        (
            InvalidRequest,
            "STRUCT<n: INT>",
            "cannot drop, rename or reorder the fields of s of main.st",
        ),
        (
            InvalidRequest,
            "STRUCT<kol: STRING>",
            "cannot drop, rename or reorder the fields of s of main.st",
        ),
        (Unsupported, "STRING", "cannot change s of main.st from struct<col: varchar> to varchar"),
        (Unsupported, "STRUCT<col: ARRAY<INT>>", "from varchar to array<int32>"),
        (
            InvalidRequest,
            "STRUCT<col: STRING, COL: INT>",
            "two fields of a struct have the same name",
        ),
    ],
)
def test_d69_what_a_struct_cannot_become(case, kind, new, told):
    """Doris refuses shorter text as too short; here lengths are not kept."""
    assert told in case.refused(kind, f"ALTER TABLE st MODIFY COLUMN s {new}")


@pytest.mark.slow
def test_d69_a_field_becomes_a_number(case):
    """Doris refuses it; here the whole column is converted by a job."""
    case.lake.sql("UPDATE st SET s = named_struct('col', '7') WHERE k = 1")
    case.lake.sql("ALTER TABLE st MODIFY COLUMN s STRUCT<col: INT>")

    assert case.both("SELECT k, s.col FROM st ORDER BY k") == [(1, 7), (2, None)]


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_d71_a_struct_moves_behind_a_variant(case):
    case.lake.sql("ALTER TABLE st ADD COLUMN v VARIANT")
    with case.duckdb() as duckdb:
        duckdb.execute("INSERT INTO st VALUES (3, {'col': 'y'}, NULL, 5::VARIANT)")
    case.light("ALTER TABLE st MODIFY COLUMN s STRUCT<col: VARCHAR(10)> AFTER v")

    assert list(case.columns("st")) == ["k", "m", "v", "s"]
    assert case.both("SELECT k, s.col FROM st ORDER BY k") == [(1, "x"), (2, None), (3, "y")]
    assert case.both("SELECT k, CAST(v AS INT) FROM st ORDER BY k") == [
        *[(1, None), (2, None), (3, 5)]
    ]
