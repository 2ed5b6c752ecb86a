"""The table or query that MERGE, UPDATE … FROM and DELETE … USING take rows from."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.text.quoting import backticked
from shelduck.sql.query.expressions import take_alias
from shelduck.sql.query.query import begins_query
from shelduck.sql.query.relations import JOINS, Found
from shelduck.sql.query.rewriting import Rewriting, Span
from shelduck.sql.query.travel import read_time
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.parts import Query, query_over


@dataclass(frozen=True, slots=True)
class Source:
    """A table, or the tokens of a query, with the alias as written and names for its columns."""

    alias: str | None
    columns: tuple[str, ...] = ()
    table: Found | None = None
    query: Span | None = None

    @property
    def spans(self) -> list[Span]:
        """The tokens of the query."""
        return [] if self.query is None else [self.query]

    def rewritten(self, texts: Rewriting) -> tuple[Query, str | None]:
        """Return the rows as a query, and the alias, None for a query without one."""
        if self.query is None:
            query, own_name = texts.source()
            alias = self.alias or own_name
        else:
            query, alias = texts.query(self.query), self.alias
        if self.columns:
            assert alias is not None
            names = ", ".join(backticked(c) for c in self.columns)
            text = f"SELECT * FROM ({query.text}) AS {backticked(alias)}({names})"
            query = query_over(text, query)
        return query, alias


def take_source(cursor: Cursor, end: str) -> Source:
    """Take a table or a query in brackets, and its alias; ``end`` is the word that may follow.

    Raises Unsupported for several, joined or listed.
    """
    if cursor.sees("("):
        if not begins_query(cursor):
            cursor.take()
            raise cursor.failure("a query: SELECT, WITH, FROM, VALUES or TABLE")
        first = cursor.at
        cursor.skip_group()
        query, table = (first + 1, cursor.at - 1), None
        alias = take_alias(cursor, end)
    else:
        query = None
        start = cursor.peek().start
        name = cursor.table_name()
        if cursor.sees("("):
            raise cursor.failure("a table, or a query in brackets: (SELECT ...)")
        version, timestamp = read_time(cursor)
        behind = cursor.tokens[cursor.at - 1].end
        alias = take_alias(cursor, end)
        table = Found(name, start, behind, None if alias else behind, version, timestamp)
    columns = cursor.columns() if alias is not None and cursor.sees("(") else ()
    if cursor.sees(",") or cursor.peek().key in JOINS - {"ON", "USING"}:
        raise cursor.refusal("more than one source", "write them as a query: (SELECT ... ) AS s")
    return Source(alias, columns, table, query)
