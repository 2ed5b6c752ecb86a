"""Statistics of files in lakes of DuckLake 1.1, compared with those that ducklakepy writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ducklakepy import load_catalog
from ducklakepy.expressions import EqualTo, GreaterThan

import shelduck

# A column each: its type, and the value of row n; the last row is NULL.
TYPES = {
    "bo": ("BOOLEAN", "id > 0"),
    "i8": ("TINYINT", "CAST(id - 2 AS TINYINT)"),
    "i16": ("SMALLINT", "CAST(id AS SMALLINT)"),
    "i32": ("INT", "CAST(id AS INT)"),
    "i64": ("BIGINT", "id * 10000000000"),
    "f": ("FLOAT", "CAST(id / 3 AS FLOAT)"),
    "d": ("DOUBLE", "id / 7"),
    "nan": ("DOUBLE", "IF(id = 1, double('nan'), double(id))"),
    "zero": ("DOUBLE", "-0D"),
    "dc": ("DECIMAL(9, 2)", "CAST(id * -1.25 AS DECIMAL(9, 2))"),
    "wide": ("DECIMAL(30, 3)", "CAST(id AS DECIMAL(30, 3)) * 12345678901234567"),
    "dt": ("DATE", "date_add(DATE'1969-12-31', CAST(id AS INT))"),
    "tn": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'2024-01-01 00:00:00.000001' + make_interval(id)"),
    "tz": ("TIMESTAMP", "TIMESTAMP'2024-06-01 00:00:00+02:00' + make_interval(id)"),
    "s": ("STRING", "concat('k', id)"),
    "b": ("BINARY", "CAST(concat('k', id) AS BINARY)"),
    "nul": ("STRING", "CAST(NULL AS STRING)"),
    "st": ("STRUCT<x: INT, y: STRING>", "named_struct('x', CAST(id AS INT), 'y', 'y')"),
    "li": ("ARRAY<INT>", "array(CAST(id AS INT), 7)"),
}
_FILES = """
    SELECT f.data_file_id, k.column_name, s.value_count, s.null_count, s.min_value, s.max_value,
           s.contains_nan, s.min_is_exact, s.max_is_exact
    FROM ducklake_file_column_stats s
    JOIN ducklake_data_file f USING (data_file_id)
    JOIN ducklake_table t ON t.table_id = s.table_id
    JOIN ducklake_column k ON k.table_id = s.table_id AND k.column_id = s.column_id
    WHERE t.table_name = ? AND t.end_snapshot IS NULL AND k.end_snapshot IS NULL
    ORDER BY s.column_id, f.data_file_id
"""
_TABLE = """
    SELECT k.column_name, s.contains_null, s.min_value, s.max_value, s.contains_nan,
           s.min_is_exact, s.max_is_exact
    FROM ducklake_table_column_stats s
    JOIN ducklake_table t ON t.table_id = s.table_id
    JOIN ducklake_column k ON k.table_id = s.table_id AND k.column_id = s.column_id
    WHERE t.table_name = ? AND t.end_snapshot IS NULL AND k.end_snapshot IS NULL
    ORDER BY s.column_id
"""


class Places:
    """A lake of ours and one of ducklakepy, each a SQLite file with files beside it."""

    def __init__(self, path, spark):
        self.path = path
        self.ours, self.theirs = f"sqlite:///{path}/c.db", f"sqlite:///{path}/theirs.db"
        shelduck.connect(self.ours, f"{path}/data/", ducklake_version="1.1").close()
        self.lake = shelduck.connect(self.ours, None, spark)
        self.lake.set_option("data_inlining_row_limit", 0)

    def ask(self, query, *values, name="c.db"):
        with closing(sqlite3.connect(self.path / name)) as connection:
            return connection.execute(query, values).fetchall()

    def read(self):
        return load_catalog(url=self.ours, data_path=f"{self.path}/data/")

    def copy(self, table):
        """Let ducklakepy write the rows of a table into a table of its own lake, in one file."""
        with closing(self.read()) as mine:
            found = mine.load_table(f"main.{table}")
            rows, schema = found.scan().to_arrow(), found.schema()
        with closing(load_catalog(url=self.theirs, data_path=f"{self.path}/theirs/")) as other:
            other.initialize()
            other.set_option("data_inlining_row_limit", 0)
            other.create_table(f"main.{table}", schema=schema).append(rows)


@pytest.fixture(scope="module")
def places(spark, tmp_path_factory):
    made = Places(tmp_path_factory.mktemp("exact"), spark)
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    values = ", ".join(f"IF(id = 3, NULL, {value}) {name}" for name, (_, value) in TYPES.items())
    made.lake.sql(f"CREATE TABLE t ({columns})")
    made.lake.sql(f"INSERT INTO t SELECT {values} FROM range(0, 4, 1, 1)")
    yield made
    made.lake.close()


def test_files_and_tables_have_the_statistics_that_ducklakepy_writes_for_the_same_rows(places):
    places.copy("t")

    ours = {row[1]: row[2:] for row in places.ask(_FILES, "t")}
    theirs = {row[1]: row[2:] for row in places.ask(_FILES, "t", name="theirs.db")}
    assert len(ours) == len(TYPES) + 1
    # A NaN hides values in footers; zero has one text; texts of floats are DuckDB's.
    assert (ours.pop("nan"), theirs.pop("nan")) == (
        (3, 1, None, None, 1, None, None),
        (3, 1, "0.0", "2.0", 1, 1, 1),
    )
    assert (ours.pop("zero"), theirs.pop("zero")) == (
        (3, 1, "0.0", "0.0", 0, 1, 1),
        (3, 1, "-0.0", "-0.0", 0, 1, 1),
    )
    assert (ours.pop("f"), theirs.pop("f")) == (
        (3, 1, "0.0", "0.6666667", 0, 1, 1),
        (3, 1, "0.0", "0.6666666865348816", 0, 1, 1),
    )
    assert ours == theirs
    mine = {row[0]: row for row in places.ask(_TABLE, "t")}
    others = {row[0]: row for row in places.ask(_TABLE, "t", name="theirs.db")}
    # A column without bounds that are certain has no row.
    assert others.keys() - mine.keys() == {"nan", "b"}
    assert {n: row for n, row in mine.items() if n not in ("zero", "f")} == {
        n: row for n, row in others.items() if n not in ("zero", "f", "nan", "b")
    }


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (EqualTo("s", "k1"), 1),
        (EqualTo("s", "k9"), 0),
        (GreaterThan("i32", 2), 0),
        (GreaterThan("i32", 1), 1),
        (EqualTo("dt", date(1969, 12, 31)), 1),
        (EqualTo("dt", date(1969, 12, 30)), 0),
    ],
    ids=str,
)
def test_ducklakepy_prunes_our_files_by_what_they_say(places, condition, found):
    with closing(places.read()) as catalog:
        scan = catalog.load_table("main.t").scan(row_filter=condition)
        assert scan.to_arrow().num_rows == found
        assert len(scan.plan_files()) == found


@pytest.mark.parametrize(
    ("condition", "found"),
    [("s = 'old'", ["old"]), ("s < 'p' AND s > 'nnn'", ["old"]), ("n = 7", ["old"])],
)
def test_we_prune_files_of_ducklakepy_by_what_they_say(spark, tmp_path, condition, found):
    url, data = f"sqlite:///{tmp_path}/c.db", f"{tmp_path}/data/"
    with closing(shelduck.connect(url, data, ducklake_version="1.1")) as lake:
        lake.execute("CREATE TABLE t (s STRING, n BIGINT)")
        lake.set_option("data_inlining_row_limit", 0)
    with closing(load_catalog(url=url, data_path=data)) as catalog:
        for texts, numbers in ((["old"], [7]), (["z" * 300, "x"], [8, 9])):
            catalog.load_table("main.t").append(pa.table({"s": texts, "n": numbers}))
    with closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        query = "SELECT path FROM ducklake_data_file WHERE record_count = 2"
        [(other,)] = connection.execute(query)

    with closing(shelduck.connect(url, None, spark)) as lake:
        # This learns the columns of the files.
        assert len(lake.sql("SELECT s FROM t").collect()) == 3
        (tmp_path / "data" / "main" / "t" / other).unlink()
        rows = lake.sql(f"SELECT s FROM t WHERE {condition}").collect()
    assert [row.s for row in rows] == found


def test_a_text_that_was_cut_is_no_value_and_its_neighbour_is(places):
    places.lake.sql("CREATE TABLE long (low STRING, high STRING, edge STRING)")
    places.lake.sql(
        "INSERT INTO long VALUES (repeat('a', 300), 'b', repeat('c', 256)),"
        " ('b', repeat('z', 300), repeat('c', 256))"
    )

    by_file = [row[4:6] + row[7:] for row in places.ask(_FILES, "long")]
    assert by_file == [
        ("a" * 256, "b", 0, 1),
        ("b", "z" * 255 + "{", 1, 0),
        ("c" * 256, "c" * 256, 1, 1),
    ]
    assert [row[2:4] + row[5:] for row in places.ask(_TABLE, "long")] == by_file


def test_texts_of_adopted_files_are_bounds_and_numbers_are_values(places):
    rows = pa.table({"a": pa.array([5, 6, 7], pa.int32()), "s": ["q", "r", "r"]})
    pq.write_table(rows, places.path / "f.parquet", row_group_size=2)
    places.lake.sql("CREATE TABLE adopted (a INT, s STRING)")
    places.lake.table("adopted").add_files([str(places.path / "f.parquet")])

    assert [row[4:6] + row[7:] for row in places.ask(_FILES, "adopted")] == [
        ("5", "7", 1, 1),
        ("q", "r", 0, 0),
    ]
    assert [row[2:4] + row[5:] for row in places.ask(_TABLE, "adopted")] == [
        ("5", "7", 1, 1),
        ("q", "r", 0, 0),
    ]
    places.lake.sql("INSERT INTO adopted VALUES (1, 'q'), (9, 'z')")
    assert [row[2:4] + row[5:] for row in places.ask(_TABLE, "adopted")] == [
        ("1", "9", 1, 1),
        ("q", "z", 0, 1),
    ]


def test_every_new_file_says_how_many_row_groups_it_has(places):
    lake = places.lake
    lake.sql("CREATE TABLE g (id BIGINT, v STRING)")
    lake.set_option("parquet_row_group_size", 100, table="g")
    lake.sql("INSERT INTO g SELECT id, 'v' FROM range(0, 450, 1, 1)")
    lake.sql("DELETE FROM g WHERE id % 2 = 0")
    lake.sql("DELETE FROM g WHERE id % 3 = 0")
    lake.sql("UPDATE g SET v = 'u' WHERE id = 1")
    lake.table("g").rewrite_deletes(delete_threshold=0)
    lake.table("g").compact()
    lake.sql("ALTER TABLE g ALTER COLUMN id TYPE STRING")
    lake.sql("CREATE TABLE kept (a INT)")
    lake.set_option("data_inlining_row_limit", 10, table="kept")
    lake.sql("INSERT INTO kept VALUES (1), (2), (3)")
    lake.sql("DELETE FROM kept WHERE a = 1")
    lake.sql("CALL flush_inlined_data('kept')")

    for kind in ("data", "delete"):
        rows = places.ask(
            f"SELECT t.path, f.path, f.path_is_relative, f.row_group_count"
            f" FROM ducklake_{kind}_file f JOIN ducklake_table t USING (table_id)"
        )
        assert rows
        for table, path, is_relative, told in rows:
            place = places.path / "data" / "main" / table / path if is_relative else path
            assert told == pq.read_metadata(place).num_row_groups, path
    assert places.ask("SELECT max(row_group_count) FROM ducklake_data_file")[0][0] == 5


def test_bounds_of_a_column_that_gets_another_type_go_with_what_is_said_about_them(places):
    places.lake.sql("CREATE TABLE w (f FLOAT, s STRING)")
    places.lake.sql("INSERT INTO w VALUES (1.5, 'a')")
    places.lake.sql("ALTER TABLE w ALTER COLUMN f TYPE DOUBLE")
    places.lake.sql("ALTER TABLE w ADD COLUMN d STRING DEFAULT 'x'")

    assert [row[4:6] + row[7:] for row in places.ask(_FILES, "w")] == [
        (None, None, None, None),
        ("a", "a", 1, 1),
    ]
    assert [row[0:1] + row[2:4] + row[5:] for row in places.ask(_TABLE, "w")] == [
        ("s", "a", "a", 1, 1),
        ("d", "x", "x", 1, 1),
    ]


def test_bounds_are_there_or_not_as_the_option_skip_stats_columns_says(places):
    lake = places.lake
    lake.sql("CREATE TABLE k (a INT, s STRUCT<x: DOUBLE, y: STRING>, z INT)")
    lake.set_option("skip_stats_columns", "s, A", table="k")
    lake.sql("INSERT INTO k VALUES (1, named_struct('x', 1D, 'y', 'a'), 3)")
    lake.set_option("skip_stats_columns", "", table="k")
    lake.sql("INSERT INTO k VALUES (2, named_struct('x', double('nan'), 'y', 'b'), 4)")

    assert [row[1:7] for row in places.ask(_FILES, "k")] == [
        ("a", 1, 0, None, None, None),
        ("a", 1, 0, "2", "2", None),
        ("x", 1, 0, None, None, None),
        ("x", 1, 0, None, None, 1),
        ("y", 1, 0, None, None, None),
        ("y", 1, 0, "b", "b", None),
        ("z", 1, 0, "3", "3", None),
        ("z", 1, 0, "4", "4", None),
    ]
    assert [row[0] for row in places.ask(_TABLE, "k")] == ["z"]
    assert [tuple(row) for row in lake.sql("SELECT a FROM k WHERE a = 1").collect()] == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE n AS SELECT 1 AS _ducklake_n",
        (
            "MERGE WITH SCHEMA EVOLUTION INTO m USING (SELECT 1 a, 5 _ducklake_n) s ON m.a = s.a"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
    ],
)
def test_rows_bring_no_column_whose_name_1_1_keeps_for_itself(places, statement):
    places.lake.sql("CREATE TABLE IF NOT EXISTS m (a INT)")

    with pytest.raises(shelduck.InvalidRequest, match=r"column name '_ducklake_n' of main\.[mn]"):
        places.lake.sql(statement)
