"""Doris' published acceptance cases of schema change on key models: columns, types, refusals.

A test's name begins with the case's id; test_doris_cases.py has them on tables without keys. Where
Shelduck differs deliberately from Doris, a test says so in its docstring: what Doris writes all
rows anew for is metadata only here when old files can be read as the new columns (``light``).
"""

from __future__ import annotations

import datetime as dt

import pytest

from shelduck import AlreadyExists, InvalidRequest, NotFound, Unsupported
from tests.support.cases import DorisCase
from tests.support.lakes import newest, rows

SITES = "siteid INT, citycode INT, username VARCHAR(32), pv BIGINT {}DEFAULT '0'"
GUESTS = "(1, 1, 'jim', 2), (2, 1, 'grace', 2), (3, 2, 'tom', 2)"
STRUCT = "(k INT, s STRUCT<col: VARCHAR(10)>{}, m STRING{}) {} KEY (k)"
STATEMENTS = [
    "CREATE TABLE d (k1 INT, value1 STRING) DUPLICATE KEY (k1)",
    "CREATE TABLE a (k1 INT, value1 INT SUM) AGGREGATE KEY (k1)",
    f"CREATE TABLE u ({SITES.format('')}) UNIQUE KEY (siteid, citycode, username)",
    f"CREATE TABLE sites ({SITES.format('SUM ')}) AGGREGATE KEY (siteid, citycode, username)",
    f"INSERT INTO u VALUES {GUESTS}",
    f"INSERT INTO sites VALUES {GUESTS}",
    "CREATE TABLE h (siteid INT, v INT) DUPLICATE KEY (siteid) DISTRIBUTED BY HASH (siteid)",
    (
        "CREATE TABLE p (k1 INT, k2 INT, k3 INT, k4 INT, v INT) UNIQUE KEY (k1, k2, k3, k4)"
        " PARTITIONED BY (k2) DISTRIBUTED BY HASH (k3, k4) BUCKETS 4"
    ),
    "CREATE TABLE many (k INT, v VARCHAR(16) NOT NULL, n INT NOT NULL) UNIQUE KEY (k)",
    "INSERT INTO many SELECT CAST(id AS INT), '11', 1 FROM range(0, 8193, 1, 1)",
    "CREATE TABLE total (k INT, n INT NOT NULL SUM) AGGREGATE KEY (k)",
    "INSERT INTO total VALUES (1, 1), (1, 1)",
    "CREATE TABLE days (day DATE, v INT SUM) AGGREGATE KEY (day)",
    "INSERT INTO days VALUES (DATE'2024-02-29', 1), (DATE'2024-03-01', 1)",
    f"CREATE TABLE sd {STRUCT.format('', '', 'DUPLICATE')}",
    f"CREATE TABLE su {STRUCT.format('', '', 'UNIQUE')}",
    f"CREATE TABLE sa {STRUCT.format(' REPLACE', ' MAX', 'AGGREGATE')}",
    *(
        f"INSERT INTO {t} VALUES (1, named_struct('col', 'x'), 'm'), (2, NULL, NULL)"
        for t in ("sd", "su", "sa")
    ),
]
MODELS = pytest.mark.parametrize("table", ["sd", "su", "sa"])


class Case(DorisCase):
    """A lake whose keys are looked at."""

    def keys(self, table):
        """What SHOW CREATE TABLE says of the keys, and by what files are sorted."""
        text = rows(self.lake.sql(f"SHOW CREATE TABLE {table}"))[0][0]
        return [line for line in text.split("\n") if " KEY " in line or line.startswith("SORTED")]


@pytest.fixture
def case(copied, base):
    return Case(*copied, base.folder / "data")


D01 = (
    "ALTER TABLE d ADD COLUMN k2 INT KEY AFTER k1, ADD COLUMN value2 VARCHAR(16) AFTER value1,"
    " ADD COLUMN value3 INT AFTER value2, MODIFY COLUMN value2 INT AFTER value3"
)


@pytest.mark.slow
def test_d01_clauses_build_upon_each_other(case):
    """Heavy in Doris; light here: older files are not sorted by the new key, and need not be."""
    case.light(D01)

    assert case.lake.table("d").columns.names == ["k1", "k2", "value1", "value3", "value2"]
    assert case.keys("d") == ["DUPLICATE KEY (k1, k2)", "SORTED BY (k1, k2)"]


@pytest.mark.slow
def test_d02_all_columns_are_ordered_and_one_is_dropped(case):
    """ORDER BY is heavy in Doris; light here: columns are found by id, in any order."""
    case.lake.sql(D01)
    case.light("ALTER TABLE d ORDER BY (k1, k2, value1, value2, value3), DROP COLUMN value3")
    case.lake.sql("INSERT INTO d VALUES (1, 1, '10', 20), (1, 1, '30', 40)")

    assert case.lake.table("d").columns.names == ["k1", "k2", "value1", "value2"]
    assert case.both("SELECT * FROM d ORDER BY value1") == [(1, 1, "10", 20), (1, 1, "30", 40)]


@pytest.mark.slow
def test_d03_rows_of_one_key_are_summed(case):
    """Heavy in Doris, since a key is added; light here."""
    case.light(
        "ALTER TABLE a ADD COLUMN k2 INT KEY AFTER k1, ADD COLUMN value2 INT SUM AFTER value1"
    )
    case.lake.sql("INSERT INTO a VALUES (1, 1, 10, 20), (1, 1, 30, 40)")

    assert case.keys("a") == ["AGGREGATE KEY (k1, k2)", "SORTED BY (k1, k2)"]
    assert case.both("SELECT * FROM a") == [(1, 1, 40, 60)]


D06 = "ALTER TABLE sites ADD COLUMN (new_v1 INT MAX DEFAULT '1', new_v2 INT MAX DEFAULT '2')"


@pytest.mark.slow
def test_d06_several_values_are_added_with_defaults(case):
    case.light(D06)
    case.lake.sql("INSERT INTO sites VALUES (1, 1, 'jim', 3, 0, 5)")

    assert case.both("SELECT siteid, pv, new_v1, new_v2 FROM sites ORDER BY siteid") == [
        *[(1, 5, 1, 5), (2, 2, 1, 2), (3, 2, 1, 2)]
    ]


@pytest.mark.slow
def test_d07_several_keys_are_added_with_defaults(case):
    """Heavy in Doris; light here."""
    case.lake.sql(D06)
    case.light("ALTER TABLE sites ADD COLUMN (new_k1 INT DEFAULT '1', new_k2 INT DEFAULT '2')")
    keys = "siteid, citycode, username, new_k1, new_k2"
    new = "(1, 1, 'jim', 1, 2, 1), (1, 1, 'jim', 1, 3, 5), (1, 1, 'jim', 1, 2, 2)"
    case.lake.sql(f"INSERT INTO sites ({keys}, pv) VALUES {new}")

    assert case.lake.table("sites").columns.names == [*keys.split(", "), "pv", "new_v1", "new_v2"]
    assert case.keys("sites") == [f"AGGREGATE KEY ({keys})", f"SORTED BY ({keys})"]
    assert case.both("SELECT new_k2, pv FROM sites WHERE siteid = 1 ORDER BY 1") == [(2, 5), (3, 5)]


def test_d09_a_sum_begins_at_zero(case):
    told = case.refused(InvalidRequest, "ALTER TABLE sites ADD COLUMN c INT SUM DEFAULT '5'")

    assert "the default value of c of main.sites with SUM aggregation function must be zero" in told


@pytest.mark.parametrize(
    "column", ["d ADD COLUMN VALUE1 INT", "u ADD COLUMN PV INT", "a ADD COLUMN K1 INT KEY"]
)
def test_d11_a_column_that_is_there_cannot_be_added(case, column):
    told = case.refused(AlreadyExists, f"ALTER TABLE {column}")

    assert "already exists in main." in told


def test_d16_a_key_of_unique_is_not_dropped(case):
    told = case.refused(InvalidRequest, "ALTER TABLE u DROP COLUMN citycode")

    assert "cannot drop key column citycode of main.u, which is a UNIQUE KEY table" in told


def test_d21_a_bucket_column_is_not_dropped(case):
    told = case.refused(InvalidRequest, "ALTER TABLE h DROP COLUMN siteid")

    assert told == "Distribution column siteid of main.h cannot be dropped"


def test_d22_a_partition_column_is_not_dropped(case):
    case.lake.sql("CREATE TABLE o (k INT, p INT) DUPLICATE KEY (k) PARTITIONED BY (p)")
    for table, column in (("p", "k2"), ("o", "p")):
        told = case.refused(InvalidRequest, f"ALTER TABLE {table} DROP COLUMN {column}")
        assert told == f"Partition column {column} of main.{table} cannot be dropped"


@pytest.mark.slow
def test_d24_text_grows_and_takes_null(case):
    """Heavy in Doris; light here: files keep no length, and NOT NULL is lifted by the catalog."""
    case.light("ALTER TABLE many MODIFY COLUMN v VARCHAR(128) NULL")
    case.lake.sql("INSERT INTO many VALUES (8192, NULL, 1)")

    assert case.both("SELECT v, count(*), sum(k) FROM many GROUP BY v ORDER BY count(*)") == [
        *[(None, 1, 8192), ("11", 8192, 8191 * 8192 // 2)]
    ]


@pytest.mark.slow
def test_d25_a_value_takes_null_from_now_on(case):
    """Heavy in Doris, as a copy by links; light here. NULL adds nothing to a sum."""
    case.light("ALTER TABLE total MODIFY COLUMN n INT NULL SUM")
    case.light("ALTER TABLE many MODIFY COLUMN n INT NULL")
    case.lake.sql("INSERT INTO total VALUES (1, NULL), (2, NULL)")

    assert case.both("SELECT * FROM total ORDER BY k") == [(1, 2), (2, None)]


def test_d34_how_a_value_is_combined_is_said_again(case):
    told = case.refused(InvalidRequest, "ALTER TABLE sites MODIFY COLUMN pv BIGINT DEFAULT '0'")
    assert "cannot change aggregation type of column pv of main.sites: it is SUM" in told


@pytest.mark.parametrize(("table", "column"), [("d", "k1"), ("u", "siteid"), ("u", "pv")])
def test_d35_other_models_combine_nothing(case, table, column):
    told = case.refused(InvalidRequest, f"ALTER TABLE {table} MODIFY COLUMN {column} INT SUM")

    model = {"d": "DUPLICATE", "u": "UNIQUE"}[table]
    assert (
        told == f"cannot give column {column} an aggregation: main.{table} is a {model} KEY table"
    )


@pytest.mark.parametrize("column", ["k2", "k3", "k4"])
def test_d39_a_column_that_places_rows_is_not_modified(case, column):
    told = case.refused(InvalidRequest, f"ALTER TABLE p MODIFY COLUMN {column} BIGINT KEY")

    assert told == f"cannot modify partition or distribution column {column} of main.p"


@pytest.mark.parametrize("default", ["", " DEFAULT '1'"])
@pytest.mark.parametrize(("table", "how"), [("u", ""), ("sites", " SUM")])
def test_d40_another_default_is_refused(case, table, how, default):
    told = case.refused(
        InvalidRequest, f"ALTER TABLE {table} MODIFY COLUMN pv BIGINT{how}{default}"
    )
    assert f"cannot change the default of pv of main.{table} with MODIFY COLUMN" in told


@pytest.mark.slow
@pytest.mark.parametrize("widens", [True, False])
def test_d43_a_date_key_becomes_a_datetime(case, widens):
    """Heavy in Doris; light here where type widening is enabled: days are read as midnights."""
    statement = "ALTER TABLE days MODIFY COLUMN day DATETIME KEY"
    if widens:
        case.lake.sql("ALTER TABLE days SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        case.light(statement)
    else:
        case.lake.sql(statement)
        assert case.told() == [(1, "FINISHED", "")]
    at = "TIMESTAMP_NTZ'2024-02-29 00:00:00'"
    case.lake.sql(f"INSERT INTO days VALUES ({at}, 10), ({at}, 100)")

    assert case.keys("days") == ["AGGREGATE KEY (day)", "SORTED BY (day)"]
    assert case.both("SELECT * FROM days ORDER BY day") == [
        (dt.datetime(2024, 2, 29), 111),  # noqa: DTZ001 - a local time
        (dt.datetime(2024, 3, 1), 1),  # noqa: DTZ001 - a local time
    ]


@pytest.mark.parametrize(
    ("order", "told"),
    [
        (
            "siteid, citycode, pv",
            "ORDER BY must list all columns of main.u, but 'username' is missing",
        ),
        ("siteid, citycode, username, Pv, pv", "ORDER BY lists column 'pv' of main.u twice"),
        ("siteid, pv, citycode, username", "value should be after key, but pv stands before the"),
    ],
)
def test_d46_an_order_names_every_column_once_and_keys_first(case, order, told):
    assert told in case.refused(InvalidRequest, f"ALTER TABLE u ORDER BY ({order})")


@pytest.mark.slow
@pytest.mark.parametrize(("table", "views"), [("u", 5), ("sites", 7)])
def test_d47_rows_old_and_new_are_found_under_the_new_name(case, table, views):
    """Doris renames in a statement of its own; here it may stand among others."""
    case.light(f"ALTER TABLE {table} RENAME COLUMN citycode TO city, RENAME COLUMN pv TO views")
    case.lake.sql(f"INSERT INTO {table} VALUES (3, 2, 'tom', 5), (4, 2, 'kim', 1)")

    query = f"SELECT city, sum(views), count(*) FROM {table} GROUP BY city ORDER BY city"
    assert case.both(query) == [(1, 4, 2), (2, views + 1, 2)]
    assert case.keys(table)[0].endswith(" KEY (siteid, city, username)")
    assert case.keys(table)[1] == "SORTED BY (siteid, city, username)"


@pytest.mark.parametrize("table", ["u", "sites"])
def test_d48_a_name_that_is_used_and_one_that_is_missing(case, table):
    """Doris refuses the same name again; here it changes nothing, and makes no snapshot."""
    rename = f"ALTER TABLE {table} RENAME COLUMN"
    assert "'PV' already exists" in case.refused(AlreadyExists, f"{rename} siteid TO PV")
    assert "column 'q' does not exist" in case.refused(NotFound, f"{rename} q TO r")
    before = newest(case.lake)
    case.lake.sql(f"{rename} siteid TO siteid")

    assert newest(case.lake) == before


@pytest.mark.slow
@MODELS
def test_d68_fields_are_appended_to_a_struct(case, table):
    how = " REPLACE" if table == "sa" else ""
    known = "col: VARCHAR(20)"
    for fields in ("a: INT", "b: DECIMAL(9, 2), c: DATETIME", "d: ARRAY<INT>, f: STRUCT<g: INT>"):
        known = f"{known}, {fields}"
        case.light(f"ALTER TABLE {table} MODIFY COLUMN s STRUCT<{known}>{how}")
    case.lake.sql(
        f"INSERT INTO {table} VALUES (3, named_struct('col', 'y', 'a', 1, 'b', 1.5, 'c',"
        " TIMESTAMP_NTZ'2024-02-29 00:00:01', 'd', array(1), 'f', named_struct('g', 7)), NULL)"
    )

    at = dt.datetime(2024, 2, 29, 0, 0, 1)  # noqa: DTZ001 - a local time
    query = f"SELECT s.col, s.a, s.b, s.c, s.d, s.f.g FROM {table} ORDER BY k"
    assert case.both(query) == [("x", *[None] * 5), (None,) * 6, ("y", 1, 1.5, at, [1], 7)]


@pytest.mark.slow
@MODELS
@pytest.mark.parametrize(
    ("kind", "new", "told"),
    [
        (
            InvalidRequest,
            "STRUCT<n: INT>",
            "cannot drop, rename or reorder the fields of s of main.",
        ),
        (Unsupported, "STRING", "from struct<col: varchar> to varchar"),
        (Unsupported, "STRUCT<col: ARRAY<INT>>", "from varchar to array<int32>"),
        (
            InvalidRequest,
            "STRUCT<col: STRING, COL: INT>",
            "two fields of a struct have the same name",
        ),
    ],
)
def test_d69_what_a_struct_cannot_become(case, table, kind, new, told):
    """Doris refuses shorter text as too short; here lengths are not kept."""
    how = " REPLACE" if table == "sa" else ""
    assert told in case.refused(kind, f"ALTER TABLE {table} MODIFY COLUMN s {new}{how}")


@pytest.mark.sampled(1)
@MODELS
def test_d71_a_struct_moves_behind_another_value(case, table):
    how = " REPLACE" if table == "sa" else ""
    case.lake.sql(f"ALTER TABLE {table} ADD COLUMN v VARIANT{how}")
    case.light(f"ALTER TABLE {table} MODIFY COLUMN s STRUCT<col: VARCHAR(10)>{how} AFTER v")

    assert case.lake.table(table).columns.names == ["k", "m", "v", "s"]
    assert case.both(f"SELECT k, s.col FROM {table} ORDER BY k") == [(1, "x"), (2, None)]
