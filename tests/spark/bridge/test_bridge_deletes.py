from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ducklakepy.puffin import encode_deletion_vectors
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from shelduck.engine.bridge import Deletes, Engine, FileEntry, FileRelation
from shelduck.read.scan.deaths import vector_snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NONE = StructType([])


@pytest.fixture(params=["vectorized", "rows"])
def reader(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Both of Spark's Parquet readers, one after the other."""
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", request.param == "vectorized")
    yield request.param
    spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def scan(
    bridge: Engine, schema: str | StructType, *entries: tuple[Path, Deletes | None]
) -> DataFrame:
    def lister(_: list[str]) -> list[FileEntry]:
        return [FileEntry(str(path), path.stat().st_size, (), deletes) for path, deletes in entries]

    read = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    return bridge.relation(FileRelation(read, NONE, lister, with_deletes=True, size_in_bytes=1))


def ids_of(table: DataFrame) -> list[int]:
    return [row.id for row in table.orderBy("id").collect()]


def numbers(path: Path, rows: int = 10, group: int = 1_000_000) -> Path:
    pq.write_table(pa.table({"id": range(rows)}), path, row_group_size=group)
    return path


def delete_file(path: Path, positions: list[int], snapshots: list[int] | None = None) -> str:
    columns: dict[str, Any] = {"file_path": ["elsewhere"] * len(positions), "pos": positions}
    if snapshots is not None:
        columns["_ducklake_internal_snapshot_id"] = snapshots
    pq.write_table(pa.table(columns), path)
    return str(path)


def test_rows_of_a_delete_file_are_dropped(bridge: Engine, tmp_path: Path, reader: str) -> None:
    file = delete_file(tmp_path / "d.parquet", [0, 4, 9])
    table = scan(bridge, "id bigint", (numbers(tmp_path / "f.parquet"), Deletes(file)))
    assert ids_of(table) == [1, 2, 3, 5, 6, 7, 8]
    assert table.count() == 7
    assert table.columns == ["id"]


def test_inlined_positions_join_those_of_the_delete_file(
    bridge: Engine, tmp_path: Path, reader: str
) -> None:
    file = delete_file(tmp_path / "d.parquet", [0, 4])
    deletes = Deletes(file, positions=[9, 4, 2])
    assert ids_of(scan(bridge, "id bigint", (numbers(tmp_path / "f"), deletes))) == [
        1,
        3,
        5,
        6,
        7,
        8,
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bound", "expected"), [(4, [0, 1, 2, 3]), (5, [1, 2, 3]), (6, [1, 3]), (None, [1])]
)
def test_rows_deleted_after_the_bound_stay(
    bridge: Engine, tmp_path: Path, bound: int | None, expected: list[int]
) -> None:
    file = delete_file(tmp_path / "d.parquet", [0, 2, 3], [5, 6, 7])
    table = scan(bridge, "id bigint", (numbers(tmp_path / "f", 4), Deletes(file, bound)))
    assert ids_of(table) == expected


def test_a_bound_does_not_matter_where_the_delete_file_tells_no_snapshots(
    bridge: Engine, tmp_path: Path
) -> None:
    file = delete_file(tmp_path / "d.parquet", [0, 2])
    table = scan(bridge, "id bigint", (numbers(tmp_path / "f", 4), Deletes(file, 1)))
    assert ids_of(table) == [1, 3]


def test_columns_of_a_delete_file_are_known_by_their_ids(bridge: Engine, tmp_path: Path) -> None:
    def field(name: str, field_id: int) -> pa.Field:
        return pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(field_id)})

    schema = pa.schema([field("p", 2147483645), field("when", 2147483539)])
    pq.write_table(pa.table([[1, 2], [8, 9]], schema=schema), tmp_path / "d.parquet")
    deletes = Deletes(str(tmp_path / "d.parquet"), 8)
    assert ids_of(scan(bridge, "id bigint", (numbers(tmp_path / "f", 4), deletes))) == [0, 2, 3]


def test_files_with_and_without_deletes_read_together(
    bridge: Engine, tmp_path: Path, reader: str
) -> None:
    first, second, third = (numbers(tmp_path / name, 3) for name in "abc")
    table = scan(
        bridge,
        "id bigint",
        (first, Deletes(positions=[1])),
        (second, None),
        (third, Deletes(positions=[0, 1, 2])),
    )
    assert ids_of(table) == [0, 0, 1, 2, 2]


@pytest.fixture(params=["batches", "vectorized", "rows"])
def every_reader(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """The same, and the first once more for generated code, to which it gives whole batches."""
    if request.param == "batches":
        request.getfixturevalue("in_batches")
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", request.param != "rows")
    yield
    spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


@pytest.mark.usefixtures("every_reader")
@pytest.mark.parametrize("deleted", [(), range(0, 50_000, 3)], ids=["whole", "thinned"])
@pytest.mark.parametrize(
    "condition",
    [
        "true",
        "id > 20000",
        *(
            pytest.param(condition, marks=pytest.mark.slow)
            for condition in ("id IS NOT NULL", "id % 2 = 1", "id IN (3, 8191, 49999)")
        ),
    ],
)
def test_each_row_knows_its_position_however_a_file_is_cut(
    bridge: Engine, spark: SparkSession, tmp_path: Path, condition: str, deleted: range | tuple[()]
) -> None:
    path = numbers(tmp_path / "f", 50_000, group=7_000)
    spark.conf.set("spark.sql.files.maxPartitionBytes", path.stat().st_size // 5)
    try:
        table = scan(bridge, "id bigint", (path, Deletes(positions=deleted) if deleted else None))
        assert table.rdd.getNumPartitions() > 3
        rows = table.where(condition).selectExpr("id", "_metadata.row_index AS at", "id + 1 AS b")
        right = "count(*)", "count_if(id = at AND b = at + 1)", "sum(id)"
        left = spark.range(50_000).where(condition)
        left = left.where("id % 3 != 0") if deleted else left
        expected = left.selectExpr("count(*)", "count(*)", "sum(id)").first()
        assert rows.selectExpr(*right).first() == expected
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.slow
def test_deletes_hold_across_splits_row_groups_and_batches(
    bridge: Engine, spark: SparkSession, tmp_path: Path, reader: str
) -> None:
    path = numbers(tmp_path / "f", 50_000, group=7_000)
    spark.conf.set("spark.sql.files.maxPartitionBytes", path.stat().st_size // 5)
    try:
        table = scan(bridge, "id bigint", (path, Deletes(positions=range(0, 50_000, 3))))
        assert table.rdd.getNumPartitions() > 3
        assert table.where("id % 3 = 0").count() == 0
        assert table.agg(sf.sum("id")).first()[0] == 833_316_667
        assert table.where("id BETWEEN 41000 AND 41005").count() == 4
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_whole_batches_may_be_deleted(bridge: Engine, tmp_path: Path, reader: str) -> None:
    path = numbers(tmp_path / "f", 20_000)
    table = scan(bridge, "id bigint", (path, Deletes(positions=range(19_999))))
    assert ids_of(table) == [19_999]


def test_the_row_index_that_a_query_asks_for_counts_in_the_file(
    bridge: Engine, tmp_path: Path, reader: str
) -> None:
    table = scan(bridge, "id bigint", (numbers(tmp_path / "f", 4), Deletes(positions=[0, 2])))
    rows = table.selectExpr("_metadata.row_index AS at", "id", "_metadata.file_name AS name")
    assert [tuple(row) for row in rows.orderBy("at").collect()] == [(1, 1, "f"), (3, 3, "f")]
    assert table.where("_metadata.row_index = 3").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("fields", [99, 100, 101, 130])
def test_wide_tables_drop_rows_whatever_reader_spark_takes(
    bridge: Engine, tmp_path: Path, fields: int
) -> None:
    path = tmp_path / "wide"
    pq.write_table(pa.table({f"c{n}": [n, n + 1, n + 2] for n in range(fields)}), path)
    schema = ", ".join(f"c{n} bigint" for n in range(fields))
    rows = scan(bridge, schema, (path, Deletes(positions=[1]))).orderBy("c0").collect()
    assert [tuple(row) for row in rows] == [tuple(range(fields)), tuple(range(2, fields + 2))]


def test_rows_are_dropped_without_whole_stage_codegen(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try:
        path = numbers(tmp_path / "f", 4)
        assert ids_of(scan(bridge, "id bigint", (path, Deletes(positions=[1])))) == [0, 2, 3]
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")


EVERY_TYPE = """
SELECT id, id % 2 = 0 AS flag, CAST(id AS tinyint) i8, CAST(id AS smallint) i16,
 CAST(id AS int) i32,
 CAST(id AS float) / 4 f32, CAST(id AS double) / 8 f64, CAST(id AS decimal(9, 2)) d9,
 CAST(id AS decimal(18, 3)) d18, CAST(id AS decimal(38, 5)) * 1000000000000000000 d38,
 concat('s', id) s, CAST(concat('b', id) AS binary) b,
 date_add(DATE'1500-01-01', CAST(id AS int)) d,
 timestamp_seconds(id) ts, CAST(timestamp_seconds(id) AS timestamp_ntz) ntz,
 sequence(0, id) a, map(concat('k', id), id) m,
 named_struct('x', id, 'y', named_struct('z', concat('z', id), 'l', array(id))) st,
 array(named_struct('e', id)) ls, if(id % 3 = 0, NULL, id) n,
 if(id % 3 = 0, NULL, named_struct('q', id)) ns, interval '1' day * id AS iv,
 parse_json(concat('{"v":', id, '}')) v
FROM range(0, 40, 1, 1)
"""


@pytest.mark.slow
def test_every_type_keeps_its_values_beside_deleted_rows(
    bridge: Engine, spark: SparkSession, tmp_path: Path, reader: str
) -> None:
    plain = spark.sql(EVERY_TYPE)
    plain.write.parquet(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob("*.parquet")
    table = scan(bridge, plain.schema, (path, Deletes(positions=[0, 1, 5, 39])))
    left = plain.where("id NOT IN (0, 1, 5, 39)")
    expected = left.withColumn("v", sf.to_json("v")).orderBy("id").collect()
    assert len(expected) == 36
    assert table.withColumn("v", sf.to_json("v")).orderBy("id").collect() == expected
    assert table.where("ns IS NULL AND n IS NULL").count() == 12
    assert table.agg(sf.sum("st.x")).first()[0] == 735


def vector(path: Path, values: list[int], *, spoil: bool = False) -> str:
    """A deletion vector as DuckDB writes it: one bitmap of one array container."""
    bitmap = struct.pack("<QIIIHHI", 1, 0, 12346, 1, 0, len(values) - 1, 16)
    body = b"\xd1\xd3\x39\x64" + bitmap + struct.pack(f"<{len(values)}H", *values)
    crc = zlib.crc32(body) ^ spoil
    path.write_bytes(struct.pack(">I", len(body)) + body + struct.pack(">I", crc))
    return str(path)


def test_positions_of_a_deletion_vector_are_dropped(
    bridge: Engine, tmp_path: Path, reader: str
) -> None:
    deletes = Deletes(vector(tmp_path / "d.puffin", [1, 3]), positions=[0])
    assert ids_of(scan(bridge, "id bigint", (numbers(tmp_path / "f", 5), deletes))) == [2, 4]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.puffin", b"PFA1" + b"\0" * 40, "is not a Puffin file"),
        ("d.puffin", b"nonsense nonsense", "is not a deletion vector"),
        ("d.parquet", b"nonsense nonsense", "cannot be read"),
    ],
)
def test_a_delete_file_that_cannot_be_read_fails_the_query(
    bridge: Engine, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    table = scan(bridge, "id bigint", (numbers(tmp_path / "f"), Deletes(str(tmp_path / name))))
    with pytest.raises(Exception, match=message):
        table.collect()


def test_a_damaged_deletion_vector_fails_the_query(bridge: Engine, tmp_path: Path) -> None:
    file = vector(tmp_path / "d.puffin", [1, 3], spoil=True)
    with pytest.raises(Exception, match="checksum does not match"):
        scan(bridge, "id bigint", (numbers(tmp_path / "f"), Deletes(file))).collect()


@pytest.fixture
def container(tmp_path: Path) -> Callable[..., str]:
    """Writes a Puffin file: a deletion vector for each snapshot, of all positions up to it."""

    def write(*positions: tuple[int, int], cut: tuple[bytes, bytes] = (b"", b"")) -> str:
        places, snapshots = zip(*positions, strict=True)
        made = encode_deletion_vectors(places, snapshots, data_file_path="f.parquet")
        (tmp_path / "d.puffin").write_bytes(made.data.replace(*cut))
        return str(tmp_path / "d.puffin")

    return write


def test_each_snapshot_has_the_deletion_vectors_up_to_it(
    bridge: Engine, container: Callable[..., str], tmp_path: Path
) -> None:
    file = container((1, 5), (3, 9), (70_000, 9), (0, 7))

    def left(up_to: int | None) -> list[int]:
        deletes = Deletes(file, up_to, count=4)
        return ids_of(scan(bridge, "id bigint", (numbers(tmp_path / "f", 5), deletes)))

    assert [left(at) for at in (4, 5, 6, 7, 8, 9, None)] == [
        *([0, 1, 2, 3, 4], [0, 2, 3, 4], [0, 2, 3, 4], [2, 3, 4], [2, 3, 4], [2, 4], [2, 4])
    ]
    assert vector_snapshots(file, "main.t") == [5, 7, 9]
    assert vector_snapshots(vector(tmp_path / "e.puffin", [1]), "main.t") == []


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ((b'"7"', b'"5"'), "two deletion vectors of one snapshot"),
        ((b"ducklake-snapshot-id", b"ducklake-snapshot_id"), "two deletion vectors of one"),
        ((b'"ducklake-snapshot-id":"7"', b'"ducklake-snapshot_id":"7"'), "not name its snapshot"),
        ((b'"cardinality":"2"', b'"cardinality":"9"'), "2 positions, but its footer says 9"),
        ((b"deletion-vector-v1", b"deletion-vector-v9"), "has no deletion vector"),
        ((b'"offset":4', b'"offset":9'), "is not a deletion vector"),
        ((b'"sequence-number":-1,"offset":4', b'"s":0,"offset":1' + b"0" * 15), "beyond its end"),
    ],
)
def test_a_damaged_file_of_deletion_vectors_fails_the_query(
    bridge: Engine,
    container: Callable[..., str],
    tmp_path: Path,
    cut: tuple[bytes, bytes],
    message: str,
) -> None:
    deletes = Deletes(container((1, 5), (0, 7), cut=cut))
    with pytest.raises(Exception, match=message):
        scan(bridge, "id bigint", (numbers(tmp_path / "f", 5), deletes)).collect()


def test_a_missing_delete_file_fails_even_if_the_session_ignores_missing_files(
    bridge: Engine, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        deletes = Deletes(str(tmp_path / "gone.parquet"))
        with pytest.raises(Exception, match="is missing"):
            scan(bridge, "id bigint", (numbers(tmp_path / "f"), deletes)).collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


@pytest.mark.slow
def test_scans_with_deletes_can_be_cached_joined_and_shuffled(
    bridge: Engine, tmp_path: Path, reader: str
) -> None:
    table = scan(bridge, "id bigint", (numbers(tmp_path / "f"), Deletes(positions=[0, 9])))
    cached = table.cache()
    try:
        joined = cached.join(table.withColumnRenamed("id", "other"), sf.expr("other = id + 1"))
        assert joined.count() == 7
    finally:
        cached.unpersist()
    assert table.repartition(2).distinct().count() == 8
