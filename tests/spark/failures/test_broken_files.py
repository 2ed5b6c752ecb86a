"""Files with a fault: right rows, or an error of the lake that names file, table and way out."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import shelduck
from shelduck import CorruptLake, StorageUnavailable
from tests.support.broken_files import POSITIONS, BrokenFiles
from tests.support.lengths import shown, turns

FAST = 2
SLOW = 2_000
CHUNK = 20


@pytest.fixture(scope="module")
def broken(spark, tmp_path_factory):
    return BrokenFiles(tmp_path_factory.mktemp("lakes"), spark)


def faults(broken, seeds):
    """What no verb may do: raw errors, and wrong rows where one can tell that a file is broken."""
    found = []
    for seed in seeds:
        fault = broken.fault(seed)
        for verb, outcome in broken.outcomes(fault).items():
            is_sound = outcome in ("right", "refused")
            if not is_sound and not (outcome == "unnoticed" and fault.may_go_unnoticed):
                found.append(f"seed {seed}, {fault}: {verb}: {outcome}")
    return found


def test_no_fault_of_a_file_is_a_raw_error_or_wrong_rows(broken):
    # The last one: a footer that is no schema.
    assert faults(broken, [*range(FAST), 365]) == []


@pytest.mark.slow
@pytest.mark.parametrize("seeds", turns(range(FAST, SLOW), CHUNK), ids=shown)
def test_none_of_many_faults_is_a_raw_error_or_wrong_rows(broken, seeds):
    assert faults(broken, seeds) == []


STATEMENTS = [
    "CALL set_option('data_inlining_row_limit', '0')",
    "CREATE TABLE t (id BIGINT, v STRING)",
    "INSERT INTO t SELECT id, 'v' FROM range(0, 20, 1, 1)",
    "DELETE FROM t WHERE id IN (3, 4)",
]


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """A lake with one data file and one delete file, to be copied as a folder."""
    folder = tmp_path_factory.mktemp("made") / "lake"
    folder.mkdir()
    with shelduck.connect(f"sqlite:///{folder}/lake.db", f"{folder}/data/", spark) as lake:
        for statement in STATEMENTS:
            lake.sql(statement)
    for checksum in folder.rglob(".*.crc"):
        checksum.unlink()
    return folder


class Single:
    """A copy of that lake, whose files can be broken."""

    def __init__(self, folder, spark):
        self.folder = folder
        self.url = f"sqlite:///{folder}/lake.db"
        with closing(sqlite3.connect(folder / "lake.db")) as connection, connection:
            connection.execute(
                "UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'",
                [f"{folder}/data/"],
            )
        self.lake = shelduck.connect(self.url, f"{folder}/data/", spark)
        [self.data] = folder.rglob("part-*.parquet")
        [self.deletes] = folder.rglob("file=*.parquet")

    def read(self):
        return self.lake.table("t").read().collect()


@pytest.fixture
def single(spark, made, tmp_path):
    found = Single(shutil.copytree(made, tmp_path / "lake"), spark)
    yield found
    found.lake.close()


BACKUP = "; restore it from a backup, and look at the lake with shelduck check"


def test_a_missing_file_is_told_with_its_table_and_a_way_out(single):
    single.data.unlink()

    with pytest.raises(CorruptLake) as caught:
        single.read()

    assert str(caught.value) == (
        f"data file {single.data} of main.t is missing, or was cleaned up after its snapshot"
        f" expired{BACKUP}"
    )


def test_the_error_is_one_of_spark_too(single):
    single.data.unlink()

    with pytest.raises(PySparkException) as caught:
        single.read()

    assert caught.value.getCondition() == "FAILED_READ_FILE"


@pytest.mark.parametrize(
    "act",
    [
        lambda spark, lake: spark.sql("SELECT * FROM lk.main.t").toArrow(),
        lambda spark, lake: spark.table("lk.main.t").write.format("noop").mode("append").save(),
        lambda spark, lake: spark.sql("DELETE FROM lk.main.t WHERE id = 9"),
        lambda spark, lake: spark.table("lk.main.t").writeTo("lk.main.t").append(),
        lambda spark, lake: lake.table("t").changes(1).collect(),
        lambda spark, lake: lake.sql("ALTER TABLE t ALTER COLUMN id TYPE STRING"),
        lambda spark, lake: next(lake.table("t").read().toLocalIterator()),
    ],
)
def test_whoever_runs_the_query_gets_the_error_of_the_lake(spark, single, act):
    single.data.write_bytes(b"")
    shelduck.attach(spark, "lk", single.url)
    try:
        with pytest.raises(CorruptLake, match=f"data file {single.data} of main.t"):
            act(spark, single.lake)
    finally:
        shelduck.detach(spark, "lk")


def test_the_file_of_another_table_is_told_though_it_has_as_many_rows(single):
    pq.write_table(pq.ParquetFile(single.data).read().rename_columns(["a", "b"]), single.data)

    with pytest.raises(CorruptLake, match="has other columns than it had when it joined the table"):
        single.read()


def test_rows_are_counted_by_the_footer_if_a_filter_skips_some(single):
    pq.write_table(pq.ParquetFile(single.data).read().slice(9), single.data)

    with pytest.raises(CorruptLake, match="has 11 rows, but the catalog says 20"):
        single.lake.sql("SELECT v FROM t WHERE id = 15").collect()


def test_a_flipped_bit_is_found_by_the_checksum_of_its_page(single):
    content = bytearray(single.data.read_bytes())
    # The last byte of a value.
    place = content.index((19).to_bytes(8, "little"))
    content[place] ^= 1
    single.data.write_bytes(content)

    with pytest.raises(CorruptLake, match="could not verify page integrity, CRC checksum"):
        single.read()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("out of range", r"has position 4\d\d, but its data file has 20 rows"),
        ("negative", r"has position -\d+"),
        ("twice", "has a position twice"),
        ("fewer positions", "has 1 rows, but the catalog says 2"),
        ("NULL", "NULL"),
        ("no positions", "no column of positions"),
    ],
)
@pytest.mark.parametrize("verb", ["read", "delete", "changes"])
def test_wrong_positions_of_a_delete_file_are_a_corrupt_lake(single, fault, told, verb):
    draw = type("Draw", (), {"randrange": staticmethod(lambda *_: 7)})
    changed = POSITIONS[fault](pq.ParquetFile(single.deletes).read(), draw)
    pq.write_table(changed, single.deletes)
    acts = {
        "read": single.read,
        "delete": lambda: single.lake.sql("DELETE FROM t WHERE id = 11"),
        "changes": lambda: single.lake.table("t").changes(3).collect(),
    }

    with pytest.raises(CorruptLake, match=told) as caught:
        acts[verb]()

    assert f"delete file {single.deletes} of main.t" in str(caught.value) or verb == "changes"


def test_a_file_in_the_way_of_a_table_is_a_storage_that_fails(single):
    directory = single.data.parent.parent
    shutil.move(directory, f"{directory}-moved")
    directory.write_text("a file")

    with pytest.raises(StorageUnavailable, match=r"write to main.t: something else"):
        single.lake.sql("INSERT INTO t VALUES (1, 'x')")


def test_a_refused_write_changes_nothing(single):
    single.data.write_bytes(b"")
    before = _snapshots(single)

    for statement in (
        "DELETE FROM t WHERE id = 9",
        "UPDATE t SET v = 'x' WHERE id = 9",
        "CALL rewrite_data_files('t', delete_threshold => 0)",
    ):
        with pytest.raises(CorruptLake):
            single.lake.sql(statement)

    assert _snapshots(single) == before


def _snapshots(single):
    with closing(sqlite3.connect(single.folder / "lake.db")) as connection:
        return connection.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchone()
