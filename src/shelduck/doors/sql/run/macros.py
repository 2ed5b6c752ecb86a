"""Statements over macros, and what the macros of a lake mean in other statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from shelduck.doors.sql.catalogs import inside
from shelduck.doors.sql.parse import parse
from shelduck.doors.sql.run.show import is_like
from shelduck.doors.sql.runner import Runner, by_statement
from shelduck.engine.named_errors import lacks_function, names_nothing
from shelduck.engine.query import function_exists
from shelduck.engine.types import spark_type
from shelduck.engine.values import literal_text
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, ShelduckError, Unsupported
from shelduck.lake.results import PlainRows, Result, TableName, Unchanged, table_name
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.tables.table_version import DEFAULT_SCHEMA
from shelduck.model.tables.view import UNKNOWN, MacroBody, MacroKind, MacroParameter, MacroVersion
from shelduck.model.types.data_types import DataType, parse_type
from shelduck.text.query.harmless import refuse_harmful
from shelduck.text.query.macro_calls import Macro, MacroForm, expanded, qualified
from shelduck.text.query.translate import refusal_expression, refusal_query, translated_macro
from shelduck.text.statements import statement_values as st


def create_macro(runner: Runner, statement: st.CreateMacroStatement) -> Result:
    """CREATE MACRO, also OR REPLACE and IF NOT EXISTS."""
    name = runner.name(statement.name)
    unit = runner.view()
    if statement.if_not_exists and _find(unit, name, statement.kind) is not None:
        return Unchanged(unit.workspace.base.id)
    if len(statement.name.parts) == 1 and function_exists(runner.state.spark, name.name):
        raise AlreadyExists(
            f"cannot create macro {name}: Spark has a function {name.name!r}, which queries would"
            " call instead; choose another name",
            about="macro",
        )
    known = unit.workspace.macros()
    bodies = tuple(_body(runner, name, statement.kind, form, known) for form in statement.forms)

    def stage(unit: UnitOfWork) -> None:
        known = _find(unit, name, statement.kind)
        if known is not None:
            if statement.if_not_exists:
                return
            if not statement.or_replace:
                raise AlreadyExists(f"macro {name} already exists", about="macro")
            unit.workspace.drop_macro(known)
        unit.workspace.create_macro(name, statement.kind, bodies)

    return carry_out(runner.state, runner.unit, stage)


def drop_macro(runner: Runner, statement: st.DropMacroStatement) -> Result:
    """DROP MACRO, and DROP MACRO TABLE of a table macro."""
    name = runner.name(statement.name)

    def stage(unit: UnitOfWork) -> None:
        known = _find(unit, name, statement.kind)
        if known is not None:
            unit.workspace.drop_macro(known)
        elif not statement.if_exists:
            raise _not_found(unit, name, statement.kind)

    return carry_out(runner.state, runner.unit, stage)


def show_macros(runner: Runner, statement: st.ShowMacros) -> PlainRows:
    """SHOW MACROS: the macros of a schema, with their parameters and DuckDB's text."""
    workspace, schema = runner.schema(statement.schema)
    rows = [
        (schema.text, macro.name, macro.kind.value, str(body), body.sql)
        for macro in sorted(workspace.macros(), key=lambda m: (m.name, m.kind.value))
        if macro.schema.id == schema.id and is_like(macro.name, statement.like)
        for body in macro.bodies
    ]
    columns = "namespace string, macroName string, kind string, parameters string, sql string"
    return PlainRows(columns, rows)


def without_macros(
    runner: Runner, text: str, error: Exception, catalog: str | None = None
) -> str | None:
    """Return a statement with what its macros stand for, None if macros do not explain ``error``.

    ``catalog`` is the name that the lake has in the session, if it has one. Raises InvalidRequest
    for a call that does not fit its macro.
    """
    if not lacks_function(error):
        return None
    known = runner.view().workspace.macros()
    lookup = _lookup(runner, known, catalog)
    found = expanded(text, lookup) if known else text
    return None if found == text else found


def _lookup(
    runner: Runner, known: Sequence[MacroVersion], catalog: str | None = None
) -> Callable[[tuple[str, ...], MacroKind], Macro | None]:
    nests = runner.state.store.format.nests
    whole = partial(qualified, schema=DEFAULT_SCHEMA, catalog=catalog, nests=nests)
    by_name = {(m.schema.name.lower(), m.name.lower(), m.kind): m for m in known}
    names = {m.name.lower() for m in known}

    def key_of(parts: tuple[str, ...]) -> tuple[str, str]:
        within = parts if catalog is None else inside(parts, catalog)
        name = table_name(within, runner.state.current.schema)
        return name.home.lower(), name.name.lower()

    def lookup(parts: tuple[str, ...], kind: MacroKind) -> Macro | None:
        found = by_name.get((*key_of(parts), kind))
        if found is None:
            return None
        forms = (_form(found, body, names, is_macro, whole) for body in found.bodies)
        return Macro(found.full_name, tuple(forms))

    def is_macro(parts: tuple[str, ...]) -> bool:
        return any((*key_of(parts), kind) in by_name for kind in MacroKind)

    return lookup


def _form(
    macro: MacroVersion,
    body: MacroBody,
    names: set[str],
    is_macro: Callable[[tuple[str, ...]], bool],
    whole: Callable[[str], str],
) -> MacroForm:
    try:
        text = body.spark_sql
        if text is not None:
            refuse_harmful(text, "write it in your own query", is_macro)
        if text is None:
            if body.dialect != "duckdb":
                raise Unsupported(f"it is written in {body.dialect!r}")
            is_table = macro.kind is MacroKind.TABLE
            text = translated_macro(
                body.sql, is_table=is_table, macros=names, read="duckdb", write="spark"
            )
        parameters = tuple((p.name, _spark_type(p.type)) for p in body.parameters)
        defaults = tuple(_constant(p) for p in body.parameters if p.default is not None)
    except ShelduckError as error:
        raise Unsupported(
            f"macro {macro.full_name}{body}: {error}; DuckDB created it as {body.sql!r}; call it"
            " there, or create it again with lake.sql('CREATE OR REPLACE MACRO …')"
        ) from error
    return MacroForm(parameters, defaults, whole(text))


def _spark_type(text: str) -> str | None:
    return None if text == UNKNOWN else spark_type(parse_type(text)).simpleString()


def _constant(parameter: MacroParameter) -> str:
    assert parameter.default is not None
    kind: DataType = parse_type(parameter.default_type)
    return literal_text(kind, parameter.default)  # type: ignore[arg-type]


def _body(
    runner: Runner,
    name: TableName,
    kind: MacroKind,
    form: st.MacroText,
    known: Sequence[MacroVersion],
) -> MacroBody:
    """Return what the catalog stores of one form, after Spark has analyzed it."""
    # A call may come from another schema.
    form = replace(form, text=qualified(form.text, runner.state.current.schema))
    _analyze(runner, name, kind, form, known)
    macros = {m.name.lower() for m in known}
    is_table = kind is MacroKind.TABLE
    try:
        sql = translated_macro(
            form.text, is_table=is_table, macros=macros, read="spark", write="duckdb"
        )
    except Unsupported as error:
        reason = f"macro {name} is written for Spark: {error}"
        sql = refusal_query(["error"], reason) if is_table else refusal_expression(reason)
    return MacroBody(form.parameters, sql, form.text)


def _analyze(
    runner: Runner,
    name: TableName,
    kind: MacroKind,
    form: st.MacroText,
    known: Sequence[MacroVersion],
) -> None:
    """Raise InvalidRequest for a body that names what does not exist, or that is none."""
    nulls = ", ".join("NULL" for _ in form.parameters)
    parameters = tuple((p.name, _spark_type(p.type)) for p in form.parameters)
    tried = Macro(str(name), (MacroForm(parameters, (), form.text),))
    others = _lookup(runner, known)
    word = "shelduck_macro"

    def lookup(parts: tuple[str, ...], wanted: MacroKind) -> Macro | None:
        return tried if parts == (word,) and wanted is kind else others(parts, wanted)

    call = (
        f"SELECT * FROM {word}({nulls})" if kind is MacroKind.TABLE else f"SELECT {word}({nulls})"
    )
    [statement] = parse(expanded(call, lookup), ntz=runner.state.ntz)
    if not isinstance(statement, st.Query):
        raise InvalidRequest(f"the text of macro {name} is not a query: {form.text!r}")
    try:
        runner.query(statement)
    except Exception as error:
        # Whether types fit shows only in calls: a NULL has none.
        if isinstance(error, ShelduckError) or names_nothing(error):
            raise


def _find(unit: UnitOfWork, name: TableName, kind: MacroKind) -> MacroVersion | None:
    wanted = (name.home.lower(), name.name.lower(), kind)
    return next(
        (
            macro
            for macro in unit.workspace.macros()
            if (macro.schema.name.lower(), macro.name.lower(), macro.kind) == wanted
        ),
        None,
    )


def _not_found(unit: UnitOfWork, name: TableName, kind: MacroKind) -> ShelduckError:
    schema = unit.workspace.schema(name.home)
    macros = [m for m in unit.workspace.macros() if m.schema.id == schema.id]
    other = next((m for m in macros if m.name.lower() == name.name.lower()), None)
    if other is not None:
        words = "DROP MACRO TABLE" if other.kind is MacroKind.TABLE else "DROP MACRO"
        return InvalidRequest(f"{name} is a {other.kind.value} macro; use {words}")
    known = [m.name for m in macros if m.kind is kind]
    return NotFound.named("macro", name.name, known, where=f"schema {schema.text!r}")


RUN = by_statement(create_macro, drop_macro, show_macros)
