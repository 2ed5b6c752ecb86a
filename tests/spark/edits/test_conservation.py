"""Files that are not as the catalog says: read right or refused, and never made to stay wrong."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import shelduck
from shelduck import CorruptLake
from tests.support.lakes import refusal, rows

STATEMENTS = [
    "CREATE TABLE t (id BIGINT, v STRING)",
    "CALL lake.set_option('data_inlining_row_limit', 0)",
    *(
        f"INSERT INTO t SELECT id, concat('v', id) FROM range({n}, {n + 20}, 1, 1)"
        for n in (0, 20, 40)
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory, spark):
    """A lake of three files of twenty rows, to be copied as a folder."""
    folder = tmp_path_factory.mktemp("made") / "lake"
    folder.mkdir()
    with shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark) as lake:
        for statement in STATEMENTS:
            lake.sql(statement)
    return folder


class Damaged:
    """A lake of its own, whose catalog and files can be falsified."""

    def __init__(self, folder: Path, spark) -> None:
        self.folder = folder
        self.catalog = folder / "lake.db"
        self.data = folder / "data"
        self.change(
            "UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", f"{self.data}/"
        )
        self.lake = shelduck.connect(f"sqlite:///{self.catalog}", f"{self.data}/", spark)

    def change(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.catalog)) as connection:
            assert connection.execute(statement, values).rowcount > 0
            connection.commit()

    def ask(self, query: str) -> list[tuple]:
        with closing(sqlite3.connect(self.catalog)) as connection:
            return connection.execute(query).fetchall()

    def files(self) -> list[Path]:
        """The data files of the table, in the order of their ids."""
        found = self.ask("SELECT path FROM ducklake_data_file ORDER BY data_file_id")
        return [self.data / "main" / "t" / path for (path,) in found]

    def kept(self) -> tuple[object, ...]:
        """What no refused commit may change: snapshots, rows and files."""
        tables = ("snapshot", "data_file", "delete_file", "files_scheduled_for_deletion")
        dumps = tuple(self.ask(f"SELECT * FROM ducklake_{name}") for name in tables)
        inlined = [n for (n,) in self.ask("SELECT table_name FROM ducklake_inlined_data_tables")]
        rows_of = tuple(self.ask(f'SELECT * FROM "{name}"') for name in inlined)
        return dumps, rows_of, set(self.data.rglob("*.parquet"))

    def snapshot(self) -> int:
        [(number,)] = self.ask("SELECT max(snapshot_id) FROM ducklake_snapshot")
        return number

    def live_files(self) -> set[int]:
        found = self.ask("SELECT data_file_id FROM ducklake_data_file WHERE end_snapshot IS NULL")
        return {number for (number,) in found}

    def ids(self) -> list[int]:
        return sorted(n for (n,) in rows(self.lake.table("t").read().select("id")))


@pytest.fixture
def damaged(made, tmp_path, spark):
    shutil.copytree(made, tmp_path / "lake")
    found = Damaged(tmp_path / "lake", spark)
    yield found
    found.lake.close()


def put(table: pa.Table, path: Path, **how) -> None:
    """Put another file in the place of one; Spark's checksum would tell of it."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    pq.write_table(table, path, **how)


def content(path: Path) -> pa.Table:
    return pq.ParquetFile(path).read()


def in_groups(path: Path, size: int) -> None:
    """Write a file again in row groups of so many rows."""
    put(content(path), path, row_group_size=size)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 4, 500, 10**9])
def test_a_wrong_size_in_the_catalog_loses_no_row(damaged, size):
    for path in damaged.files():
        in_groups(path, 3)
    damaged.change("UPDATE ducklake_data_file SET file_size_bytes = ?", size)
    assert damaged.ids() == list(range(60))
    assert [n for (n,) in rows(damaged.lake.sql("SELECT id FROM t WHERE id > 17 AND id < 23"))]

    damaged.lake.table("t").compact()
    assert damaged.ids() == list(range(60))


def test_each_row_group_is_read_once_however_a_file_is_cut(damaged, spark):
    path = damaged.files()[0]
    in_groups(path, 2)
    cut = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(cut)
    try:
        for size, bytes_per_task in ((path.stat().st_size, 97), (300, 97), (9000, 1000)):
            damaged.change(
                "UPDATE ducklake_data_file SET file_size_bytes = ? WHERE data_file_id = 0", size
            )
            spark.conf.set(cut, bytes_per_task)
            assert damaged.ids() == list(range(60))
    finally:
        spark.conf.set(cut, before)


def test_a_file_with_other_rows_than_the_catalog_says_fails_the_query(damaged):
    path = damaged.files()[1]
    put(content(path).slice(0, 13), path)
    with pytest.raises(CorruptLake) as caught:
        damaged.lake.sql("SELECT sum(id) FROM t").collect()
    assert f"{path} of main.t has 13 rows, but the catalog says 20; restore the file" in str(
        caught.value
    )


def test_a_delete_file_with_other_positions_than_the_catalog_says_fails_the_query(damaged):
    damaged.lake.sql("DELETE FROM t WHERE id % 2 = 0 AND id < 20")
    [(path,)] = damaged.ask("SELECT path FROM ducklake_delete_file")
    place = damaged.data / "main" / "t" / path
    put(content(place).slice(0, 4), place)
    with pytest.raises(CorruptLake) as caught:
        damaged.lake.sql("SELECT sum(id) FROM t").collect()
    assert f"{place} of main.t has 4 rows, but the catalog says 10" in str(caught.value)


def test_two_rows_of_one_path_are_refused_when_they_are_listed(damaged):
    damaged.change(
        "UPDATE ducklake_data_file SET path = (SELECT path FROM ducklake_data_file"
        " WHERE data_file_id = 0) WHERE data_file_id = 2"
    )
    for act in (
        lambda: damaged.lake.table("t").read(),
        lambda: damaged.lake.table("t").compact(),
        lambda: damaged.lake.sql("DELETE FROM t WHERE id = 3"),
    ):
        said = refusal(CorruptLake, act, damaged.catalog, damaged.data)
        assert "data files 0 and 2 of main.t have the same data file" in said
        assert "correct the wrong path" in said


# Rows 0 to 59 in three files, of which 0, 2 and 21 are deleted by files and 41 in the catalog; 100
# to 102 are in the catalog, and 101 is deleted there.
RICH = [
    "DELETE FROM t WHERE id IN (0, 2, 21)",
    "CALL lake.set_option('data_inlining_row_limit', 10)",
    "DELETE FROM t WHERE id = 41",
    "INSERT INTO t VALUES (100, 'x'), (101, 'y'), (102, 'z')",
    "DELETE FROM t WHERE id = 101",
]
TRUTH = sorted({*range(60), 100, 102} - {0, 2, 21, 41})

VERBS = {
    "compact": lambda lake: lake.table("t").compact(),
    "rewrite_deletes": lambda lake: lake.table("t").rewrite_deletes(0),
    "rewrite": lambda lake: lake.table("t").rewrite(),
    "flush": lambda lake: lake.table("t").flush_inlined_data(),
    "job": lambda lake: lake.sql(
        "ALTER TABLE t ALTER COLUMN v TYPE BINARY USING encode(v, 'utf-8')"
    ),
    "sorted": lambda lake: lake.sql("ALTER TABLE t SET SORTED BY (v) REWRITE"),
    "checkpoint": lambda lake: lake.checkpoint(),
    "delete": lambda lake: lake.sql("DELETE FROM t WHERE id >= 20 AND id < 30"),
    "update": lambda lake: lake.sql("UPDATE t SET v = 'n' WHERE id >= 20"),
}


def _cut(lake: Damaged) -> None:
    path = lake.files()[1]
    put(content(path).slice(0, 13), path)


def _double(lake: Damaged) -> None:
    path = lake.files()[1]
    put(pa.concat_tables([content(path)] * 2), path)


def _swap(lake: Damaged) -> None:
    _cut(lake)
    one, other = lake.files()[1:3]
    first, second = content(one), content(other)
    put(second, one)
    put(first, other)


def _fewer_rows_in_catalog(lake: Damaged) -> None:
    lake.change("UPDATE ducklake_data_file SET record_count = 11 WHERE data_file_id = 1")


def _more_rows_in_catalog(lake: Damaged) -> None:
    lake.change("UPDATE ducklake_data_file SET record_count = 21 WHERE data_file_id = 1")


def _smaller(lake: Damaged) -> None:
    for path in lake.files():
        in_groups(path, 3)
    lake.change("UPDATE ducklake_data_file SET file_size_bytes = 40")


def _one_path_twice(lake: Damaged) -> None:
    lake.change(
        "UPDATE ducklake_data_file SET path = (SELECT path FROM ducklake_data_file"
        " WHERE data_file_id = 1) WHERE data_file_id = 2"
    )


def _cut_deletes(lake: Damaged) -> None:
    [(path,)] = lake.ask("SELECT path FROM ducklake_delete_file WHERE data_file_id = 0")
    place = lake.data / "main" / "t" / path
    put(content(place).slice(0, 1), place)


def _more_deletes_in_catalog(lake: Damaged) -> None:
    lake.change("UPDATE ducklake_delete_file SET delete_count = delete_count + 1")


def _gone(lake: Damaged) -> None:
    lake.files()[1].unlink()


DAMAGES = {
    f.__name__.removeprefix("_"): f
    for f in (
        *(_cut, _double, _swap, _fewer_rows_in_catalog, _more_rows_in_catalog, _smaller),
        *(_one_path_twice, _cut_deletes, _more_deletes_in_catalog, _gone),
    )
}
FAST = {
    ("compact", "swap"),
    ("rewrite_deletes", "cut_deletes"),
    ("rewrite", "fewer_rows_in_catalog"),
    ("flush", "more_deletes_in_catalog"),
    ("job", "double"),
    ("job", "smaller"),
    ("delete", "fewer_rows_in_catalog"),
}
PAIRS = [
    pytest.param(verb, damage, marks=() if (verb, damage) in FAST else pytest.mark.slow)
    for verb in VERBS
    for damage in DAMAGES
]


@pytest.fixture(scope="module")
def rich(made, tmp_path_factory, spark):
    """The same lake with dead rows of every kind, to be copied as a folder."""
    folder = tmp_path_factory.mktemp("rich") / "lake"
    shutil.copytree(made, folder)
    lake = Damaged(folder, spark)
    for statement in RICH:
        lake.lake.sql(statement)
    assert lake.ids() == TRUTH
    lake.lake.close()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "damage"), PAIRS)
def test_no_verb_changes_how_many_rows_there_are(rich, tmp_path, spark, verb, damage):
    folder = tmp_path / "lake"
    shutil.copytree(rich, folder)
    lake = Damaged(folder, spark)
    DAMAGES[damage](lake)
    before, first = lake.kept(), lake.snapshot()
    refusal_of_it: Exception | None = None
    try:
        VERBS[verb](lake.lake)
    except shelduck.ShelduckError as refused:
        refusal_of_it = refused
    is_refused = refusal_of_it is not None
    if is_refused and damage != "gone":
        assert isinstance(refusal_of_it, CorruptLake)
    if lake.snapshot() == first:
        assert lake.kept() == before
    expected = set(TRUTH)
    if verb == "delete" and not is_refused:
        expected -= set(range(20, 30))
    shown = _shown(lake)
    if shown is None:
        # The damage is still there to be seen: what nobody can read was not made to look right.
        victims = {"cut_deletes": {0}, "swap": {1, 2}}.get(damage, {1})
        assert victims & set(lake.live_files())
    else:
        assert shown == sorted(expected)
    assert damage != "smaller" or not is_refused
    lake.lake.close()


def _shown(lake: Damaged) -> list[int] | None:
    """The ids that a reader gets, None when it gets an error."""
    try:
        return lake.ids()
    except (shelduck.ShelduckError, PySparkException, Py4JError):
        return None
