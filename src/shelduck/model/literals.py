"""Text of single values, as DuckLake keeps it in defaults, bounds and partition values."""

from __future__ import annotations

from shelduck.model.types import Leaf


def canonical_text(leaf: Leaf, text: str) -> str:
    """Return ``text`` as DuckLake writes a value of that type; InvalidRequest if it is none."""
    raise NotImplementedError
