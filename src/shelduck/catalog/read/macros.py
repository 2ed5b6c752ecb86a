"""The macros of a lake at a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, FromClause, Row, Select, and_, bindparam, select

from shelduck.catalog.read.intervals import begin_of
from shelduck.catalog.read.paths import schema_of_row
from shelduck.catalog.read.queries import about_schema, shown_or_broken, visible
from shelduck.catalog.schema.create import LakeInfo
from shelduck.ducklake import tables
from shelduck.ducklake.checked import or_null
from shelduck.ducklake.column_types import BIGINT
from shelduck.ducklake.format import schemas_of
from shelduck.errors import CorruptLake
from shelduck.model.tables.macro import MacroBody, MacroKind, MacroParameter, MacroVersion
from shelduck.model.tables.schema import SnapshotId
from shelduck.model.tables.table import Snapshot
from shelduck.model.tables.view import SPARK_SQL

_KINDS = {kind.value: kind for kind in MacroKind}


def spark_key(number: int) -> str:
    """Return the key of the tag with Spark's text of a macro's body of this number."""
    return f"{SPARK_SQL}.{number}"


def macros(connection: Connection, at: Snapshot, lake: LakeInfo) -> list[MacroVersion]:
    """Return all macros at a snapshot, by id; one statement, two if there are any.

    Raises CorruptLake for a macro that is neither scalar nor table.
    """
    asked = _bodies(schemas_of(connection))
    rows = connection.execute(asked, {"snapshot": at.id}).all()
    if not rows:
        return []
    found = connection.execute(_tags(), {"snapshot": at.id})
    texts = {(row.object_id, row.key): row.value for row in found}
    return [
        _macro(list(group), texts, lake) for _, group in groupby(rows, key=lambda r: r.macro_id)
    ]


def _macro(rows: Sequence[Row[Any]], texts: dict[Any, str], lake: LakeInfo) -> MacroVersion:
    first = rows[0]
    if first.type not in _KINDS:
        raise CorruptLake(
            f"macro {first.macro_name!r} (id {first.macro_id}) has the unknown type {first.type!r}"
        )
    bodies = []
    for number, group in groupby(rows, key=lambda r: r.impl_id):
        parts = list(group)
        body = MacroBody(
            tuple(_parameter(row) for row in parts if row.parameter_name is not None),
            parts[0].sql,
            texts.get((first.macro_id, spark_key(number))),
            parts[0].dialect,
        )
        bodies.append(body)
    return MacroVersion(
        first.macro_id,
        schema_of_row(first, lake.data_path),
        first.macro_name,
        _KINDS[first.type],
        tuple(bodies),
        SnapshotId(first.begin_snapshot),
    )


def _parameter(row: Row[Any]) -> MacroParameter:
    has_default = row.default_value_type != "unknown"
    return MacroParameter(
        row.parameter_name,
        row.parameter_type,
        row.default_value if has_default else None,
        row.default_value_type,
    )


@cache
def _bodies(schemas: FromClause) -> Select[Any]:
    snapshot = bindparam("snapshot", type_=BIGINT)
    m, s = tables.macro.c, schemas.c
    i, p = tables.macro_impl.c, tables.macro_parameters.c
    return (
        select(
            *(m.macro_id, m.macro_name, begin_of(tables.macro)),
            *about_schema(schemas),
            *(i.impl_id, i.dialect, i.sql, i.type),
            *(or_null(p.parameter_name), p.parameter_type, p.default_value, p.default_value_type),
        )
        .join_from(tables.macro, schemas, m.schema_id == s.schema_id)
        .join(tables.macro_impl, i.macro_id == m.macro_id)
        .outerjoin(tables.macro_parameters, and_(p.macro_id == i.macro_id, p.impl_id == i.impl_id))
        .where(shown_or_broken(tables.macro, snapshot), visible(schemas, snapshot))
        .order_by(m.macro_id, i.impl_id, p.column_id)
    )


@cache
def _tags() -> Select[Any]:
    t, m = tables.tag.c, tables.macro.c
    snapshot = bindparam("snapshot", type_=BIGINT)
    return (
        select(t.object_id, t.key, t.value)
        .join_from(tables.tag, tables.macro, t.object_id == m.macro_id)
        .where(visible(tables.tag, snapshot), visible(tables.macro, snapshot))
    )
