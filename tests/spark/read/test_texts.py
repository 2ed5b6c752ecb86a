"""Texts are read right in batches, whatever a file does with dictionaries."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.attaching import attached_lake
from tests.support.lakes import rows

pytestmark = pytest.mark.every_spark
ROWS = 30_000


@pytest.fixture(scope="module")
def texts():
    """Few texts, others in each row group, and NULLs; as many texts as rows; only NULLs.

    The texts and numbers `late` have NULLs only in some of the batches.
    """
    some = [None if n % 7 == 0 else f"città-{n % 30 + n // 10_000}" for n in range(ROWS)]
    is_late = [n % 9_000 > 8_000 and n % 3 == 0 for n in range(ROWS)]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "some": some,
            "many": [f"many-{n}" for n in range(ROWS)],
            "none": pa.array([None] * ROWS, pa.string()),
            "late": [None if late else f"late-{n % 5}" for n, late in enumerate(is_late)],
            "part": [
                None if n % 11_000 == 5 else {"late": None if late else n}
                for n, late in enumerate(is_late)
            ],
        }
    )


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("texts")
    # A dictionary that becomes too large ends in the middle of a row group.
    few = {"row_group_size": 10_000, "dictionary_pagesize_limit": 20_000}
    parquet.write_table(texts, folder / "mixed.parquet", data_page_size=4_000, **few)
    parquet.write_table(texts, folder / "plain.parquet", use_dictionary=False)
    columns = (
        "(id BIGINT, some STRING, many STRING, none STRING, late STRING, part STRUCT<late: BIGINT>)"
    )
    with attached_lake(
        spark, folder, *(f"CREATE TABLE {name} {columns}" for name in ("mixed", "plain", "thinned"))
    ) as found:
        for name, file in (("mixed", "mixed"), ("plain", "plain"), ("thinned", "mixed")):
            found.table(name).add_files(str(folder / f"{file}.parquet"))
        found.table("thinned").delete("id % 10 = 3")
        yield found


@pytest.mark.usefixtures("in_batches")
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "is_off_heap"), [*product(["mixed", "thinned", "plain"], [False, True])][::-1]
)
def test_all_texts_are_read(spark, lake, texts, name, is_off_heap):
    kept = [row for row in texts.to_pylist() if name != "thinned" or row["id"] % 10 != 3]
    spark.conf.set("spark.sql.columnVector.offheap.enabled", is_off_heap)
    found = lake.table(name).read().orderBy("id")
    assert [row.asDict(recursive=True) for row in found.collect()] == kept
    whole = found.selectExpr("sum(length(some))", "count(none)", "max(many)", "sum(length(many))")
    late = found.selectExpr("count(late)", "count(part)", "sum(part.late)")
    some = sum(len(row["some"] or "") for row in kept)
    many = [row["many"] for row in kept]
    assert rows(whole) == [(some, 0, max(many), sum(map(len, many)))]
    parts = [row["part"]["late"] or 0 for row in kept if row["part"] is not None]
    texts_there = sum(row["late"] is not None for row in kept)
    assert rows(late) == [(texts_there, len(parts), sum(parts))]


@pytest.mark.usefixtures("in_batches")
def test_only_vectors_of_texts_are_others_than_sparks(lake):
    """Generated code knows the class of the other vectors, and calls it without a detour."""
    names = vectors(lake.table("mixed").read().select("id", "some"))
    assert [name.rpartition(".")[2] for name in names[:2]] == ["OnHeapColumnVector", "ColumnVector"]


def vectors(frame):
    """The classes of vectors that a scan says it has."""
    scan = frame._jdf.queryExecution().sparkPlan()
    while not scan.supportsColumnar():
        scan = scan.children().apply(0)
    found = scan.vectorTypes().get()
    return [found.apply(at) for at in range(found.size())]
