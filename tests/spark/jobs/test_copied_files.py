"""Files that a job converts by copying: unchanged columns are equal byte for byte, and all read."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from shelduck.errors import SparkFailed
from shelduck.files import compact
from shelduck.jobs import convert
from shelduck.read.scan.scan_frames import Origin
from tests.support.lakes import rows
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.usefixtures("files_of_any_size")

_COLUMNS = (
    "id BIGINT NOT NULL, v STRING, d DOUBLE, n DECIMAL(20,4), t TIMESTAMP, day DATE, b BINARY,"
    " tags ARRAY<STRING>, s STRUCT<x INT, y STRING>, m MAP<STRING, INT>, gone STRING"
)
_ROWS = (
    "SELECT id, IF(id % 7 = 0, NULL, CAST(id * 3 AS STRING)),"
    " IF(id = 5, CAST('NaN' AS DOUBLE), id / 8), CAST(id AS DECIMAL(20,4)) / 8,"
    " TIMESTAMP'2024-05-01 00:00:00' + make_interval(0, 0, 0, CAST(id AS INT)),"
    " DATE'1950-01-01' + CAST(id AS INT), CAST(concat('b', id) AS BINARY),"
    " array('a', CAST(id AS STRING), NULL),"
    " named_struct('x', CAST(id AS INT), 'y', concat('y', id % 3)),"
    " map('k', CAST(id AS INT)), 'old' FROM range({}, {})"
)
STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    *(f"CREATE TABLE {name} ({_COLUMNS})" for name in ("t", "parts")),
    "ALTER TABLE parts SET PARTITIONED BY (day)",
    "CALL set_option('parquet_compression', 'zstd', table_name => 't')",
    f"INSERT INTO t {_ROWS.format(0, 40)}",
    f"INSERT INTO t {_ROWS.format(40, 60)}",
    f"INSERT INTO parts {_ROWS.format(0, 3)}",
    "UPDATE t SET d = d + 1 WHERE id BETWEEN 50 AND 54",
    "CALL rewrite_data_files('t', delete_threshold => 0)",
]
CHANGE = "ALTER TABLE {} ALTER COLUMN v TYPE INT"
CODECS = ["gzip", "zstd", "lz4", "uncompressed", "snappy"]
# What DuckDB says of rows with columns of many types.
_THEIRS = (
    "SELECT i AS id, (i * 3)::VARCHAR AS v, if(i % 5 = 0, 'nan'::DOUBLE, i / 8) AS d,"
    " i::DECIMAL(30,4) AS w, ('b' || i % 3)::BLOB AS b, [i, NULL]::INT[] AS tags,"
    " [{{'p': i::INT, 'q': MAP {{'k': [1.5::DOUBLE]}}}}, NULL] AS s,"
    " if(i % 2 = 0, NULL, i % 7) AS n,"
    " TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_seconds(i::INT) AS t FROM range({}, {}) r(i)"
)


def chunks(path):
    """The bytes of each column chunk of a file, by row group and column."""
    content, metadata = Path(path).read_bytes(), pq.read_metadata(path)
    found = {}
    for n in range(metadata.num_row_groups):
        for m in range(metadata.num_columns):
            chunk = metadata.row_group(n).column(m)
            at = chunk.data_page_offset
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                at = min(at, chunk.dictionary_page_offset)
            found[n, chunk.path_in_schema] = content[at : at + chunk.total_compressed_size]
    return found


def files(lake, name):
    return sorted(
        row.file_path for row in lake.table(name).files().collect() if row.end_snapshot is None
    )


@pytest.mark.parametrize("name", ["t", "parts"])
def test_chunks_of_columns_that_stay_are_the_same_bytes(lake, copies, name):
    before = {tuple(sorted(chunks(path).items())) for path in files(lake, name)}

    lake.sql(CHANGE.format(name))

    assert len(copies) == len(before)
    for path in files(lake, name):
        found = chunks(path)
        kept = {key: data for key, data in found.items() if not key[1].startswith("v_")}
        assert len(found) == len(kept) + 1
        assert tuple(sorted(kept.items())) in before


@pytest.mark.parametrize("name", ["t", "parts"])
def test_it_leaves_what_a_whole_rewrite_leaves(base, monkeypatch, copies, name):
    query = f"SELECT *, rowid FROM {name} ORDER BY id"
    stats = (
        "SELECT column_id, contains_nan, min_value, max_value, null_count, value_count"
        " FROM __ducklake_metadata_lake.ducklake_file_column_stats JOIN"
        " __ducklake_metadata_lake.ducklake_data_file f USING (data_file_id)"
        " JOIN ducklake_table_info('lake') i ON i.table_id = f.table_id"
        f" WHERE f.end_snapshot IS NULL AND i.table_name = '{name}' ORDER BY ALL"
    )
    seen = []
    for whole in (False, True):
        catalog, lake = base.copy()
        with monkeypatch.context() as patch:
            if whole:
                patch.setattr(convert, "copied_files", lambda *_: ({}, Counter()))
            lake.sql(CHANGE.format(name))
        shown = rows(lake.sql(f"SELECT * EXCEPT (d), CAST(d AS STRING) FROM {name} ORDER BY id"))
        assert lake.check(rows=True).problems == ()
        lake.close()
        with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
            seen.append((shown, repr(oracle.sql(query)), oracle.sql(stats)))

    assert copies
    assert seen[0] == seen[1]
    assert len(seen[0][0]) == (60 if name == "t" else 3)


def test_columns_that_the_table_dropped_are_left_out(lake, copies):
    lake.sql("ALTER TABLE parts DROP COLUMN gone, DROP COLUMN m")

    lake.sql(CHANGE.format("parts"))

    assert copies
    for path in files(lake, "parts"):
        assert {"gone", "m"}.isdisjoint(pq.read_schema(path).names)


def test_a_file_with_deleted_rows_is_written_whole(lake, copies):
    lake.sql("DELETE FROM parts WHERE id = 1")

    lake.sql(CHANGE.format("parts"))

    assert len(copies) == 2
    assert rows(lake.sql("SELECT id, v FROM parts ORDER BY id")) == [(0, None), (2, 6)]


def test_columns_of_other_types_are_written_beside_the_copy(copied, copies):
    catalog, lake = copied
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    lake.sql("ALTER TABLE t ALTER COLUMN day TYPE TIMESTAMP_NTZ")
    lake.sql("ALTER TABLE t ADD COLUMN s.z INT DEFAULT 5")
    lake.sql("INSERT INTO t BY NAME SELECT id, '1' AS v FROM range(60, 62)")
    before = [same_chunks(path) for path in files(lake, "t")]
    query = "SELECT rowid, id, s, day, tags, m FROM t ORDER BY id"
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        then = oracle.sql(query)

    lake.sql(CHANGE.format("t"))

    assert len(copies) == len(before)
    assert sorted(same_chunks(path) for path in files(lake, "t")) == sorted(before)
    assert lake.table("t").pending_type_rewrites().files == ()
    assert lake.check(rows=True).problems == ()
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        assert oracle.sql(query) == then
        assert oracle.sql("SELECT count(*) FROM t WHERE s.z = 5") == [(60,)]


def test_dropping_type_widening_writes_only_the_columns_of_older_types(copied, copies):
    catalog, lake = copied
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    lake.sql("ALTER TABLE t ALTER COLUMN day TYPE TIMESTAMP_NTZ, ALTER COLUMN s.x TYPE BIGINT")
    lake.sql("ALTER TABLE t DROP COLUMN gone")
    before = [same_chunks(path) for path in files(lake, "t")]
    query = "SELECT rowid, * FROM t ORDER BY id"
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        then = repr(oracle.sql(query))

    lake.sql("ALTER TABLE t DROP FEATURE 'typeWidening'")

    assert len(copies) == len(before)
    without = [[item for item in one if item[0][1] != "gone"] for one in before]
    assert sorted(same_chunks(path) for path in files(lake, "t")) == sorted(without)
    assert lake.table("t").type_changes() == {}
    assert lake.check(rows=True).problems == ()
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        assert repr(oracle.sql(query)) == then


def same_chunks(path, written=("v", "day", "s.")):
    """The chunks of a file but for the converted column and those of other types."""
    return sorted(item for item in chunks(path).items() if not item[0][1].startswith(written))


@pytest.mark.parametrize(("default", "value"), [("", None), (" DEFAULT '7'", 7)])
def test_a_column_that_the_files_do_not_have_is_converted(copied, copies, default, value):
    catalog, lake = copied
    lake.sql(f"ALTER TABLE parts ADD COLUMN later STRING{default}")
    lake.sql("ALTER TABLE parts ALTER COLUMN later TYPE INT")

    assert len(copies) == 3
    assert rows(lake.sql("SELECT id, later FROM parts ORDER BY id")) == [
        (n, value) for n in range(3)
    ]
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        assert oracle.sql("SELECT DISTINCT later FROM parts") == [(value,)]
    lake.sql("ALTER TABLE parts ADD COLUMN other STRING DEFAULT 'x'")
    lake.sql("ALTER TABLE parts ALTER COLUMN other DROP DEFAULT")
    with pytest.raises(Exception, match="other' cannot be converted to int32, such as 'x'"):
        lake.sql("ALTER TABLE parts ALTER COLUMN other TYPE INT")


def test_files_of_duckdb_are_written_whole(copied, copies):
    catalog, lake = copied
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        oracle.execute("CREATE TABLE theirs (id BIGINT, v VARCHAR)")
        oracle.execute("INSERT INTO theirs SELECT i, i::VARCHAR FROM range(3000) r(i)")

    lake.sql(CHANGE.format("theirs"))

    assert copies == []
    assert rows(lake.sql("SELECT count(*), sum(v) FROM theirs")) == [(3000, 3000 * 2999 // 2)]


@pytest.mark.slow
def test_files_of_duckdb_and_pyarrow_of_every_kind_hold_the_same_after_it(copied, copies, tmp_path):
    catalog, lake = copied
    kinds, query = list(product(CODECS, "12")), "SELECT rowid, * FROM theirs ORDER BY id"
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        oracle.execute(f"CREATE TABLE theirs AS {_THEIRS.format(0, 0)}")
        oracle.execute("CALL lake.set_option('parquet_row_group_size', '2048')")
        for n, (codec, version) in enumerate(kinds):
            oracle.execute(f"CALL lake.set_option('parquet_compression', '{codec}')")
            oracle.execute(f"CALL lake.set_option('parquet_version', '{version}')")
            oracle.execute(f"INSERT INTO theirs {_THEIRS.format(n * 3000, (n + 1) * 3000)}")
    for n, (codec, version, dictionary) in enumerate(product(CODECS, "12", (True, False))):
        first = 30_000 + n * 50
        made = duckdb.sql(_THEIRS.format(first, first + 50)).to_arrow_table()
        how = {"data_page_version": f"{version}.0", "use_dictionary": dictionary}
        how |= {"row_group_size": 17, "data_page_size": 64, "write_page_index": n % 3 > 0}
        name = {"uncompressed": "none"}.get(codec, codec)
        pq.write_table(made, tmp_path / f"{n}.parquet", compression=name, **how)
        lake.table("theirs").add_files(tmp_path / f"{n}.parquet")
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        then = repr(oracle.sql(query.replace("*", "* REPLACE (v::INT AS v)")))

    lake.sql(CHANGE.format("theirs"))

    assert copies == []
    assert lake.check(rows=True).problems == ()
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        assert repr(oracle.sql(query)) == then
        assert oracle.sql("SELECT count(*) FROM theirs") == [(31_000,)]


@pytest.mark.slow
def test_chunks_of_every_codec_and_version_of_pages_are_copied(copied, copies, spark):
    catalog, lake = copied
    lake.sql(f"CREATE TABLE many ({_COLUMNS})")
    lake.sql("CALL set_option('parquet_row_group_size_bytes', '1024', table_name => 'many')")
    for n, (codec, version) in enumerate(product(CODECS, "12")):
        lake.sql(f"CALL set_option('parquet_compression', '{codec}', table_name => 'many')")
        lake.sql(f"CALL set_option('parquet_version', '{version}', table_name => 'many')")
        spark.conf.set("parquet.bloom.filter.enabled#id", str(n % 2 == 0).lower())
        spark.conf.set("parquet.bloom.filter.max.bytes", "1024")
        lake.sql(f"INSERT INTO many {_ROWS.format(n * 400, n * 400 + 400)}")
    for name in ("enabled#id", "max.bytes"):
        spark.conf.unset(f"parquet.bloom.filter.{name}")
    there, query = files(lake, "many"), "SELECT rowid, * EXCLUDE (v) FROM many ORDER BY id"
    assert all(pq.read_metadata(path).num_row_groups > 1 for path in there)
    before, filters = sorted(map(kept_chunks, there)), sorted(map(bloom_filters, there))
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        then = repr(oracle.sql(query))

    lake.sql(CHANGE.format("many"))

    now = files(lake, "many")
    assert len(copies) == len(there) == len(now)
    assert sorted(map(kept_chunks, now)) == before
    assert filters[0] != filters[-1]
    assert sorted(map(bloom_filters, now)) == filters
    assert lake.check(rows=True).problems == ()
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        assert repr(oracle.sql(query)) == then


def kept_chunks(path):
    """The chunks of a file but for the converted column."""
    return same_chunks(path, "v")


def bloom_filters(path):
    """Which filters of a file do not know some numbers."""
    probed = f"SELECT * EXCLUDE (file_name) FROM parquet_bloom_probe('{path}', 'id', {{}})"
    return [duckdb.sql(probed.format(n)).fetchall() for n in range(0, 4000, 399)]


@pytest.mark.slow
def test_one_of_two_thousand_columns_is_converted(copied, copies):
    catalog, lake = copied
    names = [f"c{n}" for n in range(2000)]
    lake.sql(f"CREATE TABLE wide (id BIGINT, {' INT, '.join(names)} INT, v STRING)")
    values = ", ".join(f"CAST(id + {n} AS INT)" for n in range(2000))
    for first in (0, 100):
        lake.sql(f"INSERT INTO wide SELECT id, {values}, '7' FROM range({first}, {first + 100})")
    before = sorted(map(kept_chunks, files(lake, "wide")))

    lake.sql(CHANGE.format("wide"))

    assert len(copies) == len(before)
    assert sorted(map(kept_chunks, files(lake, "wide"))) == before
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        assert oracle.sql("SELECT sum(c0), sum(c1999), sum(v) FROM wide") == [(19900, 419700, 1400)]


def test_a_value_that_cannot_be_converted_fails_and_leaves_nothing(lake, copies):
    lake.sql("UPDATE t SET v = 'x' WHERE id = 3")
    lake.sql("CALL rewrite_data_files('t', delete_threshold => 0)")
    there, root = files(lake, "t"), Path(files(lake, "t")[0]).parent.parent
    stored = set(root.rglob("*.parquet"))

    with pytest.raises(Exception, match="cannot be converted to int32, such as 'x'"):
        lake.sql(CHANGE.format("t"))

    assert copies
    assert files(lake, "t") == there
    assert set(root.rglob("*.parquet")) == stored


def test_rows_in_another_order_are_never_mixed(lake, monkeypatch):
    frames = compact.write_copied

    def turned(spark, parts, table, files):
        return frames(
            spark, [part.orderBy(Origin.POSITION, ascending=False) for part in parts], table, files
        )

    monkeypatch.setattr(compact, "write_copied", turned)

    with pytest.raises(SparkFailed, match=r"row 0 of file \d+ comes as row [1-9]"):
        lake.sql(CHANGE.format("t"))


def test_rows_of_another_file_are_never_mixed(lake, monkeypatch):
    frames = compact.write_copied

    def swapped(spark, parts, table, files):
        return frames(spark, parts, table, files[::-1])

    monkeypatch.setattr(compact, "write_copied", swapped)
    lake.sql("CREATE TABLE two (id INT, v STRING)")
    for n in range(2):
        lake.sql(f"INSERT INTO two SELECT CAST(id AS INT), '{n}' FROM range(5)")

    with pytest.raises(SparkFailed, match=r"row 0 of file \d+ comes as row 0 of file"):
        lake.sql(CHANGE.format("two"))


def converted_values(path):
    """The rows of a file in their order: the column that a job added, and the id."""
    found = pq.read_table(path)
    numbers = {int(f.metadata[b"PARQUET:field_id"]): f.name for f in found.schema if f.metadata}
    last = max(number for number in numbers if number < 1 << 30)
    return found.select([numbers[last], "id"]).rename_columns(["c", "id"])


@pytest.mark.parametrize(
    ("change", "sorts", "again"),
    [
        ("v TYPE INT", "v", True),
        ("v TYPE INT", "v DESC, id", True),
        ("v TYPE INT USING length(v)", "v", True),
        ("d TYPE DECIMAL(20, 3)", "d", False),
        ("at TYPE DATE", "at", False),
        ("v TYPE INT", "id", False),
    ],
)
def test_only_files_whose_order_changes_are_written_whole(lake, copies, change, sorts, again):
    column = change.split()[0]
    lake.sql(
        f"CREATE TABLE o SORTED BY ({sorts}) AS SELECT id, CAST(id AS STRING) AS v,"
        " id / 8 AS d, timestamp_seconds(id * 9000)::TIMESTAMP_NTZ AS at FROM range(2000)"
    )
    plan = str(lake.sql(f"EXPLAIN ALTER TABLE o ALTER COLUMN {change}").collect())

    lake.sql(f"ALTER TABLE o ALTER COLUMN {change}")

    assert ("files are written whole, sorted again by" in plan) is again
    assert bool(copies) is not again
    wanted = sorts.replace(column, "c")
    for path in files(lake, "o"):
        found = converted_values(path)  # noqa: F841 - DuckDB finds it by its name
        assert (
            duckdb.sql("FROM found").fetchall()
            == duckdb.sql(f"FROM found ORDER BY {wanted}, id").fetchall()
        )
