"""DuckLake's page on catalog queries: a client that knows only this page reads and writes lakes."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck.errors import InvalidRequest
from tests.coverage.pages import Page
from tests.support.ducklakepy_oracle import DuckLakePyOracle
from tests.support.scans import files_read

PAGE = Page("queries", "DuckLake: queries of the catalog")
READ, PRUNE, SNAPSHOT, SHAPE, ROWS, NEWER = (
    *("Reading", "Pruning", "Snapshots", "Schemas and tables", "Rows", "DuckLake 1.1"),
)
VERSION = "SELECT value FROM ducklake_metadata WHERE key = 'version' AND scope IS NULL;"
INLINED = (
    "SELECT _ducklake_row_id, row_id, name FROM ducklake_inlined_data_1_1 WHERE 2 >="
    " _ducklake_begin_snapshot AND (2 < _ducklake_end_snapshot OR _ducklake_end_snapshot IS NULL)"
    " ORDER BY _ducklake_row_id;"
)
LIVE = "{0} >= begin_snapshot AND ({0} < end_snapshot OR end_snapshot IS NULL)"


class Client:
    """A client of the catalog's database that runs the page's statements, and nothing else."""

    def __init__(self, case):
        self.case = case

    def sql(self, statement, **values):
        with closing(sqlite3.connect(self.case.catalog)) as connection, connection:
            return connection.execute(statement, values).fetchall()

    @property
    def snapshot(self):
        return self.sql(CURRENT)[0][0]

    def live(self, columns, table, where="true"):
        return self.sql(
            f"SELECT {columns} FROM {table} WHERE {where} AND {LIVE.format(self.snapshot)}"
        )

    def commit(self, changes, *, catalog=0, files=0, schema=0):
        """Make the next snapshot as the page says; return its id and the next free ids before."""
        [(at, version, next_catalog, next_file)] = self.sql(
            "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM"
            " ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"
        )
        self.sql(
            "INSERT INTO ducklake_snapshot (snapshot_id, snapshot_time, schema_version,"
            " next_catalog_id, next_file_id) VALUES (:id, '2024-01-01 00:00:00+00', :version,"
            " :catalog, :file)",
            id=at + 1,
            version=version + schema,
            catalog=next_catalog + catalog,
            file=next_file + files,
        )
        self.sql(
            "INSERT INTO ducklake_snapshot_changes (snapshot_id, changes_made) VALUES (:id,"
            " :changes)",
            id=at + 1,
            changes=changes.format(next_catalog),
        )
        return at + 1, next_catalog, next_file

    def create_schema(self, name):
        at, number, _ = self.commit(f'created_schema:"{name}"', catalog=1, schema=1)
        self.sql(
            "INSERT INTO ducklake_schema (schema_id, schema_uuid, begin_snapshot, end_snapshot,"
            " schema_name) VALUES (:id, :uuid, :at, NULL, :name)",
            id=number,
            uuid=str(uuid.uuid4()),
            at=at,
            name=name,
        )
        return number

    def create_table(self, name, columns, schema=0, schema_name="main"):
        at, number, _ = self.commit(f'created_table:"{schema_name}"."{name}"', catalog=1, schema=1)
        self.sql(
            "INSERT INTO ducklake_table (table_id, table_uuid, begin_snapshot, end_snapshot,"
            " schema_id, table_name) VALUES (:id, :uuid, :at, NULL, :schema, :name)",
            id=number,
            uuid=str(uuid.uuid4()),
            at=at,
            schema=schema,
            name=name,
        )
        for place, (column, kind) in enumerate(columns.items(), 1):
            self.sql(
                "INSERT INTO ducklake_column (column_id, begin_snapshot, end_snapshot, table_id,"
                " column_order, column_name, column_type, nulls_allowed) VALUES (:id, :at, NULL,"
                " :table, :place, :name, :kind, true)",
                id=place,
                at=at,
                table=number,
                place=place,
                name=column,
                kind=kind,
            )
        return number

    def insert(self, table, rows, row_id=0):
        """Write a Parquet file with field ids, and register it."""
        path = f"by-hand-{uuid.uuid4()}.parquet"
        # DuckDB looks for files of a table without a path below the path of its schema.
        folder = self.case.data / "main"
        folder.mkdir(parents=True, exist_ok=True)
        fields = [
            pa.field(f.name, f.type, metadata={"PARQUET:field_id": str(n)})
            for n, f in enumerate(rows.schema, 1)
        ]
        pq.write_table(rows.cast(pa.schema(fields)), folder / path)
        size = (folder / path).stat().st_size
        at, _, number = self.commit(f"inserted_into_table:{table}", files=1)
        self.sql(
            "INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, end_snapshot,"
            " path, path_is_relative, file_format, record_count, file_size_bytes, footer_size,"
            " row_id_start) VALUES (:id, :table, :at, NULL, :path, true, 'parquet', :rows, :size,"
            " :footer, :first)",
            id=number,
            table=table,
            at=at,
            path=path,
            rows=rows.num_rows,
            size=size,
            footer=footer_length(folder / path),
            first=row_id,
        )
        return number, path

    def statistics(self, table, file, rows):
        """What the page adds for an INSERT into an empty table."""
        self.sql(
            "INSERT INTO ducklake_table_stats (table_id, record_count, next_row_id,"
            " file_size_bytes) VALUES (:table, :rows, :rows, 1)",
            table=table,
            rows=rows.num_rows,
        )
        for number, name in enumerate(rows.schema.names, 1):
            values = rows.column(name).to_pylist()
            told = {"table": table, "column": number, "low": str(min(values))}
            told["high"] = str(max(values))
            self.sql(
                "INSERT INTO ducklake_table_column_stats (table_id, column_id, contains_null,"
                " contains_nan, min_value, max_value) VALUES (:table, :column, false, NULL, :low,"
                " :high)",
                **told,
            )
            self.sql(
                "INSERT INTO ducklake_file_column_stats (data_file_id, table_id, column_id,"
                " value_count, null_count, min_value, max_value, contains_nan) VALUES (:file,"
                " :table, :column, :rows, 0, :low, :high, NULL)",
                **told,
                file=file,
                rows=rows.num_rows,
            )


CURRENT = (
    "SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_id = (SELECT max(snapshot_id) FROM"
    " ducklake_snapshot);"
)
FILES = (
    "SELECT data.path AS data_file_path, del.path AS delete_file_path FROM ducklake_data_file AS"
    " data LEFT JOIN (SELECT * FROM ducklake_delete_file WHERE {0} >= begin_snapshot AND ({0} <"
    " end_snapshot OR end_snapshot IS NULL)) AS del USING (data_file_id) WHERE data.table_id = {1}"
    " AND {0} >= data.begin_snapshot AND ({0} < data.end_snapshot OR data.end_snapshot IS NULL)"
    " ORDER BY file_order;"
)
STATS = (
    "SELECT data_file_id FROM ducklake_file_column_stats WHERE table_id = :table AND column_id ="
    " :column AND (:scalar >= CAST(min_value AS INTEGER) OR min_value IS NULL) AND (:scalar <="
    " CAST(max_value AS INTEGER) OR max_value IS NULL)"
)
TWO = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"]})
COLUMNS = {"id": "int32", "name": "varchar"}


def footer_length(file):
    """The length of a Parquet file's footer, which stands before its last four bytes."""
    return int.from_bytes(file.read_bytes()[-8:-4], "little")


@pytest.fixture
def client(case):
    return Client(case)


@pytest.fixture
def ours(client):
    """A table that Shelduck wrote: two files, one of them with a deleted row."""
    lake = client.case.lake
    lake.sql("CREATE TABLE t (id INT, name STRING)")
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    lake.sql("INSERT INTO t VALUES (3, 'c')")
    lake.sql("DELETE FROM t WHERE id = 2")
    return client


def table_id(client, name="t"):
    return client.live("table_id", "ducklake_table", f"table_name = '{name}'")[0][0]


def rows_by_page(client, number, at):
    """The rows of a table at a snapshot, from its files alone."""
    found = []
    where = f"table_id = {number} AND parent_column IS NULL"
    columns = [name for (name,) in client.live("column_name", "ducklake_column", where)]
    base = (
        "SELECT schemas.path || tables.path FROM ducklake_table tables JOIN ducklake_schema schemas"
    )
    [(folder,)] = client.sql(f"{base} USING (schema_id) WHERE table_id = {number}")
    for data, deletes in client.sql(FILES.format(at, number)):
        # Updated rows have a column with their row ids, which is none of the table.
        rows = pq.read_table(client.case.data / folder / data, columns=columns).to_pylist()
        dead = set()
        if deletes is not None:
            dead = set(pq.read_table(client.case.data / folder / deletes).column("pos").to_pylist())
        found += [tuple(r.values()) for n, r in enumerate(rows) if n not in dead]
    return sorted(found)


@PAGE.row(*("Q1", READ, "The current snapshot is the greatest id"), statement=CURRENT)
def test_q1_the_current_snapshot(ours):
    assert ours.snapshot == ours.case.lake.snapshots()[-1].id


@PAGE.row(
    *("Q2", READ, "The schemas of a snapshot"),
    statement="SELECT schema_id, schema_name FROM ducklake_schema WHERE SNAPSHOT_ID >="
    " begin_snapshot AND (SNAPSHOT_ID < end_snapshot OR end_snapshot IS NULL);",
)
def test_q2_schemas(ours):
    ours.case.lake.sql("CREATE SCHEMA s")
    assert {name for _, name in ours.live("schema_id, schema_name", "ducklake_schema")} == {
        *("main", "s")
    }


@PAGE.row(
    *("Q3", READ, "The tables of a schema"),
    statement="SELECT table_id, table_name FROM ducklake_table WHERE schema_id = SCHEMA_ID AND …",
)
def test_q3_tables(ours):
    found = ours.live("table_name", "ducklake_table", "schema_id = 0")
    assert found == [("t",)]


@PAGE.row(
    *("Q4", READ, "The top-level columns of a table"),
    statement="SELECT column_id, column_name, column_type FROM ducklake_column WHERE table_id ="
    " TABLE_ID AND parent_column IS NULL AND … ORDER BY column_order;",
)
def test_q4_columns(ours):
    where = f"table_id = {table_id(ours)} AND parent_column IS NULL"
    found = ours.live("column_id, column_name, column_type", "ducklake_column", where)
    assert found == [(1, "id", "int32"), (2, "name", "varchar")]


@PAGE.row(*("Q5", READ, "Data files with their delete files: at most one each"), statement=FILES)
def test_q5_files_give_the_rows(ours):
    found = ours.sql(FILES.format(ours.snapshot, table_id(ours)))
    assert [deletes is not None for _, deletes in found] == [True, False]
    assert rows_by_page(ours, table_id(ours), ours.snapshot) == [(1, "a"), (3, "c")]


@PAGE.row(*("Q6", READ, "Older snapshots give older rows"))
def test_q6_older_snapshots(ours):
    found = rows_by_page(ours, table_id(ours), ours.snapshot - 1)
    assert found == [(1, "a"), (2, "b"), (3, "c")]


@PAGE.row(*("Q7", READ, "Paths may be relative to the data path, which path_is_relative says"))
def test_q7_paths_are_relative(ours):
    found = ours.live("path_is_relative", "ducklake_data_file")
    assert found == [(1,), (1,)]


@PAGE.row(*("Q8", PRUNE, "Files that can hold a value, by their statistics"), statement=STATS)
def test_q8_files_are_pruned(ours):
    number = table_id(ours)
    told = {"table": number, "column": 1}
    assert len(ours.sql(STATS, **told, scalar=3)) == 1
    assert len(ours.sql(STATS, **told, scalar=1)) == 1
    assert ours.sql(STATS, **told, scalar=9) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("condition", "holding"),
    [
        ("id = 3", 1),
        ("id <> 3", 3),
        ("id < 3", 1),
        ("id <= 3", 2),
        ("id > 5", 1),
        ("id >= 5", 1),
        ("id BETWEEN 2 AND 3", 2),
        ("id IN (1, 6)", 2),
        ("id <=> 4", 1),
        ("id IS NULL", 1),
        ("id IS NOT NULL", 3),
        ("NOT id < 5", 1),
    ],
)
@PAGE.row(
    *("Q23", PRUNE, "The page prunes by `=`"),
    beyond="`<`, `<=`, `>`, `>=`, BETWEEN, IN, `<=>`, NOT, IS NULL and IS NOT NULL leave out files"
    " as well",
)
def test_q23_each_comparison_prunes(case, condition, holding):
    case.lake.sql("CALL set_option('data_inlining_row_limit', 0)")
    case.lake.sql("CREATE TABLE t (id INT)")
    for values in ("(1), (2)", "(3), (4)", "(5), (6), (NULL)"):
        case.lake.sql(f"INSERT INTO t VALUES {values}")
    found = case.lake.sql(f"SELECT * FROM t WHERE {condition}")
    found.collect()
    assert sum(count for _, count in files_read(found)) == holding
    query = f"SELECT id FROM t WHERE {condition.replace('<=>', '=')} ORDER BY id"
    assert len(case.both(query)) > 0


@PAGE.row(*("Q24", SNAPSHOT, "A commit has an author, a message and extra information"))
def test_q24_a_commit_says_who_why_and_more(ours):
    with (
        shelduck.connect(f"sqlite:///{ours.case.catalog}", author="me") as lake,
        lake.transaction(message="why", extra_info='{"run": 7}') as tx,
    ):
        tx.sql("INSERT INTO t VALUES (4, 'd')")
    columns = "author, commit_message, commit_extra_info"
    told = ours.sql(
        f"SELECT {columns} FROM ducklake_snapshot_changes WHERE snapshot_id = {ours.snapshot}"
    )
    assert told == [("me", "why", '{"run": 7}')]
    with ours.case.duckdb() as duckdb:
        theirs = duckdb.sql(f"SELECT {columns} FROM ducklake_snapshots('lake')")
    assert theirs[-1] == told[0]


@PAGE.row(
    *("Q9", SNAPSHOT, "A change is a new snapshot and an entry of what it changed"),
    statement="INSERT INTO ducklake_snapshot (…); INSERT INTO ducklake_snapshot_changes (…);",
    does="the columns are called snapshot_time and changes_made in DuckLake 1.0, other than on the"
    " page; we count ids on from a client's",
)
def test_q9_we_go_on_after_a_snapshot_of_a_client(client):
    client.create_table("t", COLUMNS)
    before = client.snapshot
    client.case.lake.sql("CREATE TABLE u (a INT)")
    assert client.snapshot == before + 1
    assert table_id(client, "u") == table_id(client) + 1


@PAGE.row(
    *("Q10", SHAPE, "CREATE SCHEMA"),
    statement="INSERT INTO ducklake_schema (schema_id, schema_uuid, begin_snapshot, end_snapshot,"
    " schema_name) VALUES (…);",
)
def test_q10_a_schema_of_a_client(client):
    client.create_schema("s")
    client.case.lake.sql("CREATE TABLE s.t (a INT)")
    client.case.lake.sql("INSERT INTO s.t VALUES (1)")
    assert client.case.both("SELECT * FROM s.t") == [(1,)]


@PAGE.row(
    *("Q11", SHAPE, "CREATE TABLE"),
    statement="INSERT INTO ducklake_table (table_id, table_uuid, begin_snapshot, end_snapshot,"
    " schema_id, table_name) VALUES (…); INSERT INTO ducklake_column (…) VALUES (…);",
    does="path and path_is_relative are NULL then",
)
def test_q11_a_table_of_a_client(client):
    client.create_table("t", COLUMNS)
    client.case.lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    client.case.lake.sql("UPDATE t SET name = 'x' WHERE id = 2")
    client.case.lake.sql("ALTER TABLE t ADD COLUMN n INT DEFAULT 5")
    assert client.case.both("SELECT * FROM t ORDER BY id") == [(1, "a", 5), (2, "x", 5)]


@PAGE.row(
    *("Q12", SHAPE, "DROP TABLE ends the rows of seven tables"),
    statement="UPDATE ducklake_table SET end_snapshot = SNAPSHOT_ID WHERE table_id = TABLE_ID AND"
    " end_snapshot IS NULL; …",
)
def test_q12_our_drop_ends_what_the_page_ends(ours):
    number = table_id(ours)
    ours.case.lake.sql("DROP TABLE t")
    for table in ("table", "partition_info", "column", "column_tag", "data_file", "delete_file"):
        assert ours.live("1", f"ducklake_{table}", f"table_id = {number}") == []
    assert ours.live("1", "ducklake_tag", f"object_id = {number}") == []


@PAGE.row(*("Q13", SHAPE, "A client's DROP TABLE"))
def test_q13_a_clients_drop(client):
    number = client.create_table("t", COLUMNS)
    at, _, _ = client.commit(f"dropped_table:{number}", schema=1)
    for table in ("table", "column"):
        client.sql(
            f"UPDATE ducklake_{table} SET end_snapshot = :at WHERE table_id = :id AND end_snapshot"
            " IS NULL",
            at=at,
            id=number,
        )
    assert [str(t) for t in client.case.lake.tables()] == []
    client.case.lake.sql("CREATE TABLE t (b INT)")
    assert client.case.lake.table("t").columns.names == ["b"]


@PAGE.row(*("Q14", SHAPE, "DROP SCHEMA is for empty schemas"))
def test_q14_a_schema_is_dropped(client):
    number = client.create_schema("s")
    at, _, _ = client.commit(f"dropped_schema:{number}", schema=1)
    client.sql(
        "UPDATE ducklake_schema SET end_snapshot = :at WHERE schema_id = :id AND end_snapshot IS"
        " NULL",
        at=at,
        id=number,
    )
    assert client.case.lake.schemas() == ["main"]


@PAGE.row(
    *("Q15", ROWS, "INSERT registers a Parquet file, and its statistics"),
    statement="INSERT INTO ducklake_data_file (…) VALUES (…); INSERT INTO ducklake_table_stats (…);"
    " INSERT INTO ducklake_table_column_stats (…); INSERT INTO ducklake_file_column_stats (…);",
    does="the path is below that of the schema, as for DuckDB, and footer_size is the footer's"
    " length. DuckDB cannot write into a table without a path; we can",
)
def test_q15_a_file_of_a_client(client):
    number = client.create_table("t", COLUMNS)
    file, _ = client.insert(number, TWO)
    client.statistics(number, file, TWO)
    assert client.case.both("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "b")]
    assert client.case.both("SELECT name FROM t WHERE id = 2") == [("b",)]
    assert client.case.both("SELECT name FROM t WHERE id = 3") == []
    client.case.lake.sql("INSERT INTO t VALUES (3, 'c')")
    client.case.lake.sql("UPDATE t SET name = 'x' WHERE id = 1")
    assert client.case.both("SELECT * FROM t ORDER BY id") == [(1, "x"), (2, "b"), (3, "c")]


@PAGE.row(
    *("Q19", ROWS, "A table without a path"),
    beyond="all upkeep works on it: compaction, rewrites, expiry, cleanup, rename",
)
def test_q19_upkeep_of_a_table_without_a_path(client):
    number = client.create_table("t", COLUMNS)
    file, path = client.insert(number, TWO)
    client.statistics(number, file, TWO)
    lake = client.case.lake
    lake.sql("INSERT INTO t VALUES (3, 'c')")
    lake.sql("DELETE FROM t WHERE id = 1")
    lake.sql("ALTER TABLE t REWRITE")
    lake.table("t").rewrite_deletes(0)
    lake.sql("OPTIMIZE t")
    lake.sql("CALL expire_snapshots(retain_last => 1)")
    lake.sql("CALL cleanup_old_files(cleanup_all => true)")
    lake.sql("ALTER TABLE t RENAME TO u")
    assert client.case.both("SELECT * FROM u ORDER BY id") == [(2, "b"), (3, "c")]
    assert not (client.case.data / "main" / path).exists()
    lake.sql("DROP TABLE u")


@PAGE.row(
    *("Q16", ROWS, "DELETE registers a Parquet file of positions"),
    statement="INSERT INTO ducklake_delete_file (…) VALUES (…);",
)
def test_q16_a_delete_file_of_a_client(client):
    number = client.create_table("t", COLUMNS)
    file, data = client.insert(number, TWO)
    client.statistics(number, file, TWO)
    path = f"{data}-deletes.parquet"
    positions = {"file_path": [data], "pos": pa.array([0], pa.int64())}
    folder = client.case.data / "main"
    pq.write_table(pa.table(positions), folder / path)
    size = (folder / path).stat().st_size
    at, _, next_file = client.commit(f"deleted_from_table:{number}", files=1)
    client.sql(
        "INSERT INTO ducklake_delete_file (delete_file_id, table_id, begin_snapshot, end_snapshot,"
        " data_file_id, path, path_is_relative, format, delete_count, file_size_bytes, footer_size)"
        " VALUES (:id, :table, :at, NULL, :file, :path, true, 'parquet', 1, :size, :footer)",
        footer=footer_length(folder / path),
        id=next_file,
        table=number,
        at=at,
        file=file,
        path=path,
        size=size,
    )
    assert client.case.both("SELECT * FROM t") == [(2, "b")]
    client.case.lake.sql("DELETE FROM t WHERE id = 2")
    assert client.case.both("SELECT * FROM t") == []


@PAGE.row(*("Q17", ROWS, "UPDATE is a DELETE and an INSERT in one snapshot"))
def test_q17_an_update_is_both(ours):
    before = ours.snapshot
    ours.case.lake.sql("UPDATE t SET name = 'x' WHERE id = 1")
    assert ours.snapshot == before + 1
    number = table_id(ours)
    [(told,)] = ours.sql(
        "SELECT changes_made FROM ducklake_snapshot_changes WHERE snapshot_id = :at", at=before + 1
    )
    assert set(told.split(",")) == {f"inserted_into_table:{number}", f"deleted_from_table:{number}"}
    assert rows_by_page(ours, number, ours.snapshot) == [(1, "x"), (3, "c")]


@PAGE.row(
    *("Q18", ROWS, "A client sees the right rows at older snapshots, always"),
    differs="not after deletes that the catalog kept were flushed: their delete file begins at the"
    " first of them and has a snapshot for each row, as DuckLake 1.0 writes it; the page does not"
    " mention that column. DuckDB and Shelduck read it",
)
def test_q18_flushed_deletes_have_snapshots_of_their_own(client):
    lake = client.case.lake
    lake.sql("CREATE TABLE t (id INT, name STRING)")
    lake.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    lake.sql("CALL set_option('data_inlining_row_limit', '100')")
    lake.sql("DELETE FROM t WHERE id = 1")
    between = client.snapshot
    lake.sql("DELETE FROM t WHERE id = 2")
    lake.sql("CALL flush_inlined_data('t')")
    assert client.case.both("SELECT * FROM t") == [(3, "c")]
    found = lake.sql(f"SELECT * FROM t VERSION AS OF {between} ORDER BY id")
    assert list(map(tuple, found.collect())) == [(2, "b"), (3, "c")]
    assert rows_by_page(client, table_id(client), between) == [(3, "c")]


@pytest.fixture
def newer(tmp_path):
    """The address of a lake of DuckLake 1.1 with a table whose rows are in the catalog."""
    url = f"sqlite:///{tmp_path}/newer.db"
    with shelduck.connect(url, f"{tmp_path}/newer/", ducklake_version="1.1") as lake:
        lake.execute("CREATE TABLE t (row_id INT, name STRING)")
        lake.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return url


def asked(url, query):
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        return connection.execute(query).fetchall()


@PAGE.row(
    *("Q20", NEWER, "The version of a lake is an option"),
    statement=VERSION,
    does="1.0 or 1.1; a lake of 1.1 is opened as it is, and a new one is made on demand",
)
def test_q20_a_lake_of_1_1_says_so(newer):
    assert asked(newer, VERSION) == [("1.1",)]
    with pytest.raises(InvalidRequest, match=r"has DuckLake version '1\.1', not '1\.0'"):
        shelduck.connect(newer, ducklake_version="1.0")


@PAGE.row(
    *("Q21", NEWER, "Rows in the catalog have columns of the system with a prefix"),
    statement=INLINED,
)
def test_q21_inlined_rows_are_found_by_the_names_of_1_1(newer):
    assert asked(newer, INLINED) == [(0, 1, "a"), (1, 2, "b")]


@PAGE.row(
    *("Q22", NEWER, "row_id, begin_snapshot and end_snapshot are ordinary names of columns"),
    does="DuckLake 1.0 refuses them while rows can be in the catalog",
)
def test_q22_row_id_is_a_name_like_any_other(newer):
    with DuckLakePyOracle(newer) as oracle:
        assert oracle.rows("t") == [(1, "a"), (2, "b")]
        oracle.execute("INSERT INTO t VALUES (3, 'c')")
    with shelduck.connect(newer) as lake:
        lake.execute("ALTER TABLE t RENAME COLUMN name TO end_snapshot")
    with DuckLakePyOracle(newer) as oracle:
        assert [name for name, _ in oracle.columns("t")] == ["row_id", "end_snapshot"]
        assert oracle.rows("t") == [(1, "a"), (2, "b"), (3, "c")]
