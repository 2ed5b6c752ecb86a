"""Lakes of DuckLake 1.1 that ducklakepy made, as Spark reads them, and the other way round."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest
from ducklakepy import load_catalog
from ducklakepy.expressions import col
from ducklakepy.schema import Schema
from ducklakepy.types import (
    Column,
    Int32Type,
    Int128Type,
    ListType,
    MapType,
    NullType,
    StructType,
    TimestampTzNsType,
    VariantType,
)

import shelduck
from shelduck.engine.bridge.faults import _TOO_NEW, file_fault
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.write.parquet import write
from tests.support.ducklakepy_oracle import made_by_ducklakepy
from tests.support.oracle import DuckDBOracle
from tests.support.scans import column

ID = Column("id", Int32Type())


@pytest.fixture
def theirs(tmp_path):
    """A lake of DuckLake 1.1, as ducklakepy has it open; it keeps no rows in the catalog."""
    with made_by_ducklakepy(tmp_path) as found:
        yield found


@pytest.fixture
def ours(tmp_path, theirs, spark):
    """The same lake."""
    return shelduck.connect(f"sqlite:///{tmp_path}/lake.db", spark=spark)


@pytest.fixture
def asked(ours):
    """The rows of a query."""

    def rows(text):
        return [tuple(row) for row in ours.execute(text).collect()]

    return rows


def append(theirs, rows, **types):
    columns = {name: pa.array([r[n] for r in rows], t) for n, (name, t) in enumerate(types.items())}
    theirs.load_table("main.t").append(pa.table(columns))


def test_columns_without_a_type_are_null_at_any_depth(theirs, ours, asked):
    deep = StructType((Column("b", NullType()),))
    entry = MapType(Column("key", Int32Type(), required=True), Column("value", NullType()))
    kinds = {"v": NullType(), "s": deep, "l": ListType(Column("element", NullType())), "m": entry}
    theirs.create_table("main.t", schema=Schema(ID, *(Column(n, t) for n, t in kinds.items())))
    rows = [(1, None, {"b": None}, [None, None], [(7, None)]), (2, None, None, None, None)]
    types = {"id": pa.int32(), "v": pa.null(), "s": pa.struct([("b", pa.null())])}
    types |= {"l": pa.list_(pa.null()), "m": pa.map_(pa.int32(), pa.null())}
    append(theirs, rows, **types)
    expected = [(1, None, (None,), [None, None], {7: None}), (2, None, None, None, None)]

    assert asked("SELECT * FROM t ORDER BY id") == expected
    assert asked("SELECT id FROM t WHERE v IS NULL AND s IS NOT NULL") == [(1,)]
    with pytest.raises(InvalidRequest, match=r"column v has no type; .* ALTER COLUMN v TYPE"):
        ours.execute("INSERT INTO t (id, v) VALUES (3, NULL)")
    with pytest.raises(Unsupported, match="v: Spark writes no VOID; give the column a type"):
        ours.execute("UPDATE t SET id = 3")

    changes = ("v TYPE DATE", "s.b TYPE STRING", "l.element TYPE INT", "m.value TYPE INT")
    ours.execute("ALTER TABLE t " + ", ".join(f"ALTER COLUMN {change}" for change in changes))
    ours.execute(
        "INSERT INTO t VALUES (3, DATE'2026-01-02', named_struct('b', 'x'), array(1), map(1, 2))"
    )
    assert asked("SELECT * FROM t ORDER BY id") == [
        *expected,
        (3, dt.date(2026, 1, 2), ("x",), [1], {1: 2}),
    ]
    assert theirs.load_table("main.t").scan().to_arrow().num_rows == 3


def test_instants_of_nanoseconds_are_numbers_and_other_columns_are_readable(theirs, ours, asked):
    theirs.create_table("main.t", schema=Schema(ID, Column("at", TimestampTzNsType())))
    add = partial(append, theirs, id=pa.int32(), at=pa.timestamp("ns", "UTC"))
    add([(1, 1706745600123456789), (2, None)])
    theirs.set_option("data_inlining_row_limit", 10)
    add([(3, -1)])

    assert asked("SELECT id, at FROM t WHERE at < 0 OR id < 3 ORDER BY id") == [
        *((1, 1706745600123456789), (2, None), (3, -1))
    ]
    ours.execute("DELETE FROM t WHERE at = 1706745600123456789")
    assert asked("SELECT id FROM t ORDER BY id") == [(2,), (3,)]
    with pytest.raises(InvalidRequest, match="column at is timestamptz_ns, which Spark cannot wri"):
        ours.execute("INSERT INTO t VALUES (3, NULL)")


def test_integers_of_128_bits_that_ducklakepy_wrote_are_refused_by_column(theirs, ours):
    """It stores decimals of 76 digits, and Spark has none."""
    theirs.create_table("main.t", schema=Schema(ID, Column("h", Int128Type())))
    append(theirs, [(1, Decimal(5)), (2, None)], id=pa.int32(), h=pa.decimal256(76, 0))

    with pytest.raises(
        Unsupported, match=r"of main\.t: column 'h' is int128 .* but parquet:decimal\(76,0\)"
    ):
        ours.execute("SELECT id FROM t")
    found = ours.table("t").read(columns=["id"])
    assert sorted(row.id for row in found.collect()) == [1, 2]
    ours.execute("ALTER TABLE t DROP COLUMN h")
    assert ours.execute("SELECT sum(id) FROM t").collect() == [(3,)]


def test_a_file_of_several_deletion_vectors_is_read_at_each_snapshot(theirs, ours, asked):
    theirs.create_table("main.t", schema=Schema(ID))
    append(theirs, [(n,) for n in range(20)], id=pa.int32())
    theirs.set_option("write_deletion_vectors", True)
    theirs.set_option("data_inlining_row_limit", 50)
    for number in (3, 7, 11):
        theirs.load_table("main.t").delete(col("id") == number)
    theirs.flush_inlined_data("main.t")
    ours.execute("DELETE FROM t WHERE id IN (0, 15)")

    then = "SELECT {n} AS n, count(*), sum(id) FROM t VERSION AS OF {n}"
    counts = asked(" UNION ALL ".join(then.format(n=n) for n in range(2, 8)))
    assert sorted(counts) == [
        *((2, 20, 190), (3, 19, 187), (4, 18, 180)),
        *((5, 17, 169), (6, 17, 169), (7, 15, 154)),
    ]
    died = "SELECT _commit_version, id FROM table_changes('t', 3, 7) WHERE _change_type = 'delete'"
    assert sorted(asked(died)) == [(3, 3), (4, 7), (5, 11), (7, 0), (7, 15)]
    assert len(theirs.load_table("main.t").scan().to_arrow()) == 15
    ours.execute("RESTORE TABLE t TO VERSION AS OF 4")
    assert asked("SELECT count(*), sum(id) FROM t") == [(18, 180)]


def test_rows_are_written_into_the_partitions_that_rows_in_the_catalog_have(theirs, ours, asked):
    # tests/catalog compares these with ducklakepy.
    keys = [f"epoch_{u}({c})" for u in ("year", "month", "day", "hour") for c in ("at", "d", "n")]
    columns = "at TIMESTAMP, d DATE, n TIMESTAMP_NTZ"
    ours.execute(f"CREATE TABLE t ({columns}) PARTITIONED BY ({', '.join(keys)})")
    values = "TIMESTAMP'1969-12-31 23:30:00+01', DATE'1969-12-31', TIMESTAMP_NTZ'2024-02-01 10:30'"
    ours.execute(f"INSERT INTO t VALUES ({values}), (NULL, NULL, NULL)")
    kept = ours.execute("SHOW PARTITIONS t").rows
    theirs.flush_inlined_data("main.t")
    stored = ours.execute("SHOW PARTITIONS t").rows
    ours.execute("INSERT INTO t SELECT * FROM t")

    assert len(kept) == 2
    assert kept == stored == ours.execute("SHOW PARTITIONS t").rows
    assert theirs.load_table("main.t").scan().to_arrow().num_rows == 4


def test_variants_that_ducklakepy_keeps_in_the_catalog_are_read(theirs, ours, asked):
    theirs.create_table("main.t", schema=Schema(ID, Column("v", VariantType())))
    theirs.set_option("data_inlining_row_limit", 10)
    # The value {"a": 5}, the number 5, a variant that is null, and NULL.
    none = b"\x01\x00\x00"
    kept = [
        {"metadata": b"\x01\x01\x00\x01a", "value": b"\x02\x01\x00\x00\x02\x0c\x05"},
        *({"metadata": none, "value": b"\x0c\x05"}, {"metadata": none, "value": b"\x00"}, None),
    ]
    kind = pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary())])
    append(theirs, list(enumerate(kept)), id=pa.int32(), v=kind)

    shown = "SELECT id, to_json(v), schema_of_variant(v), v IS NULL FROM t ORDER BY id"
    expected = [
        *((0, '{"a":5}', "OBJECT<a: BIGINT>", False), (1, "5", "BIGINT", False)),
        *((2, None, None, True), (3, None, None, True)),
    ]
    assert asked(shown) == expected
    assert asked("SELECT id FROM t WHERE variant_get(v, '$.a', 'int') = 5") == [(0,)]
    ours.execute("UPDATE t SET v = parse_json('[1]') WHERE id = 1")
    ours.execute("INSERT INTO t SELECT id + 10, v FROM t WHERE id = 0")
    expected[1] = (1, "[1]", "ARRAY<BIGINT>", False)
    assert asked(shown) == [*expected, (10, *expected[0][1:])]
    ours.execute("CALL flush_inlined_data('t')")
    assert asked(shown) == [*expected, (10, *expected[0][1:])]
    found = theirs.load_table("main.t").scan().to_arrow().sort_by("id").to_pylist()
    assert [row["id"] for row in found] == [0, 1, 2, 3, 10]
    assert found[0]["v"]["metadata"] == found[4]["v"]["metadata"] == kept[0]["metadata"]


def test_a_variant_in_a_duckdb_file_goes_into_a_file(duckdb_url, data_path, spark):
    with DuckDBOracle(duckdb_url, data_path, {"DATA_INLINING_ROW_LIMIT": 10}) as oracle:
        oracle.execute("CREATE TABLE t (id INTEGER, v VARIANT)")
    lake = shelduck.connect(duckdb_url, spark=spark)
    lake.execute("INSERT INTO t SELECT 7, parse_json('{\"x\": 1}')")
    lake.close()
    with DuckDBOracle(duckdb_url, data_path, {"DATA_INLINING_ROW_LIMIT": 10}) as oracle:
        assert oracle.sql("SELECT id, v.x::INTEGER FROM t") == [(7, 1)]
        oracle.execute("INSERT INTO t VALUES (8, 5::VARIANT)")
    with pytest.raises(
        Unsupported, match="column 'v' has variants in the catalog, which only Duck"
    ):
        lake.execute("SELECT * FROM t").collect()
    lake.close()
    with DuckDBOracle(duckdb_url, data_path) as oracle:
        oracle.execute("CALL ducklake_flush_inlined_data('lake')")
    assert lake.execute("SELECT id, to_json(v) FROM t ORDER BY id").collect() == [
        (7, '{"x":1}'),
        (8, "5"),
    ]


@pytest.mark.filterwarnings("ignore:The Result.tuples")
def test_views_of_both_are_read_by_both(theirs, ours, asked):
    theirs.create_table("main.t", schema=Schema(ID))
    append(theirs, [(1,), (2,)], id=pa.int32())
    theirs.create_view("main.plain", "SELECT id FROM main.t WHERE id > 1", column_aliases=["n"])
    theirs.create_view("main.bare", "SELECT n + 1 AS m FROM plain")
    ours.execute("CREATE VIEW mine AS SELECT m FROM bare WHERE m > 0")

    assert asked("SELECT n, m FROM plain CROSS JOIN mine") == [(2, 3)]
    assert theirs.load_view("main.mine").sql.replace('"', "") == (
        "SELECT m FROM main.bare AS bare WHERE m > 0"
    )


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_files_that_were_merged_across_versions_of_the_columns_are_read(spark, tmp_path, version):
    url, data = f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data/"
    lake = shelduck.connect(url, data, ducklake_version=version, spark=spark)
    lake.execute("CREATE TABLE t (id INT)")
    found = load_catalog(url=url, data_path=data)
    found.set_option("data_inlining_row_limit", 0)
    append(found, [(1,), (2,)], id=pa.int32())
    lake.execute("ALTER TABLE t ADD COLUMN c INT DEFAULT 7")
    append(found, [(3, 4)], id=pa.int32(), c=pa.int32())
    found.merge_adjacent_files("main.t")
    found.close()

    def rows(text):
        return [tuple(row) for row in lake.execute(text).collect()]

    assert rows("SELECT * FROM t ORDER BY id") == [(1, 7), (2, 7), (3, 4)]
    then = "SELECT {n} AS n, count(*) FROM t VERSION AS OF {n}"
    seen = rows(" UNION ALL ".join(then.format(n=n) for n in range(1, 5)))
    assert sorted(seen) == [(1, 0), (2, 2), (3, 2), (4, 3)]
    lake.execute("UPDATE t SET c = 8 WHERE id = 1")
    lake.execute("ALTER TABLE t RENAME COLUMN c TO d")
    assert rows("SELECT d, id FROM t ORDER BY id") == [(8, 1), (7, 2), (4, 3)]
    assert rows("SELECT * FROM t VERSION AS OF 2 ORDER BY id") == [(1,), (2,)]


def test_a_spark_whose_variants_nobody_else_reads_writes_none():
    columns = [column("id", "int32", 1), column("s", "struct", 2, column("v", "variant", 3))]
    old, new = SimpleNamespace(version="4.0.2"), SimpleNamespace(version="4.1.0")
    assert write._why_too_old(old, columns, "main.t") == (
        "cannot write main.t: Spark 4.0.2 writes variants, such as 'v', as other readers do not"
        " know them; use Spark 4.1 or newer"
    )
    assert write._why_too_old(old, columns[:1], "main.t") is None
    assert write._why_too_old(new, columns, "main.t") is None


def test_a_file_with_a_type_that_spark_does_not_know_is_not_damaged():
    told = "data file x.parquet of main.t has a type that this version of Spark cannot read"
    found = file_fault(f"java.lang.IllegalStateException: {_TOO_NEW}{told}\n\tat org.apache")
    assert (type(found), str(found)) == (Unsupported, told)
