"""The files of a write are those that its tasks reported, and their footers are not read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet

from shelduck.engine.bridge.codec import Report
from shelduck.engine.files import task_results as results_module
from shelduck.engine.files.task_results import results
from shelduck.errors import CorruptLake

_REPORT = Report("", False, 1, None)
STATEMENTS = ["CREATE TABLE unused (id INT)"]
NESTED = (
    "SELECT id, named_struct('a', id, 'b', array(id)) AS s, repeat('x', 500) AS t FROM range(9)"
)


def no_reading(*_):
    raise AssertionError("a footer was read")


@pytest.mark.parametrize("partitions", ["", " PARTITIONED BY (id)"])
def test_footers_are_those_that_the_writers_reported(lake, monkeypatch, partitions):
    monkeypatch.setattr(results_module, "read_footers", no_reading)
    lake.set_option("data_inlining_row_limit", 0)
    lake.sql(f"CREATE TABLE w{partitions} AS {NESTED}")
    with lake._state.store.read() as connection:
        found = connection.exec_driver_sql(
            "SELECT f.path, f.footer_size, f.record_count, t.path FROM ducklake_data_file f"
            " JOIN ducklake_table t USING (table_id) WHERE t.table_name = 'w'"
        ).all()
    assert sum(count for _, _, count, _ in found) == 9
    for path, footer_size, count, table in found:
        file = Path(lake.data_path, "main", table, path)
        assert int.from_bytes(file.read_bytes()[-8:-4], "little") == footer_size
        assert parquet.read_metadata(file).num_rows == count


def test_a_file_that_nobody_reported_is_no_result(tmp_path):
    for name in ("p=1/a-7-0.parquet", "p=1/a-8-0.parquet", "b-9-1.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    found = results(str(tmp_path), {"a-8-0.parquet": _REPORT, "b-9-1.parquet": _REPORT})
    assert [file.name for file in found.files] == ["b-9-1.parquet", "p=1/a-8-0.parquet"]
    assert not (tmp_path / "p=1/a-7-0.parquet").exists()


def test_a_reported_file_must_be_there(tmp_path):
    with pytest.raises(
        CorruptLake, match=r"Spark wrote gone\.parquet into .*, but it is not there"
    ):
        results(str(tmp_path), {"gone.parquet": _REPORT})


def test_a_footer_without_a_report_is_read(lake, spark, tmp_path):
    spark.range(5).coalesce(1).write.parquet(str(tmp_path / "w"))
    (file,) = (tmp_path / "w").glob("*.parquet")
    found = results(str(tmp_path / "w"), {file.name: _REPORT})
    assert [footer.metadata.num_rows for _, footer in found.with_footers(spark)] == [5]
