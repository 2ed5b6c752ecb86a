"""Which tables a query reads, and where their names stand in its text.

A walk over the tokens, bracket by bracket, that follows FROM and JOIN lists and the scopes of WITH
names and leaves every expression alone. It does not judge the query: Spark's parser does. What it
takes for a table and is none makes Spark refuse the query, never read something else.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shelduck.errors import InvalidRequest
from shelduck.text.query.travel import CHANGES, read_any_time, read_changes
from shelduck.text.tokens.arguments import DUCKLAKE, read_call, read_properties
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import Token, TokenKind, name_of, place, tokenize
from shelduck.text.tokens.parts import Call, NamedTable, TimeExpression

VIRTUAL_COLUMNS = frozenset(
    ("rowid", "snapshot_id", "filename", "file_row_number", "_metadata", "_file", "_pos")
)
"""Columns that DuckLake, Spark and Iceberg give every table, and that ``*`` does not show."""
QUERY_WORDS = frozenset(("SELECT", "WITH", "FROM", "VALUES", "TABLE"))
_SET_WORDS = frozenset(("UNION", "INTERSECT", "EXCEPT", "MINUS", "SETMINUS"))
CLAUSES = _SET_WORDS | frozenset(
    """WHERE GROUP HAVING QUALIFY WINDOW ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET
    SELECT |>""".split()
)
JOINS = frozenset(
    "JOIN INNER CROSS LEFT RIGHT FULL OUTER SEMI ANTI NATURAL ON USING LATERAL ASOF".split()
)
NO_ALIAS = CLAUSES | JOINS | frozenset(("PIVOT", "UNPIVOT", "TABLESAMPLE", "INSERT", "FOR"))
Names = ChainMap[str, None]
"""The names of queries that are visible, in lower case: one map for each WITH around."""
_ENDS_ROW = CLAUSES | JOINS | frozenset((",", ")", "AS"))
FILE_FORMATS = frozenset("parquet csv json orc text xml avro binaryfile delta iceberg".split())
_OF_LAKE = frozenset(
    "snapshots table_info options settings current_snapshot last_committed_snapshot".split()
)
_OF_TABLE = frozenset("table_changes table_insertions table_deletions list_files".split())
# DuckDB's form of these names the schema before the table: ducklake_table_changes('l', 's', 't').
_WITH_SCHEMA = _OF_TABLE - {"list_files"}


@dataclass(frozen=True, slots=True)
class Found:
    """A table in the text: its name (and time) between ``start`` and ``end``.

    ``alias_at`` is where an alias has to be put, None when the text gives one or allows none.
    ``call`` is that of a table function or of ``CHANGES FROM``, which has no time; its name is that
    of the table that it is about, None for one of the lake. ``options`` are the names of those in
    ``WITH (…)`` behind it, which stay in the text.
    """

    name: NamedTable | None
    start: int
    end: int
    alias_at: int | None = None
    version: int | str | None = None
    timestamp: str | None = None
    call: Call | None = None
    options: tuple[str, ...] = ()
    computed: TimeExpression | None = None
    alias: str | None = None
    virtual: frozenset[str] = frozenset()
    """The virtual columns that the text names, where the select shows no others by ``*``."""

    @property
    def is_named(self) -> bool:
        """Whether the table's own name stands at ``start``, not that of a function."""
        return self.call is None or self.call.procedure == CHANGES

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the name, () without one."""
        return self.name.parts if self.name is not None else ()


@dataclass(frozen=True, slots=True)
class Star:
    """A ``*`` of a select list: where it ends, and where its table begins in the text."""

    end: int
    table: int


@dataclass
class _Select:
    """One SELECT while it is walked over."""

    has_list: bool = False
    stars: list[int] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)
    sources: int = 0
    natural: bool = False


def find_relations(text: str, tokens: list[Token]) -> tuple[list[Found], list[Star]]:
    """Return the tables that a query reads, in the order of the text, and stars.

    Stars are those of selects that read virtual columns of a table, which ``*`` must leave out.

    ``tokens`` are those of the query, closed by END. Names that a WITH in scope defines, functions
    and files read directly, as in ``parquet.`/path` ``, are not tables. Raises InvalidRequest for
    brackets that do not match and for a time that cannot be read.
    """
    finder = _Finder(text, tokens)
    return sorted(finder.found, key=lambda f: f.start), finder.stars


def names_of_queries(text: str) -> set[str]:
    """Return the names that WITH gives to queries anywhere in a query, in lower case."""
    return _Finder(text, tokenize(text)).named


class _Finder:
    """What a walk over the tokens finds; ``at`` and ``end`` are positions in their list."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.closing = _brackets(text, tokens)
        self.found: list[Found] = []
        self.stars: list[Star] = []
        self.named: set[str] = set()
        named = {t.key.lower() for t in tokens if t.kind in (TokenKind.WORD, TokenKind.QUOTED)}
        self.virtual = VIRTUAL_COLUMNS & named
        self.scan(0, len(tokens) - 1, ChainMap(), listing=False)

    def scan(self, at: int, end: int, names: Names, *, listing: bool) -> None:
        """Walk over one bracket; with ``listing`` it holds tables, joins and commas."""
        select = _Select()
        if self._key(at) == "WITH" and not listing:
            at, names = self._with(at, end, names)
        first = at
        querying = listing
        if listing:
            at = self._relation(at, names)
        while at < end:
            key = self._keyword(at)
            if key in _SET_WORDS:
                self._close(select)
                select = _Select()
            select.has_list |= key == "SELECT"
            select.natural |= key == "NATURAL"
            if key == "*" and not listing and self._is_star(at):
                select.stars.append(at)
            if at in self.closing:
                self.scan(at + 1, self.closing[at], names, listing=False)
                at = self.closing[at] + 1
                continue
            begins_table = (
                (key == "FROM" and (querying or at == first) and not self._distinct_from(at))
                or (key == "JOIN" and querying)
                or (key == "," and listing)
            )
            if begins_table:
                querying = listing = True
                before = len(self.found)
                at = self._relation(at + 1, names)
                select.sources += 1
                # A bracket closes its own selects.
                if len(self.found) == before + 1 and self.tokens[at - 1].key != ")":
                    select.tables.append(before)
                continue
            if key == "TABLE" and self._is_primary(at, first, querying):
                at = self._bare_table(at + 1, names)
                continue
            if key in CLAUSES or (key == "LATERAL" and self._key(at + 1) == "VIEW"):
                querying = querying or key == "SELECT"
                listing = False
            at += 1
        self._close(select)

    def _is_star(self, at: int) -> bool:
        """Tell whether ``*`` is an item of a select list."""
        before = self._key(at - 1)
        behind = self._key(at + 1)
        return before in ("SELECT", "DISTINCT", "ALL", ",", ".") and (
            behind in (",", "FROM", ")", "") or behind in _SET_WORDS
        )

    def _close(self, select: _Select) -> None:
        """Let the tables of a select show virtual columns, where each of its stars is of one."""
        if not self.virtual or not select.has_list or select.natural:
            return
        stars = []
        for at in select.stars:
            tables = select.tables
            if self._key(at - 1) == ".":
                name = name_of(self.tokens[at - 2]).lower()
                tables = [n for n in tables if self._called(n) == name]
            elif select.sources != 1:
                return
            if len(tables) != 1:
                return
            stars.append(Star(self.tokens[at].end, self.found[tables[0]].start))
        self.stars += stars
        for n in select.tables:
            if self.found[n].call is None:
                self.found[n] = replace(self.found[n], virtual=self.virtual)

    def _called(self, number: int) -> str:
        found = self.found[number]
        return (found.alias or found.parts[-1]).lower()

    def _key(self, at: int) -> str:
        return self.tokens[min(at, len(self.tokens) - 1)].key

    def _keyword(self, at: int) -> str:
        """Return the key of a token, '' for a word behind a dot or AS, which is a name."""
        token = self.tokens[at]
        is_name = token.kind is TokenKind.WORD and at > 0 and self._key(at - 1) in (".", "AS")
        return "" if is_name else token.key

    def _distinct_from(self, at: int) -> bool:
        before = [self._key(at - n) if at >= n else "" for n in (1, 2, 3)]
        return before[0] == "DISTINCT" and (before[1] == "IS" or before[1:] == ["NOT", "IS"])

    def _is_primary(self, at: int, first: int, querying: bool) -> bool:
        """Tell whether TABLE stands where a query or a function's argument begins."""
        before = self._key(at - 1) if at > first else ""
        if before in ("ALL", "DISTINCT"):
            before = self._key(at - 2)
        return at == first or before in _SET_WORDS or (before in (",", "=>") and not querying)

    def _with(self, at: int, end: int, names: Names) -> tuple[int, Names]:
        """Walk over WITH; return where the query goes on and the names it may use."""
        at += 1
        names = names.new_child()
        recursive = self._key(at) == "RECURSIVE" and self.tokens[at + 1].may_name
        at += recursive
        while True:
            if at >= end or not self.tokens[at].may_name:
                raise self._failure(at, "a name and a query in brackets after WITH")
            name = name_of(self.tokens[at]).lower()
            body = at + 1
            if self._key(body) == "(" and self._key(body + 1) not in QUERY_WORDS | {"("}:
                body = self.closing[body] + 1
            if self._key(body) == "MAX":
                body += 4
            body += self._key(body) == "AS"
            if body >= end or self._key(body) != "(":
                raise self._failure(body, "a query in brackets after WITH")
            if recursive:
                names[name] = None
            self.scan(body + 1, self.closing[body], names, listing=False)
            names[name] = None
            self.named.add(name)
            at = self.closing[body] + 1
            if self._key(at) != ",":
                return at, names
            at += 1

    def _relation(self, at: int, names: Names) -> int:
        """Walk over one table, function, list of rows or bracket of a FROM list."""
        while self._key(at) == "LATERAL":
            at += 1
        if self._key(at) == "(":
            inside = self._key(at + 1)
            listing = inside not in QUERY_WORDS or self._key(at + 2) == "."
            self.scan(at + 1, self.closing[at], names, listing=listing)
            return self.closing[at] + 1
        if self._key(at) == "VALUES" and self._key(at + 1) not in (".", ",", ")"):
            return self._rows(at + 1, names)
        if not self.tokens[at].may_name or self._key(at) in ("SELECT", "WHERE"):
            return at
        cursor = Cursor(self.text, self.tokens, at)
        parts = cursor.path("a table")
        if cursor.sees("("):
            if [p.upper() for p in parts] == ["IDENTIFIER"]:
                raise cursor.refusal("IDENTIFIER(...)", "write the name of the table")
            if is_function(parts):
                self._function(at, cursor, parts)
            return cursor.at
        self._table(at, cursor, parts, names)
        return cursor.at

    def _function(self, at: int, cursor: Cursor, parts: tuple[str, ...]) -> None:
        """Note a table function whose brackets begin at the cursor, and go behind them."""
        call, table = read_function(cursor, parts)
        last = self.tokens[cursor.at - 1].end
        self.found.append(Found(table, self.tokens[at].start, last, call=call))

    def _bare_table(self, at: int, names: Names) -> int:
        """Walk over the name behind TABLE, which may stand in brackets and has no alias."""
        inside = at + 1 if self._key(at) == "(" else at
        if not self.tokens[inside].may_name or self._key(inside) in QUERY_WORDS:
            return at
        cursor = Cursor(self.text, self.tokens, inside)
        parts = cursor.path("a table")
        self._table(inside, cursor, parts, names, alias=False)
        return cursor.at + (inside > at)

    def _table(
        self, at: int, cursor: Cursor, parts: tuple[str, ...], names: Names, alias: bool = True
    ) -> None:
        """Note one table whose name ends at the cursor, and go behind its time."""
        if len(parts) == 1 and parts[0].lower() in names:
            return
        if len(parts) == 2 and parts[0].lower() in FILE_FORMATS and "/" in parts[1]:
            return
        call = read_changes(cursor)
        version, timestamp, computed = (None,) * 3 if call else read_any_time(cursor)
        end = self.tokens[cursor.at - 1].end
        options = _options(cursor)
        behind = cursor.at
        if self._key(behind) == "TABLESAMPLE":
            behind = self.closing.get(behind + 1, behind) + 1
            if self._key(behind) == "REPEATABLE":
                behind = self.closing.get(behind + 1, behind) + 1
        has_alias = self._has_alias(behind)
        alias_at = None if has_alias or not alias else self.tokens[behind - 1].end
        called = None
        if has_alias:
            word = self.tokens[behind + (self._key(behind) == "AS")]
            if not word.may_name:
                raise self._failure(behind + 1, "an alias")
            called = name_of(word)
        start = self.tokens[at].start
        name = NamedTable(parts)
        found = Found(
            name, start, end, alias_at, version, timestamp, call, options, computed, called
        )
        self.found.append(found)

    def _has_alias(self, at: int) -> bool:
        token = self.tokens[at]
        if token.key == "AS" or token.kind is TokenKind.QUOTED:
            return True
        return token.kind is TokenKind.WORD and token.key not in NO_ALIAS

    def _rows(self, at: int, names: Names) -> int:
        """Walk over the rows of VALUES in a FROM list; a comma between rows begins no table."""
        at = self._row(at, names)
        while self._key(at) == ",":
            at = self._row(at + 1, names)
        return at

    def _row(self, at: int, names: Names) -> int:
        if self._key(at) == "(":
            self.scan(at + 1, self.closing[at], names, listing=False)
            return self.closing[at] + 1
        while self.tokens[at].kind is not TokenKind.END and self._key(at) not in _ENDS_ROW:
            if at in self.closing:
                self.scan(at + 1, self.closing[at], names, listing=False)
                at = self.closing[at]
            at += 1
        return at

    def _failure(self, at: int, expected: str) -> InvalidRequest:
        return Cursor(self.text, self.tokens, min(at, len(self.tokens) - 1)).failure(expected)


def _brackets(text: str, tokens: list[Token]) -> dict[int, int]:
    """Return for each opening bracket the token that closes it."""
    closing: dict[int, int] = {}
    open_at: list[int] = []
    pairs = {")": "(", "]": "[", "}": "{"}
    whole = Cursor(text, tokens)
    for n, token in enumerate(tokens):
        if token.key in ("(", "[", "{"):
            open_at.append(n)
        elif token.key in pairs:
            if not open_at or tokens[open_at[-1]].key != pairs[token.key]:
                where = place(text, token.start)
                raise whole.error(f"the {token.key!r} at {where} has no opening bracket")
            closing[open_at.pop()] = n
    if open_at:
        token = tokens[open_at[-1]]
        raise whole.error(f"the {token.key!r} at {place(text, token.start)} is not closed")
    return closing


def _options(cursor: Cursor) -> tuple[str, ...]:
    """Take ``WITH ('key' = 'value', …)`` behind a table, or nothing; return the keys."""
    if not cursor.sees("WITH", "("):
        return ()
    cursor.expect("WITH")
    return tuple(read_properties(cursor))


def is_function(parts: Sequence[str]) -> bool:
    """Tell whether a name is that of a table function of a lake."""
    name = parts[-1].lower()
    return name.removeprefix(DUCKLAKE) in _OF_LAKE | _OF_TABLE and len(parts) < 4


def read_function(cursor: Cursor, parts: Sequence[str]) -> tuple[Call, NamedTable | None]:
    """Take the arguments of a table function; return its call and the table that it is about.

    The table is not an argument. Raises InvalidRequest for arguments that are not literals,
    and for a table that is not named by a string.
    """
    at = cursor.at
    call = read_call(cursor, parts, "function")
    if call.procedure not in _OF_TABLE:
        return call, None
    prefixed = parts[-1].lower().startswith(DUCKLAKE)
    given = call.positional
    ahead = prefixed and call.procedure in _WITH_SCHEMA
    schema = given[0] if ahead and given else None
    written = given[ahead] if len(given) > ahead else None
    behind = cursor.at
    # The strings stand behind the bracket, each with a comma.
    cursor.at = at + 1 + 2 * (prefixed + ahead)
    if not isinstance(written, str) or not isinstance(schema, str | None):
        raise cursor.failure("the table's name as a string")
    table = NamedTable((schema, written)) if schema is not None else _named(cursor, written)
    cursor.at = behind
    call = replace(call, positional=given[ahead + 1 :])
    # DuckDB's own form has DuckDB's columns.
    name = f"{DUCKLAKE}{call.procedure}" if prefixed else call.procedure
    return replace(call, procedure=name), table


def _named(cursor: Cursor, written: str) -> NamedTable:
    try:
        inside = Cursor(written, tokenize(written))
        name = inside.table_name()
        inside.end()
    except InvalidRequest:
        raise cursor.failure("the name of a table, such as 'schema.table'") from None
    return name
