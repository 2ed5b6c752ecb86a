"""Converting values inside structs, lists and maps, and finding values that are lost.

A rule says how to convert a leaf. A nested value is reached by its position, so nothing above a
leaf is computed again for it.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.model.types.data_types import (
    DataType,
    Decimal,
    Leaf,
    List,
    Map,
    Member,
    Primitive,
    Struct,
)
from shelduck.model.types.promotions import promotion
from shelduck.spark.types import spark_type

LeafRule = Callable[[Column, Leaf, Leaf], Column]
"""Converts a value; NULL if it is lost."""


def converted_parts(value: Column, source: DataType, target: DataType, leaf: LeafRule) -> Column:
    """Return ``value`` as the target's Spark type; lost leaves are NULL in it.

    If a key of a map is lost, or two of its keys become equal, the whole map is NULL.
    """
    if is_cast(source, target):
        return value.cast(spark_type(target))
    match source, target:
        case Struct(), Struct():
            return _struct(value, source, target, leaf)
        case List(old), List(new):
            return F.transform(value, lambda x: converted_parts(x, old, new, leaf))
        case Map(), Map():
            return _map(value, source, target, leaf)
        case ((Primitive() | Decimal()), (Primitive() | Decimal())):
            return leaf(value, source, target)
        case _:
            raise AssertionError(f"{source} to {target} is refused")


def lost_parts(value: Column, source: DataType, target: DataType, leaf: LeafRule) -> Column:
    """Return whether ``value`` or a leaf inside it is lost; never NULL.

    Members that the target does not have are dropped, not lost.
    """
    if not _may_lose(source, target):
        return F.lit(False)
    match source, target:
        case Struct(), Struct():
            found = F.lit(False)
            for old, new in _kept(source, target):
                if _may_lose(old.type, new.type):
                    found |= lost_parts(value.getField(old.name), old.type, new.type, leaf)
            return found
        case List(old_element), List(new_element):
            some = F.exists(value, lambda x: lost_parts(x, old_element, new_element, leaf))
            return F.coalesce(some, F.lit(False))
        case Map(), Map():
            below = List(source.value), List(target.value)
            found = lost_parts(F.map_values(value), *below, leaf)
            if is_cast(source.key, target.key):
                return found
            return _bad_keys(value, source, target, leaf) | found
        case ((Primitive() | Decimal()), (Primitive() | Decimal())):
            return leaf(value, source, target).isNull() & value.isNotNull()
        case _:
            raise AssertionError(f"{source} to {target} is refused")


def is_cast(source: DataType, target: DataType) -> bool:
    """Return whether Spark's cast, which is by position, gives the target without a loss."""
    match source, target:
        case Struct(), Struct():
            pairs = _kept(source, target)
            in_place = [old for old, _ in pairs] == list(source.members)
            return (
                in_place
                and len(pairs) == len(target.members)
                and all(is_cast(old.type, new.type) for old, new in pairs)
            )
        case List(), List():
            return is_cast(source.element, target.element)
        case Map(), Map():
            return is_cast(source.key, target.key) and is_cast(source.value, target.value)
        case _:
            return promotion(source, target).is_light


def _may_lose(source: DataType, target: DataType) -> bool:
    match source, target:
        case Struct(), Struct():
            return any(_may_lose(old.type, new.type) for old, new in _kept(source, target))
        case List(), List():
            return _may_lose(source.element, target.element)
        case Map(), Map():
            # Converted keys may become equal.
            return not is_cast(source.key, target.key) or _may_lose(source.value, target.value)
        case _:
            return not is_cast(source, target)


def _kept(source: Struct, target: Struct) -> list[tuple[Member, Member]]:
    """Return the members that both have, in the target's order."""
    known = {m.name.lower(): m for m in source.members}
    return [(known[m.name.lower()], m) for m in target.members if m.name.lower() in known]


def _struct(value: Column, source: Struct, target: Struct, leaf: LeafRule) -> Column:
    known = {new.name: old for old, new in _kept(source, target)}
    made = []
    for new in target.members:
        old = known.get(new.name)
        if old is None:
            part = F.lit(None).cast(spark_type(new.type))
        else:
            part = converted_parts(value.getField(old.name), old.type, new.type, leaf)
        made.append(part.alias(new.name))
    return F.when(value.isNotNull(), F.struct(*made))


def _map(value: Column, source: Map, target: Map, leaf: LeafRule) -> Column:
    old, new = source.value, target.value
    if is_cast(source.key, target.key):
        cast = value.cast(T.MapType(spark_type(target.key), spark_type(old)))
        return F.transform_values(cast, lambda _, v: converted_parts(v, old, new, leaf))
    keys = converted_parts(F.map_keys(value), List(source.key), List(target.key), leaf)
    values = converted_parts(F.map_values(value), List(old), List(new), leaf)
    # If a key is NULL or exists twice, Spark fails or takes one of the two.
    return F.when(~_bad_keys(value, source, target, leaf), F.map_from_arrays(keys, values))


def _bad_keys(value: Column, source: Map, target: Map, leaf: LeafRule) -> Column:
    """Return whether a key of a map is lost or becomes equal to another; never NULL."""
    keys, old, new = F.map_keys(value), List(source.key), List(target.key)
    made = converted_parts(keys, old, new, leaf)
    fewer = F.size(F.array_distinct(made)) < F.size(keys)
    return F.coalesce(fewer, F.lit(False)) | lost_parts(keys, old, new, leaf)
