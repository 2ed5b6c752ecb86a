"""Rows in the catalog itself, as a DataFrame with a table's current columns."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as Number
from typing import cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.errors import Unsupported
from shelduck.model.files.data_files import InlinedRows
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf
from shelduck.model.types.literals import fitted
from shelduck.model.types.temporal import DAY_MICROS, MICROSECONDS
from shelduck.spark.local_rows import local_columns
from shelduck.spark.values import Carrier, carrier, carrier_type, decoded

_TEXTS = ("varchar", "json", "uuid")


def inlined_frame(
    spark: SparkSession,
    columns: Sequence[Field],
    inlined: Sequence[InlinedRows],
    row_id: str,
    snapshot_id: str,
) -> DataFrame:
    """Return inlined rows with the current ``columns``, their row ids and first snapshots.

    Raises CorruptLake for invalid texts of values, and Unsupported for a promotion whose values
    Shelduck cannot convert.
    """
    values = [[v for part in inlined for v in _column_values(f, part)] for f in columns]
    values.append([number for part in inlined for number in part.row_ids])
    values.append([begin for part in inlined for begin in part.begin_snapshots])
    names = [f"c{n}" for n in range(len(columns))]
    fields = [T.StructField(n, carrier_type(f.type)) for n, f in zip(names, columns, strict=True)]
    origins = [T.StructField(n, T.LongType()) for n in ("id", "begin")]
    shape = T.StructType([*fields, *origins])
    frame = local_columns(spark, values, shape)
    made = [decoded(F.col(n), f.type).alias(f.name) for n, f in zip(names, columns, strict=True)]
    return frame.select(*made, F.col("id").alias(row_id), F.col("begin").alias(snapshot_id))


def _column_values(field: Field, part: InlinedRows) -> list[object]:
    place = next((n for n, old in enumerate(part.columns) if old.id == field.id), None)
    if place is None:
        return [_absent(field)] * len(part.rows)
    old = part.columns.fields[place]
    found = [row[place] for row in part.rows]
    name, wanted = str(old.shape), str(field.shape)
    if name == wanted and name in ("varchar", "json"):
        return found
    if name in SIGNED and wanted in SIGNED:
        # Whoever read them has checked that they are integers of their type.
        return [None if v is None else int(cast("str", v)) for v in found]
    return [_value(old, field, v) for v in found]


def _absent(field: Field) -> object:
    if field.initial_default is None or isinstance(field.shape, Kind):
        return None
    where = f"the default of column {field.name!r}"
    return _number(carrier(field.shape, field.initial_default, where), field.shape)


def _value(old: Field, new: Field, value: object) -> object:
    if value is None:
        return None
    if isinstance(new.shape, Kind) or isinstance(old.shape, Kind):
        if old.shape is not new.shape:
            raise _no_way(old, new)
        return _nested(old, new, value)
    return _promoted(old, new, carrier(old.shape, value, f"inlined column {old.name!r}"))


def _nested(old: Field, new: Field, value: object) -> object:
    if new.shape is Kind.LIST:
        items = cast("list[object]", value)
        return [_value(old.children[0], new.children[0], v) for v in items]
    if new.shape is Kind.MAP:
        pairs = cast("list[tuple[object, object]]", value)
        key, content = zip(old.children, new.children, strict=True)
        return {_value(*key, k): _value(*content, v) for k, v in pairs}
    members = cast("dict[str, object]", value)
    before = {c.id: c for c in old.children}
    return tuple(
        _value(before[c.id], c, members.get(before[c.id].name)) if c.id in before else _absent(c)
        for c in new.children
    )


def _promoted(old: Field, new: Field, value: Carrier) -> Carrier:
    """Return the carrier of a value of the old type in the form of the new type."""
    source, target = cast("Leaf", old.shape), cast("Leaf", new.shape)
    name, wanted = str(source), str(target)
    if value is None or source == target:
        return _number(value, target)
    whole = name in SIGNED or name in UNSIGNED or name == "boolean"
    if whole and (wanted in SIGNED or wanted in UNSIGNED):
        return _number(int(cast("int", value)), target)
    if wanted in FLOATS and (whole or name in FLOATS or isinstance(source, Decimal)):
        return float(cast("float", value))
    if isinstance(target, Decimal) and (whole or isinstance(source, Decimal)):
        # Arrow refuses digits that the type does not have; files and DuckDB round them.
        return Number(fitted(target, f"{Number(cast('int', value)):f}"))
    if name in _TEXTS and wanted == "json" and name != "uuid":
        return value
    moment = _moment(name, wanted, value)
    if moment is None:
        raise _no_way(old, new)
    return moment


def _moment(name: str, wanted: str, value: Carrier) -> int | None:
    if name == "date":
        micros = cast("int", value) * DAY_MICROS
    elif name in MICROSECONDS:
        micros = cast("int", value)
    else:
        return None
    if wanted in MICROSECONDS:
        return micros
    return micros * 1000 if wanted == "timestamp_ns" else None


def _number(value: Carrier, target: Leaf) -> Carrier:
    """Return integers as decimals if Spark holds the type in a decimal."""
    if str(target) in ("uint64", "int128", "uint128") and value is not None:
        return Number(cast("int", value))
    return value


def _no_way(old: Field, new: Field) -> Unsupported:
    return Unsupported(
        f"column {new.name!r} is {new.type}, but rows inlined in the catalog store it as"
        f" {old.type}; flush them with DuckDB (CALL ducklake_flush_inlined_data), or select other"
        " columns with columns=[...]"
    )
