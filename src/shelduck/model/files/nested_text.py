"""Structs, lists and maps as DuckDB's text, which `duckdb_text` reads back."""

from __future__ import annotations

from typing import cast

from shelduck.model.tables.schema import Field, Kind
from shelduck.model.types.data_types import SIGNED, UNSIGNED, Decimal

_CLOSING = frozenset("]}")
_BARE = frozenset({*SIGNED, *UNSIGNED, "boolean"})


def nested_text(field: Field, value: object) -> str:
    """Return the text that DuckDB casts to the value of ``field``, which is not null.

    The value is as `InlinedRows` holds it. Everything but numbers is quoted, so no value can be
    mistaken for syntax or for NULL.
    """
    if field.shape is Kind.STRUCT:
        members = cast("dict[str, object]", value)
        inside = (f"{_quoted(c.name)}: {_text(c, members.get(c.name))}" for c in field.children)
        return f"{{{', '.join(inside)}}}"
    if field.shape is Kind.LIST:
        items = cast("list[object]", value)
        return f"[{', '.join(_text(field.children[0], v) for v in items)}]"
    key, item = field.children
    pairs = cast("list[tuple[object, object]]", value)
    return f"{{{', '.join(f'{_text(key, k)}={_text(item, v)}' for k, v in pairs)}}}"


def survives(field: Field, value: object) -> bool:
    """Return whether DuckDB reads the value back correctly from its text.

    DuckDB 1.5.5 takes the text of a value with JSON inside for JSON. When it looks for the end of a
    nested value, it takes even a quoted closing bracket for the end. PostgreSQL stores no NUL in
    text.
    """
    if value is None or field.is_leaf:
        return True
    return not any(str(f.shape) == "json" for f in field.leaves()) and _survives(field, value, 0)


def _survives(field: Field, value: object, depth: int) -> bool:
    if value is None or isinstance(value, bytes):
        return True
    if field.shape is Kind.STRUCT:
        members = cast("dict[str, object]", value)
        return all(_survives(c, members.get(c.name), depth + 1) for c in field.children) and all(
            _is_harmless(c.name, depth + 1) for c in field.children
        )
    if field.shape is Kind.LIST:
        items = cast("list[object]", value)
        return all(_survives(field.children[0], v, depth + 1) for v in items)
    if field.shape is Kind.MAP:
        key, item = field.children
        pairs = cast("list[tuple[object, object]]", value)
        return all(_survives(key, k, depth + 1) and _survives(item, v, depth + 1) for k, v in pairs)
    return depth == 0 or _is_harmless(str(value), depth)


def _is_harmless(text: str, depth: int) -> bool:
    return "\0" not in text and (depth < 2 or not _CLOSING.intersection(text))


def _text(field: Field, value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(field.shape, Kind):
        return nested_text(field, value)
    if isinstance(value, bytes):
        # Every byte is escaped, so none can be taken for a bracket.
        return _quoted("".join(f"\\x{b:02X}" for b in value))
    text = str(value)
    return text if isinstance(field.shape, Decimal) or str(field.shape) in _BARE else _quoted(text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
