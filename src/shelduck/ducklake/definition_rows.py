"""Schemas, views and macros: the rows that each is, and what rows say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from shelduck.ducklake import tables
from shelduck.ducklake.descriptions import Row, Rows, tag_rows
from shelduck.errors import CorruptLake
from shelduck.model.tables.schema import SchemaId
from shelduck.model.tables.table_version import SchemaInfo
from shelduck.model.tables.view import (
    PINNED,
    SPARK_SQL,
    STORED_PIN,
    UNKNOWN,
    MacroBody,
    MacroParameter,
    MacroVersion,
    ViewDefinition,
)
from shelduck.model.text.names import double_quoted

VIEW_TAGS = ("comment", SPARK_SQL, PINNED)
"""The keys of the tags of a view."""
_NAME = re.compile(r'"((?:[^"]|"")*)"\s*(?:,\s*|$)')


def schema_row(
    number: int, schema: SchemaInfo, unique: str, parent: SchemaId | None, path: str
) -> Row:
    """Return the row of a schema; ``path`` is below the lake's."""
    return {
        "schema_id": number,
        "schema_uuid": unique,
        "schema_name": schema.own_name,
        "path": path,
        "path_is_relative": True,
        "parent_schema_id": parent,
    }


def view_rows(number: int, schema: SchemaId, name: str, unique: str, made: ViewDefinition) -> Rows:
    """Return the rows of a view and its tags; `column_comment_rows` has those of its columns."""
    row = {"view_id": number, "view_uuid": unique, "schema_id": schema, "view_name": name}
    text = {"dialect": "duckdb", "sql": made.sql, "column_aliases": column_names_text(made.columns)}
    yield tables.view, {**row, **text}
    pin = None if made.pin is None else STORED_PIN.write(made.pin)
    tags = {SPARK_SQL: made.spark_sql, "comment": made.comment, PINNED: pin}
    yield from tag_rows(number, {key: text for key, text in tags.items() if text is not None})


def column_comment_rows(
    source: sa.Table, view: int, comments: Iterable[tuple[str, str | None]]
) -> Rows:
    """Return the rows of comments on columns of a view; one without a text has a row too."""
    for name, text in comments:
        yield source, {"view_id": view, "column_name": name, "key": "comment", "value": text}


def definition_of(row: Any, tags: Iterable[Any]) -> ViewDefinition:
    """Return a view's definition; ``tags`` are its own, and the comments on named columns."""
    own: dict[str, str] = {}
    comments: list[tuple[str, str]] = []
    for tag in tags:
        if tag.column_name is None:
            own[tag.key] = tag.value
        elif tag.value is not None:
            comments.append((tag.column_name, tag.value))
    return ViewDefinition(
        row.sql,
        column_names(row.column_aliases),
        own.get(SPARK_SQL),
        own.get("comment"),
        STORED_PIN.read(own[PINNED], f"view {row.view_name}") if PINNED in own else None,
        tuple(sorted(comments)),
    )


def column_names(text: str | None) -> tuple[str, ...]:
    """Return the names in the catalog's text, quoted and joined by commas; none for an empty one.

    >>> column_names('"x","y"')
    ('x', 'y')
    """
    names: list[str] = []
    at = 0
    while text and at < len(text):
        match = _NAME.match(text, at)
        if match is None:
            raise CorruptLake(f"cannot parse column_aliases of a view: {text!r}")
        names.append(match[1].replace('""', '"'))
        at = match.end()
    return tuple(names)


def column_names_text(names: tuple[str, ...]) -> str:
    """Return names in the catalog's form."""
    return ",".join(double_quoted(n) for n in names)


def macro_rows(number: int, schema: SchemaId, macro: MacroVersion) -> Rows:
    """Return the rows of a macro, its bodies and their parameters, and Spark's texts of bodies."""
    mine: Row = {"macro_id": number}
    yield tables.macro, {**mine, "schema_id": schema, "macro_name": macro.name}
    for at, body in enumerate(macro.bodies):
        text = {"dialect": body.dialect, "sql": body.sql, "type": macro.kind.value}
        yield tables.macro_impl, {**mine, "impl_id": at, **text}
        for place, parameter in enumerate(body.parameters):
            has_default = parameter.default is not None
            yield (
                tables.macro_parameters,
                {
                    **mine,
                    "impl_id": at,
                    "column_id": place,
                    "parameter_name": parameter.name,
                    "parameter_type": parameter.type,
                    # DuckLake's form of no default.
                    "default_value": parameter.default if has_default else "NULL",
                    "default_value_type": parameter.default_type if has_default else UNKNOWN,
                },
            )
    texts = {_spark_key(at): body.spark_sql for at, body in enumerate(macro.bodies)}
    yield from tag_rows(number, {key: text for key, text in texts.items() if text is not None})


def bodies_of(rows: Iterable[Any], tags: Mapping[tuple[int, str], str]) -> tuple[MacroBody, ...]:
    """Return the bodies of a macro; each row is one with a parameter, or with NULL for none.

    ``tags`` are the values of tags by the id of their macro and their key.
    """
    bodies = []
    for number, group in groupby(rows, key=lambda r: r.impl_id):
        parts = list(group)
        body = MacroBody(
            tuple(_parameter(row) for row in parts if row.parameter_name is not None),
            parts[0].sql,
            tags.get((parts[0].macro_id, _spark_key(number))),
            parts[0].dialect,
        )
        bodies.append(body)
    return tuple(bodies)


def _parameter(row: Any) -> MacroParameter:
    default = row.default_value if row.default_value_type != UNKNOWN else None
    return MacroParameter(row.parameter_name, row.parameter_type, default, row.default_value_type)


def _spark_key(number: int) -> str:
    """Return the key of the tag with Spark's text of a macro's body of this number."""
    return f"{SPARK_SQL}.{number}"
