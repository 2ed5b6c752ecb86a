"""The Python API of lakes and tables: create, append, read, alter, look."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

import shelduck
from shelduck import AlreadyExists, CatalogUnavailable, InvalidRequest, NotFound, Unsupported
from tests.support.lakes import everything, newest, refusal, rows
from tests.support.oracle import DuckDBOracle
from tests.support.spark import views

STATEMENTS = [
    (
        "CREATE TABLE t (id INT NOT NULL, n TINYINT, name STRING DEFAULT '??',"
        " s STRUCT<a: INT, b: STRING>)"
    ),
    "INSERT INTO t VALUES (1, 1, 'one', named_struct('a', 1, 'b', 'x'))",
]


# Create


def test_a_table_is_made_of_names_and_types(lake):
    made = lake.create_table(
        "events",
        {"id": "bigint NOT NULL", "at": "timestamp", "tags": "array<string>", "s": "STRUCT(a INT)"},
        comment="what happened",
    )

    assert [(f.id, f.name, str(f.type), f.nullable) for f in made.columns.walk()] == [
        (1, "id", "int64", False),
        (2, "at", "timestamptz", True),
        (3, "tags", "array<varchar>", True),
        (4, "element", "varchar", True),
        (5, "s", "struct<a: int32>", True),
        (6, "a", "int32", True),
    ]
    assert made.schema == T.StructType(
        [
            T.StructField("id", T.LongType(), nullable=False),
            T.StructField("at", T.TimestampType()),
            T.StructField("tags", T.ArrayType(T.StringType())),
            T.StructField("s", T.StructType([T.StructField("a", T.IntegerType())])),
        ]
    )
    assert newest(lake) == 3
    assert str(made.name) == "main.events"


def test_a_table_is_made_of_a_dataframes_schema(lake, spark):
    rows_to_keep = spark.sql("SELECT 1 AS id, CAST(1.5 AS DECIMAL(9, 2)) AS d, array(1L) AS l")

    made = lake.create_table("copy", rows_to_keep.schema)
    made.append(rows_to_keep)

    assert made.schema.simpleString() == "struct<id:int,d:decimal(9,2),l:array<bigint>>"
    assert rows(made.read()) == [(1, Decimal("1.50"), [1])]


def test_a_table_that_exists_is_kept_when_that_is_wanted(lake):
    assert lake.create_table("T", {"z": "int"}, if_not_exists=True).schema.names[0] == "id"
    assert newest(lake) == 2


@pytest.mark.parametrize(
    ("name", "columns", "kind", "message"),
    [
        ("T", {"a": "int"}, AlreadyExists, "table main.T already exists"),
        ("q.u", {"a": "int"}, NotFound, "schema 'q' does not exist; existing schemas: 'main'"),
        ("u", {}, InvalidRequest, "a table needs at least one column"),
        ("u", {"a": "integr"}, InvalidRequest, "unknown data type 'integr' in 'integr'"),
        ("u", {"a": "int", "A": "int"}, InvalidRequest, "column 'A' is listed twice"),
        ("u", {"": "int"}, InvalidRequest, "the name of a column is empty"),
        ("", {"a": "int"}, InvalidRequest, "cannot parse the name ''"),
        (
            "a.b.c",
            {"a": "int"},
            NotFound,
            "schema a.b does not exist: schemas inside schemas need DuckLake 1.1",
        ),
        (
            "u",
            T.StructType([T.StructField("a", T.CalendarIntervalType())]),
            Unsupported,
            "column 'a' is interval, which has no DuckLake type",
        ),
    ],
)
def test_a_table_that_cannot_be_is_refused(copied, base, name, columns, kind, message):  # noqa: PLR0917
    catalog, lake = copied

    told = refusal(kind, lambda: lake.create_table(name, columns), catalog, base.folder / "data")

    assert message in told


# Append


def test_rows_are_appended_by_name_in_any_order_and_case(lake, spark):
    found = lake.table("t").append(
        spark.sql("SELECT 'two' AS NAME, 2L AS Id, named_struct('B', 'y', 'a', 2) AS s")
    )

    assert (found.snapshot, found.rows) == (3, 1)
    assert (found.files, found.bytes) == (0, 0)
    assert rows(lake.table("t").read().where("id = 2")) == [(2, None, "two", (2, "y"))]


def test_missing_columns_get_their_default(lake, spark):
    lake.table("t").append(spark.sql("SELECT 2 AS id"))

    assert rows(lake.table("t").read().where("id = 2")) == [(2, None, "??", None)]


def test_rows_are_appended_by_position_on_demand(lake, spark):
    lake.table("t").append(
        spark.sql("SELECT 2 AS a, 3 AS b, 'two' AS c, NULL AS d"), by_position=True
    )

    assert rows(lake.table("t").read().where("id = 2")) == [(2, 3, "two", None)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "messages"),
    [
        ("SELECT 2 AS id, 3 AS q", ["the rows do not fit main.t", "the table has no column q"]),
        ("SELECT 2 AS n", ["column id is missing: it is NOT NULL and has no default"]),
        (
            "SELECT 2 AS q, 'x' AS n, array(1) AS name, named_struct('z', 1) AS s",
            [
                "the table has no column q",
                "column id is missing: it is NOT NULL and has no default",
                "column n: string",
                "column name: array<int>",
                "column s has no field z",
            ],
        ),
        ("SELECT 2 AS id, 3 AS ID", ["column ID is given twice"]),
        (
            "SELECT id FROM VALUES (2), (NULL) AS v(id)",
            ["column id of main.t is NOT NULL, got NULL"],
        ),
        ("SELECT id, id AS n FROM VALUES (2), (300) AS v(id)", ["column n of main.t", "300"]),
        ("SELECT 2 AS id, named_struct('a', 3000000000L) AS s", ["s.a of main.t", "3000000000"]),
    ],
)
def test_rows_that_do_not_fit_leave_nothing_behind(copied, base, spark, query, messages):
    catalog, lake = copied
    table = lake.table("t")

    told = refusal(
        InvalidRequest, lambda: table.append(spark.sql(query)), catalog, base.folder / "data"
    )

    assert [m for m in messages if m not in told] == []


def test_types_that_spark_holds_as_text_are_read_as_they_were_written(lake, spark):
    kinds = {"a": "time", "b": "timetz", "c": "uuid", "d": "json"}
    made = lake.create_table("texts", kinds)
    one = "'01:02:03.5' a, '01:02:03+02' b, '00000000-0000-0000-0000-00000000000A' c, '{}' d"
    made.append(spark.sql(f"SELECT {one} FROM range(0, 100, 1, 1)"))

    assert lake.table("texts").files().count() == 1
    kept = ("01:02:03.5", "01:02:03+02", "00000000-0000-0000-0000-00000000000a", "{}")
    assert set(rows(made.read())) == {kept}


def test_what_is_no_dataframe_and_no_type_is_refused_in_words(copied, base):
    catalog, lake = copied
    data = base.folder / "data"

    told = refusal(InvalidRequest, lambda: lake.table("t").append([1]), catalog, data)
    assert "cannot append to main.t: expected a Spark DataFrame, got list" in told
    told = refusal(InvalidRequest, lambda: lake.create_table("u", {"a": None}), catalog, data)
    assert "must be text such as 'bigint', not None" in told


def test_an_empty_append_makes_no_snapshot_and_no_file(copied, base, spark):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    found = lake.table("t").append(spark.sql("SELECT 2 AS id WHERE false"))

    assert found == shelduck.Unchanged(2)
    assert everything(catalog, base.folder / "data") == before


def test_a_user_error_in_the_rows_is_the_users_own_and_leaves_no_file(copied, base, spark):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    with pytest.raises(Exception, match="my own mistake"):
        lake.table("t").append(
            spark.sql("SELECT CAST(raise_error('my own mistake') AS INT) AS id FROM range(3)")
        )

    assert everything(catalog, base.folder / "data") == before


# Read


@pytest.mark.slow
def test_a_table_is_read_now_and_as_it_was(lake, spark):
    table = lake.table("t")
    table.append(spark.sql("SELECT 2 AS id"))
    table.alter(shelduck.drop_column("s"))

    assert rows(table.read(columns=["name", "ID"]).orderBy("id")) == [("one", 1), ("??", 2)]
    assert rows(table.read(version=2, columns=["s"])) == [((1, "x"),)]
    assert table.read(version=3).columns == ["id", "n", "name", "s"]
    at = lake.snapshots()[2].time
    assert rows(table.read(timestamp=at).select("id")) == [(1,)]
    assert rows(table.read(timestamp=at.isoformat()).select("id")) == [(1,)]
    assert rows(table.read(timestamp=at.astimezone(dt.UTC).replace(tzinfo=None)).select("id")) == [
        (1,)
    ]


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"version": 9}, NotFound, "snapshot 9 does not exist; existing snapshots: 0 to 2"),
        ({"version": -1}, NotFound, "snapshot -1 does not exist; existing snapshots: 0 to 2"),
        ({"version": 0}, NotFound, "table 't' does not exist in schema 'main'"),
        ({"timestamp": "2001-01-01"}, NotFound, "no snapshot as old as 2001-01-01"),
        ({"timestamp": "soon"}, InvalidRequest, "'soon' is not a timestamp; write 2026-01-31"),
        ({"columns": ["nam"]}, NotFound, "column 'nam' does not exist"),
        ({"version": 1, "timestamp": "2026-01-01"}, InvalidRequest, "not both"),
    ],
)
def test_what_cannot_be_read_is_told(lake, arguments, kind, message):
    with pytest.raises(kind, match=message):
        lake.table("t").read(**arguments)


def test_rows_are_counted_when_no_column_is_read(lake, spark):
    table = lake.table("t")
    table.append(spark.sql("SELECT id FROM VALUES (2), (3) AS v(id)"))

    assert table.read().count() == 3
    assert table.read(columns=[]).count() == 3


def test_a_table_that_does_not_exist_is_told_with_its_neighbours(lake):
    lake.create_table("events", {"a": "int"})

    with pytest.raises(NotFound, match=r"table 'event' does not exist .* did you mean 'events'"):
        lake.table("event")


def test_settings_of_the_session_are_not_touched(lake, spark):
    before, listed = dict(spark.conf.getAll), views(spark)

    lake.table("t").append(spark.sql("SELECT 2 AS id"))
    lake.table("t").read().collect()
    lake.sql("ALTER TABLE t ADD COLUMN c INT").collect()

    assert dict(spark.conf.getAll) == before
    assert views(spark) == listed


# Alter


def test_changes_in_python_are_those_of_sql(copied):
    catalog, lake = copied
    table = lake.table("t")

    done = table.alter(
        shelduck.add_column("country", "varchar", default="??", first=True, comment="code"),
        shelduck.add_column("s.c", "int", default=5, after="a"),
        shelduck.add_column("day", "date", default=dt.date(2024, 2, 29), nullable=False),
        shelduck.add_column("bytes", "binary", default=b"\x00a"),
        shelduck.add_column("price", "decimal(5,2)", default=Decimal("1.5")),
        shelduck.add_column("ok", "boolean", default=True),
        shelduck.add_column("at", "timestamp_ntz", default=dt.datetime(2024, 1, 1, 12)),  # noqa: DTZ001
        shelduck.rename_column("name", "label"),
        shelduck.change_type("n", "bigint"),
        shelduck.set_default("n", 7),
        shelduck.drop_default("label"),
        shelduck.drop_not_null("id"),
        shelduck.move_column("s", after="country"),
        shelduck.set_comment(None, "all of it"),
        shelduck.set_comment("n", "counted"),
        shelduck.drop_column("s.b"),
        shelduck.drop_column("q", if_exists=True),
    )

    assert done == shelduck.Committed(3)
    assert table.schema.simpleString() == (
        "struct<country:string,s:struct<a:int,c:int>,id:int,n:bigint,label:string,day:date,"
        "bytes:binary,price:decimal(5,2),ok:boolean,at:timestamp_ntz>"
    )
    noon = dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001 - a local time
    row = ("??", (1, 5), 1, 1, "one", dt.date(2024, 2, 29), b"\x00a", Decimal("1.50"), True, noon)
    assert rows(table.read()) == [row]
    assert [f.name for f in table.columns if not f.nullable] == ["day"]
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        [told] = duckdb.rows("t")
        assert told == (row[0], {"a": 1, "c": 5}, *row[2:])


def test_not_null_is_set_when_the_rows_allow_it(copied, base):
    catalog, lake = copied
    table = lake.table("t")

    table.alter(shelduck.set_not_null("name"))
    assert [f.name for f in table.columns if not f.nullable] == ["id", "name"]

    table.append(lake.spark.sql("SELECT 2 AS id"))
    told = refusal(
        InvalidRequest,
        lambda: table.alter(shelduck.set_not_null("n")),
        catalog,
        base.folder / "data",
    )
    assert told.startswith("column 'n' of main.t contains NULL and cannot become NOT NULL")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: shelduck.move_column("a"), "move_column('a') needs first=True or after='…'"),
        (
            lambda: shelduck.add_column("a", "int", first=True, after="b"),
            "pass first=True or after='…', not both",
        ),
        (lambda: shelduck.add_column("a..b", "int"), "cannot parse the name 'a..b'"),
        (lambda: shelduck.change_type("a", "foo"), "unknown data type 'foo' in 'foo'"),
    ],
)
def test_a_change_that_means_nothing_is_refused_when_it_is_made(make, message):
    with pytest.raises(InvalidRequest) as caught:
        make()

    assert message in str(caught.value)


def test_an_alter_without_a_change_is_refused(copied, base):
    catalog, lake = copied
    table = lake.table("t")

    told = refusal(InvalidRequest, table.alter, catalog, base.folder / "data")

    assert told == "ALTER TABLE main.t contains no change"


def test_a_plan_prints_what_would_happen_and_does_nothing(copied, base):
    catalog, lake = copied
    before = everything(catalog, base.folder / "data")

    plan = lake.table("t").plan_alter(
        shelduck.add_column("c", "string", default="it's"),
        shelduck.change_type("n", "int"),
        shelduck.set_not_null("name"),
        shelduck.rename_column("id", "key"),
    )

    assert str(plan) == (
        "ALTER TABLE main.t: 4 change(s) in one snapshot\n  1. ADD COLUMN c varchar DEFAULT"
        " 'it\\'s'\n     light: files without the new id are read with its initial default\n"
        "     files to rewrite: 0, rows: 0, bytes: 0\n  2. ALTER COLUMN n TYPE int32\n     light:"
        " safe: int32 holds every int8\n     files to rewrite: 0, rows: 0, bytes: 0\n  3. ALTER"
        " COLUMN name SET NOT NULL\n     light: metadata only, after a check that no row holds"
        " NULL\n     files to rewrite: 0, rows: 0, bytes: 0\n  4. RENAME COLUMN id TO key\n"
        "     light: metadata only: columns are found by id\n     files to rewrite: 0, rows: 0,"
        " bytes: 0"
    )
    assert everything(catalog, base.folder / "data") == before


def test_a_plan_of_what_cannot_be_is_refused(lake):
    with pytest.raises(Unsupported, match=r"cannot change n of main\.t from int8 to variant"):
        lake.table("t").plan_alter(shelduck.change_type("n", "variant"))


# Look


def test_history_tells_what_changed_the_table_newest_first(lake, spark):
    table = lake.table("t")
    lake.create_table("other", {"a": "int"})
    table.alter(shelduck.add_column("c", "int"))
    table.append(spark.sql("SELECT 2 AS id"))

    assert [(s.id, s.changes_made) for s in table.history()] == [
        (5, "inlined_insert:1"),
        (4, "altered_table:1"),
        (2, "inlined_insert:1"),
        (1, 'created_table:"main"."t"'),
    ]
    assert [s.id for s in lake.snapshots()] == [0, 1, 2, 3, 4, 5]


def test_a_table_is_renamed_and_dropped(lake):
    table = lake.table("t")

    table.rename("u")
    assert str(table.name) == "main.u"
    assert rows(table.read().select("id")) == [(1,)]
    table.drop()

    assert lake.tables() == []
    with pytest.raises(NotFound, match=r"table 'u' does not exist"):
        table.read()


def test_repr_says_what_it_is(lake, base):
    assert repr(lake.table("t")) == "Table('main.t')"
    assert repr(lake).endswith(f"data_path='{base.folder}/data/')")


# Connect


def test_a_lake_made_by_duckdb_is_taken_as_it_is(sqlite_url, data_path, spark):
    with DuckDBOracle(sqlite_url, data_path) as duckdb:
        duckdb.execute("CREATE TABLE t AS SELECT 1 AS a")

    with shelduck.connect(sqlite_url, spark=spark) as lake:
        assert rows(lake.table("t").read()) == [(1,)]
        assert lake.data_path == data_path


def test_the_smallest_life_on_every_catalog(lake_url, data_path, spark):
    with shelduck.connect(lake_url, data_path, spark, author="me") as lake:
        table = lake.create_table("t", {"a": "int", "s": "struct<f: int>"})
        table.append(spark.sql("SELECT 1 AS a, named_struct('f', 1) AS s"))
        table.alter(shelduck.add_column("s.g", "int", default=5), shelduck.rename_column("a", "b"))
        assert rows(lake.sql("SELECT b, s FROM t WHERE b = 1")) == [(1, (1, 5))]
        assert rows(table.read(version=2)) == [(1, (1,))]
        assert [s.author for s in lake.snapshots()] == [None, "me", "me", "me"]
        with pytest.raises(AlreadyExists):
            lake.sql("ALTER TABLE t ADD COLUMN B INT")
        assert newest(lake) == 3
    with shelduck.connect(lake_url, spark=spark) as again:
        assert rows(again.table("t").read()) == [(1, (1, 5))]
    with DuckDBOracle(lake_url) as duckdb:
        assert duckdb.rows("t") == [(1, {"f": 1, "g": 5})]


@pytest.mark.parametrize(
    ("url", "data_path", "kind", "message"),
    [
        ("sqlite:///{0}/lake.db", None, InvalidRequest, "creating a lake in"),
        ("sqlite:///{0}/no/such/lake.db", "{0}/data", InvalidRequest, "{0}/no/such"),
        ("mysql://me@here/lake", "{0}/data", InvalidRequest, "mysql"),
        (
            "no url at all",
            "{0}/data",
            InvalidRequest,
            "cannot parse the catalog address; use sqlite:////file.db",
        ),
        (
            "",
            "{0}/data",
            InvalidRequest,
            "cannot parse the catalog address; use sqlite:////file.db",
        ),
        ("sqlite://", "{0}/data", InvalidRequest, "sqlite://"),
        ("postgresql://postgres@127.0.0.1:1/lake", "{0}/data", CatalogUnavailable, "127.0.0.1"),
    ],
)
def test_an_address_that_cannot_be_used_is_told(tmp_path, url, data_path, kind, message):
    where = data_path.format(tmp_path) if data_path else None

    with pytest.raises(kind) as caught:
        shelduck.connect(url.format(tmp_path), where)

    assert message.format(tmp_path) in str(caught.value)
    assert [p for p in tmp_path.rglob("*") if p.name != "lake.db"] == []


def test_another_data_path_than_the_lakes_own_is_refused(copied, base, tmp_path):
    catalog, _ = copied

    with pytest.raises(InvalidRequest) as caught:
        shelduck.connect(f"sqlite:///{catalog}", str(tmp_path / "elsewhere"))

    assert str(caught.value).endswith(
        f"has its files in '{base.folder}/data/', not in '{tmp_path}/elsewhere/'; leave out"
        " data_path"
    )


def test_a_database_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(json.dumps({"not": "a database"}) * 100)

    with pytest.raises(shelduck.ShelduckError, match=r"notes\.txt"):
        shelduck.connect(f"sqlite:///{path}", str(tmp_path / "data"))

    assert Path(path).read_text().startswith('{"not"')
