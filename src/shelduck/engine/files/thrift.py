"""The schema of a Parquet footer, read from its thrift bytes.

Arrow's own view of a footer refuses or renames some types and hides the ids and names of repeated
groups. So the few necessary structs are read here: compact protocol, schema elements only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shelduck.errors import CorruptLake

Value = Any

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(
    13
)
_SCHEMA_FIELD = 2


@dataclass(frozen=True, slots=True)
class Element:
    """One node of the schema. Numbers are those of ``parquet.thrift``; missing ones are None.

    ``logical`` is the number of the logical type and its fields, ``children`` the nodes below.
    """

    name: str
    physical: int | None
    length: int | None
    repetition: int
    converted: int | None
    scale: int
    precision: int
    id: int | None
    logical: tuple[int, dict[int, Value]] | None
    children: tuple[Element, ...]


BROKEN = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)
"""Errors that Python raises where the values of a footer are not those that it must have."""


def read_schema(footer: bytes) -> Element:
    """Return the schema's root from a serialized ``FileMetaData``; CorruptLake if it is invalid."""
    try:
        reader = _Compact(footer)
        nodes = reader.struct(until=_SCHEMA_FIELD)[_SCHEMA_FIELD]
        root, used = _build(nodes, 0)
    except BROKEN as broken:
        raise CorruptLake(f"not a Parquet footer: {broken!r}", about="content") from broken
    if used != len(nodes):
        wrong = "not a Parquet footer: the schema has nodes outside its root"
        raise CorruptLake(wrong, about="content")
    return root


def _build(nodes: list[dict[int, Value]], at: int) -> tuple[Element, int]:
    node = nodes[at]
    at += 1
    children: list[Element] = []
    for _ in range(node.get(5) or 0):
        child, at = _build(nodes, at)
        children.append(child)
    union = node.get(10)
    logical = next(iter(union.items())) if union else None
    made = Element(
        name=node[4].decode("utf-8"),
        physical=node.get(1),
        length=node.get(2),
        repetition=node.get(3, 0),
        converted=node.get(6),
        scale=node.get(7) or 0,
        precision=node.get(8) or 0,
        id=node.get(9),
        logical=logical,
        children=tuple(children),
    )
    return made, at


class _Compact:
    """Thrift's compact protocol, as far as a footer needs it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def struct(self, until: int | None = None) -> dict[int, Value]:
        """Read a struct's fields by number, no further than field ``until``."""
        fields: dict[int, Value] = {}
        number = 0
        while (header := self._byte()) != _STOP:
            delta = header >> 4
            number = number + delta if delta else self._zigzag()
            fields[number] = self._value(header & 15)
            if number == until:
                break
        return fields

    def _value(self, kind: int) -> Value:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind in (_LIST, _SET):
            return self._list()
        if kind == _STRUCT:
            return self.struct()
        raise ValueError(f"thrift type {kind}")

    def _list(self) -> list[Value]:
        header = self._byte()
        size, kind = header >> 4, header & 15
        if size == 15:
            size = self._varint()
        if kind in (_TRUE, _FALSE):
            return [self._byte() == _TRUE for _ in range(size)]
        return [self._value(kind) for _ in range(size)]

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self.data):
            raise ValueError("the footer is truncated")
        return self.data[self.at - count : self.at]

    def _varint(self) -> int:
        shift = value = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
