"""Layouts of Parquet files: what a footer says about a file's physical content."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence

import pyarrow.parquet

from shelduck.engine.files.footers import footer_bytes, metadata_of, told_of_file
from shelduck.engine.files.storage import in_threads
from shelduck.engine.files.thrift import BROKEN, Element, read_schema
from shelduck.errors import CorruptLake
from shelduck.model.files.data_file import Layout, PhysicalField
from shelduck.model.files.place import key_of
from shelduck.model.tables.schema import Kind
from shelduck.model.types.data_types import MOST_DIGITS, Decimal, Leaf, Primitive

_REQUIRED, _OPTIONAL, _REPEATED = range(3)
_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTES, _FIXED = range(8)

# Converted types and logical types by their numbers in parquet.thrift.
_C_UTF8, _C_MAP, _C_MAP_KEY_VALUE, _C_LIST, _C_ENUM, _C_DECIMAL, _C_DATE = range(7)
_C_JSON, _C_BSON, _C_INTERVAL = 19, 20, 21
_L_STRING, _L_MAP, _L_LIST, _L_ENUM, _L_DECIMAL, _L_DATE, _L_TIME, _L_TIMESTAMP = range(1, 9)
_L_INTEGER, _L_NULL, _L_JSON, _L_BSON, _L_UUID, _L_FLOAT16 = 10, 11, 12, 13, 14, 15
_L_VARIANT, _L_GEOMETRY, _L_GEOGRAPHY = 16, 17, 18
_CONVERTED_INTS = {
    11: "uint8", 12: "uint16", 13: "uint32", 14: "uint64",
    15: "int8", 16: "int16", 17: "int32", 18: "int64",
}  # fmt: skip
_UNITS = {1: "ms", 2: "us", 3: "ns"}
_SIMPLE = {_BOOLEAN: "boolean", _FLOAT: "float32", _DOUBLE: "float64"}


def layout_of(metadata: pyarrow.parquet.FileMetaData) -> Layout:
    """Return the layout of the file that ``metadata`` was read from or written with."""
    buffer = io.BytesIO()
    metadata.write_metadata_file(buffer)
    data = buffer.getvalue()
    (length,) = struct.unpack("<I", data[-8:-4])
    return parse_footer(data[-8 - length : -8])


def read_layouts(
    paths: Sequence[str], sizes: Sequence[int] | None = None, table: str = ""
) -> list[Layout]:
    """Return the layout of each file; footers are read in parallel.

    Paths may have a scheme that ``pyarrow.fs`` knows (``s3://``, ``gs://``, ``hdfs://``) or none.
    ``sizes`` are the bytes of each file according to the catalog; messages name ``table``. Raises
    CorruptLake for a file that is not a Parquet file or is larger than its size, and Unsupported
    for encrypted files without a key.
    """
    known = [None] * len(paths) if sizes is None else sizes
    return in_threads(lambda path, size: _read_layout(path, size, table), paths, known)


def parse_footer(footer: bytes) -> Layout:
    """Return the layout that the thrift bytes of a footer describe; CorruptLake for others."""
    try:
        return Layout(tuple(_field(e) for e in read_schema(footer).children))
    except BROKEN as broken:
        raise CorruptLake(f"not a Parquet footer: {broken!r}", about="content") from broken


def _read_layout(path: str, known_size: int | None, table: str) -> Layout:
    if key_of(path) is not None:
        return layout_of(metadata_of(path, "data file", table))
    with told_of_file(path, "data file", table):
        return parse_footer(footer_bytes(path, known_size))


def _field(element: Element) -> PhysicalField:
    if element.repetition == _REPEATED:
        return _leafless(element, "parquet:repeated")
    logical = element.logical[0] if element.logical else None
    if element.physical is not None:
        shape, encoding = _leaf(element)
        return PhysicalField(
            *(element.name, element.id, shape),
            encoding=encoding,
            is_annotated=str(shape) in ("int32", "int64") and _is_annotated(element),
        )
    if logical == _L_LIST or element.converted == _C_LIST:
        return _list(element)
    if logical == _L_MAP or element.converted in (_C_MAP, _C_MAP_KEY_VALUE):
        return _map(element)
    if logical == _L_VARIANT or _looks_like_variant(element):
        return PhysicalField(element.name, element.id, Primitive("variant"))
    children = tuple(_field(c) for c in element.children)
    return PhysicalField(element.name, element.id, Kind.STRUCT, children)


def _leafless(element: Element, name: str) -> PhysicalField:
    return PhysicalField(element.name, element.id, Primitive(name))


def _looks_like_variant(element: Element) -> bool:
    """Return whether a node is a variant group without annotation, as DuckDB 1.5 writes it."""
    kinds = {c.name: (c.physical, c.repetition, c.logical, c.converted) for c in element.children}
    plain = (_BYTES, _REQUIRED, None, None)
    value = kinds.get("value", (None,) * 4)
    return (
        kinds.get("metadata") == plain
        and value[0] == _BYTES
        and value[2:] == (None, None)
        and set(kinds) <= {"metadata", "value", "typed_value"}
        and all(c.id is None for c in element.children)
    )


def _list(element: Element) -> PhysicalField:
    if len(element.children) != 1 or element.children[0].repetition != _REPEATED:
        return _leafless(element, "parquet:list")
    repeated = element.children[0]
    if _is_element(repeated, element.name):
        child = _field(_once(repeated))
        encoding = "two-level"
    else:
        child = _field(repeated.children[0])
        encoding = ""
    return PhysicalField(
        element.name, element.id, Kind.LIST, (child,), encoding, group=repeated.name
    )


def _is_element(repeated: Element, list_name: str) -> bool:
    """Return whether a list is from an old writer: its repeated node is the element."""
    if repeated.physical is not None or len(repeated.children) != 1:
        return True
    return (
        repeated.name in ("array", f"{list_name}_tuple")
        or repeated.children[0].repetition == _REPEATED
    )


def _once(element: Element) -> Element:
    return Element(
        element.name, element.physical, element.length, _REQUIRED, element.converted, element.scale,
        element.precision, element.id, element.logical, element.children,
    )  # fmt: skip


def _map(element: Element) -> PhysicalField:
    entries = element.children[0] if len(element.children) == 1 else None
    if entries is None or entries.repetition != _REPEATED or len(entries.children) != 2:
        return _leafless(element, "parquet:map")
    children = tuple(_field(c) for c in entries.children)
    return PhysicalField(element.name, element.id, Kind.MAP, children, group=entries.name)


def _leaf(element: Element) -> tuple[Leaf, str]:
    """Return the DuckLake type of a leaf, and what distinguishes it from the usual encoding."""
    physical = element.physical
    assert physical is not None
    if physical in _SIMPLE:
        return Primitive(_SIMPLE[physical]), ""
    if physical == _INT96:
        return Primitive("timestamp"), "int96"
    logical, inside = element.logical or (None, {})
    if logical == _L_DECIMAL or (logical is None and element.converted == _C_DECIMAL):
        precision = inside.get(2) or element.precision
        scale = inside.get(1) or element.scale
        if precision > MOST_DIGITS:
            return Primitive(f"parquet:decimal({precision},{scale})"), ""
        return Decimal(precision, scale), "bytes" if physical == _BYTES else ""
    if physical in (_INT32, _INT64):
        return _whole_number(element, logical, inside)
    return _octets(element, logical)


def _whole_number(
    element: Element, logical: int | None, inside: dict[int, object]
) -> tuple[Leaf, str]:
    if logical == _L_INTEGER:
        return Primitive(f"{'int' if inside.get(2) else 'uint'}{inside[1]}"), ""
    if logical == _L_TIME:
        return _time(_unit(inside), utc=bool(inside.get(1)))
    if logical == _L_TIMESTAMP:
        return _timestamp(_unit(inside), utc=bool(inside.get(1)))
    if logical == _L_NULL:
        return Primitive("unknown"), "" if element.physical == _INT32 else "int64"
    if logical == _L_DATE or element.converted == _C_DATE:
        return Primitive("date"), ""
    if logical is not None:
        return Primitive(f"parquet:logical-{logical}"), ""
    converted = element.converted
    if converted in _CONVERTED_INTS:
        return Primitive(_CONVERTED_INTS[converted]), ""
    if converted in (7, 8):
        return _time(_UNITS[converted - 6], utc=False)
    if converted in (9, 10):
        return _timestamp(_UNITS[converted - 8], utc=False)
    if converted is not None:
        return Primitive(f"parquet:converted-{converted}"), ""
    return Primitive("int32" if element.physical == _INT32 else "int64"), ""


def _is_annotated(element: Element) -> bool:
    return element.logical is not None or element.converted is not None


def _unit(inside: dict[int, object]) -> str:
    unit = inside[2]
    assert isinstance(unit, dict)
    return _UNITS[next(iter(unit))]


def _time(unit: str, *, utc: bool) -> tuple[Leaf, str]:
    if unit == "ns":
        return Primitive("time_ns"), "utc" if utc else ""
    return Primitive("timetz" if utc else "time"), "" if unit == "us" else unit


def _timestamp(unit: str, *, utc: bool) -> tuple[Leaf, str]:
    if utc:
        return Primitive("timestamptz"), "" if unit == "us" else unit
    return Primitive({"ms": "timestamp_ms", "us": "timestamp", "ns": "timestamp_ns"}[unit]), ""


_BYTES_LOGICAL = {
    _L_STRING: "varchar",
    _L_ENUM: "varchar",
    _L_JSON: "json",
    _L_BSON: "blob",
    _L_GEOMETRY: "geometry",
    _L_GEOGRAPHY: "geometry",
}
_BYTES_CONVERTED = {_C_UTF8: "varchar", _C_ENUM: "varchar", _C_JSON: "json", _C_BSON: "blob"}


def _octets(element: Element, logical: int | None) -> tuple[Leaf, str]:
    if element.physical == _BYTES:
        if logical is not None:
            return Primitive(_BYTES_LOGICAL.get(logical, f"parquet:logical-{logical}")), ""
        if element.converted is None:
            return Primitive("blob"), ""
        name = _BYTES_CONVERTED.get(element.converted, f"parquet:converted-{element.converted}")
        return Primitive(name), ""
    if logical == _L_UUID:
        return Primitive("uuid"), "fixed"
    if logical == _L_FLOAT16:
        return Primitive("parquet:float16"), ""
    if element.converted == _C_INTERVAL:
        return Primitive("interval"), ""
    if logical is None and element.converted is None:
        return Primitive("blob"), "fixed"
    return Primitive(f"parquet:logical-{logical}"), ""
