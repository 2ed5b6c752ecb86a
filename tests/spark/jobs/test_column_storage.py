"""Bloom filters and encodings of columns: which files have them, and what readers skip."""

from __future__ import annotations

import duckdb
import pyarrow.parquet as pq
import pytest

import shelduck
from shelduck import (
    InvalidRequest,
    NotFound,
    Unsupported,
    add_index,
    drop_index,
    rewrite_files,
    set_encoding,
)
from shelduck.errors import AlreadyExists
from tests.support.lakes import rows
from tests.support.no_bridge import without_bridge
from tests.support.oracle import DuckDBOracle

_NEW = (
    "INSERT INTO {} SELECT id, id * 3, concat('n', id), id / 8, named_struct('x', id, 'y', 'c'),"
    " array(concat('t', id)) FROM (SELECT id FROM range({}, {}) ORDER BY rand(7))"
)
pytestmark = pytest.mark.usefixtures("files_of_any_size")

_COLUMNS = (
    "id BIGINT, `K k` BIGINT, name STRING, d DOUBLE, s STRUCT<x: BIGINT, y: STRING>,"
    " tags ARRAY<STRING>"
)
STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', 0)",
    "CALL set_option('parquet_row_group_size', 100)",
    f"CREATE TABLE t ({_COLUMNS})",
    _NEW.format("t", 0, 1000),
]


def files(lake, name="t"):
    every = lake.table(name).files().collect()
    return [row.file_path for row in every if row.end_snapshot is None]


def told(lake, name="t"):
    """The columns of each file that have a filter in every row group, as DuckDB tells."""
    query = (
        "SELECT path_in_schema FROM parquet_metadata('{}') GROUP BY ALL"
        " HAVING bool_and(bloom_filter_offset IS NOT NULL) ORDER BY 1"
    )
    return [[c for (c,) in duckdb.sql(query.format(p)).fetchall()] for p in files(lake, name)]


def skipped(path, column, value):
    """How many row groups of a file DuckDB's reader skips by a filter, and how many there are."""
    return duckdb.sql(
        "SELECT count_if(bloom_filter_excludes), count(*)"
        f" FROM parquet_bloom_probe('{path}', '{column}', {value})"
    ).fetchone()


def scanned(lake, where, name="t"):
    """The ids that a query finds, and how many rows Spark reads to find them."""
    found = lake.sql(f"SELECT id FROM {name} WHERE {where}")
    ids = sorted(row.id for row in found.collect())
    leaves = found._jdf.queryExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(n).metrics().get("numOutputRows") for n in range(leaves.size())]
    return ids, sum(m.get().value() for m in metrics)


def test_a_point_lookup_reads_few_row_groups(lake):
    assert scanned(lake, "`K k` = 1500") == ([500], 1000)
    lake.table("t").alter(add_index("i", "`K k`", "name"), add_index("x", "s.x", "tags.element"))

    lake.sql("CREATE TABLE u LIKE t")
    lake.sql(_NEW.format("u", 1000, 2000))

    assert told(lake, "u") == [["K k", "name", "s, x", "tags, list, element"]]
    for where in ("`K k` = 4500", "name = 'n1500'", "s.x = 1500"):
        ids, read = scanned(lake, where, "u")
        assert ids == [1500]
        # A filter may be wrong about a row group.
        assert read <= 200
    [path] = files(lake, "u")
    assert skipped(path, "K k", 4500)[0] >= 8
    assert scanned(lake, "`K k` = 4501", "u") == ([], 0)


def test_a_job_gives_older_files_their_filters_and_copies_the_rest(copied, copies):
    catalog, lake = copied
    lake.sql("DELETE FROM t WHERE id = 5")
    lake.sql(_NEW.format("t", 1000, 1100))
    before = lake.snapshots()[-1].id
    table = lake.table("t")
    plan = table.plan_alter(add_index("i", "name"), rewrite_files())
    assert plan.is_heavy
    assert "ADD INDEX i (name) USING BLOOMFILTER" in str(plan)

    done = table.alter(add_index("i", "name"), rewrite_files()).wait()

    assert told(lake) == [["name"], ["name"]]
    assert done.snapshot > before
    # The file with deleted rows is written whole.
    assert [sorted(map(int, file.renewed)) for file in copies] == [[3]]
    assert scanned(lake, "name = 'n1050'")[0] == [1050]
    assert lake.check(rows=True).problems == ()
    with DuckDBOracle(f"sqlite:///{catalog}") as other:
        assert other.sql("SELECT id FROM t WHERE name = 'n77'") == [(77,)]
        assert other.sql("SELECT count(*), count(DISTINCT rowid) FROM t") == [(1099, 1099)]


def test_filters_survive_every_write(copied, copies):
    catalog, lake = copied
    table = lake.table("t")
    table.alter(add_index("i", "`K k`"), rewrite_files()).wait()
    lake.sql("UPDATE t SET name = 'u' WHERE id < 10")
    lake.sql("MERGE INTO t USING (SELECT 3 AS id) n ON t.id = n.id WHEN MATCHED THEN DELETE")
    with DuckDBOracle(f"sqlite:///{catalog}") as other:
        other.sql('INSERT INTO t BY NAME SELECT 5000 + i AS id, i AS "K k" FROM range(200) r(i)')
    lake.sql("CALL rewrite_data_files('t', delete_threshold => 0)")
    lake.table("t").compact()
    assert {tuple(c) for c in told(lake)} == {("K k",)}

    lake.sql("ALTER TABLE t RENAME COLUMN `K k` TO k, ALTER COLUMN name TYPE BINARY")
    assert {tuple(c) for c in told(lake)} == {("K k",)}
    # The column itself is converted: its filter has the new values.
    lake.sql("ALTER TABLE t ALTER COLUMN k TYPE STRING")
    lake.sql("INSERT INTO t BY NAME SELECT 9000 AS id, 'nine' AS k FROM range(1)")
    assert all(told(lake))
    assert scanned(lake, "k = '1500'")[0] == [500]
    assert lake.sql("SHOW TBLPROPERTIES t ('shelduck.bloomFilterColumns')").first()[-1] == "k"

    at = lake.snapshots()[-1].id
    lake.sql("CREATE TABLE copy CLONE t")
    assert all(told(lake, "copy"))
    lake.sql("ALTER TABLE t DROP COLUMN k")
    assert "bloom" not in str(lake.sql("SHOW TBLPROPERTIES t").collect())
    lake.sql(f"RESTORE TABLE t TO VERSION AS OF {at}")
    lake.sql("INSERT INTO t BY NAME SELECT 9001 AS id, 'ten' AS k FROM range(1)")
    assert all(told(lake))


def test_indexes_are_dropped_and_types_are_kept(lake):
    table = lake.table("t")
    table.alter(add_index("i", "id"))
    with pytest.raises(
        AlreadyExists, match=r"id of main\.t already has the index i; drop it first"
    ):
        table.alter(add_index("other", "id"))
    with pytest.raises(InvalidRequest, match=r"d of main\.t cannot have a Bloom filter"):
        table.alter(add_index("other", "d"))
    with pytest.raises(InvalidRequest, match=r"id of main\.t cannot become .*DROP INDEX i first"):
        table.alter(shelduck.change_type("id", "double"))
    with pytest.raises(NotFound, match="index 'o'"):
        table.alter(drop_index("o"))
    table.alter(drop_index("I"))
    lake.sql(_NEW.format("t", 1000, 1100))
    assert told(lake) == [[], []]


def test_an_encoding_of_a_column(lake, copies):
    assert "PLAIN_DICTIONARY" in str(encodings(files(lake)[0], "s.y"))
    table = lake.table("t")
    table.alter(set_encoding("s.y", "PLAIN"), rewrite_files()).wait()
    lake.sql(_NEW.format("t", 1000, 1100))
    assert [encodings(path, "s.y") & {"PLAIN_DICTIONARY"} for path in files(lake)] == [set()] * 2
    assert [sorted(map(int, file.renewed)) for file in copies] == [[5]]
    told_of = {r.key: r.value for r in lake.sql("SHOW TBLPROPERTIES t").collect()}
    assert told_of == {"shelduck.encoding.s.y": "PLAIN"}
    table.alter(set_encoding("s.y", "DICTIONARY"))
    assert lake.sql("SHOW TBLPROPERTIES t").collect() == []
    for word, hint in (("DELTA", "parquet_version"), ("BYTE_STREAM_SPLIT", "zstd")):
        with pytest.raises(InvalidRequest, match=hint):
            set_encoding("id", word)


def encodings(path, column):
    group = pq.read_metadata(path).row_group(0)
    chunks = (group.column(n) for n in range(group.num_columns))
    return {e for c in chunks if c.path_in_schema == column for e in c.encodings}


@pytest.mark.parametrize("columns", ["id BIGINT, v STRING", "id BIGINT, v STRING, l ARRAY<INT>"])
def test_sessions_without_a_jvm_write_them_too(lake, monkeypatch, columns):
    without_bridge(monkeypatch)
    lake.sql(
        f"CREATE TABLE p ({columns}) TBLPROPERTIES ('bloom_filter_columns' = 'v',"
        " 'shelduck.encoding.id' = 'PLAIN')"
    )
    lake.sql("INSERT INTO p BY NAME SELECT id, concat('v', id) AS v FROM range(1000)")
    assert {tuple(c) for c in told(lake, "p")} == {("v",)}
    for path in files(lake, "p"):
        assert not {e for e in encodings(path, "id") if "DICTIONARY" in e}
    assert rows(lake.sql("SELECT id FROM p WHERE v = 'v77'")) == [(77,)]


def test_a_table_is_made_again_with_them(lake):
    lake.sql("CREATE TABLE a (x INT, y STRING) TBLPROPERTIES ('bloom_filter_columns' = 'y, x')")
    [(text,)] = rows(lake.sql("SHOW CREATE TABLE a"))
    assert "'shelduck.bloomFilterColumns' = 'x, y'" in text
    lake.sql("ALTER TABLE a RENAME COLUMN x TO z, DROP COLUMN y")
    assert rows(lake.sql("SHOW TBLPROPERTIES a")) == [("shelduck.bloomFilterColumns", "z")]
    lake.sql("ALTER TABLE a UNSET TBLPROPERTIES ('shelduck.bloomFilterColumns')")
    assert rows(lake.sql("SHOW TBLPROPERTIES a")) == []
    with pytest.raises(NotFound, match="column 'gone'"):
        lake.sql("ALTER TABLE a SET TBLPROPERTIES ('bloom_filter_columns' = 'gone')")


def test_a_column_comes_back_with_its_filter_and_its_encoding(lake):
    lake.sql(
        "CREATE TABLE b (x INT, y STRING) TBLPROPERTIES ('bloom_filter_columns' = 'x,y',"
        " 'shelduck.encoding.y' = 'PLAIN')"
    )
    told = rows(lake.sql("SHOW TBLPROPERTIES b"))
    assert rows(lake.sql("DESCRIBE b"))[-3:] == [
        ("# Column Storage", "", ""),
        ("x", "encoding DICTIONARY, Bloom filter", None),
        ("y", "encoding PLAIN, Bloom filter", None),
    ]
    lake.sql("ALTER TABLE b DROP COLUMN y")
    assert rows(lake.sql("SHOW TBLPROPERTIES b")) == [("shelduck.bloomFilterColumns", "x")]
    lake.sql("ALTER TABLE b UNDROP COLUMN y")
    assert rows(lake.sql("SHOW TBLPROPERTIES b")) == told
    assert len(told) == 2


def test_indexes_in_sql(lake, copies):
    lake.sql("ALTER TABLE t ADD INDEX i (name) USING BLOOMFILTER COMMENT 'by name'")
    lake.sql("CREATE INDEX IF NOT EXISTS j ON t (s.x, id) USING BLOOMFILTER")
    assert told(lake) == [["id", "name", "s, x"]]
    assert [sorted(map(int, file.renewed)) for file in copies] == [[3], [1, 5]]
    shown = [("t", "j", "id"), ("t", "i", "name"), ("t", "j", "s.x")]
    assert [row[:3] for row in rows(lake.sql("SHOW INDEX FROM t"))] == shown
    lake.sql("CREATE INDEX IF NOT EXISTS J ON t (d) USING BLOOMFILTER")
    lake.sql("ALTER TABLE t DROP INDEX i")
    lake.sql("DROP INDEX j ON t")
    assert rows(lake.sql("SHOW KEYS FROM t")) == []
    for kind in ("USING INVERTED", "USING NGRAM_BF", ""):
        with pytest.raises(Unsupported, match="use USING BLOOMFILTER"):
            lake.sql(f"ALTER TABLE t ADD INDEX i (name) {kind}")
    lake.sql("ALTER TABLE t ADD index DECIMAL(5, 2)")
    lake.sql("ALTER TABLE t DROP index")


def test_encodings_and_doris_properties_in_sql(lake):
    lake.sql("ALTER TABLE t ALTER COLUMN s.y SET ENCODING (PLAIN), REWRITE")
    assert "PLAIN_DICTIONARY" not in str(encodings(files(lake)[0], "s.y"))
    with pytest.raises(Unsupported, match="parquet_compression"):
        lake.sql("ALTER TABLE t ALTER COLUMN s.y SET COMPRESSION zstd")
    lake.sql("CREATE TABLE k (a INT, b INT) PROPERTIES ('bloom_filter_columns' = 'a')")
    lake.sql("ALTER TABLE k SET ('bloom_filter_columns' = 'a,b')")
    assert [row[2] for row in rows(lake.sql("SHOW INDEXES FROM k"))] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD INDEX i (name) USING BLOOMFILTER",
        "CREATE INDEX i ON t (name) USING BLOOMFILTER",
        "ALTER TABLE t SET TBLPROPERTIES ('shelduck.bloomFilterColumns' = 'name')",
        "CREATE TABLE u (name STRING) TBLPROPERTIES ('shelduck.bloomFilterColumns' = 'name')",
    ],
)
def test_files_of_an_encrypted_lake_have_no_filters(tmp_path, text):
    where = f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data"
    with shelduck.connect(*where, encrypted=True) as lake:
        lake.execute("CREATE TABLE t (name STRING)")
        lake.execute("ALTER TABLE t ALTER COLUMN name SET ENCODING (PLAIN)")
        with pytest.raises(
            Unsupported, match="cannot have Bloom filters: files of an encrypted lake"
        ):
            lake.execute(text)
        assert lake.execute("SHOW INDEX FROM t").rows == []
        assert [str(name) for name in lake.tables("main")] == ["main.t"]
