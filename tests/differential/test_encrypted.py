"""An encrypted lake holds the rows of a plain one, and DuckDB reads and writes it with us."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import shelduck
from shelduck.write.deletes import delete_files
from tests.support.oracle import DuckDBOracle, at

ROWS = "SELECT id, CAST(id % 3 AS INT), concat('text ', id % 50), id / 4 FROM range({}, {})"
STORY = (
    "CREATE TABLE t (id BIGINT, part INT, s STRING, d DOUBLE) PARTITIONED BY (part)",
    f"INSERT INTO t {ROWS.format(0, 3000)}",
    "UPDATE t SET s = concat(s, '!') WHERE id % 10 = 1",
    "DELETE FROM t WHERE id % 7 = 3",
    (
        f"MERGE INTO t USING ({ROWS.format(2900, 3100)}) AS n(id, part, s, d) ON t.id = n.id"
        " WHEN MATCHED THEN UPDATE SET d = n.d + 1 WHEN NOT MATCHED THEN INSERT *"
    ),
    "DELETE FROM t WHERE id % 7 = 4",
    "ALTER TABLE t ADD COLUMN n STRUCT<a: ARRAY<INT>>, RENAME COLUMN s TO label",
    "INSERT INTO t VALUES (9000, 1, 'few', 1.5, named_struct('a', array(1, NULL)))",
    "ALTER TABLE t ALTER COLUMN d TYPE STRING",
    "CALL flush_inlined_data('t')",
    "CALL merge_adjacent_files()",
    "CALL rewrite_data_files('t', delete_threshold => 0.0)",
)


def every_key(catalog):
    """The keys of all files of a catalog on SQLite, None for those of plain files."""
    with closing(sqlite3.connect(catalog)) as connection:
        return [
            key
            for kind in ("data", "delete")
            for (key,) in connection.execute(f"SELECT encryption_key FROM ducklake_{kind}_file")
        ]


def require_encrypted(folder):
    """Each file is encrypted, by a key of its own."""
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.suffix != ".crc"]
    assert files
    for path in files:
        content = path.read_bytes()
        assert (content[:4], content[-4:]) == (b"PARE", b"PARE")
    return files


@pytest.fixture
def lakes(tmp_path, spark):
    """A plain and an encrypted lake, with the same settings."""
    made = [
        shelduck.connect(
            f"sqlite:///{tmp_path}/{name}.db", f"{tmp_path}/{name}", spark, encrypted=encrypted
        )
        for name, encrypted in (("plain", False), ("sealed", True))
    ]
    yield made
    for lake in made:
        lake.close()


def same_rows(plain, sealed):
    found = [sorted(map(repr, frame.collect())) for frame in (plain, sealed)]
    assert found[0] == found[1]
    return len(found[0])


@pytest.mark.parametrize("collected", [16_000_000, pytest.param(0, marks=pytest.mark.slow)])
def test_all_verbs_leave_the_rows_of_a_plain_lake(lakes, tmp_path, monkeypatch, collected):
    monkeypatch.setattr(delete_files, "_MOST_COLLECTED", collected)
    for statement in STORY:
        for lake in lakes:
            lake.execute(statement)
    plain, sealed = (lake.table("t") for lake in lakes)
    assert sealed.files().count() > 0
    for version in range(2, lakes[1].snapshots()[-1].id + 1, 3):
        assert same_rows(plain.read(version=version), sealed.read(version=version))
    assert same_rows(
        plain.read().where("label = 'text 7'"), sealed.read().where("label = 'text 7'")
    )
    feeds = [t.changes(2, 8).drop("_commit_timestamp", "_row_id") for t in (plain, sealed)]
    assert same_rows(*feeds) > 3000
    assert lakes[1].check().is_sound
    require_encrypted(tmp_path / "sealed")
    keys = every_key(tmp_path / "sealed.db")
    assert {len(base64.b64decode(key)) for key in keys} == {16}
    assert len(set(keys)) == len(keys)
    with DuckDBOracle(f"sqlite:///{tmp_path}/sealed.db") as duckdb:
        for version in (3, lakes[1].snapshots()[-1].id):
            [(count, total)] = duckdb.sql(f"SELECT count(*), sum(id) FROM {at('t', version)}")
            rows = plain.read(version=version).agg(F.count("*"), F.sum("id")).collect()
            assert rows == [(count, total)]
        last = duckdb.sql("SELECT count(*) FROM t WHERE label = 'text 7' AND id % 4 = 1")
        assert duckdb.sql("SELECT count(*) FROM t WHERE id = 77") == [(1,)]
    assert last == [(plain.read().where("label = 'text 7' AND id % 4 = 1").count(),)]


def test_delete_files_that_tasks_write_have_keys(lakes, tmp_path, monkeypatch):
    sealed = lakes[1]
    sealed.execute("CREATE TABLE t (id BIGINT, part INT, s STRING, d DOUBLE)")
    sealed.execute(f"INSERT INTO t {ROWS.format(0, 3000)}")
    monkeypatch.setattr(delete_files, "_MOST_COLLECTED", 0)
    sealed.execute("DELETE FROM t WHERE id % 3 = 1")
    assert sealed.table("t").read().count() == 2000
    keys = set(every_key(tmp_path / "sealed.db"))
    assert len(keys) == len(require_encrypted(tmp_path / "sealed"))


@pytest.mark.every_spark
def test_duckdb_and_we_write_in_turns(tmp_path, spark):
    url, data = f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data"
    options = {"ENCRYPTED": True, "DATA_INLINING_ROW_LIMIT": 0}
    with DuckDBOracle(url, data, options) as duckdb:
        made = "SELECT i AS id, 'd' || i % 9 AS v FROM range(200000) r(i)"
        duckdb.execute(f"CREATE TABLE t AS {made}")
        duckdb.execute("DELETE FROM t WHERE id % 1000 = 5")
        [(count,)] = duckdb.sql("SELECT count(*) FROM t WHERE v = 'd1' AND id > 100")
    with shelduck.connect(url, spark=spark) as lake:
        table = lake.table("t")
        assert table.read().where("v = 'd1' AND id > 100").count() == count
        table.delete("id % 1000 = 6")
        table.append(spark.range(200000, 200500).selectExpr("id", "'ours' AS v"))
        table.update({"v": "'changed'"}, where="id % 1000 = 7")
        assert lake.check().is_sound
        assert table.changes(3).groupBy("_change_type").count().count() == 4
    with DuckDBOracle(url) as duckdb:
        duckdb.execute("DELETE FROM t WHERE id % 1000 = 8 AND v <> 'ours'")
        duckdb.execute("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)")
        duckdb.execute("CALL ducklake_merge_adjacent_files('lake')")
        theirs = duckdb.sql("SELECT v, count(*), sum(id) FROM t GROUP BY v ORDER BY v")
    with shelduck.connect(url, spark=spark) as lake:
        found = lake.sql("SELECT v, count(*), sum(id) FROM t GROUP BY v ORDER BY v")
        assert [tuple(row) for row in found.collect()] == theirs
        lake.execute("ALTER TABLE t ALTER COLUMN id TYPE STRING")
        assert lake.table("t").read().where("id = '7'").collect() == [("7", "changed")]
    require_encrypted(data)


def test_no_file_of_others_comes_in_and_none_goes_out(lakes, tmp_path, spark):
    sealed = lakes[1]
    sealed.execute(f"CREATE TABLE t AS {ROWS.format(0, 100)}")
    spark.range(3).write.parquet(f"{tmp_path}/others")
    for act in (
        lambda: sealed.table("t").add_files(f"{tmp_path}/others"),
        lambda: sealed.import_delta("tests/data/delta/delta-type-widening", "d"),
        lambda: sealed.table("t").export_delta(f"{tmp_path}/delta"),
        lambda: sealed.table("t").export_iceberg(f"{tmp_path}/iceberg"),
        lambda: sealed.table("t").plan_export("delta"),
    ):
        with pytest.raises(shelduck.Unsupported, match="encrypted lake"):
            act()
    with pytest.raises(shelduck.InvalidRequest, match="only a new lake can be"):
        shelduck.connect(f"sqlite:///{tmp_path}/plain.db", spark=spark, encrypted=True)


def test_a_damaged_file_is_told_without_its_key(lakes, tmp_path):
    sealed = lakes[1]
    sealed.execute(f"CREATE TABLE t AS {ROWS.format(0, 100)}")
    file = next(path for path in require_encrypted(tmp_path / "sealed") if "part-" in path.name)
    content = bytearray(file.read_bytes())
    content[200] ^= 1
    file.write_bytes(content)
    with pytest.raises(shelduck.CorruptLake, match=file.name) as told:
        sealed.table("t").read().collect()
    assert not any(key in str(told.value) for key in every_key(tmp_path / "sealed.db"))
    with closing(sqlite3.connect(tmp_path / "sealed.db")) as connection, connection:
        connection.execute("UPDATE ducklake_metadata SET value = 'false' WHERE key = 'encrypted'")
    with (
        shelduck.connect(f"sqlite:///{tmp_path}/sealed.db", spark=sealed._state.spark) as lake,
        pytest.raises(shelduck.CorruptLake, match="has an encryption_key"),
    ):
        lake.table("t").read()
