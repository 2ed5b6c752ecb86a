"""Types, names and rows in the words of ducklakepy and of DuckDB, for `DuckLakePyOracle`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
from ducklakepy import types as lake_types
from ducklakepy._arrow import arrow_type_for
from ducklakepy.schema import is_nested, nested_children

if TYPE_CHECKING:
    from collections.abc import Callable

    from ducklakepy.schema import Schema

_WORDS = {
    "BOOLEAN": "boolean", "TINYINT": "int8", "SMALLINT": "int16", "INTEGER": "int32",
    "BIGINT": "int64", "HUGEINT": "int128", "UTINYINT": "uint8", "USMALLINT": "uint16",
    "UINTEGER": "uint32", "UBIGINT": "uint64", "UHUGEINT": "uint128", "FLOAT": "float32",
    "DOUBLE": "float64", "DATE": "date", "TIME": "time", "TIMETZ": "timetz",
    "TIME WITH TIME ZONE": "timetz", "TIMESTAMP": "timestamp", "TIMESTAMP_S": "timestamp_s",
    "TIMESTAMP_MS": "timestamp_ms", "TIMESTAMP_NS": "timestamp_ns",
    "TIMESTAMP WITH TIME ZONE": "timestamptz", "INTERVAL": "interval", "VARCHAR": "varchar",
    "BLOB": "blob", "JSON": "json", "UUID": "uuid",
}  # fmt: skip
_OF = {word: name for name, word in _WORDS.items()}


def lake_type(kind: Any) -> Any:
    """A DuckDB type as ducklakepy's."""
    if kind.id == "struct":
        fields = tuple(lake_types.Column(name, lake_type(inner)) for name, inner in kind.children)
        return lake_types.StructType(fields)
    if kind.id == "list":
        return lake_types.ListType(lake_types.Column("element", lake_type(kind.children[0][1])))
    if kind.id == "map":
        key, value = (lake_types.Column(n, lake_type(k)) for n, k in kind.children)
        return lake_types.MapType(key, value)
    if kind.id == "decimal":
        precision, scale = (value for _, value in kind.children)
        return lake_types.DecimalType(precision, scale)
    return lake_types.parse_primitive_type(_WORDS[str(kind)])


def sql_type(kind: Any) -> str:
    """A type of ducklakepy in DuckDB's words."""
    if isinstance(kind, lake_types.StructType):
        fields = (f"{quoted(f.name)} {sql_type(f.field_type)}" for f in kind.fields)
        return f"STRUCT({', '.join(fields)})"
    if isinstance(kind, lake_types.ListType):
        return f"{sql_type(kind.element.field_type)}[]"
    if isinstance(kind, lake_types.MapType):
        return f"MAP({sql_type(kind.key.field_type)}, {sql_type(kind.value.field_type)})"
    name = kind.to_spec_string()
    return _OF.get(name, name.upper())


def declared(column: Any) -> str:
    kind, default = sql_type(column.field_type), ""
    if column.default is not None:
        value = column.default.value.replace("'", "''")
        default = f" DEFAULT '{value}'::{kind}"
    return f"{quoted(column.name)} {kind}{default}"


_AS_TEXT = (lake_types.Int128Type, lake_types.UInt128Type, lake_types.UuidType)
"""Types that Arrow and DuckDB see in different ways: they go from one to the other as texts."""


def given(column: Any) -> str:
    """A column of a local query, to stand after SELECT, as `writable` takes it."""
    name = quoted(column.name)
    return f"{name}::VARCHAR AS {name}" if isinstance(column.field_type, _AS_TEXT) else name


def writable(rows: pa.Table, schema: Schema) -> pa.Table:
    """Rows of DuckDB as ducklakepy takes them."""
    return _converted(rows, schema, arrow_type_for, _of_text)


def readable(rows: pa.Table, schema: Schema) -> pa.Table:
    """Rows of ducklakepy as DuckDB takes them; it casts texts to the types of the columns."""
    return _converted(rows, schema, lambda _: pa.string(), _as_text)


def _converted(
    rows: pa.Table, schema: Schema, leaf: Callable[[Any], Any], convert: Callable[[Any, Any], Any]
) -> pa.Table:
    for place, column in enumerate(schema.fields):
        kind = column.field_type
        if _holds(kind):
            values = [_each(value, kind, convert) for value in rows.column(place).to_pylist()]
            made = pa.array(values, _arrow(kind, leaf))
            rows = rows.set_column(place, column.name, made)
    return rows


def _holds(kind: Any) -> bool:
    inner = (child.field_type for _, child in nested_children(kind)) if is_nested(kind) else ()
    return isinstance(kind, _AS_TEXT) or any(map(_holds, inner))


def _arrow(kind: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(kind, _AS_TEXT):
        return leaf(kind)
    if isinstance(kind, lake_types.StructType):
        return pa.struct([(f.name, _arrow(f.field_type, leaf)) for f in kind.fields])
    if isinstance(kind, lake_types.ListType):
        return pa.list_(_arrow(kind.element.field_type, leaf))
    if isinstance(kind, lake_types.MapType):
        return pa.map_(*(_arrow(part.field_type, leaf) for part in (kind.key, kind.value)))
    return arrow_type_for(kind)


def _each(value: Any, kind: Any, convert: Callable[[Any, Any], Any]) -> Any:
    if value is None:
        return None
    if isinstance(kind, lake_types.StructType):
        return {f.name: _each(value[f.name], f.field_type, convert) for f in kind.fields}
    if isinstance(kind, lake_types.ListType):
        return [_each(item, kind.element.field_type, convert) for item in value]
    if isinstance(kind, lake_types.MapType):
        parts = (kind.key.field_type, kind.value.field_type)
        pairs = value.items() if isinstance(value, dict) else value
        return [tuple(map(_each, pair, parts, (convert, convert))) for pair in pairs]
    return convert(value, kind) if isinstance(kind, _AS_TEXT) else value


def _of_text(value: Any, kind: Any) -> Any:
    if isinstance(kind, lake_types.UuidType):
        return UUID(str(value)).bytes
    return int(value)


def _as_text(value: Any, kind: Any) -> str:
    return str(UUID(bytes=value)) if isinstance(kind, lake_types.UuidType) else str(int(value))


def dotted(name: str) -> tuple[str, ...]:
    """The parts of a name with dots."""
    return tuple(unquoted(part) for part in re.findall(r'"(?:[^"]|"")+"|[^.]+', name))


def named(name: str) -> tuple[str, ...]:
    """Schema and name of a table or a view."""
    parts = dotted(name.removeprefix("lake."))
    return parts if len(parts) > 1 else ("main", *parts)


def unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
