"""What footers of files by pyarrow and DuckDB say that they hold."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shelduck.engine.files.footers import told_of_file
from shelduck.engine.files.layouts import layout_of, parse_footer, read_layouts
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.files.data_file import Layout, PhysicalField
from shelduck.model.tables.schema import Kind
from shelduck.model.types.data_types import Decimal, Primitive
from tests.support.scans import arrow

DUCKDB_TYPES = [
    ("true", "boolean", ""),
    ("1::TINYINT", "int8", ""),
    ("1::USMALLINT", "uint16", ""),
    ("1::UBIGINT", "uint64", ""),
    ("1::HUGEINT", "float64", ""),
    ("1.5::FLOAT", "float32", ""),
    ("1.5::DECIMAL(9,2)", "decimal(9,2)", ""),
    ("1.5::DECIMAL(38,2)", "decimal(38,2)", ""),
    ("DATE '2024-01-01'", "date", ""),
    ("TIME '01:02:03'", "time", ""),
    ("TIMETZ '01:02:03+02'", "timetz", ""),
    ("TIMESTAMP '2024-01-01'", "timestamp", ""),
    ("TIMESTAMP_S '2024-01-01'", "timestamp", ""),
    ("TIMESTAMP_MS '2024-01-01'", "timestamp_ms", ""),
    ("TIMESTAMP_NS '2024-01-01'", "timestamp_ns", ""),
    ("TIMESTAMPTZ '2024-01-01 00:00:00+00'", "timestamptz", ""),
    ("INTERVAL 1 DAY", "interval", ""),
    ("'a'", "varchar", ""),
    ("'{}'::JSON", "json", ""),
    ("'a'::BLOB", "blob", ""),
    ("uuid()", "uuid", "fixed"),
    ("1::VARIANT", "variant", ""),
]


@pytest.mark.parametrize(("value", "kind", "encoding"), DUCKDB_TYPES)
def test_the_types_that_duckdb_writes_are_known(tmp_path, value, kind, encoding):
    path = str(tmp_path / "f.parquet")
    duckdb.execute(f"COPY (SELECT {value} AS c) TO '{path}'")

    [layout] = read_layouts([path])

    [found] = layout.fields
    assert (found.name, found.id, str(found.shape), found.encoding) == ("c", None, kind, encoding)


ARROW_TYPES = [
    (pa.timestamp("ns"), "timestamp_ns", ""),
    (pa.timestamp("ns", "UTC"), "timestamptz", "ns"),
    (pa.timestamp("ms", "UTC"), "timestamptz", "ms"),
    (pa.time32("ms"), "time", "ms"),
    (pa.time64("ns"), "time_ns", ""),
    (pa.binary(5), "blob", "fixed"),
    (pa.float16(), "parquet:float16", ""),
    (pa.decimal256(76, 3), "parquet:decimal(76,3)", ""),
    (pa.null(), "unknown", ""),
]


@pytest.mark.parametrize(("kind", "shape", "encoding"), ARROW_TYPES)
def test_types_of_other_writers_are_told_apart(tmp_path, kind, shape, encoding):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"c": pa.array([None], kind)}), path)

    [found] = layout_of(pq.read_metadata(path)).fields

    assert (str(found.shape), found.encoding) == (shape, encoding)


def test_whole_numbers_that_the_footer_annotates_are_marked(tmp_path):
    theirs, ours = str(tmp_path / "duckdb.parquet"), str(tmp_path / "arrow.parquet")
    duckdb.execute(f"COPY (SELECT 1::INTEGER AS a, 1::BIGINT AS b, 1::TINYINT AS c) TO '{theirs}'")
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([1], pa.int64())}), ours)

    found, plain = read_layouts([theirs, ours])

    assert [f.is_annotated for f in found.fields] == [True, True, False]
    assert [f.is_annotated for f in plain.fields] == [False, False]
    assert Layout.from_json(found.to_json()) == found
    assert found.to_json() != plain.to_json()


def test_int96_timestamps_are_marked(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(
        pa.table({"c": pa.array([None], pa.timestamp("us"))}),
        path,
        use_deprecated_int96_timestamps=True,
    )

    [found] = layout_of(pq.read_metadata(path)).fields

    assert (str(found.shape), found.encoding) == ("timestamp", "int96")


def test_every_node_has_its_id_and_a_layout_survives_its_text(tmp_path):
    inside = pa.struct([arrow("x.y", pa.int32(), 4)])
    fields = [
        arrow("l", pa.list_(arrow("item", inside, 3)), 2),
        arrow(
            "m",
            pa.map_(arrow("key", pa.string(), 6, nullable=False), arrow("value", pa.int8(), 7)),
            5,
        ),
    ]
    path = tmp_path / "f.parquet"
    pq.write_table(
        pa.Table.from_pylist([], schema=pa.schema(fields)), path, use_compliant_nested_type=False
    )

    [layout] = read_layouts([f"file://{path}"])

    a_list, a_map = layout.fields
    [element] = a_list.children
    assert (a_list.id, a_list.shape, a_list.group) == (2, Kind.LIST, "list")
    assert (element.name, element.id, element.children[0].name) == ("item", 3, "x.y")
    assert [(c.name, c.id, str(c.shape)) for c in a_map.children] == [
        ("key", 6, "varchar"),
        ("value", 7, "int8"),
    ]
    assert Layout.from_json(layout.to_json()) == layout
    assert layout_of(pq.read_metadata(path)) == layout


def test_many_footers_come_in_the_order_of_their_paths(tmp_path):
    paths = []
    for n in range(40):
        paths.append(str(tmp_path / f"{n}.parquet"))
        pq.write_table(pa.table({f"c{n}": [1]}), paths[-1])

    assert [layout.fields[0].name for layout in read_layouts(paths)] == [f"c{n}" for n in range(40)]


def test_a_footer_larger_than_the_first_read_is_read_whole(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({f"a_rather_long_column_name_{n}": [n] for n in range(3000)}), path)

    assert len(read_layouts([str(path)])[0].fields) == 3000


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", CorruptLake),
        (b"PAR1 nothing", CorruptLake),
        (b"PAR1\xff\xff\xff\x00\x10\x00\x00\x00PAR1", CorruptLake),
        (b"PAR1\xff\xff\xff\xff\x04\x00\x00\x00PAR1", CorruptLake),
        (b"PARE12345678PARE", Unsupported),
    ],
)
def test_what_is_no_readable_parquet_file_is_an_error_that_names_it(tmp_path, content, error):
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)

    with pytest.raises(error, match=r"broken\.parquet"):
        read_layouts([str(path)])


def test_a_file_larger_than_the_catalog_says_is_refused_by_name(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    size = path.stat().st_size
    assert len(read_layouts([str(path)], [size])) == 1
    with pytest.raises(CorruptLake, match=rf"a\.parquet has {size} bytes, but the catalog says 5"):
        read_layouts([str(path)], [5])


# As catalogs keep it: see test_stored.py. The row of an int32 of DuckDB has a place more.
LAYOUT = (
    Layout(
        (
            PhysicalField("a", 1, Primitive("int32"), is_annotated=True),
            PhysicalField("t", None, Primitive("parquet:float16"), encoding="fixed"),
            PhysicalField(
                *("m", 3, Kind.MAP),
                (
                    PhysicalField("key", 4, Primitive("varchar"), encoding="utf8"),
                    PhysicalField(
                        *("value", 5, Kind.LIST),
                        (PhysicalField("element", 6, Decimal(9, 2)),),
                        group="list",
                    ),
                ),
                group="key_value",
            ),
            PhysicalField("s", 7, Kind.STRUCT, (PhysicalField("x", 8, Primitive("date")),)),
        )
    ),
    (
        '[["a",1,"int32","","",[],true],["t",null,"parquet:float16","fixed","",[]],["m",3,"map","",'
        '"key_value",[["key",4,"varchar","utf8","",[]],["value",5,"list","","list",[["element",6,'
        '"decimal(9,2)","","",[]]]]]],["s",7,"struct","","",[["x",8,"date","","",[]]]]]'
    ),
)


def test_the_layout_of_a_file():
    layout, text = LAYOUT
    assert layout.to_json() == text
    assert Layout.from_json(text) == layout
    assert layout.digest() == "2abd04ffe8ab08d5de32a30da1ae780d"


@pytest.mark.parametrize(
    "text",
    [
        '{"version":2,"fields":[]}',
        '{"fields":[]}',
        '[{"name":"a"}]',
        '[["a",1,"int256","","",[]]]',
        '[["a",1]]',
        '[["a",1,"int32","","",{}]]',
        "[",
    ],
)
def test_a_layout_that_is_not_understood_counts_as_unknown(text):
    assert Layout.from_json(text) is None


def test_places_behind_those_of_a_layout_are_passed_over():
    found = Layout.from_json('[["a",1,"int32","","",[],false,"more"]]')
    assert found == Layout((PhysicalField("a", 1, Primitive("int32")),))


def test_a_footer_with_a_wrong_byte_is_a_layout_or_an_error_of_the_lake(tmp_path):
    path = tmp_path / "a.parquet"
    rows = pa.table(
        {"a": [1], "d": pa.array([1], pa.decimal128(9, 2)), "t": pa.array([1], pa.timestamp("us"))}
        | {
            "l": [[1]],
            "s": [{"x": 1}],
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())),
        }
    )
    pq.write_table(rows, path, store_schema=False)
    content = path.read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    outcomes = {"layout": 0, "refused": 0}
    for place in range(len(footer)):
        for flip in (1, 0x0C, 0x80, 0xFF):
            broken = footer[:place] + bytes([footer[place] ^ flip]) + footer[place + 1 :]
            try:
                parse_footer(broken)
                outcomes["layout"] += 1
            except (CorruptLake, Unsupported):
                outcomes["refused"] += 1

    assert min(outcomes.values()) > 100


def test_a_fault_of_a_file_gets_its_name_whatever_the_text_has():
    # The path is a letter of the text.
    wrong = "^data file a of main.t is truncated; restore it"
    with pytest.raises(CorruptLake, match=wrong), told_of_file("a", "data file", "main.t"):
        raise CorruptLake("is truncated", about="content")
    with pytest.raises(Unsupported, match=r"^no such thing$"), told_of_file("x", "data file"):
        raise Unsupported("no such thing")
