"""Lakes of DuckLake 1.1 that ducklakepy made, as Spark reads them, and the other way round."""

from __future__ import annotations

import datetime as dt
from functools import partial

import pyarrow as pa
import pytest
from ducklakepy import load_catalog
from ducklakepy.expressions import col
from ducklakepy.schema import Schema
from ducklakepy.types import (
    Column,
    Int32Type,
    ListType,
    MapType,
    NullType,
    StructType,
    TimestampTzNsType,
)

import shelduck
from shelduck.errors import InvalidRequest, Unsupported

ID = Column("id", Int32Type())


@pytest.fixture
def theirs(tmp_path):
    """A lake of DuckLake 1.1, as ducklakepy has it open; it keeps no rows in the catalog."""
    found = load_catalog(url=f"sqlite:///{tmp_path}/lake.db", data_path=f"{tmp_path}/data/")
    found.initialize()
    found.set_option("data_inlining_row_limit", 0)
    yield found
    found.close()


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


def test_a_file_of_several_deletion_vectors_is_read_at_each_snapshot(theirs, ours, asked):
    theirs.create_table("main.t", schema=Schema(ID))
    append(theirs, [(n,) for n in range(20)], id=pa.int32())
    theirs.set_option("write_deletion_vectors", True)
    theirs.set_option("data_inlining_row_limit", 50)
    for number in (3, 7, 11):
        theirs.load_table("main.t").delete(col("id") == number)
    theirs.flush_inlined_data("main.t")
    ours.execute("DELETE FROM t WHERE id IN (0, 15)")

    counts = [asked(f"SELECT count(*), sum(id) FROM t VERSION AS OF {n}")[0] for n in range(2, 8)]
    assert counts == [(20, 190), (19, 187), (18, 180), (17, 169), (17, 169), (15, 154)]
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
