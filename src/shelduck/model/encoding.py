"""Values of the model as JSON text and back, for what the catalog keeps of a job."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from shelduck.errors import CorruptLake

_KIND = "is"


def encode(value: Any) -> str:
    """Return a frozen dataclass of dataclasses, tuples and plain values as text."""
    return json.dumps(_plain(value), separators=(",", ":"))


def decode(text: str, kinds: Iterable[type]) -> Any:
    """Return the value that ``encode`` made a text of; only ``kinds`` are made.

    Raises CorruptLake for a text that names something else.
    """
    known = {kind.__name__: kind for kind in kinds}
    try:
        return _value(json.loads(text), known)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptLake(f"the catalog keeps {text[:80]!r}, which cannot be read") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return {_KIND: type(value).__name__, "value": value.value}
    if is_dataclass(value):
        parts = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
        return {_KIND: type(value).__name__, **parts}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _value(found: Any, known: dict[str, type]) -> Any:
    if isinstance(found, list):
        return tuple(_value(v, known) for v in found)
    if isinstance(found, dict):
        parts = {k: _value(v, known) for k, v in found.items() if k != _KIND}
        return known[found[_KIND]](**parts)
    return found
