"""Queries: Spark's own text, with a placeholder for each table of the lake."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from shelduck.model.quoting import backticked
from shelduck.sql.cursor import Cursor
from shelduck.sql.lexer import Kind, Token, name_of
from shelduck.sql.relations import QUERY_WORDS, Found, find_relations
from shelduck.sql.statements import Query, Relation

_WRITES = {
    ("INSERT", "INTO"): "write WITH and the query behind INSERT INTO t",
    ("INSERT", "OVERWRITE"): "write WITH and the query behind INSERT OVERWRITE t",
    ("MERGE", "INTO"): "append rows instead",
    ("DELETE", "FROM"): "append rows instead",
}


def begins_query(cursor: Cursor) -> bool:
    """Tell whether the cursor stands before a query."""
    ahead = 0
    while cursor.peek(ahead).key == "(":
        ahead += 1
    key = cursor.peek(ahead).key
    if ahead == 0:
        return key in QUERY_WORDS
    if key in ("SELECT", "WITH"):
        return cursor.peek(ahead + 1).key not in (",", ")")
    return key == "VALUES" and cursor.peek(ahead + 1).key == "("


def read_query(cursor: Cursor) -> Query:
    """Take the rest of the statement as a query.

    Spark reads the text as it is, but for the tables: each becomes a placeholder, with the table's
    own name as alias where the text gives none, so that ``t.c`` and ``s.t.c`` still name columns.
    """
    if not begins_query(cursor):
        raise cursor.failure("a query: SELECT, WITH, FROM, VALUES or TABLE")
    tokens = cursor.tokens[cursor.at :]
    _refuse_writes(cursor)
    cursor.at = len(cursor.tokens) - 1
    start, end = tokens[0].start, tokens[-2].end
    found = find_relations(cursor.text, tokens)
    names = _placeholders(cursor.text, found)
    uses = _qualified_uses(tokens, found)
    aliases = _aliases(found, uses)
    edits = [(use.start, use.end, aliases[use.parts]) for use in uses]
    relations: dict[str, Relation] = {}
    for at in found:
        word = names[_identity(at)]
        relations.setdefault(word, Relation(at.name, word, at.version, at.timestamp))
        edits.append((at.start, at.end, word))
        if at.alias_at is not None:
            edits.append((at.alias_at, at.alias_at, f" AS {aliases[_lowered(at)]}"))
    return Query(_edited(cursor.text, start, end, edits), tuple(relations.values()))


def _refuse_writes(cursor: Cursor) -> None:
    depth = 0
    for token, behind in pairwise(cursor.tokens[cursor.at :]):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth == 0 and (token.key, behind.key) in _WRITES:
            raise cursor.refusal(
                f"{token.key} {behind.key} behind a query", _WRITES[token.key, behind.key]
            )


def _identity(at: Found) -> tuple[object, ...]:
    return (_lowered(at), at.version, at.timestamp)


def _lowered(at: Found) -> tuple[str, ...]:
    return tuple(p.lower() for p in at.name.parts)


def _placeholders(text: str, found: list[Found]) -> dict[tuple[object, ...], str]:
    """Return a word for each table and time that is no part of the text or of another word."""
    stem = "__lake_"
    while stem in text.lower():
        stem += "x"
    distinct = dict.fromkeys(_identity(at) for at in found)
    return {identity: f"{stem}{n}__" for n, identity in enumerate(distinct)}


def _aliases(found: list[Found], qualified: list[_Use]) -> dict[tuple[str, ...], str]:
    """Return an alias for each table without one: its own name.

    Where two tables share it and the text tells them apart by ``schema.table.column``, the alias is
    all parts in one name.
    """
    used = {use.parts for use in qualified}
    named = {_lowered(at): at.name.parts for at in found if at.alias_at is not None}
    shared = Counter(parts[-1] for parts in named)
    return {
        lowered: backticked(
            ".".join(parts) if shared[lowered[-1]] > 1 and lowered in used else parts[-1]
        )
        for lowered, parts in named.items()
    }


@dataclass(frozen=True, slots=True)
class _Use:
    """``schema.table`` before a column, from ``start`` to ``end``, and the table's parts."""

    start: int
    end: int
    parts: tuple[str, ...]


def _qualified_uses(tokens: list[Token], found: list[Found]) -> list[_Use]:
    """Return where columns are named by table and schema, for tables without an alias."""
    owners: dict[tuple[str, ...], tuple[str, ...]] = {}
    for at in found:
        parts = _lowered(at)
        if at.alias_at is not None:
            owners.update({parts[-n:]: parts for n in range(2, len(parts) + 1)})
    uses: list[_Use] = []
    for n, token in enumerate(tokens):
        if not _begins_name(tokens, n) or any(at.start <= token.start < at.end for at in found):
            continue
        for length in (3, 2):
            parts = _name_parts(tokens, n, length)
            if parts in owners:
                uses.append(_Use(token.start, tokens[n + 2 * length - 2].end, owners[parts]))
                break
    return uses


def _begins_name(tokens: list[Token], n: int) -> bool:
    return tokens[n].kind in (Kind.WORD, Kind.QUOTED) and (n == 0 or tokens[n - 1].key != ".")


def _name_parts(tokens: list[Token], n: int, length: int) -> tuple[str, ...]:
    """Return ``length`` lower-case names joined by dots with one more behind them, else ()."""
    names = tokens[n : n + 2 * length : 2]
    dots = tokens[n + 1 : n + 2 * length : 2]
    if len(names) < length or any(t.kind not in (Kind.WORD, Kind.QUOTED) for t in names):
        return ()
    if len(dots) < length or any(t.key != "." for t in dots):
        return ()
    return tuple(name_of(t).lower() for t in names)


def _edited(text: str, start: int, end: int, edits: list[tuple[int, int, str]]) -> str:
    out: list[str] = []
    for first, last, new in sorted(edits):
        out += [text[start:first], new]
        start = last
    return "".join([*out, text[start:end]])
