"""Defaults and lengths of columns in the words of Delta's schemas, both ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from shelduck.borders.delta.schema import DeltaField
from shelduck.errors import ShelduckError
from shelduck.model.changes.column_defaults import with_default
from shelduck.model.tables.schema import Default, Field, Kind
from shelduck.model.types.data_types import Leaf, Primitive, Text, type_text
from shelduck.spark.values import default_sql
from shelduck.sql.ddl.defaults import read_default

DEFAULT = "CURRENT_DEFAULT"
LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
FEATURE = "allowColumnDefaults"
"""The features that writers must know for a table with defaults."""

_CHARS = re.compile(r"(?:var)?char\((\d+)\)", re.IGNORECASE)


def shape_of(part: DeltaField) -> Leaf | Kind:
    """Return the shape of a Delta field; text with the length that it has."""
    declared = part.declared if _CHARS.fullmatch(part.declared) else part.metadata.get(LENGTH, "")
    match = _CHARS.fullmatch(str(declared))
    if match is None or part.shape != Primitive("varchar"):
        return part.shape
    return Text(length=int(match[1]))


def default_of(part: DeltaField, made: Field) -> Default | None:
    """Return the default that new rows get in Delta, None where there is none to carry over."""
    text = part.metadata.get(DEFAULT)
    if not isinstance(text, str) or not made.is_leaf:
        return None
    try:
        found = read_default(text)
        return None if found is None else with_default(made, found, part.name).default
    except ShelduckError:
        return None


def is_lost(part: DeltaField, made: Field) -> bool:
    """Return whether the import loses the default of a Delta column."""
    text = part.metadata.get(DEFAULT)
    return text is not None and made.default is None and str(text).strip().upper() != "NULL"


def told_default(field: Field) -> str | None:
    """Return the SQL of a default as Delta keeps it, None where Spark would not understand it."""
    try:
        return default_sql(field)
    except ShelduckError:
        return None


def told_of(field: Field, *, is_top: bool) -> Mapping[str, Any]:
    """Return what the metadata of a column says of its default and its length."""
    told: dict[str, Any] = {}
    default = told_default(field) if is_top else None
    if default is not None:
        told[DEFAULT] = default
    if isinstance(field.shape, Text):
        told[LENGTH] = type_text(field.shape).lower()
    return told


def writer_features(fields: Iterable[Field]) -> set[str]:
    """Return what writers must know because of the defaults of columns."""
    return {FEATURE} if any(told_default(field) is not None for field in fields) else set()


def with_delta(made: Field, part: DeltaField, *, is_top: bool) -> Field:
    """Return a field of ours with the default that its Delta field has."""
    return replace(made, default=default_of(part, made) if is_top else None)
