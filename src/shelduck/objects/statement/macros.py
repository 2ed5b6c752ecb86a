"""Macros: CREATE, DROP and SHOW, and what they mean in other statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from shelduck.engine.named_errors import lacks_function, names_nothing
from shelduck.engine.session import function_exists
from shelduck.engine.types import literal_text, spark_type
from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, ShelduckError, Unsupported
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import PlainRows, Result, TableName, Unchanged, table_name
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.tables.table_version import DEFAULT_SCHEMA
from shelduck.model.tables.view import UNKNOWN, MacroBody, MacroKind, MacroParameter, MacroVersion
from shelduck.model.text.names import inside
from shelduck.model.types.data_types import DataType, parse_type
from shelduck.text.query.harmless import refuse_harmful
from shelduck.text.query.macro_calls import Macro, MacroForm, expanded, qualified
from shelduck.text.query.rewriting import sole_query
from shelduck.text.query.translate import refusal_expression, refusal_query, translated_macro
from shelduck.text.tokens.arguments import ShowObjects, is_like, listing, read_literal
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import OfTable, TimestampText

_TIMES = {
    "DATE": "date",
    "TIMESTAMP_NTZ": "timestamp",
    "TIMESTAMP_LTZ": "timestamptz",
    "TIMESTAMPTZ": "timestamptz",
}
# What a function of Spark may say of itself, and every macro is.
_CHARACTERISTICS = (
    ("LANGUAGE", "SQL"),
    ("NOT", "DETERMINISTIC"),
    ("DETERMINISTIC",),
    ("CONTAINS", "SQL"),
    ("READS", "SQL", "DATA"),
    ("SQL", "SECURITY", "INVOKER"),
)
_DEFAULT = "a constant: a number, a string, TRUE, FALSE, DATE '...' or TIMESTAMP '...'"


@dataclass(frozen=True, slots=True)
class MacroText:
    """One form of a new macro: its parameters, and the text of its expression or query."""

    parameters: tuple[MacroParameter, ...]
    text: str


@dataclass(frozen=True, slots=True)
class CreateMacroStatement(OfTable):
    """CREATE MACRO; the forms differ in their number of parameters."""

    kind: MacroKind
    forms: tuple[MacroText, ...]
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropMacroStatement(OfTable):
    """DROP MACRO, or DROP MACRO TABLE."""

    kind: MacroKind
    if_exists: bool = False


class ShowMacros(ShowObjects):
    """SHOW MACROS."""


def read_create_macro(cursor: Cursor) -> CreateMacroStatement:
    """Read the statement behind ``CREATE MACRO``."""
    if_not_exists, or_replace = cursor.made_how("macro")
    name = cursor.table_name()
    kind, form = _taken_form(cursor)
    forms = [form]
    while cursor.accept(","):
        start = cursor.at
        other, form = _taken_form(cursor)
        if other is not kind:
            raise cursor.failure(f"a form of a {kind.value} macro, like the first one", start)
        if any(len(f.parameters) == len(form.parameters) for f in forms):
            raise cursor.failure("another number of parameters: calls choose a form by it", start)
        forms.append(form)
    return CreateMacroStatement(name, kind, tuple(forms), if_not_exists, or_replace)


def read_drop_macro(cursor: Cursor) -> DropMacroStatement:
    """Read the statement behind ``DROP MACRO``."""
    kind = MacroKind.TABLE if cursor.accept("TABLE") else MacroKind.SCALAR
    if_exists = cursor.accept_if("EXISTS")
    name = cursor.table_name()
    return DropMacroStatement(name, kind, if_exists)


def _taken_form(cursor: Cursor) -> tuple[MacroKind, MacroText]:
    """Take ``(parameters) AS expression`` or ``(parameters) AS TABLE query``.

    A function of Spark says RETURNS and its type, which its value gets, before it says RETURN.
    """
    parameters = _taken_parameters(cursor)
    if cursor.accept("RETURNS"):
        return _function(cursor, parameters)
    if cursor.sees("RETURN"):
        raise cursor.failure("RETURNS and a type before RETURN")
    cursor.expect("AS")
    kind = MacroKind.TABLE if cursor.accept("TABLE") else MacroKind.SCALAR
    start = cursor.at
    if cursor.peek().kind is TokenKind.END or cursor.sees(","):
        raise cursor.failure("a query" if kind is MacroKind.TABLE else "an expression")
    while cursor.peek().kind is not TokenKind.END and not _another(cursor):
        cursor.skip()
    return kind, MacroText(parameters, cursor.since(start))


def _function(
    cursor: Cursor, parameters: tuple[MacroParameter, ...]
) -> tuple[MacroKind, MacroText]:
    """Take the rest of a function of Spark behind RETURNS."""
    kind = MacroKind.SCALAR
    columns: tuple[tuple[str, str], ...] = ()
    start = cursor.at
    if cursor.accept("TABLE"):
        kind = MacroKind.TABLE
        columns = cursor.in_brackets(_returned) if cursor.sees("(") else ()
    else:
        cursor.type()
    returned = cursor.since(start)
    while not cursor.accept("RETURN"):
        if not any(cursor.accept(*words) for words in _CHARACTERISTICS):
            if cursor.sees("LANGUAGE"):
                raise cursor.refusal("LANGUAGE", "use SQL, or register a function of Spark")
            raise cursor.failure("RETURN and an expression or a query")
    body = cursor.rest()
    if not body:
        raise cursor.failure("an expression or a query")
    if kind is MacroKind.SCALAR:
        return kind, MacroText(parameters, f"CAST(({body}) AS {returned})")
    if columns:
        names = ", ".join(name for name, _ in columns)
        cast = ", ".join(f"CAST({name} AS {of}) AS {name}" for name, of in columns)
        body = f"SELECT {cast} FROM ({body}) AS returned({names})"
    return kind, MacroText(parameters, body)


def _returned(cursor: Cursor) -> tuple[str, str]:
    """Take a column of RETURNS TABLE: its name and type, as written."""
    first = cursor.peek()
    cursor.name("a column")
    start = cursor.at
    cursor.type()
    of = cursor.since(start)
    if cursor.accept("COMMENT"):
        cursor.string("the comment as a string")
    return cursor.text[first.start : first.end], of


def _another(cursor: Cursor) -> bool:
    """Tell whether a comma and the parameters of another form come next."""
    if not cursor.sees(",", "("):
        return False
    before = cursor.at
    cursor.take()
    cursor.skip_group()
    found = cursor.sees("AS")
    # In a select list, a name and the rest of the query follow AS.
    found = found and (cursor.peek(1).key == "TABLE" or cursor.peek(2).key not in (",", "FROM"))
    cursor.at = before
    return found


def _taken_parameters(cursor: Cursor) -> tuple[MacroParameter, ...]:
    cursor.expect("(")
    found: list[MacroParameter] = []
    taken: set[str] = set()
    while not cursor.sees(")"):
        start = cursor.at
        name = cursor.new_column(taken)
        kind = UNKNOWN
        if cursor.peek().kind is TokenKind.WORD and not cursor.sees("DEFAULT"):
            kind = str(cursor.type())
        default, default_type = _taken_default(cursor)
        if default is None and found and found[-1].default is not None:
            raise cursor.failure("parameters with defaults last", start)
        found.append(MacroParameter(name, kind, default, default_type))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return tuple(found)


def _taken_default(cursor: Cursor) -> tuple[str | None, str]:
    """Take ``:= value``, or nothing; return the value's text and its type for DuckLake."""
    if not (cursor.accept(":", "=") or cursor.accept("=>") or cursor.accept("DEFAULT")):
        return None, UNKNOWN
    token = cursor.peek()
    if token.key == "TIMESTAMP":
        kind = "timestamp" if cursor.ntz else "timestamptz"
    else:
        kind = _TIMES.get(token.key, "")
    start = cursor.at
    match read_literal(cursor):
        case bool(value):
            return str(value).lower(), "boolean"
        case int(value):
            return str(value), "int32" if -(2**31) <= value < 2**31 else "int64"
        case Decimal() as value:
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return str(value), f"decimal({max(len(digits), scale)},{scale})"
        case float(value):
            return repr(value), "float64"
        case TimestampText(text) if kind:
            return text, kind
        case str(text):
            return text, "varchar"
    raise cursor.failure(_DEFAULT, start)


def create_macro(runner: Runner, statement: CreateMacroStatement) -> Result:
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


def drop_macro(runner: Runner, statement: DropMacroStatement) -> Result:
    """DROP MACRO, and DROP MACRO TABLE of a table macro."""
    name = runner.name(statement.name)

    def stage(unit: UnitOfWork) -> None:
        known = _find(unit, name, statement.kind)
        if known is not None:
            unit.workspace.drop_macro(known)
        elif not statement.if_exists:
            raise _not_found(unit, name, statement.kind)

    return carry_out(runner.state, runner.unit, stage)


def show_macros(runner: Runner, statement: ShowMacros) -> PlainRows:
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
    by_name = _by_name(known)
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
    runner: Runner, name: TableName, kind: MacroKind, form: MacroText, known: Sequence[MacroVersion]
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
    runner: Runner, name: TableName, kind: MacroKind, form: MacroText, known: Sequence[MacroVersion]
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
    query = sole_query(expanded(call, lookup))
    if query is None:
        raise InvalidRequest(f"the text of macro {name} is not a query: {form.text!r}")
    try:
        runner.query(query)
    except Exception as error:
        # Whether types fit shows only in calls: a NULL has none.
        if isinstance(error, ShelduckError) or names_nothing(error):
            raise


def _find(unit: UnitOfWork, name: TableName, kind: MacroKind) -> MacroVersion | None:
    known = _by_name(unit.workspace.macros())
    return known.get((name.home.lower(), name.name.lower(), kind))


def _by_name(known: Sequence[MacroVersion]) -> dict[tuple[str, str, MacroKind], MacroVersion]:
    return {(m.schema.name.lower(), m.name.lower(), m.kind): m for m in known}


def _not_found(unit: UnitOfWork, name: TableName, kind: MacroKind) -> ShelduckError:
    schema = unit.workspace.schema(name.home)
    macros = [m for m in unit.workspace.macros() if m.schema.id == schema.id]
    other = next((m for m in macros if m.name.lower() == name.name.lower()), None)
    if other is not None:
        words = "DROP MACRO TABLE" if other.kind is MacroKind.TABLE else "DROP MACRO"
        return InvalidRequest(f"{name} is a {other.kind.value} macro; use {words}")
    known = [m.name for m in macros if m.kind is kind]
    return NotFound.named("macro", name.name, known, where=f"schema {schema.text!r}")


OPERATIONS = (
    Operation(
        *("CREATE MACRO", CreateMacroStatement, create_macro, read_create_macro),
        words="CREATE [OR REPLACE] MACRO|FUNCTION",
        makes=True,
    ),
    Operation(
        *("DROP MACRO", DropMacroStatement, drop_macro, read_drop_macro, "DROP MACRO|FUNCTION"),
        makes=True,
    ),
    Operation("SHOW MACROS", ShowMacros, show_macros, listing(ShowMacros), of_current=True),
)
