"""The parts of statements: names, queries and expressions as values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from shelduck.model.tables.schema import Path
from shelduck.model.text.names import backticked, quote_name, schema_word


@dataclass(frozen=True, slots=True)
class Statement:
    """What one statement asks for, as a value."""


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table as it was written: ``table``, ``schema.table`` or ``catalog.schema.table``.

    A schema may have several parts itself. A metadata table is written with one part more:
    ``table.files``, ``schema.table.files``.
    """

    parts: tuple[str, ...]

    @property
    def table(self) -> str:
        """The last part."""
        return self.parts[-1]

    @property
    def schema(self) -> str | None:
        """The schema as one word, None when the text does not name one."""
        return schema_word(self.parts[:-1]) or None

    def __str__(self) -> str:
        return ".".join(quote_name(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class SessionName(NamedTable):
    """A table of the Spark session, which no lake is asked for."""


@dataclass(frozen=True, slots=True)
class SchemaName:
    """A schema as it was written: ``schema``, ``catalog.schema``, or with schemas around it."""

    parts: tuple[str, ...]

    @property
    def schema(self) -> str:
        """The schema as one word."""
        return schema_word(self.parts)

    def __str__(self) -> str:
        return ".".join(quote_name(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class TimestampText:
    """``TIMESTAMP '...'`` or ``DATE '...'``: the text of the time."""

    text: str


@dataclass(frozen=True, slots=True)
class IntervalText:
    """``INTERVAL '7 days'``, ``INTERVAL 7 DAYS`` or ``INTERVAL '7' DAY``: the text, ``7 days``."""

    text: str


Scalar = int | float | Decimal | str | bool | TimestampText | IntervalText | None
Argument = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Call(Statement):
    """A procedure's or table function's name in lower case and its arguments as Python values.

    ``named`` holds pairs of a name in lower case and a value, each name once. An array is a tuple.
    """

    procedure: str
    positional: tuple[Argument, ...] = ()
    named: tuple[tuple[str, Argument], ...] = ()
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """A time in ``AT (…)`` that is computed: ``kind`` is VERSION or TIMESTAMP, ``text`` Spark's."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A table that a query reads, and the word that stands for it in the query's text.

    At most one of ``version`` (a snapshot id, or the name of a branch or a tag) and ``timestamp``
    (its text as written) is set; both None is the newest state. ``computed`` is a time that has to
    be computed first, to become one of them. ``options`` are the names of those that stand behind
    it. ``virtual`` are the virtual columns that the query may name, such as ``rowid``.
    """

    name: NamedTable
    placeholder: str
    version: int | str | None = None
    timestamp: str | None = None
    options: tuple[str, ...] = ()
    computed: TimeExpression | None = None
    virtual: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionRelation:
    """A table function of the lake in a query, and the word that stands for it.

    ``table`` is the table that it is about, as ``t`` in ``table_changes('t', 1)``, None for those
    of the whole lake. It is not an argument of ``call``.
    """

    call: Call
    placeholder: str
    table: NamedTable | None = None


@dataclass(frozen=True, slots=True)
class Query(Statement):
    """Spark SQL text in which each table is replaced by the placeholder of one of ``relations``.

    ``functions`` are the table functions of the lake among them. The rest of the text is as it was
    written. No placeholder is part of another one or of any other word of the statement, so that
    ``str.replace`` can put other names in their places. ``stars`` are pairs of a word behind a
    ``*`` and the placeholder of its table: `without` puts what ``*`` does not show in its place.
    """

    text: str
    relations: tuple[Relation, ...] = ()
    functions: tuple[FunctionRelation, ...] = ()
    stars: tuple[tuple[str, str], ...] = ()

    def without(self, shown: Mapping[str, Collection[str]]) -> str:
        """Return the text; each ``*`` leaves out the columns that ``shown`` has for its table."""
        if not self.stars:
            return self.text
        hidden = {word: ", ".join(shown.get(table, ())) for word, table in self.stars}

        def columns(star: re.Match[str]) -> str:
            names = hidden.get(star[1])
            return star[0] if names is None else f" EXCEPT ({names})" if names else ""

        return re.sub(r" (__lake_x*star\d+__)", columns, self.text)


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar expression of Spark SQL; tables in its subqueries are replaced as in a Query.

    All queries and expressions of one statement share their placeholders, so that a text may be
    built from several of them.
    """

    text: str
    relations: tuple[Relation, ...] = ()
    functions: tuple[FunctionRelation, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a statement changes, as the statement's expressions see it.

    ``placeholder`` stands for its rows in texts that are built from the expressions. It is never
    the placeholder of a relation, even where a subquery reads the same table. ``alias`` is the name
    before its columns: the alias as written, else the table's own name.
    """

    name: NamedTable
    placeholder: str
    alias: str

    @property
    def source(self) -> str:
        """The table as it stands in a FROM list: the placeholder and its alias."""
        return f"{self.placeholder} AS {backticked(self.alias)}"

    def column(self, path: Path, columns: Collection[str]) -> Path:
        """Return ``path`` without the table's alias or name before it, as Spark resolves it.

        ``columns`` are the names of the table's columns: ``t.a`` is column ``a`` of ``t`` if ``t``
        has one, else field ``a`` of the column ``t``.
        """
        if len(path) == 1:
            return path
        known = {c.lower() for c in columns}
        names = tuple(p.lower() for p in self.name.parts)
        owners: set[Path] = {(self.alias.lower(),)}
        if self.alias.lower() in (names[-1], ".".join(names)):
            owners |= {names[-n:] for n in range(1, len(names) + 1)}
        for length in range(len(names), 0, -1):
            if (
                len(path) > length
                and tuple(p.lower() for p in path[:length]) in owners
                and path[length].lower() in known
            ):
                return path[length:]
        return path


@dataclass(frozen=True, slots=True)
class Assignment:
    """``path = value``; the value is None for DEFAULT.

    ``path`` is as written and may begin with the table's alias or name: see `Target.column`.
    """

    path: Path
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of one table for which a condition is true; all rows without a condition."""

    target: Target
    condition: Expression | None = None

    def query(self, columns: str = "*") -> Query:
        """Return the query that reads ``columns``, a text behind SELECT, of these rows.

        The target's placeholder is not one of its relations: whoever runs the query gives the rows.
        """
        text = f"SELECT {columns} FROM {self.target.source}"
        if self.condition is None:
            return Query(text)
        return query_over(f"{text} WHERE ({self.condition.text})", self.condition)


@dataclass(frozen=True, slots=True)
class OfTable(Statement):
    """What a statement about a table, a view or a macro has."""

    name: NamedTable


@dataclass(frozen=True, slots=True)
class OfSchema(Statement):
    """What a statement about a schema, a branch or a tag has."""

    name: SchemaName


@dataclass(frozen=True, slots=True)
class OfAltered(OfTable):
    """What a statement behind ALTER TABLE has; with ``if_exists`` the table may be missing."""

    if_exists: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class OfRows(Statement):
    """What a statement about rows of a table has."""

    rows: Selection

    @property
    def name(self) -> NamedTable:
        """The table."""
        return self.rows.target.name


def query_over(text: str, *parts: Query | Expression) -> Query:
    """Return ``text``, built from the texts of ``parts``, with all the tables that they read."""
    relations = {r.placeholder: r for part in parts for r in part.relations}
    functions = {f.placeholder: f for part in parts for f in part.functions}
    stars = tuple(pair for part in parts if isinstance(part, Query) for pair in part.stars)
    return Query(text, tuple(relations.values()), tuple(functions.values()), stars)
