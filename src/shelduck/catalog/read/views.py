"""The views of a lake at a snapshot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from sqlalchemy import (
    CompoundSelect,
    Connection,
    FromClause,
    Select,
    Table,
    bindparam,
    cast,
    func,
    null,
    select,
    union_all,
)

from shelduck.catalog.read.intervals import begin_of
from shelduck.catalog.read.paths import schema_of_row
from shelduck.catalog.read.queries import about_schema, shown_or_broken, visible
from shelduck.catalog.schema.create import LakeInfo
from shelduck.ducklake import tables
from shelduck.ducklake.checked import or_null
from shelduck.ducklake.column_types import BIGINT, TEXT
from shelduck.ducklake.format import format_of, schemas_of
from shelduck.errors import CorruptLake
from shelduck.model.tables.schema import SnapshotId
from shelduck.model.tables.table import SchemaInfo, Snapshot
from shelduck.model.tables.view import PINNED, SPARK_SQL, STORED_PIN, ViewDefinition, ViewVersion
from shelduck.model.text.names import shown_schema
from shelduck.model.text.quoting import double_quoted

_NAME = re.compile(r'"((?:[^"]|"")*)"\s*(?:,\s*|$)')


def view(
    connection: Connection, at: Snapshot, schema: str, name: str, lake: LakeInfo
) -> ViewVersion | None:
    """Return a view at a snapshot by its name in any case, None if there is none.

    One statement, two if there is one.
    """
    wanted = {"schema": schema, "name": name, "snapshot": at.id}
    rows = connection.execute(_view_called(schemas_of(connection)), wanted).all()
    if not rows:
        return None
    if len(rows) > 1:
        ids = ", ".join(str(row.view_id) for row in rows)
        shown = f"{shown_schema(schema)}.{name}"
        raise CorruptLake(f"views {ids} have the same name {shown} at snapshot {at.id}")
    row = rows[0]
    asked = _tags(format_of(connection).view_column_tag)
    found = connection.execute(asked, {"view": row.view_id, "snapshot": at.id}).all()
    tags: dict[str, str] = {key: value for key, value, column in found if column is None}
    comments = sorted((c, value) for _, value, c in found if c is not None and value is not None)
    return ViewVersion(
        row.view_id,
        str(row.view_uuid),
        schema_of_row(row, lake.data_path),
        row.view_name,
        ViewDefinition(
            row.sql,
            column_names(row.column_aliases),
            tags.get(SPARK_SQL),
            tags.get("comment"),
            STORED_PIN.read(tags[PINNED], f"view {row.view_name}") if PINNED in tags else None,
            tuple(comments),
        ),
        at,
        SnapshotId(row.begin_snapshot),
        row.dialect,
    )


def view_names(connection: Connection, at: Snapshot, schema: SchemaInfo) -> list[str]:
    """Return the names of a schema's views at a snapshot, sorted; one statement."""
    v = tables.view.c
    query = (
        select(v.view_name, begin_of(tables.view))
        .where(v.schema_id == schema.id, shown_or_broken(tables.view, at.id))
        .order_by(v.view_name)
    )
    found = list(connection.execute(query).scalars())
    require_distinct("view", schema.text, found)
    return found


def require_distinct(kind: str, schema: str, names: Sequence[str]) -> None:
    """Raise CorruptLake if two tables or views of a schema have one name."""
    for one, other in pairwise(sorted(names, key=str.lower)):
        if one.lower() == other.lower():
            raise CorruptLake(
                f"ducklake_{kind} has two rows of {schema}.{one} for one snapshot; end one of them"
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


@cache
def _view_called(schemas: FromClause) -> Select[Any]:
    snapshot = bindparam("snapshot", type_=BIGINT)
    s, v = schemas.c, tables.view.c
    return (
        select(
            *(v.view_id, v.view_uuid, v.view_name, v.dialect, v.sql, v.column_aliases),
            *(begin_of(tables.view), *about_schema(schemas)),
        )
        .join_from(tables.view, schemas, v.schema_id == s.schema_id)
        .where(shown_or_broken(tables.view, snapshot), visible(schemas, snapshot))
        .where(func.lower(s.schema_name) == func.lower(bindparam("schema", type_=TEXT)))
        .where(func.lower(v.view_name) == func.lower(bindparam("name", type_=TEXT)))
    )


@cache
def _tags(of_columns: Table | None) -> Select[Any] | CompoundSelect[Any]:
    """Ask for the tags of :view, each with None, and for the comments on its columns."""
    t, view = tables.tag, bindparam("view", type_=BIGINT)
    snapshot = bindparam("snapshot", type_=BIGINT)
    own = select(t.c.key, t.c.value, cast(null(), TEXT).label("column_name")).where(
        t.c.object_id == view,
        t.c.key.in_(["comment", SPARK_SQL, PINNED]),
        visible(t, snapshot),
    )
    if of_columns is None:
        return own
    c = of_columns.c
    comments = select(c.key, c.value, or_null(c.column_name)).where(
        c.view_id == view, c.key == "comment", visible(of_columns, snapshot)
    )
    return union_all(own, comments)
