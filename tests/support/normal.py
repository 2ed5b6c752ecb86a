"""Rows of Spark and of DuckDB in one form, so that `==` says whether they hold the same values.

| value | its form |
|---|---|
| integer, decimal | `int`, or `Decimal` without trailing zeros: 1.50 is 1.5, 2.00 is 2 |
| boolean, float | text: 'true', '0.1', '-0.0', 'nan'; every digit counts |
| date, timestamp, time, uuid | ISO text; an instant in UTC, with a Z |
| text, blob | `str`, `bytes` |
| struct, list, map | tuple of values, list, `('map', entries sorted)` |

Spark has no type of nanoseconds: there they are an `int`, and `epoch_ns` makes one in DuckDB.
"""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.oracle import DuckDBOracle

Row = tuple[Any, ...]
Key = TypeVar("Key")
_DIGITS = Context(prec=80)


def spark_rows(frame: DataFrame) -> list[Row]:
    """The rows of a DataFrame in an order of their own; one Spark job."""
    return spark_rows_by_key({None: frame})[None]


def spark_rows_by_key(frames: Mapping[Key, DataFrame]) -> dict[Key, list[Row]]:
    """The rows of many DataFrames, as `spark_rows` has them."""
    kinds = {key: [field.dataType for field in frame.schema] for key, frame in frames.items()}
    return {
        key: in_order(
            tuple(_of_spark(v, k) for v, k in zip(row, kinds[key], strict=True)) for row in rows
        )
        for key, rows in collected(frames).items()
    }


def collected(frames: Mapping[Key, DataFrame]) -> dict[Key, list[Row]]:
    """The rows of many DataFrames; one Spark job for all of the same columns."""
    alike: dict[str, list[tuple[Key, DataFrame]]] = defaultdict(list)
    for key, frame in frames.items():
        alike[frame.schema.json()].append((key, frame))
    found: dict[Key, list[Row]] = {key: [] for key in frames}
    for group in alike.values():
        keys = [key for key, _ in group]
        numbered = [frame.select(F.lit(n), "*") for n, (_, frame) in enumerate(group)]
        for number, *row in reduce(DataFrame.unionAll, numbered).collect():
            found[keys[number]].append(tuple(row))
    return found


def duckdb_rows(oracle: DuckDBOracle, source: str, columns: str = "*") -> list[Row]:
    """The rows of a table (or of anything that may stand behind FROM), as `spark_rows` orders."""
    described = oracle.sql(f"DESCRIBE SELECT {columns} FROM {source}")
    listed = ", ".join(_selected(name, kind) for name, kind, *_ in described)
    kinds, rows = oracle.typed(f"SELECT {listed} FROM (SELECT {columns} FROM {source})")
    return in_order(
        tuple(_of_duckdb(v, k) for v, k in zip(row, kinds, strict=True)) for row in rows
    )


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows in the order of their text: the same for the same rows, whoever sends them."""
    return sorted(rows, key=repr)


def _selected(name: str, kind: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if kind == "TIMESTAMP_NS":
        return f"epoch_ns({quoted}) AS {quoted}"
    return quoted


def _of_spark(value: Any, kind: T.DataType) -> Any:
    if value is None:
        return None
    if isinstance(kind, T.StructType):
        return tuple(_of_spark(v, f.dataType) for v, f in zip(value, kind.fields, strict=True))
    if isinstance(kind, T.ArrayType):
        return [_of_spark(v, kind.elementType) for v in value]
    if isinstance(kind, T.MapType):
        entries = [
            (_of_spark(k, kind.keyType), _of_spark(v, kind.valueType)) for k, v in value.items()
        ]
        return ("map", in_order(entries))
    if isinstance(kind, T.VariantType):
        return _untyped(value.toPython())
    if isinstance(kind, T.TimestampType):
        # Spark hands an instant over as local time of this process.
        return _scalar(value.astimezone(UTC))
    return _scalar(value)


def _of_duckdb(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if kind.id == "struct":
        return tuple(_of_duckdb(value[name], k) for name, k in kind.children)
    if kind.id in ("list", "array"):
        [(_, element), *_] = kind.children
        return [_of_duckdb(v, element) for v in value]
    if kind.id == "map":
        [(_, key), (_, of)] = kind.children
        # Keys that Python cannot hash come as two lists.
        is_split = list(value) == ["key", "value"] and isinstance(value["key"], list)
        pairs = zip(value["key"], value["value"], strict=True) if is_split else value.items()
        return ("map", in_order((_of_duckdb(k, key), _of_duckdb(v, of)) for k, v in pairs))
    return _untyped(value) if kind.id == "variant" else _scalar(value)


def _untyped(value: Any) -> Any:
    """A variant: objects in the order of their keys."""
    if isinstance(value, dict):
        return ("object", sorted((k, _untyped(v)) for k, v in value.items()))
    if isinstance(value, list):
        return [_untyped(v) for v in value]
    return None if value is None else _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, Decimal):
        whole = value == value.to_integral_value(context=_DIGITS)
        return int(value) if whole else value.normalize(_DIGITS)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, time):
        return _time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return str(value) if isinstance(value, UUID) else value


def _time(value: time) -> str:
    """A time in the words of DuckDB: no trailing zeros, and minutes of its offset only if any."""
    text = value.replace(tzinfo=None).isoformat()
    text = text.rstrip("0") if "." in text else text
    return text + (value.isoformat()[-6:].removesuffix(":00") if value.tzinfo else "")
