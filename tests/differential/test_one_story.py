"""One story, told to Shelduck on one lake and to DuckDB on another: the catalogs are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import shelduck
from tests.conftest import CATALOGS
from tests.support.metadata import Difference, unexplained
from tests.support.normal import duckdb_rows, spark_rows_by_key
from tests.support.oracle import DuckDBOracle, at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Every row goes into a file; rows in the catalog have a story of their own (test_inlining).
NO_INLINING = "CALL lake.set_option('data_inlining_row_limit', 0)"

# A statement that both understand, or one for Shelduck and those (one transaction) for DuckDB.
Told = str | tuple[str, str]

SCHEMAS: Sequence[Told] = (
    "CREATE SCHEMA shop",
    'CREATE SCHEMA "Old Shop, 1"',
    "CREATE SCHEMA IF NOT EXISTS shop",
    "CREATE TABLE shop.items (id INT, name VARCHAR)",
    'CREATE TABLE "Old Shop, 1"."x.y ""z""" ("a b" INT, "C""d" VARCHAR)',
    "INSERT INTO shop.items VALUES (1, 'cup')",
    """INSERT INTO "Old Shop, 1"."x.y ""z\""" VALUES (1, 'q'), (2, NULL)""",
    "CREATE TABLE IF NOT EXISTS shop.items (other INT)",
    "ALTER TABLE shop.items RENAME TO goods",
    "INSERT INTO shop.goods VALUES (2, 'can')",
    "DROP TABLE shop.goods",
    "CREATE TABLE shop.goods (id BIGINT)",
    "INSERT INTO shop.goods VALUES (7)",
    "DROP TABLE IF EXISTS shop.nothing",
    'DROP SCHEMA "Old Shop, 1" CASCADE',
    "DROP TABLE shop.goods",
    "DROP SCHEMA shop",
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.again AS SELECT 1 AS a, 'x' AS b",
    "CREATE TABLE shop.copy AS SELECT a + 1 AS a, b FROM shop.again",
)

TYPES: Sequence[Told] = (
    (
        "CREATE TABLE t (id INT NOT NULL, b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INTEGER,"
        " i64 BIGINT, u8 UTINYINT, u16 USMALLINT, u32 UINTEGER, u64 UBIGINT, i128 HUGEINT,"
        " u128 UHUGEINT, f FLOAT, d DOUBLE, d4 DECIMAL(4,1), d18 DECIMAL(18,3),"
        " d38 DECIMAL(38,10), day DATE, ts TIMESTAMP WITHOUT TIME ZONE, ts_s TIMESTAMP_S,"
        " ts_ms TIMESTAMP_MS, ts_ns TIMESTAMP_NS, tz TIMESTAMP WITH TIME ZONE, tm TIME,"
        " tmtz TIME WITH TIME ZONE,"
        " s VARCHAR, j JSON, x BLOB, u UUID, g GEOMETRY)"
    ),
    (
        "CREATE TABLE n (s STRUCT(a INT, b STRUCT(c VARCHAR, d BIGINT)), l INT[], ll VARCHAR[][],"
        " ls STRUCT(x INT, y DATE)[], m MAP(VARCHAR, INT), ms MAP(BIGINT, STRUCT(p INT, q INT[])))"
    ),
    "CREATE TABLE unreadable (id INT, iv INTERVAL, t TIME_NS)",
    (
        "CREATE TABLE v (id INT, b BOOLEAN, i8 TINYINT, i64 BIGINT, f FLOAT, d DOUBLE,"
        " d4 DECIMAL(4,1), d38 DECIMAL(38,10), day DATE, ts TIMESTAMP WITHOUT TIME ZONE,"
        " tz TIMESTAMP WITH TIME ZONE, s VARCHAR, x BLOB)"
    ),
    (
        (
            "INSERT INTO v VALUES (1, true, -128Y, 9223372036854775807, CAST(1.1 AS FLOAT),"
            " CAST(0.1 AS DOUBLE), 999.9, 1234567890123456789012345678.0123456789,"
            " DATE '2024-02-29', TIMESTAMP_NTZ '1969-12-31 23:59:59.999999',"
            " TIMESTAMP '2024-01-01 00:00:00+02:00', 'née', X'00FF')"
        ),
        (
            "INSERT INTO v VALUES (1, true, -128, 9223372036854775807, 1.1, 0.1, 999.9,"
            " 1234567890123456789012345678.0123456789, DATE '2024-02-29',"
            " TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMPTZ '2024-01-01 00:00:00+02',"
            " 'née', '\\x00\\xFF'::BLOB)"
        ),
    ),
    "INSERT INTO v (id) VALUES (2)",
    (
        (
            "INSERT INTO v SELECT 3, false, 127Y, -9223372036854775808, CAST('-Infinity' AS FLOAT),"
            " CAST('NaN' AS DOUBLE), -0.5, 0.0000000001, DATE '0001-01-01',"
            " TIMESTAMP_NTZ '2024-05-05 05:05:05.05', TIMESTAMP '1900-01-01 00:00:00Z', '', X''"
        ),
        (
            "INSERT INTO v SELECT 3, false, 127, -9223372036854775808, '-Infinity'::FLOAT,"
            " 'NaN'::DOUBLE, -0.5, 0.0000000001, DATE '0001-01-01',"
            " TIMESTAMP '2024-05-05 05:05:05.05', TIMESTAMPTZ '1900-01-01 00:00:00Z', '', ''::BLOB"
        ),
    ),
    (
        (
            "INSERT INTO n VALUES (named_struct('a', 1, 'b', named_struct('c', 'x', 'd', 2L)),"
            " array(1, NULL, 3), array(array('a'), NULL, array()),"
            " array(named_struct('x', 1, 'y', DATE '2024-01-01'), NULL), map('k', 1, 'l', NULL),"
            " map(5L, named_struct('p', 1, 'q', array(7, 8)))),"
            " (NULL, NULL, NULL, NULL, NULL, NULL)"
        ),
        (
            "INSERT INTO n VALUES ({'a': 1, 'b': {'c': 'x', 'd': 2}}, [1, NULL, 3],"
            " [['a'], NULL, []], [{'x': 1, 'y': DATE '2024-01-01'}, NULL], MAP {'k': 1, 'l': NULL},"
            " MAP {5: {'p': 1, 'q': [7, 8]}}),"
            " (NULL, NULL, NULL, NULL, NULL, NULL)"
        ),
    ),
)

DEFAULTS: Sequence[Told] = (
    (
        "CREATE TABLE d (id INT, a INT DEFAULT 5, b VARCHAR DEFAULT 'it''s', c DECIMAL(5,2) DEFAULT"
        " 1.50, e DOUBLE DEFAULT -1.5, n INT DEFAULT NULL)"
    ),
    "INSERT INTO d (id) VALUES (1), (2)",
    "INSERT INTO d (b, id) VALUES ('x', 3), (NULL, 4)",
    "ALTER TABLE d ADD COLUMN f BIGINT DEFAULT 7",
    "ALTER TABLE d ADD COLUMN g VARCHAR",
    "INSERT INTO d (id, g) VALUES (5, 'g')",
    "ALTER TABLE d ALTER COLUMN f SET DEFAULT 8",
    "INSERT INTO d (id) VALUES (6)",
    "ALTER TABLE d ALTER COLUMN f DROP DEFAULT",
    "ALTER TABLE d ALTER COLUMN g SET DEFAULT 'later'",
    "INSERT INTO d (id) VALUES (7)",
    "ALTER TABLE d DROP COLUMN a",
    "ALTER TABLE d ADD COLUMN a VARCHAR DEFAULT 'again'",
    "INSERT INTO d (id) VALUES (8)",
    "ALTER TABLE d RENAME COLUMN f TO ff",
    "ALTER TABLE d ALTER COLUMN id SET DATA TYPE BIGINT",
)

ALTERS: Sequence[Told] = (
    (
        "CREATE TABLE a (id INT NOT NULL, name VARCHAR, n TINYINT, p SMALLINT, seen TIMESTAMP_S,"
        " u UTINYINT)"
    ),
    (
        "INSERT INTO a VALUES (1, 'x', 1, -7, TIMESTAMP_NTZ '2024-01-01 10:00:00', 255)",
        "INSERT INTO a VALUES (1, 'x', 1, -7, TIMESTAMP '2024-01-01 10:00:00', 255)",
    ),
    "ALTER TABLE a ADD COLUMN extra INT",
    "ALTER TABLE a RENAME COLUMN name TO label",
    "ALTER TABLE a ALTER COLUMN n SET DATA TYPE SMALLINT",
    "ALTER TABLE a ALTER n TYPE BIGINT",
    "ALTER TABLE a ALTER COLUMN p SET DATA TYPE INT",
    "ALTER TABLE a ALTER COLUMN u SET DATA TYPE UINTEGER",
    "ALTER TABLE a ALTER COLUMN label SET NOT NULL",
    "ALTER TABLE a ALTER COLUMN id DROP NOT NULL",
    "COMMENT ON TABLE a IS 'things'",
    "COMMENT ON COLUMN a.label IS 'it''s, \"quoted\"'",
    "COMMENT ON COLUMN a.label IS 'another'",
    "COMMENT ON TABLE a IS 'things 2'",
    "ALTER TABLE a DROP COLUMN extra",
    "ALTER TABLE a ADD COLUMN extra VARCHAR",
    (
        "INSERT INTO a VALUES (NULL, 'y', 300, 99, TIMESTAMP_NTZ '2024-02-02 02:02:02', 9999, 'e')",
        "INSERT INTO a VALUES (NULL, 'y', 300, 99, TIMESTAMP '2024-02-02 02:02:02', 9999, 'e')",
    ),
    # Swapped names, in one snapshot.
    (
        (
            "ALTER TABLE a RENAME COLUMN label TO tmp, RENAME COLUMN extra TO label,"
            " RENAME COLUMN tmp TO extra"
        ),
        (
            "ALTER TABLE a RENAME COLUMN label TO tmp; ALTER TABLE a RENAME COLUMN extra TO label;"
            " ALTER TABLE a RENAME COLUMN tmp TO extra"
        ),
    ),
    (
        ("ALTER TABLE a ADD COLUMN z INT DEFAULT 3, ALTER COLUMN p TYPE BIGINT, DROP COLUMN seen"),
        (
            "ALTER TABLE a ADD COLUMN z INT DEFAULT 3;"
            " ALTER TABLE a ALTER COLUMN p TYPE BIGINT; ALTER TABLE a DROP COLUMN seen"
        ),
    ),
    "ALTER TABLE a RENAME TO b",
    "INSERT INTO b (id, z, extra) SELECT id, 5, 'again' FROM b WHERE id IS NOT NULL",
    "CREATE TABLE a (id INT)",
    "DROP TABLE b",
)

NESTED: Sequence[Told] = (
    (
        "CREATE TABLE t (id INT, s STRUCT(a INT, b VARCHAR), l STRUCT(x INT)[],"
        " m MAP(VARCHAR, STRUCT(v INT)))"
    ),
    (
        (
            "INSERT INTO t VALUES (1, named_struct('a', 1, 'b', 'x'), array(named_struct('x', 1)),"
            " map('k', named_struct('v', 1))), (2, NULL, NULL, NULL)"
        ),
        (
            "INSERT INTO t VALUES (1, {'a': 1, 'b': 'x'}, [{'x': 1}], MAP {'k': {'v': 1}}),"
            " (2, NULL, NULL, NULL)"
        ),
    ),
    "ALTER TABLE t ADD COLUMN s.c INT",
    "ALTER TABLE t ADD COLUMN s.d STRUCT(e INT, f VARCHAR[])",
    "ALTER TABLE t ADD COLUMN l.element.y VARCHAR",
    "ALTER TABLE t ADD COLUMN m.value.w BIGINT",
    "ALTER TABLE t DROP COLUMN s.b",
    "ALTER TABLE t DROP COLUMN s.d.f",
    "ALTER TABLE t RENAME COLUMN s.a TO aa",
    "ALTER TABLE t RENAME COLUMN l.element.x TO xx",
    "ALTER TABLE t RENAME COLUMN s TO strukt",
    (
        "ALTER TABLE t ALTER COLUMN strukt.aa TYPE BIGINT",
        "ALTER TABLE t ALTER COLUMN strukt TYPE STRUCT(aa BIGINT, c INT, d STRUCT(e INT))",
    ),
    (
        "ALTER TABLE t ALTER COLUMN m.value.v TYPE BIGINT",
        "ALTER TABLE t ALTER COLUMN m TYPE MAP(VARCHAR, STRUCT(v BIGINT, w BIGINT))",
    ),
    "ALTER TABLE t ADD COLUMN strukt.b VARCHAR",
    (
        (
            "INSERT INTO t VALUES (3, named_struct('aa', 5L, 'c', 6, 'd', named_struct('e', 7),"
            " 'b', 'bb'), array(named_struct('xx', 8, 'y', 'z')),"
            " map('k', named_struct('v', 9L, 'w', 10L)))"
        ),
        (
            "INSERT INTO t VALUES (3, {'aa': 5, 'c': 6, 'd': {'e': 7}, 'b': 'bb'},"
            " [{'xx': 8, 'y': 'z'}], MAP {'k': {'v': 9, 'w': 10}})"
        ),
    ),
    "ALTER TABLE t DROP COLUMN l",
)

STORIES = {
    "schemas": SCHEMAS,
    "types": TYPES,
    "defaults": DEFAULTS,
    "alters": ALTERS,
    "nested": NESTED,
}

# Tables with a column that Spark cannot hold.
UNREADABLE = ('"main"."unreadable"',)
ALWAYS = (
    Difference(
        "ducklake_metadata",
        {"key": "created_by", "value": f"Shelduck {shelduck.__version__}"},
        {"key": "created_by", "value": "DuckDB d8cdaa33fd"},
        "who made the lake",
    ),
)
_ADDED = "we keep statistics of added columns: DuckDB has none and then refuses SET NOT NULL"
_IN_LIST = "DuckDB counts nulls of a struct inside a list twice"
_NO_BOUNDS = "DuckDB takes a row without bounds for an empty table's, so we write none"
ON_PURPOSE: dict[str, tuple[Difference, ...]] = {
    "types": (
        Difference(
            "ducklake_metadata",
            {"key": "data_inlining_row_limit", "value": "0", "scope": "table", "scope_id": 1},
            None,
            "a table with a geometry can have no inlined rows, which we say: decision 14",
        ),
        *(
            Difference(
                "ducklake_file_column_stats",
                {"table_id": 2, "column_id": column, "value_count": 1, "null_count": 2},
                {"table_id": 2, "column_id": column, "value_count": 0, "null_count": 3},
                _IN_LIST,
            )
            for column in (13, 14)
        ),
        Difference(
            "ducklake_table_column_stats",
            None,
            {"table_id": 4, "column_id": 6, "contains_nan": 1, "min_value": None},
            f"a file holds nothing but NaN: {_NO_BOUNDS}",
        ),
        Difference(
            "ducklake_table_column_stats",
            None,
            {"table_id": 4, "column_id": 13, "min_value": "", "max_value": "00FF"},
            "bounds of blobs have two encodings and do not tell which, so we write none",
        ),
    ),
    "defaults": (
        Difference(
            "ducklake_table_column_stats",
            {"column_id": 7, "contains_null": 1, "min_value": "7", "max_value": "8"},
            None,
            _ADDED,
        ),
        Difference(
            "ducklake_table_column_stats",
            {"column_id": 9, "contains_null": 0, "min_value": "again", "max_value": "again"},
            None,
            _ADDED,
        ),
    ),
    "alters": (
        Difference(
            "ducklake_table_column_stats",
            {"column_id": 7, "contains_null": 1, "min_value": None},
            None,
            _ADDED,
        ),
        Difference(
            "ducklake_table_column_stats",
            {"column_id": 9, "contains_null": 0, "min_value": "3", "max_value": "5"},
            None,
            _ADDED,
        ),
    ),
    "nested": (
        Difference(
            "ducklake_table_column_stats",
            {"column_id": 16, "contains_null": 1, "min_value": None},
            None,
            _ADDED,
        ),
        Difference(
            "ducklake_column",
            {"column_id": 2, "column_name": "strukt", "default_value_type": ""},
            {"column_id": 2, "column_name": "strukt", "default_value_type": "literal"},
            "DuckDB marks a struct that was renamed as if it could have a default",
        ),
    ),
}


def _stories():
    """Each story in SQLite, and one in the other databases; all of them there in the slow set."""
    for kind in CATALOGS:
        for name in STORIES:
            is_fast = kind == "sqlite" or name == "types"
            yield pytest.param(kind, name, marks=() if is_fast else pytest.mark.slow)


@pytest.fixture
def two_urls(kind, request, tmp_path) -> Iterator[tuple[str, str]]:
    """The addresses of two new lakes in the same kind of database."""
    if kind == "postgres":
        server = request.getfixturevalue("postgres_server")
        with server.fresh_database() as one, server.fresh_database() as other:
            yield one, other
        return
    end = {"sqlite": "db", "duckdb": "ducklake"}[kind]
    yield tuple(f"{kind}:///{tmp_path}/{n}.{end}" for n in ("ours", "theirs"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "name"), [*_stories()])
def test_both_write_the_same_catalog(name, two_urls, data_path, one_file):
    ours, theirs = two_urls
    with shelduck.connect(ours, data_path, one_file) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        for told in STORIES[name]:
            lake.sql(told if isinstance(told, str) else told[0])
    with DuckDBOracle(theirs, data_path) as oracle:
        oracle.execute(NO_INLINING)
        for told in STORIES[name]:
            _tell(oracle, told if isinstance(told, str) else told[1])
        expected = oracle.dump_metadata()
        their_rows = _all_rows(oracle)
    with DuckDBOracle(ours) as oracle:
        found = oracle.dump_metadata()
        our_rows = _all_rows(oracle)
    # DuckDB registers none under a limit of 0; ours may be lifted later (docs/decisions/0014).
    del found["ducklake_inlined_data_tables"], expected["ducklake_inlined_data_tables"]

    assert _file_ids_are_below_their_counter(found)
    different = unexplained(found, expected, ALWAYS + ON_PURPOSE.get(name, ()))
    assert not different, "\n".join(different)
    assert our_rows == their_rows
    assert their_rows
    # What we read does not depend on the database: all snapshots in one, the newest in the others.
    newest = {table: version for version, table in our_rows}
    wanted = {
        (version, table): rows
        for (version, table), rows in our_rows.items()
        if table not in UNREADABLE and (ours.startswith("sqlite") or version == newest[table])
    }
    with shelduck.connect(ours, spark=one_file) as lake:
        frames = {(v, t): lake.sql(f"SELECT * FROM {t} VERSION AS OF {v}") for v, t in wanted}
        assert spark_rows_by_key(frames) == wanted


def _file_ids_are_below_their_counter(dump):
    counters = {r["snapshot_id"]: r["next_file_id"] for r in dump["ducklake_snapshot"]}
    grows = list(counters.values()) == sorted(counters.values())
    files = dump["ducklake_data_file"]
    return grows and all(f["data_file_id"] < counters[f["begin_snapshot"]] for f in files)


def _tell(oracle: DuckDBOracle, told: str) -> None:
    statements = told.split("; ")
    if len(statements) == 1:
        oracle.execute(told)
        return
    for statement in ("BEGIN", *statements, "COMMIT"):
        oracle.execute(statement)


def _all_rows(oracle):
    """The rows of every table at every snapshot."""
    found = {}
    for version in range(oracle.snapshot() + 1):
        tables = oracle.sql(
            "SELECT DISTINCT s.schema_name, t.table_name"
            " FROM __ducklake_metadata_lake.ducklake_table t"
            " JOIN __ducklake_metadata_lake.ducklake_schema s USING (schema_id)"
            f" WHERE t.begin_snapshot <= {version} AND coalesce(t.end_snapshot > {version}, true)"
        )
        for schema, table in tables:
            source = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table))
            found[version, source] = duckdb_rows(oracle, at(source, version))
    return found
