"""DuckDB alters tables whose columns were moved or converted, and writes into them."""

from __future__ import annotations

from contextlib import closing

import pytest
from sqlalchemy import text as sql_text

import shelduck
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.read import inlined_rows as read_inlined
from shelduck.catalog.read import read
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.errors import CorruptLake
from tests.support.ducklakepy_oracle import oracle_at

pytestmark = pytest.mark.usefixtures("ducklake_version")

C_FIRST = shelduck.move_column("c", first=True)
LIMIT = "data_inlining_row_limit"

# What we do to the columns a, b, c and s, what DuckDB does then, and the columns afterwards. The
# first letter says which column it is, whatever its name.
VARIANTS = {
    "rename_moved": ([C_FIRST], ["RENAME COLUMN c TO cc"], "cc a b s"),
    "rename_other": ([C_FIRST], ["RENAME COLUMN a TO aa"], "c aa b s"),
    "rename_both": ([C_FIRST], ["RENAME COLUMN c TO cc", "RENAME COLUMN b TO bb"], "cc a bb s"),
    "widen": ([C_FIRST], ["ALTER COLUMN c TYPE bigint"], "c a b s"),
    "set_default": ([C_FIRST], ["ALTER COLUMN c SET DEFAULT 4"], "c a b s"),
    "not_null": ([C_FIRST], ["ALTER COLUMN c SET NOT NULL"], "c a b s"),
    "drop_other": ([C_FIRST], ["DROP COLUMN b", "RENAME COLUMN c TO cc"], "cc a s"),
    "drop_moved": ([C_FIRST], ["DROP COLUMN c", "RENAME COLUMN a TO aa"], "aa b s"),
    "add": ([C_FIRST], ["ADD COLUMN z int", "RENAME COLUMN c TO cc"], "cc a b s z"),
    "add_last": (
        [shelduck.move_column("a", after="s"), shelduck.move_column("b", after="a")],
        ["ADD COLUMN z int", "RENAME COLUMN b TO bb"],
        "c s a bb z",
    ),
    "partition": ([C_FIRST], ["SET PARTITIONED BY (a)", "RENAME COLUMN c TO cc"], "cc a b s"),
    "moved_back": (
        [C_FIRST, shelduck.move_column("c", after="b")],
        ["RENAME COLUMN b TO bb", "RENAME COLUMN c TO cc"],
        "a bb cc s",
    ),
    "ours_added": (
        [shelduck.add_column("z", "int", after="a")],
        ["RENAME COLUMN z TO zz", "RENAME COLUMN c TO cc"],
        "a zz b cc s",
    ),
    "converted": (
        [shelduck.change_type("b", "string")],
        ["RENAME COLUMN b TO bb", "RENAME COLUMN c TO cc"],
        "a bb cc s",
    ),
    "nested": (
        [shelduck.move_column("s.y", first=True)],
        ["RENAME COLUMN s.y TO yy", "RENAME COLUMN s TO ss"],
        "a b c ss",
    ),
}


class Rows:
    """The rows of a table by their key, which is the value of column a."""

    def __init__(self, name):
        self.name = name
        self.columns = ["a", "b", "c", "s"]
        self.rows = {}
        self.put(1)

    def put(self, *keys):
        """The statement that inserts rows by the places of columns."""
        for key in keys:
            self.rows[key] = {c[0]: key + 100 * "abczs".index(c[0]) for c in self.columns}
        rows = (", ".join(self.literal(c, self.rows[k][c[0]]) for c in self.columns) for k in keys)
        return f"INSERT INTO {self.name} VALUES {', '.join(f'({row})' for row in rows)}"

    def change(self, key):
        """The statement that changes the last column of a row."""
        column = self.columns[-1]
        self.rows[key][column[0]] = 7000 + key
        where = f"{self.key} = {key}"
        return f"UPDATE {self.name} SET {column} = {self.literal(column, 7000 + key)} WHERE {where}"

    def remove(self, key):
        del self.rows[key]
        return f"DELETE FROM {self.name} WHERE {self.key} = {key}"

    @property
    def key(self):
        return next(c for c in self.columns if c[0] == "a")

    def literal(self, column, number):
        member = "yy" if column == "ss" else "y"
        return f"{{'{member}': {number}, 'x': {-number}}}" if column[0] == "s" else str(number)

    @property
    def query(self):
        """What reads the table, with a struct as two columns."""
        parts = []
        for name in self.columns:
            member = "yy" if name == "ss" else "y"
            parts += [f"{name}.{member}", f"{name}.x"] if name[0] == "s" else [name]
        return f"SELECT {', '.join(parts)} FROM {self.name}"

    def expected(self):
        found = []
        for row in self.rows.values():
            line = []
            for letter in (c[0] for c in self.columns):
                value = row.get(letter)
                line += [value, -value] if letter == "s" else [value]
            found.append(tuple(map(str, line)))
        return sorted(found)

    def check(self, oracle, when):
        assert [c for c, _ in oracle.columns(self.name)] == self.columns, (self.name, when)
        assert told(oracle.sql(self.query)) == self.expected(), (self.name, when)


def told(rows):
    return sorted(tuple(map(str, row)) for row in rows)


def prepare(url, data_path, names, spark=None):
    """Tables of rows that DuckDB inlined, and what is in them; the columns are as they were."""
    tables = {name: Rows(name) for name in names}
    with closing(shelduck.connect(url, data_path, spark)) as lake:
        for name in tables:
            columns = {"a": "int", "b": "int", "c": "int", "s": "struct<x:int,y:int>"}
            lake.create_table(name, columns)
    with oracle_at(url) as oracle:
        for name in tables:
            oracle.execute(f"INSERT INTO {name} VALUES (1, 101, 201, {{'x': -401, 'y': 401}})")
    return tables


def move(url, tables, spark=None):
    with closing(shelduck.connect(url, spark=spark)) as lake:
        for name in tables:
            for change in VARIANTS[name][0]:
                found = lake.table(name).alter(change)
                if hasattr(found, "wait"):
                    found.wait()


def alter(table):
    """The statements by which DuckDB alters a table."""
    _, theirs, columns = VARIANTS[table.name]
    table.columns = columns.split()
    for row in table.rows.values():
        for letter in set(row) - {c[0] for c in table.columns}:
            del row[letter]
    return [f"ALTER TABLE {table.name} {text}" for text in theirs]


def write(oracle, table):
    """DuckDB does everything to the rows of a table."""
    texts = [table.put(5), table.change(1), table.put(*range(6, 30)), table.remove(2)]
    texts += [table.change(3), table.change(7), table.remove(8), table.put(30)]
    for text in texts:
        oracle.execute(text)
    table.check(oracle, "written")


def flush(oracle, tables):
    for name, table in tables.items():
        oracle.execute(f"CALL ducklake_flush_inlined_data('lake', table_name => '{name}')")
        table.check(oracle, "flushed")
        oracle.execute(f"CALL ducklake_merge_adjacent_files('lake', '{name}')")
        table.check(oracle, "merged")


def read_here(url, spark, tables):
    with closing(shelduck.connect(url, spark=spark)) as lake:
        for name, table in tables.items():
            found = lake.sql(table.query).collect()
            assert told(found) == table.expected(), name


@pytest.mark.slow
def test_an_open_session_of_duckdb_alters_a_table_whose_column_was_moved(sqlite_url, data_path):
    tables = prepare(sqlite_url, data_path, ["rename_moved", "add_last"])
    with oracle_at(sqlite_url) as oracle:
        for table in tables.values():
            table.check(oracle, "before")
        move(sqlite_url, tables)
        for table in tables.values():
            for text in [*alter(table), table.put(2), table.put(3, 4)]:
                oracle.execute(text)
            write(oracle, table)
        with oracle_at(sqlite_url) as other:
            for table in tables.values():
                table.check(other, "in another session")


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [False, True], ids=["one_by_one", "in_a_transaction"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_duckdb_alters_and_writes_tables_whose_columns_were_moved(
    request, kind, data_path, spark, at_once
):
    url = request.getfixturevalue(f"{kind}_url")
    tables = prepare(url, data_path, VARIANTS, spark)
    with oracle_at(url, options={"DATA_INLINING_ROW_LIMIT": 20}) as oracle:
        for table in tables.values():
            table.check(oracle, "before")
        move(url, tables, spark)
        for table in tables.values():
            texts = [*alter(table), table.put(2), table.put(3, 4)]
            for text in ["BEGIN", *texts, "COMMIT"] if at_once else texts:
                oracle.execute(text)
            write(oracle, table)
        read_here(url, spark, tables)
        flush(oracle, tables)
    read_here(url, spark, tables)


@pytest.mark.versions("1.0")
@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [["rename_moved", "nested"], pytest.param(list(VARIANTS), marks=pytest.mark.slow)],
    ids=["few", "all"],
)
def test_duckdb_alters_and_writes_tables_whose_columns_were_moved_in_a_duckdb_file(
    request, duckdb_url, data_path, names
):
    # Only a job needs Spark, and reading.
    spark = request.getfixturevalue("spark") if len(names) == len(VARIANTS) else None
    tables = prepare(duckdb_url, data_path, names, spark)
    move(duckdb_url, tables, spark)
    with oracle_at(duckdb_url, options={"DATA_INLINING_ROW_LIMIT": 20}) as oracle:
        oracle.execute("SET ducklake_default_data_inlining_row_limit = 50")
        for name, table in tables.items():
            for text in alter(table):
                oracle.execute(text)
            # DuckDB puts a column that it alters into the place of its id, and says so.
            table.columns = [column for column, _ in oracle.columns(name)]
            for text in [table.put(2), table.put(3, 4)]:
                oracle.execute(text)
            write(oracle, table)
        flush(oracle, tables)
    if spark is not None:
        read_here(duckdb_url, spark, tables)


def settings(url):
    with closing(shelduck.connect(url)) as lake:
        return [(o.value, o.scope) for o in lake.options() if o.name == LIMIT]


@pytest.mark.versions("1.0")
def test_the_option_of_a_table_in_a_duckdb_file_comes_back_with_the_places(duckdb_url, data_path):
    with closing(shelduck.connect(duckdb_url, data_path)) as lake:
        for name in ("t", "u"):
            lake.create_table(name, {"a": "int", "b": "int", "c": "int"})
        lake.set_option(LIMIT, 7, table="t")
        for name in ("t", "u"):
            lake.table(name).alter(C_FIRST)
    assert settings(duckdb_url) == [("0", "table"), ("0", "table")]
    with closing(shelduck.connect(duckdb_url)) as lake:
        lake.set_option(LIMIT, 8, table="t")
    assert settings(duckdb_url) == [("0", "table"), ("0", "table")]
    with closing(shelduck.connect(duckdb_url)) as lake:
        for name in ("t", "u"):
            lake.table(name).alter(shelduck.move_column("c", after="b"))
    assert settings(duckdb_url) == [("8", "table")]
    with oracle_at(duckdb_url) as oracle:
        oracle.execute("ALTER TABLE u RENAME COLUMN c TO cc")
        oracle.execute("INSERT INTO u VALUES (1, 2, 3)")
        assert oracle.rows("u") == [(1, 2, 3)]
        names = oracle.sql("SELECT key FROM __ducklake_metadata_lake.ducklake_metadata")
        assert not [name for (name,) in names if name.startswith("shelduck")]


@pytest.mark.versions("1.0")
def test_rows_that_duckdb_put_into_other_columns_are_refused(lake_url, data_path):
    with closing(shelduck.connect(lake_url, data_path)) as lake:
        lake.create_table("t", {"a": "int", "b": "int", "c": "int"})
        lake.table("t").alter(C_FIRST)
    with oracle_at(lake_url) as oracle:
        # As in a lake of old, and where somebody sets the option again.
        forget_places(oracle, lake_url)
        oracle.execute("BEGIN")
        oracle.execute("ALTER TABLE t RENAME COLUMN c TO cc")
        oracle.execute("INSERT INTO t (a, b, cc) VALUES (1, 2, 3)")
        oracle.execute("COMMIT")
        right = oracle.snapshot()
    assert inlined(lake_url, right) == [("1", "2", "3")]
    with oracle_at(lake_url) as oracle:
        oracle.execute("INSERT INTO t (a, b, cc) VALUES (10, 20, 30)")
        wrong = oracle.snapshot()
    assert inlined(lake_url, right) == [("1", "2", "3")]
    told = rf"main.t has rows of snapshot {wrong} in the catalog .* as of snapshot {right},"
    with pytest.raises(CorruptLake, match=told):
        inlined(lake_url, wrong)
    with oracle_at(lake_url) as oracle:
        oracle.execute(f"DELETE FROM t WHERE snapshot_id = {wrong}")
    assert inlined(lake_url, wrong + 1) == [("1", "2", "3")]


def forget_places(oracle, url):
    kind = url.partition(":")[0]
    if kind == "duckdb":
        oracle.execute(f"CALL lake.set_option('{LIMIT}', 10, table_name => 't')")
        return
    on = " ON ducklake_column" if kind == "postgresql" else ""
    with closing(open_store(url)) as store, store.write() as connection:
        connection.execute(sql_text(f"DROP TRIGGER shelduck_kept_places{on}"))


def inlined(url, version):
    """The rows that the catalog keeps of t at a snapshot, as we read them: columns a, b, c."""
    with closing(open_store(url)) as store:
        info = open_lake(store)
        with store.read() as connection:
            table = read.table(connection, read.snapshot(connection, version), "main", "t", info)
            found = read_inlined.inlined_rows(connection, table)
    rows = []
    for part in found:
        places = [part.columns.names.index(name) for name in ("a", "b", "cc")]
        rows += [tuple(row[n] for n in places) for row in part.rows]
    return sorted(rows)
