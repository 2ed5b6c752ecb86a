"""The texts of one statement with a placeholder for each table of the lake, and its queries."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shelduck.model.text.names import backticked
from shelduck.text.query.relations import QUERY_WORDS, Found, find_relations
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import (
    Edit,
    Token,
    TokenKind,
    dotted_names,
    edited,
    name_of,
    statements_of,
    string_of,
    tokenize,
)
from shelduck.text.tokens.parts import Expression, FunctionRelation, Query, Relation, Target

Span = tuple[int, int]
"""Positions of tokens: the first, and the one behind the last."""


class Rewriting:
    """The tables of a statement's queries and expressions, and the texts without them.

    ``spans`` are the parts of the statement that hold queries and expressions. ``target`` and
    ``source`` are tables that stand outside of these parts and give names to columns in them.

    Each table becomes a placeholder, with the table's own name as alias where the text gives none,
    so that ``t.c`` and ``s.t.c`` still name columns. All is worked out for the whole statement: a
    name means one table in all its parts.
    """

    def __init__(
        self,
        cursor: Cursor,
        spans: Sequence[Span],
        target: Found | None = None,
        source: Found | None = None,
    ) -> None:
        self._cursor = cursor
        self._spans = [_closed(cursor.tokens, span) for span in spans]
        self._outer = [at for at in (target, source) if at is not None]
        self._target = target
        self._source = source
        found = [find_relations(cursor.text, tokens) for tokens in self._spans]
        self._inner = sorted((at for tables, _ in found for at in tables), key=_start)
        self._stars = [star for _, stars in found for star in stars]

    def query(self, span: Span) -> Query:
        """Return the query that these tokens are."""
        start, end = self._places(span)
        stars = [star for star in self._star_words if start <= star.end <= end]
        text, relations, functions = self._piece(
            start, end, [(star.end, star.end, f" {star.word}") for star in stars]
        )
        pairs = tuple((star.word, star.relation) for star in stars)
        return Query(text, relations, functions, pairs)

    def expression(self, span: Span) -> Expression:
        """Return the expression that these tokens are; its queries read no virtual columns."""
        text, relations, functions = self._piece(*self._places(span))
        return Expression(text, tuple(replace(r, virtual=()) for r in relations), functions)

    def target(self, alias: str | None) -> Target:
        """Return the table that the statement changes, with the alias that the text gives."""
        assert self._target is not None
        assert self._target.name is not None
        word = f"{self._stem}target__"
        return Target(self._target.name, word, alias or self._aliases[_lowered(self._target)])

    def source(self) -> tuple[Query, str | None]:
        """Return all rows of the source and the alias that it gets, None if the text has one."""
        at = self._source
        assert at is not None
        word = self._words[_identity(at)]
        query = Query(f"SELECT * FROM {word}", (_relation(at, word),))
        return query, None if at.alias_at is None else self._aliases[_lowered(at)]

    def _places(self, span: Span) -> tuple[int, int]:
        first, behind = span
        return self._cursor.tokens[first].start, self._cursor.tokens[behind - 1].end

    def _piece(
        self, start: int, end: int, more: Sequence[Edit] = ()
    ) -> tuple[str, tuple[Relation, ...], tuple[FunctionRelation, ...]]:
        inside = self._inner[
            bisect_left(self._inner, start, key=_start) : bisect_left(self._inner, end, key=_start)
        ]
        read: dict[str, Found] = {}
        for at in inside:
            read.setdefault(self._words[_identity(at)], at)
        relations = [_relation(at, word) for word, at in read.items() if at.call is None]
        functions = [
            FunctionRelation(at.call, word, at.name)
            for word, at in read.items()
            if at.call is not None
        ]
        first = bisect_left(self._edits, start, key=lambda edit: edit[0])
        behind = bisect_right(self._edits, end, key=lambda edit: edit[0])
        edits = [edit for edit in self._edits[first:behind] if edit[1] <= end]
        text = edited(self._cursor.text, [*edits, *more], start, end)
        return text, tuple(relations), tuple(functions)

    @cached_property
    def _stem(self) -> str:
        stem = "__lake_"
        while stem in self._cursor.text.lower():
            stem += "x"
        return stem

    @cached_property
    def _words(self) -> dict[tuple[object, ...], str]:
        """A word for each table and time that is not part of the text or of another word."""
        tables = [*self._inner] if self._source is None else [self._source, *self._inner]
        distinct = dict.fromkeys(_identity(at) for at in tables)
        return {identity: f"{self._stem}{n}__" for n, identity in enumerate(distinct)}

    @cached_property
    def _aliases(self) -> dict[tuple[str, ...], str]:
        """An alias for each table without one: its own name.

        Where two tables share it and the text tells them apart by ``schema.table.column``, the
        alias is all parts in one name.
        """
        used = {use.parts for use in self._uses}
        tables = [*self._outer, *self._inner]
        named = {_lowered(at): at.parts for at in tables if at.alias_at is not None}
        shared = Counter(parts[-1] for parts in named)
        return {
            lowered: ".".join(parts) if shared[lowered[-1]] > 1 and lowered in used else parts[-1]
            for lowered, parts in named.items()
        }

    @cached_property
    def _uses(self) -> list[_Use]:
        tables = [*self._outer, *self._inner]
        return [use for tokens in self._spans for use in _qualified_uses(tokens, tables)]

    @cached_property
    def _star_words(self) -> list[_StarWord]:
        """A word behind each star, to be replaced by the columns that it leaves out."""
        tables = {at.start: self._words[_identity(at)] for at in self._inner}
        return [
            _StarWord(f"{self._stem}star{n}__", star.end, tables[star.table])
            for n, star in enumerate(self._stars)
        ]

    @cached_property
    def _edits(self) -> list[Edit]:
        """The changes of the text but for stars, in the order of places."""
        aliases = {lowered: backticked(name) for lowered, name in self._aliases.items()}
        edits = [(use.start, use.end, aliases[use.parts]) for use in self._uses]
        tables = _Tables(self._inner)
        edits += [
            edit
            for tokens in self._spans
            for edit in _variable_edits(tokens)
            if edit[0] not in tables
        ]
        for at in self._inner:
            edits.append((at.start, at.end, self._words[_identity(at)]))
            if at.alias_at is not None:
                edits.append((at.alias_at, at.alias_at, f" AS {aliases[_lowered(at)]}"))
        return sorted(edits)


class _Tables:
    """Where tables stand in the text: ``place in tables`` is asked for every token."""

    def __init__(self, found: Sequence[Found]) -> None:
        self._found = sorted(found, key=_start)

    def __contains__(self, place: int) -> bool:
        n = bisect_right(self._found, place, key=_start) - 1
        return n >= 0 and place < self._found[n].end


def _start(at: Found) -> int:
    return at.start


def _closed(tokens: list[Token], span: Span) -> list[Token]:
    place = tokens[min(span[1], len(tokens) - 1)].start
    return [*tokens[span[0] : span[1]], Token(TokenKind.END, "", place, place)]


def _relation(at: Found, word: str) -> Relation:
    assert at.name is not None
    return Relation(
        at.name, word, at.version, at.timestamp, at.options, at.computed, tuple(sorted(at.virtual))
    )


def _identity(at: Found) -> tuple[object, ...]:
    return (_lowered(at), at.version, at.timestamp, at.call, at.options, at.computed, at.virtual)


def _lowered(at: Found) -> tuple[str, ...]:
    return tuple(p.lower() for p in at.parts)


@dataclass(frozen=True, slots=True)
class _StarWord:
    """The word behind a star that ends at ``end``, and the placeholder of its table."""

    word: str
    end: int
    relation: str


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
    lengths = sorted({len(parts) for parts in owners}, reverse=True)
    tables = _Tables(found)
    for n, token in enumerate(tokens if owners else ()):
        if not _begins_name(tokens, n) or token.start in tables:
            continue
        names = tuple(name_of(name).lower() for name in dotted_names(tokens, n))
        for length in (length for length in lengths if length <= len(names)):
            last = n + 2 * length - 2
            if tokens[last + 1].key == "." and names[:length] in owners:
                uses.append(_Use(token.start, tokens[last].end, owners[names[:length]]))
                break
    return uses


def _begins_name(tokens: list[Token], n: int) -> bool:
    return tokens[n].kind in (TokenKind.WORD, TokenKind.QUOTED) and (
        n == 0 or tokens[n - 1].key != "."
    )


def _variable_edits(tokens: list[Token]) -> list[Edit]:
    """Return where ``getvariable('x')`` stands, DuckDB's word for Spark's session variable x."""
    keys = [token.key for token in tokens]
    return [
        (token.start, tokens[n + 3].end, f"system.session.{backticked(string_of(tokens[n + 2]))}")
        for n, token in enumerate(tokens[:-3])
        if token.key == "GETVARIABLE"
        and (keys[n + 1], keys[n + 3]) == ("(", ")")
        and tokens[n + 2].kind is TokenKind.STRING
    ]


def with_variables(text: str) -> str:
    """Return an expression that stands alone as Spark reads it."""
    return edited(text, _variable_edits(tokenize(text)))


_WRITES = {
    "INSERT INTO": "write WITH and the query after INSERT INTO t",
    "INSERT OVERWRITE": "write WITH and the query after INSERT OVERWRITE t",
    "MERGE INTO": "use MERGE INTO t USING (WITH and the query)",
    "DELETE FROM": "write the query as a subquery in DELETE FROM t WHERE",
    "UPDATE": "write the query as a subquery in UPDATE t SET or MERGE INTO t USING",
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


def looks_at_other_rows(text: str) -> bool:
    """Tell whether an expression has a query or a window anywhere."""
    cursor = Cursor(text, tokenize(text))
    for at in range(len(cursor.tokens)):
        cursor.at = at
        if cursor.sees(")", "OVER") or (cursor.sees("(") and begins_query(cursor)):
            return True
    return False


def read_query(cursor: Cursor) -> Query:
    """Take the rest of the statement as a query.

    Spark reads the text as it is, but for the tables: see `Rewriting`.
    """
    span = skip_query(cursor)
    return Rewriting(cursor, [span]).query(span)


def sole_query(text: str) -> Query | None:
    """Return the query that a text is, None for a text that is anything else."""
    pieces = statements_of(tokenize(text))
    cursor = Cursor(text, pieces[0]) if len(pieces) == 1 else None
    return read_query(cursor) if cursor is not None and begins_query(cursor) else None


def skip_query(cursor: Cursor) -> Span:
    """Go behind the query that is the rest of the statement."""
    if not begins_query(cursor):
        raise cursor.failure("a query: SELECT, WITH, FROM, VALUES or TABLE")
    _refuse_writes(cursor)
    first = cursor.at
    cursor.at = len(cursor.tokens) - 1
    return first, cursor.at


def _refuse_writes(cursor: Cursor) -> None:
    depth = 0
    for at, token in enumerate(cursor.tokens[cursor.at : -1], cursor.at):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth == 0 and (word := _write_at(cursor, at)):
            raise cursor.refusal(f"{word} after a query", _WRITES[word])


def _write_at(cursor: Cursor, at: int) -> str:
    """Return the words of _WRITES that begin a statement at a token, else ''."""
    key, behind = (cursor.tokens[n].key for n in (at, at + 1))
    if key != "UPDATE":
        words = f"{key} {behind}"
        return words if words in _WRITES else ""
    # Columns may be named so: it is the statement where a table and SET come next.
    ahead = [token.key for token in cursor.tokens[at + 1 : at + 9]]
    upto = ahead[: ahead.index("SET")] if "SET" in ahead else []
    is_statement = cursor.tokens[at - 1].key == ")" and upto and not {",", "(", ")"} & {*upto}
    return key if is_statement else ""
