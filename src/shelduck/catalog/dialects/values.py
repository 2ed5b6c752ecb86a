"""Values that several databases store alike: how they are written, and how they are read."""

from __future__ import annotations

import re
from typing import Any

from shelduck.catalog.dialects.dialect import Encoder
from shelduck.errors import Unsupported
from shelduck.model.files.duckdb_text import TEXT_FORM
from shelduck.model.files.nested_text import nested_text
from shelduck.model.tables.schema import Field, Kind


def marked_nested(field: Field) -> Encoder:
    """Return the encoder of nested values for a database that holds DuckDB's text.

    DuckDB itself writes structs as SQL literals there, which it then misreads; Shelduck writes its
    text form.
    """
    mark = TEXT_FORM if field.shape is Kind.STRUCT else ""
    return lambda value: mark + nested_text(field, value)


def number_of_boolean(value: object) -> int:
    """Return 1 for ``true``, 0 for ``false``."""
    return int(value == "true")


def whole(value: object) -> int:
    """Return the integer that a text means."""
    return int(str(value))


def binary(value: object) -> bytes:
    """Return bytes as they are."""
    assert isinstance(value, bytes)
    return value


def flag(value: Any) -> str:
    """Return the text of a stored boolean."""
    if value not in (0, 1, "true", "false"):
        raise ValueError(f"{value!r} is neither true nor false")
    return "true" if value in (1, "true") else "false"


def refused_variant(column: str, _: Any) -> object:
    """Raise Unsupported for a variant in DuckDB's own type."""
    raise Unsupported(
        f"column {column!r} has variants in the catalog, which only DuckDB reads there; flush them"
        " with DuckDB: CALL ducklake_flush_inlined_data"
    )


_PG_BC = re.compile(r"(\d+-\d+-\d+)(.*) BC")


def moment(text: str) -> str:
    """Return DuckDB's text of a stored date or timestamp; PostgreSQL says BC at the end."""
    return _PG_BC.sub(r"\1 (BC)\2", text) if text.endswith(" BC") else text


_PG_UNITS = re.compile(r"\b(mon|mons)\b")


def interval(value: Any) -> str:
    """Return DuckDB's text of a stored interval; PostgreSQL says "1 mon", DuckDB "1 month"."""
    return _PG_UNITS.sub(lambda m: "month" if m[0] == "mon" else "months", str(value))
