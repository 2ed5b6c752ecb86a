from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from shelduck.engine.bridge import Deletes, Engine, FileEntry, FileRelation, engine_for
from shelduck.errors import InvalidRequest, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ID = StructType([StructField("id", LongType())])
NONE = StructType([])


def entry_of(path: Path, *constants: int | str | bytes | bool | None) -> FileEntry:
    return FileEntry(str(path), path.stat().st_size, constants)


def file_of(path: Path, **columns: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


class Files:
    """Ten rows in each of three files; remembers what Spark pushed."""

    def __init__(self, folder: Path) -> None:
        self.paths = [
            file_of(folder / f"{n}.parquet", id=list(range(n * 10, n * 10 + 10))) for n in range(3)
        ]
        self.asked: list[list[str]] = []

    def __call__(self, filters: list[str]) -> Iterable[FileEntry]:
        self.asked.append(filters)
        return [entry_of(path, n, f"file {n}") for n, path in enumerate(self.paths)]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def read(bridge: Engine, lister: object, constants: str = "n bigint, label string") -> DataFrame:
    return bridge.relation(
        FileRelation(
            ID, StructType.fromDDL(constants), lister, with_deletes=False, size_in_bytes=1000
        )
    )


def test_reads_the_listed_files_with_their_constants(bridge: Engine, files: Files) -> None:
    rows = read(bridge, files).groupBy("n", "label").agg(sf.sum("id")).orderBy("n").collect()
    assert [tuple(row) for row in rows] == [
        (0, "file 0", 45),
        (1, "file 1", 145),
        (2, "file 2", 245),
    ]


def test_a_file_that_the_lister_leaves_out_is_not_read(bridge: Engine, files: Files) -> None:
    def first(filters: list[str]) -> list[FileEntry]:
        return list(files(filters))[:1]

    assert read(bridge, first).count() == 10


def test_no_file_at_all_gives_no_rows(bridge: Engine) -> None:
    assert read(bridge, lambda _: []).collect() == []


def test_the_lister_is_asked_only_when_a_query_runs(bridge: Engine, files: Files) -> None:
    table = read(bridge, files)
    assert files.asked == []
    table.count()
    assert files.asked == [[]]


def test_pushed_filters_name_columns_without_qualifier(
    bridge: Engine, files: Files, spark: SparkSession
) -> None:
    read(bridge, files).createOrReplaceTempView("bridge_t")
    assert spark.sql("SELECT count(*) FROM bridge_t q WHERE q.id = 7000 - 6990").first()[0] == 1
    assert files.asked[-1] == ["(id IS NOT NULL)", "(id = 10L)"]


def test_struct_fields_and_odd_names_are_quoted_in_pushed_filters(
    bridge: Engine, tmp_path: Path
) -> None:
    path = file_of(tmp_path / "s.parquet", **{"s": [{"a.b": 1}], "x\ny": [5]})
    asked = []

    def lister(filters: list[str]) -> list[FileEntry]:
        asked.append(filters)
        return [entry_of(path)]

    schema = StructType.fromDDL("s struct<`a.b`: bigint>").add("x\ny", LongType())
    table = bridge.relation(FileRelation(schema, NONE, lister, with_deletes=False, size_in_bytes=1))
    assert table.where("s.`a.b` = 1").where(sf.col("`x\ny`") > 4).count() == 1
    assert "(s.`a.b` = 1L)" in asked[-1]
    assert "(`x\ny` > 4L)" in asked[-1]


def test_a_filter_on_spark_metadata_is_not_taken_for_a_column(
    bridge: Engine, tmp_path: Path
) -> None:
    path = file_of(tmp_path / "a.parquet", file_name=["mine"])
    asked = []

    def lister(filters: list[str]) -> list[FileEntry]:
        asked.append(filters)
        return [entry_of(path)]

    table = bridge.relation(
        FileRelation(
            StructType.fromDDL("file_name string"),
            NONE,
            lister,
            with_deletes=False,
            size_in_bytes=1,
        )
    )
    assert table.where("_metadata.file_name = 'a.parquet'").count() == 1
    assert asked[-1] == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n = 1", 10),
        ("n > 0 AND label <> 'file 2'", 10),
        ("n IS NULL", 0),
        ("n IN (0, 2) AND id < 5", 5),
        ("n + id = 0", 1),
        ("label LIKE 'file%' OR id = 3", 30),
    ],
)
def test_filters_on_constants_are_applied(
    bridge: Engine, files: Files, condition: str, expected: int
) -> None:
    assert read(bridge, files).where(condition).count() == expected


def test_constants_of_every_type_arrive_unchanged(bridge: Engine, files: Files) -> None:
    text = "tab\t line\n return\r back\\slash \\N ünï 🦆"

    def lister(_: list[str]) -> list[FileEntry]:
        return [
            entry_of(files.paths[0], 2**62, -5, text, b"\x00\xff\n", True),
            entry_of(files.paths[1], None, None, None, None, None),
            entry_of(files.paths[2], -(2**63), 0, "", b"", False),
        ]

    table = read(bridge, lister, "l bigint, i int, s string, b binary, t boolean")
    rows = table.where("id % 10 = 0").orderBy("id").drop("id").collect()
    assert [tuple(row) for row in rows] == [
        (2**62, -5, text, b"\x00\xff\n", True),
        (None, None, None, None, None),
        (-(2**63), 0, "", b"", False),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    ["k=b%7B1%2C2%7D", "a b", "x=1", "{p,q}", "[ab]*?", "ünï 🦆", "#frag&ment", "a:b", "t\tn\nx"],
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_no_character_of_a_path_is_reinterpreted(
    bridge: Engine, tmp_path: Path, folder: str, scheme: str
) -> None:
    path = file_of(tmp_path / folder / "f%20 1.parquet", id=[1, 2])
    size = path.stat().st_size

    def lister(_: list[str]) -> list[FileEntry]:
        return [FileEntry(f"{scheme}{path}", size, (3, "x"))]

    rows = read(bridge, lister).select("id", "_metadata.file_name").orderBy("id").collect()
    assert [row.id for row in rows] == [1, 2]


def test_input_files_are_those_of_the_lister(bridge: Engine, files: Files) -> None:
    assert sorted(read(bridge, files).inputFiles()) == [f"file://{path}" for path in files.paths]


def test_an_error_of_the_lister_reaches_the_user_and_the_session_goes_on(
    bridge: Engine, files: Files
) -> None:
    def broken(_: list[str]) -> list[FileEntry]:
        message = "catalog went\naway"
        raise InvalidRequest(message)

    with pytest.raises(InvalidRequest, match=r"^catalog went\naway$"):
        read(bridge, broken).collect()
    assert read(bridge, files).count() == 30


def test_an_error_in_a_broadcast_side_reaches_the_user(bridge: Engine, files: Files) -> None:
    def broken(_: list[str]) -> list[FileEntry]:
        message = "no such snapshot"
        raise InvalidRequest(message)

    joined = read(bridge, files).join(sf.broadcast(read(bridge, broken)), "id")
    with pytest.raises(InvalidRequest, match=r"^no such snapshot$"):
        joined.collect()


def test_an_entry_that_does_not_fit_the_relation_fails_the_query(
    bridge: Engine, files: Files
) -> None:
    def with_deletes(_: list[str]) -> list[FileEntry]:
        return [FileEntry(str(files.paths[0]), 1, (1, "x"), Deletes(positions=[0]))]

    with pytest.raises(IllegalArgumentException, match="has deletes, but the relation was made"):
        read(bridge, with_deletes).collect()
    with pytest.raises(IllegalArgumentException, match="has 1 constants, the relation has 2"):
        read(bridge, lambda _: [entry_of(files.paths[0], 1)]).collect()


def test_a_missing_file_fails_even_if_the_session_ignores_missing_files(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Exception, match=r"gone\.parquet"):
            read(
                bridge, lambda _: [FileEntry(str(tmp_path / "gone.parquet"), 9, (1, ""))]
            ).collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_joins_of_a_relation_with_itself_and_under_views(
    bridge: Engine, files: Files, spark: SparkSession
) -> None:
    read(bridge, files).createOrReplaceTempView("bridge_v")
    rows = spark.sql(
        "SELECT a.n, count(*) FROM bridge_v a JOIN bridge_v b ON a.id = b.id + 10"
        " WHERE b.n < 1 AND a.id > 12 GROUP BY a.n"
    ).collect()
    assert [tuple(row) for row in rows] == [(1, 7)]


@pytest.mark.slow
def test_many_threads_plan_at_once(bridge: Engine, files: Files) -> None:
    table = read(bridge, files)
    counts: list[tuple[int, int]] = []

    def work(n: int) -> None:
        counts.append((n, table.where(f"id < {n}").count()))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(counts) == [(n, n) for n in range(1, 13)]


def test_another_session_of_the_same_application_reads_too(
    spark: SparkSession, files: Files
) -> None:
    other = engine_for(spark.newSession())
    assert read(other, files).count() == 30


@pytest.mark.slow
def test_a_lister_is_let_go_when_nothing_reads_by_it(bridge: Engine, files: Files) -> None:
    lister = Files(files.paths[0].parent)
    alive = weakref.ref(lister)
    table = read(bridge, lister)
    table.count()
    del lister, table
    for _ in range(50):
        gc.collect()
        bridge.spark.sparkContext._jvm.java.lang.System.gc()
        if alive() is None:
            break
        time.sleep(0.1)
    assert alive() is None


def test_a_column_missing_from_a_file_is_null_whatever_the_schema_promises(
    bridge: Engine, files: Files
) -> None:
    schema = StructType.fromDDL("id bigint, later string NOT NULL")
    table = bridge.relation(
        FileRelation(
            schema,
            StructType.fromDDL("n bigint, l string"),
            files,
            with_deletes=False,
            size_in_bytes=1,
        )
    )
    assert table.where("later IS NULL").count() == 30


def test_names_shared_by_columns_and_constants_are_refused(bridge: Engine, files: Files) -> None:
    with pytest.raises(InvalidRequest, match="both a column and a constant have the name id"):
        read(bridge, files, "ID bigint")


def test_constants_of_other_types_are_refused(bridge: Engine, files: Files) -> None:
    with pytest.raises(InvalidRequest, match="constant 'd' cannot be of type double"):
        read(bridge, files, "d double")


def test_a_name_that_spark_would_replace_is_refused(bridge: Engine, files: Files) -> None:
    schema = StructType([StructField("${user.home}", LongType())])
    with pytest.raises(Unsupported, match=r"contains \$\{\.\.\.\}"):
        bridge.relation(FileRelation(schema, NONE, files, with_deletes=False, size_in_bytes=1))
