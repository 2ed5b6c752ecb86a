"""Each writer writes what every reader holds, and refuses all other values."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

import shelduck
from shelduck.errors import InvalidRequest
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.no_bridge import without_bridge
from tests.support.odd_values import HELD, UNHELD

pytestmark = [pytest.mark.guard, pytest.mark.usefixtures("ducklake_version")]


@pytest.fixture
def lake(sqlite_url, data_path, spark):
    with shelduck.connect(sqlite_url, data_path, spark, progress=False) as opened:
        yield opened


# Each writer puts a value of Spark SQL into each column, in one row or more.


def in_the_catalog(lake, spark, values):
    lake.sql(f"INSERT INTO t SELECT 1, {', '.join(values.values())}")


def in_files(lake, spark, values):
    lake.sql(f"INSERT INTO t SELECT id, {', '.join(values.values())} FROM range(20)")


def without_java(lake, spark, values):
    with pytest.MonkeyPatch.context() as patched:
        without_bridge(patched)
        in_files(lake, spark, values)


def from_a_frame(lake, spark, values):
    lake.table("t").append(frame(spark, values, 3))


def by_an_update(lake, spark, values):
    lake.sql("INSERT INTO t (id) VALUES (1)")
    lake.sql(f"UPDATE t SET {', '.join(f'{n} = {v}' for n, v in values.items())}")


def by_a_large_update(lake, spark, values):
    lake.sql("INSERT INTO t (id) SELECT id FROM range(20)")
    by_a_merge(lake, spark, values)


def by_a_merge(lake, spark, values):
    frame(spark, values, 20).createOrReplaceTempView("changes")
    lake.sql(
        "MERGE INTO t USING changes AS s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def by_an_overwrite(lake, spark, values):
    lake.sql(f"INSERT OVERWRITE t SELECT id, {', '.join(values.values())} FROM range(20)")


def frame(spark, values, count):
    named = ", ".join(f"{value} AS {name}" for name, value in values.items())
    return spark.sql(f"SELECT id, {named} FROM range({count})")


EVERYBODY = (
    *(in_the_catalog, in_files, without_java),
    *(from_a_frame, by_an_update, by_a_large_update, by_a_merge, by_an_overwrite),
)
WRITERS = [
    pytest.param(w, marks=() if n < 3 else pytest.mark.slow) for n, w in enumerate(EVERYBODY)
]


@pytest.mark.parametrize("write_by", WRITERS)
def test_duckdb_reads_the_oddest_values_as_they_are(write_by, lake, spark, sqlite_url):
    columns = ", ".join(f"c{n} {kind}" for n, (kind, *_) in enumerate(HELD))
    lake.sql(f"CREATE TABLE t (id BIGINT, {columns})")

    write_by(lake, spark, {f"c{n}": value for n, (_, value, _) in enumerate(HELD)})

    told = ", ".join(f"c{n}::VARCHAR" for n in range(len(HELD)))
    with oracle_at(sqlite_url) as oracle:
        [row] = oracle.sql(f"SELECT DISTINCT {told} FROM t")
    assert list(row) == [text for *_, text in HELD]


# In the fast set each of the first values meets one writer, and each writer one value or two.
REFUSED = [
    pytest.param(
        case,
        writer,
        marks=() if n < 5 and n % 3 == m else pytest.mark.slow,
        id=f"{case[1]}-{writer.__name__}",
    )
    for n, case in enumerate(UNHELD)
    for m, writer in enumerate(EVERYBODY)
]


@pytest.mark.versions("1.0")
@pytest.mark.parametrize(("case", "write_by"), REFUSED)
def test_what_duckdb_cannot_read_is_refused(write_by, case, lake, spark):
    kind, value, field, why = case
    lake.sql(f"CREATE TABLE t (id BIGINT, v {kind})")

    with pytest.raises(InvalidRequest) as told:
        write_by(lake, spark, {"v": value})

    assert str(told.value).startswith(f"column {field} of main.t cannot hold ")
    assert why in str(told.value)
    assert lake.sql("SELECT count(v) FROM t").collect() == [(0,)]


def test_values_that_others_wrote_move_and_can_be_corrected(lake, tmp_path, sqlite_url):
    lake.sql("CREATE TABLE t (id BIGINT, v STRING)")
    for number in range(2):
        bad = pa.StringArray.from_buffers(
            1, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")
        )
        rows = pa.table({"id": pa.array([number]), "v": bad})
        parquet.write_table(rows, tmp_path / f"{number}.parquet")
    lake.table("t").add_files(str(tmp_path / "*.parquet"))

    lake.table("t").compact()
    assert lake.sql("SELECT hex(v) FROM t").collect() == [("FF",), ("FF",)]
    lake.sql("UPDATE t SET v = make_valid_utf8(v)")
    lake.table("t").compact()

    with oracle_at(sqlite_url) as oracle:
        assert oracle.rows("t") == [(0, "\ufffd"), (1, "\ufffd")]
