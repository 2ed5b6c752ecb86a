"""Encoders of values that several databases share."""

from __future__ import annotations

from shelduck.catalog.dialects.dialect import Encoder
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
