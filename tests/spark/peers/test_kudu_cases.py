"""Apache Kudu's acceptance cases of ALTER TABLE: columns, names, ids, clients and refusals.

A test's name begins with the case's id; those about rows, files and writers at the same time are
in test_kudu_cases_rows.py. Where Shelduck differs deliberately from Kudu, a test says so in its
docstring. Kudu's primary key is UNIQUE KEY here. Cases that have no test:

- K06, K10, K21, K28, K31 and K37 are not described in the list that these tests follow. K13, K15,
  K17, K35 and K42 are tests of what other cases, and Kudu's rules, say of them.
- K08, K09: no server to be down or to be started again, and no alter in progress: an ALTER is one
  commit of the catalog, which is there or not. What kills leave behind: tests/concurrency.
- K24: columns have no immutable flag in DuckLake.
- K25, K26: no replicas and no tablets that learn of a schema one by one.
- K40: tests/stories/test_mirror.py and tests/properties are such programs against a mirror.
- K43: no range partitions; partitions come and go with their rows, without an ALTER.

Parts that have no meaning: run-length encoding (K07), logs that are replayed (K12, where the lake
is opened again), encodings and block sizes (K23).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

import shelduck
from shelduck import AlreadyExists, InvalidRequest, NotFound
from tests.support.cases import KuduCase
from tests.support.lakes import everything, newest, rows

FILES = "CALL set_option('data_inlining_row_limit', '0')"
INLINE = "CALL set_option('data_inlining_row_limit', '100')"
STATEMENTS = [
    FILES,
    "CREATE TABLE t (c0 INT NOT NULL, c1 INT NOT NULL)",
    "INSERT INTO t VALUES (1, 10), (2, 20)",
    "CREATE TABLE u (c0 INT NOT NULL, c1 INT NOT NULL) UNIQUE KEY (c0)",
    "INSERT INTO u VALUES (1, 10), (2, 20)",
    "CREATE TABLE w (c0 INT, c1 INT, c2 INT) UNIQUE KEY (c0, c1)",
    "CREATE TABLE e (c0 INT NOT NULL, c1 INT NOT NULL)",
    "CREATE TABLE p (c0 INT, c1 INT) PARTITIONED BY (bucket(10, c0))",
    "INSERT INTO p SELECT CAST(id AS INT), 1 FROM range(0, 50, 1, 1)",
]
MODES = pytest.mark.parametrize("mode", [FILES, INLINE], ids=["files", "inlined"])


@pytest.fixture
def case(copied, base):
    made = KuduCase(*copied, base.folder / "data")
    yield made
    made.lake.close()


ARRAYS = (
    "TINYINT SMALLINT INT BIGINT STRING BINARY BOOLEAN FLOAT DOUBLE DECIMAL(9,2) VARCHAR(10) DATE"
    " TIMESTAMP"
).split()


@pytest.mark.slow
def test_k01_every_column_that_comes_or_goes_is_a_schema_version(case):
    added = ["c INT DEFAULT 5", *(f"a{n} ARRAY<{kind}>" for n, kind in enumerate(ARRAYS))]
    for column in added:
        case.light(f"ALTER TABLE t ADD COLUMN {column}")
    case.lake.sql("INSERT INTO t (c0, c1, a2, a4) VALUES (3, 30, array(1, NULL), array('x'))")

    assert case.both("SELECT c0, c, a0, a2, a4 FROM t ORDER BY c0") == [
        (1, 5, None, None, None),
        (2, 5, None, None, None),
        (3, 5, None, [1, None], ["x"]),
    ]
    for column in added:
        case.light(f"ALTER TABLE t DROP COLUMN {column.split()[0]}")
    assert case.both("SELECT * FROM t ORDER BY c0") == [(1, 10), (2, 20), (3, 30)]


def test_k02_a_column_that_is_there_is_not_added(case):
    add = shelduck.add_column("c1", "int")
    for act in (
        "ALTER TABLE t ADD COLUMN c1 INT",
        "ALTER TABLE t ADD COLUMN fresh INT, ADD COLUMN c1 INT DEFAULT 1",
        "ALTER TABLE t ADD COLUMN c INT, RENAME COLUMN c TO c1",
        lambda: case.lake.table("t").alter(add),
    ):
        assert "already exists in main.t" in case.refused(AlreadyExists, act)
    # Kudu tells C1 from c1; Spark and DuckDB do not.
    assert case.refused(AlreadyExists, "ALTER TABLE t ADD COLUMN C1 INT") == (
        "column 'C1' already exists in main.t"
    )


@pytest.mark.slow
@pytest.mark.parametrize("table", ["t", "e"])
def test_k03_a_column_is_not_null_only_with_a_default(case, table):
    """Kudu refuses it of an empty table as well, and so it is here."""
    told = f"cannot add column c as NOT NULL to main.{table}: existing rows would hold NULL"
    add = shelduck.add_column("c", "int", nullable=False)
    for act in (
        f"ALTER TABLE {table} ADD COLUMN c INT NOT NULL",
        lambda: case.lake.table(table).alter(add),
    ):
        assert told in case.refused(InvalidRequest, act)
    case.light(f"ALTER TABLE {table} ADD COLUMN c INT NOT NULL DEFAULT 3")
    case.lake.sql(f"INSERT INTO {table} (c0, c1) VALUES (3, 30)")

    assert {row[-1] for row in case.both(f"SELECT * FROM {table} ORDER BY c0")} == {3}
    assert case.both(f"SELECT c FROM {table} WHERE c0 = 3") == [(3,)]


@pytest.mark.slow
def test_k05_keys_and_values_are_renamed_together_and_again(case):
    before = list(case.ids("u").values())
    case.light("ALTER TABLE u RENAME COLUMN c0 TO k, RENAME COLUMN c1 TO v")
    case.lake.sql("INSERT INTO u VALUES (2, 21), (3, 30)")
    case.light("ALTER TABLE u RENAME COLUMN k TO key0, RENAME COLUMN v TO value0")

    assert case.both("SELECT key0, value0 FROM u ORDER BY key0") == [(1, 10), (2, 21), (3, 30)]
    assert case.ids("u") == dict(zip(["key0", "value0"], before, strict=True))
    [(shown,)] = rows(case.lake.sql("SHOW CREATE TABLE u"))
    assert "UNIQUE KEY (key0)" in shown


SWAP = "RENAME COLUMN c0 TO x, RENAME COLUMN c1 TO c0, RENAME COLUMN x TO c1"


@pytest.mark.slow
def test_k05_names_are_swapped_through_a_third(case):
    told = case.refused(AlreadyExists, "ALTER TABLE u RENAME COLUMN c0 TO c1")
    assert told == "column 'c1' already exists in main.u"
    case.light(f"ALTER TABLE u {SWAP}")
    case.lake.sql("INSERT INTO u (c1, c0) VALUES (1, 11)")

    assert case.both("SELECT c1, c0 FROM u ORDER BY c1") == [(1, 11), (2, 20)]
    assert case.both("SELECT c1 FROM u WHERE c0 = 11") == [(1,)]


@pytest.mark.slow
@MODES
def test_k05_columns_change_their_names_and_their_places(case, mode):
    """The names stand as before, and each is the other column."""
    case.lake.sql(mode)
    case.lake.sql("INSERT INTO t VALUES (3, 30)")
    before = case.ids()
    case.light(f"ALTER TABLE t {SWAP}, ALTER COLUMN c0 FIRST")
    assert case.ids() == {"c0": before["c1"], "c1": before["c0"]}
    case.lake.sql("INSERT INTO t VALUES (4, 40)")

    assert case.both("SELECT c0, c1 FROM t ORDER BY c1") == [(10, 1), (20, 2), (30, 3), (4, 40)]


@pytest.mark.slow
def test_k07_a_column_without_a_single_value_is_read(case):
    """Its encoding is Parquet's business here; a file of NULLs has pages without a value."""
    case.lake.sql("ALTER TABLE t ADD COLUMN r INT")
    case.lake.sql("INSERT INTO t SELECT CAST(id AS INT), 0, NULL FROM range(10, 110, 1, 1)")
    case.lake.sql("INSERT INTO t SELECT 0, 0, 0 WHERE false")
    case.lake.sql("INSERT INTO t (c0, c1) VALUES (3, 30)")
    case.light("ALTER TABLE t RENAME COLUMN r TO s")

    assert case.both("SELECT count(*), count(s), max(s) FROM t") == [(103, 0, None)]
    assert case.both("SELECT count(*) FROM t WHERE s IS NULL") == [(103,)]
    assert case.both("SELECT c0 FROM t WHERE s = 0") == []
    case.lake.sql("INSERT INTO t VALUES (4, 40, 400)")
    assert case.both("SELECT c0 FROM t WHERE s > 0") == [(4,)]


@pytest.mark.slow
def test_k11_a_table_that_was_renamed_gets_a_column(case):
    """Kudu refuses the name that the table has; here it changes nothing, and makes no snapshot."""
    ids, before = case.ids(), newest(case.lake)
    case.light("ALTER TABLE t RENAME TO q")
    case.light("ALTER TABLE q ADD COLUMN c2 INT DEFAULT 7")
    case.lake.sql("INSERT INTO q VALUES (3, 30, 300)")

    assert case.ids("q") == ids | {"c2": max(ids.values()) + 1}
    assert case.both("SELECT * FROM q ORDER BY c0") == [(1, 10, 7), (2, 20, 7), (3, 30, 300)]
    assert case.refused(AlreadyExists, "ALTER TABLE q RENAME TO u") == (
        "table main.u already exists"
    )
    assert "does not exist" in case.refused(NotFound, "ALTER TABLE t ADD COLUMN c3 INT")
    last = everything(case.catalog, case.data)
    case.lake.sql("ALTER TABLE q RENAME TO q")
    assert everything(case.catalog, case.data) == last
    then = rows(case.lake.sql(f"SELECT * FROM t VERSION AS OF {before} ORDER BY c0"))
    with case.duckdb() as duckdb:
        assert duckdb.rows("t", version=before) == then == [(1, 10), (2, 20)]


@pytest.mark.slow
def test_k19_a_new_column_is_named_at_once_by_another_client(case, spark):
    """Nobody waits: once the ALTER has returned every client finds the column."""
    with case.again() as other:
        table = other.table("p")
        assert table.read().count() == 50
        case.light("ALTER TABLE p ADD COLUMN c2 INT DEFAULT 7")
        table.append(spark.sql("SELECT CAST(id AS INT) AS c0, 2 AS c1, 8 AS c2 FROM range(50, 70)"))

    assert case.both("SELECT c1, c2, count(*) FROM p GROUP BY c1, c2 ORDER BY c1") == [
        *[(1, 7, 50), (2, 8, 20)]
    ]


def test_k20_ten_alters_one_after_another_apply_in_order(case):
    before, last = case.lake.snapshots()[-1], max(case.ids().values())
    for n in range(10):
        case.lake.sql(f"ALTER TABLE t ADD COLUMN new_{n} INT DEFAULT {n}")

    after = case.lake.snapshots()[-1]
    assert (after.id, after.schema_version) == (before.id + 10, before.schema_version + 10)
    assert list(case.ids().items())[2:] == [(f"new_{n}", last + 1 + n) for n in range(10)]
    assert case.both("SELECT * FROM t ORDER BY c0") == [(1, 10, *range(10)), (2, 20, *range(10))]


@pytest.mark.slow
def test_k20_ten_alters_at_once_all_apply(case):
    """Five clients, each of which does not wait for the others."""
    before = case.lake.snapshots()[-1]

    def alter(client):
        with case.again() as other:
            for n in (client, client + 5):
                other.sql(f"ALTER TABLE t ADD COLUMN new_{n} INT DEFAULT {n}")

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(alter, range(5)))

    after = case.lake.snapshots()[-1]
    assert (after.id, after.schema_version) == (before.id + 10, before.schema_version + 10)
    ids = case.ids()
    assert len(set(ids.values())) == len(ids) == 12
    # Of one client the second came after the first.
    assert all(ids[f"new_{n}"] < ids[f"new_{n + 5}"] for n in range(5))
    listed = ", ".join(f"new_{n}" for n in range(10))
    assert case.both(f"SELECT {listed} FROM t WHERE c0 = 1") == [tuple(range(10))]


def test_k22_a_key_is_not_dropped(case):
    for table, key in (("u", "c0"), ("w", "c0"), ("w", "c1")):
        told = f"cannot drop key column {key} of main.{table}, which is a UNIQUE KEY table"
        for act in (
            f"ALTER TABLE {table} DROP COLUMN {key}",
            f"ALTER TABLE {table} ADD COLUMN more INT, DROP COLUMN {key}",
            f"ALTER TABLE {table} DROP COLUMN {key}, ADD COLUMN {key} INT",
        ):
            assert told in case.refused(InvalidRequest, act)
    # Another name does not make it another column.
    told = case.refused(
        InvalidRequest, "ALTER TABLE u RENAME COLUMN c0 TO k, RENAME COLUMN c1 TO c0, DROP COLUMN k"
    )
    assert "cannot drop key column k of main.u" in told


@pytest.mark.slow
def test_k23_default_comment_and_compression_change_and_rows_do_not(case):
    """Encodings and block sizes of a column do not exist; compression is the table's option."""
    held = case.both("SELECT * FROM t ORDER BY c0")
    case.light("ALTER TABLE t ALTER COLUMN c1 SET DEFAULT 7, ALTER COLUMN c1 COMMENT 'counted'")
    case.lake.set_option("parquet_compression", "zstd", table="t")

    assert case.both("SELECT * FROM t ORDER BY c0") == held
    [told] = [r for r in rows(case.lake.sql("DESCRIBE TABLE t")) if r[0] == "c1"]
    assert "counted" in told
    with case.duckdb() as duckdb:
        [(kept, comment)] = duckdb.sql(
            "SELECT column_default, comment FROM duckdb_columns()"
            " WHERE table_name = 't' AND column_name = 'c1'"
        )
        assert (kept.strip("'"), comment) == ("7", "counted")
        duckdb.execute("INSERT INTO t (c0) VALUES (3)")
    case.lake.sql("INSERT INTO t (c0) VALUES (4)")
    assert case.both("SELECT * FROM t ORDER BY c0") == [*held, (3, 7), (4, 7)]
    files = case.lake.table("t").files().orderBy("data_file_id").collect()
    used = [pq.read_metadata(f.file_path).row_group(0).column(0).compression for f in files]
    assert used == ["SNAPPY", "ZSTD", "ZSTD"]
    case.light("ALTER TABLE t ALTER COLUMN c1 DROP DEFAULT")
    told = case.refused(InvalidRequest, "INSERT INTO t (c0) VALUES (5)")
    assert "column c1 is missing: it is NOT NULL and has no default" in told


def test_k27_all_unknown_names_of_a_read_are_listed(case):
    """Where a read says what it expects; one of chosen columns tells of the first."""
    table = case.lake.table("t")
    told = case.refused(
        InvalidRequest, lambda: table.read(expect="c0 INT NOT NULL, c2 INT, c3 STRING")
    )
    assert told.splitlines() == [
        "main.t does not have the expected columns:",
        "  - column c2 does not exist",
        "  - column c3 does not exist",
        "its columns: c0, c1",
    ]
    told = case.refused(NotFound, lambda: table.read(columns=["c0", "c2", "c3"]))
    assert "column 'c2' does not exist in main.t" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("c0 BIGINT NOT NULL", "column c0 has type int, expected bigint"),
        ("c0 INT NOT NULL, c1 STRING NOT NULL", "column c1 has type int, expected string"),
        ("c1 INT", "column c1 is NOT NULL, expected a nullable column"),
    ],
)
def test_k33_a_read_names_the_types_that_there_are(case, columns, told):
    table = case.lake.table("t")
    assert told in case.refused(InvalidRequest, lambda: table.read(expect=columns))
    found = sorted(rows(table.read(expect="c1 INT NOT NULL, c0 INT NOT NULL")))
    assert found == case.both("SELECT c1, c0 FROM t ORDER BY c0")


def test_k33_a_read_that_adapts_takes_wider_types_and_no_others(case):
    """Kudu has nothing like it."""
    table = case.lake.table("t")
    found = table.read(expect="c0 BIGINT NOT NULL, c1 DOUBLE", adapt=True)
    assert [f.dataType.simpleString() for f in found.schema] == ["bigint", "double"]
    assert sorted(rows(found)) == [(1, 10.0), (2, 20.0)]
    for columns in ("c0 SMALLINT NOT NULL", "c1 STRING"):
        told = case.refused(
            InvalidRequest, lambda columns=columns: table.read(expect=columns, adapt=True)
        )
        assert "has type int, expected " in told


LATE = "c0 INT NOT NULL, c2 INT NOT NULL"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nullable", "default", "read"), [(True, None, None), (True, "7", 7), (False, "7", 7)]
)
def test_k34_a_column_that_only_the_reader_has_is_its_default(case, nullable, default, read):
    """Kudu fills it from the server's defaults; here the reader says its own."""
    meant = {} if default is None else {"CURRENT_DEFAULT": default}
    c2 = T.StructField("c2", T.IntegerType(), nullable, meant)
    columns = T.StructType([T.StructField("c0", T.IntegerType(), False), c2])
    table = case.lake.table("t")

    found = table.read(expect=columns, adapt=True)
    assert sorted(rows(found)) == [(1, read), (2, read)]
    assert found.where("c2 = 7").count() == (0 if read is None else 2)
    assert "column c2 does not exist" in case.refused(
        InvalidRequest, lambda: table.read(expect=columns)
    )
    told = case.refused(InvalidRequest, lambda: table.read(expect=LATE, adapt=True))
    assert "column c2 does not exist, but is expected to be NOT NULL, and has no default" in told
    # Once it is there its values count.
    case.lake.sql("ALTER TABLE t ADD COLUMN c2 INT NOT NULL DEFAULT 9")
    assert sorted(rows(table.read(expect=columns, adapt=True))) == [(1, 9), (2, 9)]


@pytest.mark.slow
def test_k38_the_old_name_of_a_key_is_read_no_more(case):
    """A scan that was opened under it goes on, as in Kudu; so does one of an older snapshot."""
    table, before = case.lake.table("u"), newest(case.lake)
    open_scan = table.read()
    case.light("ALTER TABLE u RENAME COLUMN c0 TO k")
    told = case.refused(InvalidRequest, lambda: table.read(expect="c0 INT NOT NULL"))
    assert "column c0 does not exist" in told
    told = case.refused(NotFound, lambda: table.read(columns=["c0"]))
    assert "column 'c0' does not exist in main.u" in told
    with pytest.raises(AnalysisException, match=r"UNRESOLVED_COLUMN.*`c0`"):
        case.lake.sql("SELECT c0 FROM u")

    case.lake.sql("INSERT INTO u (k, c1) VALUES (3, 30)")
    assert case.both("SELECT k, c1 FROM u ORDER BY k") == [(1, 10), (2, 20), (3, 30)]
    assert open_scan.columns == ["c0", "c1"]
    assert sorted(rows(open_scan)) == [(1, 10), (2, 20)]
    assert sorted(rows(table.read(version=before, columns=["c0"]))) == [(1,), (2,)]


@pytest.mark.slow
def test_k39_there_is_no_greatest_number_of_columns(case):
    """Kudu stops at 300."""
    added = ", ".join(f"ADD COLUMN x{n} INT DEFAULT {n}" for n in range(301))
    case.light(f"ALTER TABLE t {added}")
    case.lake.sql("INSERT INTO t (c0, c1, x300) VALUES (3, 30, 0)")

    assert len(case.ids()) == 303
    assert case.both("SELECT c0, x0, x299, x300 FROM t ORDER BY c0") == [
        *[(1, 0, 299, 300), (2, 0, 299, 300), (3, 0, 299, 0)]
    ]


def test_k41_the_id_of_a_column_that_came_and_went_is_not_given_again(case):
    last = max(case.ids().values())
    case.light("ALTER TABLE t ADD COLUMN x INT DEFAULT 1, DROP COLUMN x, ADD COLUMN x STRING")
    assert case.ids()["x"] == last + 2
    case.light("ALTER TABLE t ADD COLUMN y INT, ADD COLUMN z INT, DROP COLUMN z")
    case.light("ALTER TABLE t ADD COLUMN z INT DEFAULT 3")
    assert {n: i - last for n, i in case.ids().items() if i > last} == {"x": 2, "y": 3, "z": 5}
    with case.duckdb() as duckdb:
        duckdb.execute("ALTER TABLE t ADD COLUMN d INTEGER")
    assert case.ids()["d"] == last + 6
    assert case.both("SELECT * FROM t ORDER BY c0") == [
        *[(1, 10, None, None, 3, None), (2, 20, None, None, 3, None)]
    ]


def test_k41_a_column_that_came_and_went_alone_changed_nothing(case):
    """Kudu counts it; here there is no snapshot in which it was, and no file that could hold it."""
    before, last = everything(case.catalog, case.data), max(case.ids().values())
    case.lake.sql("ALTER TABLE t ADD COLUMN x INT DEFAULT 1, DROP COLUMN x")
    assert everything(case.catalog, case.data) == before
    case.light("ALTER TABLE t ADD COLUMN x INT")
    assert case.ids()["x"] > last
    assert case.both("SELECT * FROM t ORDER BY c0") == [(1, 10, None), (2, 20, None)]


@pytest.mark.slow
@MODES
def test_k42_a_column_that_is_dropped_and_added_in_one_alter_is_new(case, mode):
    case.lake.sql(mode)
    case.lake.sql("INSERT INTO t VALUES (3, 30)")
    last, before = max(case.ids().values()), newest(case.lake)
    case.light("ALTER TABLE t DROP COLUMN c1, ADD COLUMN c1 INT NOT NULL DEFAULT 7")
    case.lake.sql("INSERT INTO t VALUES (4, 40)")

    assert case.ids()["c1"] == last + 1
    assert case.both("SELECT * FROM t ORDER BY c0") == [(1, 7), (2, 7), (3, 7), (4, 40)]
    assert case.both("SELECT c0 FROM t WHERE c1 = 7 ORDER BY c0") == [(1,), (2,), (3,)]
    assert case.both("SELECT c0 FROM t WHERE c1 = 30") == []
    then = rows(case.lake.table("t").read(version=before))
    with case.duckdb() as duckdb:
        wanted = duckdb.rows("t", version=before)
        assert wanted == sorted(then) == [(1, 10), (2, 20), (3, 30)]
    case.light("ALTER TABLE t DROP COLUMN c1, ADD COLUMN c1 STRING")
    assert case.ids()["c1"] == last + 2
    assert case.both("SELECT * FROM t WHERE c1 IS NULL ORDER BY c0") == [
        *[(1, None), (2, None), (3, None), (4, None)]
    ]


@pytest.mark.slow
@MODES
def test_k42_a_field_that_is_dropped_and_added_in_one_alter_is_new(case, mode):
    case.lake.sql(mode)
    case.lake.sql("CREATE TABLE n (k INT, s STRUCT<x: INT, y: INT>)")
    case.lake.sql("INSERT INTO n SELECT 1, named_struct('x', 1, 'y', 10)")
    case.light("ALTER TABLE n DROP COLUMN s.x, ADD COLUMN s.x INT FIRST")
    case.lake.sql("INSERT INTO n SELECT 2, named_struct('x', 2, 'y', 20)")

    assert case.both("SELECT k, s.x, s.y FROM n ORDER BY k") == [(1, None, 10), (2, 2, 20)]
