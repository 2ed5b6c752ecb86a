"""CREATE and DROP of macros."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import bindparam, func, insert, select

from shelduck.catalog.commit.draft import Draft
from shelduck.catalog.commit.kinds.kind import Kind
from shelduck.catalog.commit.names import Names
from shelduck.catalog.commit.rows.ending import ending
from shelduck.catalog.commit.work import Work
from shelduck.catalog.read.macros import spark_key
from shelduck.catalog.read.queries import live
from shelduck.ducklake import tables
from shelduck.errors import AlreadyExists, Conflict
from shelduck.model.changes.change import Entry, Verb
from shelduck.model.changes.conflict import describe
from shelduck.model.changes.macro_change import CreateMacro, DropMacro
from shelduck.model.tables.macro import UNKNOWN, MacroBody, MacroKind, MacroVersion

_CREATED = {
    MacroKind.SCALAR: Verb.CREATED_SCALAR_MACRO,
    MacroKind.TABLE: Verb.CREATED_TABLE_MACRO,
}
_DROPPED = {
    MacroKind.SCALAR: Verb.DROPPED_SCALAR_MACRO,
    MacroKind.TABLE: Verb.DROPPED_TABLE_MACRO,
}
_LIVE = (
    select(
        tables.macro.c.macro_id,
        tables.macro.c.schema_id,
        func.lower(tables.macro.c.macro_name).label("name"),
        tables.macro_impl.c.type,
    )
    .join_from(
        tables.macro, tables.macro_impl, tables.macro.c.macro_id == tables.macro_impl.c.macro_id
    )
    .where(
        live(tables.macro),
        func.lower(tables.macro.c.macro_name).in_(bindparam("names", expanding=True)),
    )
)
_END = ending(tables.macro, "macro_id")
_END_TAGS = ending(tables.tag, "object_id")


def tell_names(work: Work, names: Names) -> None:
    """Report which schemas get macros, and which macros end."""
    names.used_schemas += [change.macro.schema for change in work.of(CreateMacro)]
    names.dropped.update(("macro", change.macro.id) for change in work.of(DropMacro))


def check(draft: Draft, work: Work) -> None:
    """Raise Conflict if a macro was dropped, AlreadyExists for a name in use; one statement."""
    created, dropped = work.of(CreateMacro), work.of(DropMacro)
    changed = [c.macro for c in created] + [c.macro for c in dropped]
    wanted = {macro.name.lower() for macro in changed}
    if not wanted:
        return
    rows = draft.connection.execute(_LIVE, {"names": sorted(wanted)}).all()
    alive = {row.macro_id for row in rows}
    for drop in dropped:
        if drop.macro.id not in alive:
            raise Conflict(f"cannot {describe(drop)}: another commit dropped or replaced it")
    ending_here = {drop.macro.id for drop in dropped}
    taken = {(r.schema_id, r.name, r.type) for r in rows if r.macro_id not in ending_here}
    for create in created:
        macro = create.macro
        key = (macro.schema.id, macro.name.lower(), macro.kind.value)
        if key in taken:
            raise AlreadyExists(f"macro {macro.full_name} already exists", about="macro")
        taken.add(key)


def write(draft: Draft, work: Work) -> None:
    """Write dropped and new macros; at most six statements."""
    dropped = [change.macro for change in work.of(DropMacro)]
    if dropped:
        ids = [macro.id for macro in dropped]
        draft.connection.execute(_END, {"in_macro_id": ids, "ended": draft.id})
        draft.connection.execute(_END_TAGS, {"in_object_id": ids, "ended": draft.id})
        draft.entries.extend(Entry(_DROPPED[macro.kind], macro.id) for macro in dropped)
    created = [change.macro for change in work.of(CreateMacro)]
    rows: dict[Any, list[dict[str, Any]]] = {}
    for macro in created:
        for table, row in _rows(draft, macro, draft.catalog_id()):
            rows.setdefault(table, []).append(row)
        draft.entries.append(Entry(_CREATED[macro.kind], names=(macro.schema.name, macro.name)))
    for table, values in rows.items():
        draft.connection.execute(insert(table), values)
    draft.has_schema_change |= bool(dropped or created)


KIND = Kind((CreateMacro, DropMacro), Work.keep, write, names=tell_names, check=check)


def _rows(draft: Draft, macro: MacroVersion, number: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield what the catalog stores of a new macro: each row with its table."""
    begun = {"begin_snapshot": draft.id, "end_snapshot": None}
    schema = draft.schema_id(macro.schema.id)
    named = {"schema_id": schema, "macro_id": number, "macro_name": macro.name}
    yield tables.macro, {**named, **begun}
    for at, body in enumerate(macro.bodies):
        yield (
            tables.macro_impl,
            {
                "macro_id": number,
                "impl_id": at,
                "dialect": body.dialect,
                "sql": body.sql,
                "type": macro.kind.value,
            },
        )
        for row in _parameters(body):
            yield tables.macro_parameters, {"macro_id": number, "impl_id": at, **row}
        if body.spark_sql is not None:
            tag = {"object_id": number, "key": spark_key(at), "value": body.spark_sql}
            yield tables.tag, {**tag, **begun}


def _parameters(body: MacroBody) -> Iterator[dict[str, Any]]:
    for at, parameter in enumerate(body.parameters):
        yield {
            "column_id": at,
            "parameter_name": parameter.name,
            "parameter_type": parameter.type,
            # DuckLake's form of no default.
            "default_value": "NULL" if parameter.default is None else parameter.default,
            "default_value_type": UNKNOWN if parameter.default is None else parameter.default_type,
        }
