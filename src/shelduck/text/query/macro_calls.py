"""Calls of macros in a text, and the text in which each call is what its macro stands for.

A macro is text to DuckDB too: the arguments take the places of the parameters, in brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import expressions as exp
from sqlglot.errors import ParseError

from shelduck.errors import InvalidRequest
from shelduck.model.tables.view import MacroKind
from shelduck.model.text.names import backticked, schema_names
from shelduck.text.query.relations import CLAUSES, NO_ALIAS, find_relations
from shelduck.text.query.translate import parse_tree
from shelduck.text.tokens.lexer import (
    BRACKETS,
    Token,
    TokenKind,
    closing,
    dotted_names,
    edited,
    listed_parts,
    name_of,
    tokenize,
)

_CLAUSES = CLAUSES | {"FROM", "SET", "VALUES", "RETURNING", "ON", "WHEN"}
_TABLES = ("FROM", "USING", "JOIN")
_BEFORE_TABLE = ("FROM", "USING", "JOIN", ",", "LATERAL")
_AFTER_TABLE = NO_ALIAS | {"WHEN", "RETURNING"}


@dataclass(frozen=True, slots=True)
class MacroForm:
    """One form of a macro in Spark's words.

    ``parameters`` are names with the type to which an argument is cast, or None; ``defaults`` are
    texts of the last of them.
    """

    parameters: tuple[tuple[str, str | None], ...]
    defaults: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro that a text may call: its full name, and its forms."""

    name: str
    forms: tuple[MacroForm, ...]


Lookup = Callable[[tuple[str, ...], MacroKind], Macro | None]
"""Returns the macro of a name and kind, None if there is none."""


def expanded(text: str, macro_of: Lookup, inside: tuple[str, ...] = ()) -> str:
    """Return a text in which calls of macros are replaced; the text itself if it has none.

    ``inside`` are the macros whose text this is, outermost first. Raises InvalidRequest for
    arguments that fit no form and for a macro that calls itself.
    """
    tokens = tokenize(text)
    edits: list[tuple[int, int, str]] = []
    done = 0
    for call in _calls(tokens):
        if call.first < done:
            continue
        kind = MacroKind.TABLE if call.is_table else MacroKind.SCALAR
        macro = macro_of(call.parts, kind)
        if macro is None:
            continue
        if macro.name in inside:
            chain = " → ".join([*inside[inside.index(macro.name) :], macro.name])
            raise InvalidRequest(f"macro {macro.name} calls itself: {chain}; change one of these")
        given = [
            expanded(argument, macro_of, inside) for argument in _arguments(text, tokens, call)
        ]
        body = _filled(macro, given)
        body = f"({expanded(body, macro_of, (*inside, macro.name))})"
        start, end = tokens[call.first].start, tokens[call.last].end
        edits.append((start, end, body + _alias(text[start:end], tokens, call)))
        done = call.last
    return edited(text, edits) if edits else text


def qualified(text: str, schema: str, catalog: str | None = None, *, nests: bool = False) -> str:
    """Return the body of a macro in which each table has a schema, and a catalog if it is given.

    ``schema`` is one word. With ``nests``, names of more parts are of schemas inside schemas.
    """
    edits = []
    for found in find_relations(text, tokenize(text))[0]:
        parts = found.parts
        is_whole = len(parts) > 2 and (not nests or parts[0].lower() == (catalog or "").lower())
        if not found.is_named or is_whole:
            continue
        before = [catalog] if catalog else []
        before += schema_names(schema) if len(parts) == 1 else ()
        if before:
            words = "".join(f"{backticked(part)}." for part in before)
            edits.append((found.start, found.start, words))
            if len(parts) == 1 and found.alias_at is not None:
                edits.append((found.alias_at, found.alias_at, f" AS {backticked(parts[0])}"))
    return edited(text, edits)


@dataclass(frozen=True, slots=True)
class _Call:
    """A name and its brackets: tokens ``first`` to ``last``, the brackets from ``opening``."""

    parts: tuple[str, ...]
    first: int
    opening: int
    last: int
    is_table: bool
    is_item: bool
    """Whether the call is an item of a select list, to which it gives its name."""


def _calls(tokens: Sequence[Token]) -> Iterator[_Call]:
    """Yield what is written as a call, outer ones before those in their arguments."""
    # The clause in which each bracket that is open stands.
    clauses = [""]
    for at, token in enumerate(tokens):
        before = tokens[at - 1].key if at else ""
        deeper = BRACKETS.get(token.key, 0)
        if deeper > 0:
            clauses.append("")
        elif deeper < 0 and len(clauses) > 1:
            clauses.pop()
        elif before not in (".", "AS") and _begins_clause(token.key, before, clauses):
            clauses[-1] = "FROM" if token.key in _TABLES else token.key
        if token.kind not in (TokenKind.WORD, TokenKind.QUOTED) or before == ".":
            continue
        names = dotted_names(tokens, at)
        opening = at + 2 * len(names) - 1
        if tokens[opening].key != "(":
            continue
        last = closing(tokens, opening) or len(tokens) - 2
        parts = tuple(map(name_of, names))
        listed = clauses[-1] == "FROM" and before in _BEFORE_TABLE
        behind = tokens[last + 1]
        is_last = behind.kind is TokenKind.END or behind.key in _CLAUSES | {",", ")"}
        is_item = clauses[-1] == "SELECT" and before in ("SELECT", "DISTINCT", "ALL", ",")
        yield _Call(parts, at, opening, last, listed, is_item and is_last)


def _begins_clause(key: str, before: str, clauses: Sequence[str]) -> bool:
    """Tell whether a word begins a clause; FROM in ``extract(day FROM d)`` begins none."""
    if key not in _CLAUSES and key not in _TABLES:
        return False
    if key == "FROM":
        is_outer = len(clauses) == 1 or clauses[-1] != "" or before == "("
        return is_outer and before != "DISTINCT"
    return True


def _arguments(text: str, tokens: Sequence[Token], call: _Call) -> list[str]:
    """Return the texts between the commas of a call."""
    parts = listed_parts(tokens[call.opening + 1 : call.last])
    return [text[part[0].start : part[-1].end] for part in parts if part]


def _filled(macro: Macro, given: Sequence[str]) -> str:
    """Return the text of the form that fits, with the arguments in it."""
    for form in macro.forms:
        values = _values(form, given)
        if values is not None:
            _refuse_captured(macro, form.text, values.values())
            return _substituted(form.text, values)
    forms = " or ".join(
        f"({', '.join(_shown(form, n) for n in range(len(form.parameters)))})"
        for form in macro.forms
    )
    shown = ", ".join(given)
    raise InvalidRequest(f"macro {macro.name} does not take ({shown}); its parameters are {forms}")


def _refuse_captured(macro: Macro, body: str, values: Iterable[str]) -> None:
    """Raise InvalidRequest for a column of an argument that would be one of the body's own tables.

    The body is put where the call stands, so its tables are nearer than those of the call.
    """
    tables = find_relations(body, tokenize(body))[0]
    if not tables:
        return
    names = {(found.alias or found.parts[-1]).lower() for found in tables if found.is_named}
    for value in values:
        for column in _columns(value):
            if not column.table or column.table.lower() in names:
                raise InvalidRequest(
                    f"macro {macro.name} reads tables, so it may take the column"
                    f" {column.sql('spark')} of its argument from these; give the table of the"
                    " column an alias that the macro does not use, and write it before the column:"
                    " x.c"
                )


def _columns(text: str) -> list[exp.Column]:
    try:
        return list(parse_tree(text, "spark").find_all(exp.Column))
    except ParseError:
        return []


def _shown(form: MacroForm, number: int) -> str:
    name, kind = form.parameters[number]
    at = number - len(form.parameters) + len(form.defaults)
    typed = name if kind is None else f"{name} {kind}"
    return typed if at < 0 else f"{typed} := {form.defaults[at]}"


def _values(form: MacroForm, given: Sequence[str]) -> dict[str, str] | None:
    """Return the argument of each parameter by its lower name, None if they do not fit."""
    names = [name.lower() for name, _ in form.parameters]
    values: dict[str, str] = {}
    for at, argument in enumerate(given):
        name, value = _named(argument)
        if name is None:
            if len(values) != at or at >= len(names):
                return None
            name = names[at]
        if name not in names or name in values:
            return None
        values[name] = value
    with_defaults = names[len(names) - len(form.defaults) :]
    for name, default in zip(with_defaults, form.defaults, strict=True):
        values.setdefault(name, default)
    if len(values) < len(names):
        return None
    kinds = {name.lower(): kind for name, kind in form.parameters}
    return {
        name: value if kinds[name] is None else f"CAST({value} AS {kinds[name]})"
        for name, value in values.items()
    }


def _named(argument: str) -> tuple[str | None, str]:
    """Split ``name := value`` or ``name => value``."""
    tokens = tokenize(argument)
    if len(tokens) > 3 and tokens[0].kind in (TokenKind.WORD, TokenKind.QUOTED):
        signs = [t.key for t in tokens[1:3]]
        if signs == [":", "="]:
            return name_of(tokens[0]).lower(), argument[tokens[2].end :].strip()
        if signs[0] == "=>":
            return name_of(tokens[0]).lower(), argument[tokens[1].end :].strip()
    return None, argument


def _substituted(text: str, values: dict[str, str]) -> str:
    """Return a body with arguments for parameters, which are not names of tables or functions."""
    tokens = tokenize(text)
    has_tables = any(token.key == "FROM" for token in tokens)
    edits = []
    for at, token in enumerate(tokens[:-1]):
        if token.kind not in (TokenKind.WORD, TokenKind.QUOTED):
            continue
        before, behind = tokens[at - 1].key if at else "", tokens[at + 1].key
        is_free = before not in (".", "AS") and behind != "(" and not (behind == "." and has_tables)
        value = values.get(name_of(token).lower()) if is_free else None
        if value is not None:
            is_plain = len(tokenize(value)) == 2
            edits.append((token.start, token.end, value if is_plain else f"({value})"))
    return edited(text, edits)


def _alias(call_text: str, tokens: Sequence[Token], call: _Call) -> str:
    """Return the name that a call without one gets: DuckDB's."""
    if call.is_item:
        return f" AS {backticked(call_text)}"
    behind = tokens[call.last + 1]
    has_alias = behind.kind is TokenKind.QUOTED or (
        behind.kind is TokenKind.WORD and behind.key not in _AFTER_TABLE
    )
    return f" AS {backticked(call.parts[-1])}" if call.is_table and not has_alias else ""
