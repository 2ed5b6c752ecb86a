"""Where rows of a statement come from: a table or a query, and the condition that joins them.

PARTITION (key = value, …), as statements of Hive name partitions, and the rows that it means.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from shelduck.engine.rows.assignments import SetValue
from shelduck.engine.rows.store_rules import TEXTS, require_text
from shelduck.engine.types import field_type
from shelduck.errors import InvalidRequest
from shelduck.model.tables.partition import IDENTITY, NULL_DIRECTORY
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name
from shelduck.text.query.expressions import expression_of, skip_expression, take_alias
from shelduck.text.query.relations import JOINS, Found
from shelduck.text.query.rewriting import Rewriting, Span, begins_query
from shelduck.text.query.travel import read_time
from shelduck.text.query.value_rows import as_time
from shelduck.text.tokens.arguments import literal_text, text_of
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import Assignment, Expression, Query, Selection, Target, query_over

_EQUAL = ("=", "==")
_COMPARISONS = (*_EQUAL, "<>", "!=", "<", "<=", ">", ">=")


def take_joined(
    cursor: Cursor, found: Found, alias: str | None, spans: list[Span]
) -> tuple[Rewriting, Target, Query, str | None, Expression]:
    """Take the source and the condition of UPDATE … FROM and DELETE … USING, to the end.

    Returns the texts, of which ``spans`` are others, and what begins a MERGE that means the same.
    """
    source = take_source(cursor, "WHERE")
    condition = take_condition(cursor)
    cursor.end()
    own = [] if condition is None else [condition]
    texts = Rewriting(cursor, [*source.spans, *spans, *own], target=found, source=source.table)
    on = expression_of(texts, condition) or Expression("true")
    return texts, texts.target(alias), *source.rewritten(texts), on


def selection(
    cursor: Cursor, found: Found, alias: str | None, ends: Collection[str] = ()
) -> Selection:
    """Take WHERE and its condition, or nothing, up to the statement's end.

    The words of ``ends`` close the condition, and nothing may follow it.
    """
    condition = take_condition(cursor, ends)
    cursor.end()
    texts = Rewriting(cursor, [] if condition is None else [condition], target=found)
    return Selection(texts.target(alias), expression_of(texts, condition))


def take_condition(cursor: Cursor, ends: Collection[str] = ()) -> Span | None:
    """Take WHERE and its condition, or nothing; the words of ``ends`` close it."""
    return skip_expression(cursor, ends, what="a condition") if cursor.accept("WHERE") else None


@dataclass(frozen=True, slots=True)
class RowSource:
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


def take_source(cursor: Cursor, end: str) -> RowSource:
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
    return RowSource(alias, columns, table, query)


def set_values(
    target: Target,
    assignments: Sequence[Assignment],
    table: TableVersion,
    named: Callable[[str], str],
) -> list[SetValue]:
    """Return assignments of a statement as values, with placeholders replaced by table names."""
    found = []
    names = table.columns.names
    for a in assignments:
        path = target.column(a.path, names)
        text = None if a.value is None else as_time(named(a.value.text), table.columns.find(path))
        found.append(SetValue(path, text))
    return found


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """One column of INSERT's PARTITION clause.

    ``value`` is the SQL text of a literal, NULL too; None when the source gives the column.
    """

    column: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """PARTITION (key = value, …): keys, comparisons and literals as SQL."""

    values: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return f"({', '.join(' '.join(each) for each in self.values)})"


def read_partition_spec(cursor: Cursor) -> PartitionSpec:
    """Take ``PARTITION (key = value, …)``; a value is a literal, and NULL goes with ``=`` only."""
    cursor.expect("PARTITION")
    taken: set[str] = set()

    def item(cursor: Cursor) -> tuple[str, str, str]:
        column = cursor.new_column(taken)
        comparison = cursor.accept_any(*_COMPARISONS)
        if not comparison:
            raise cursor.failure("a comparison, such as = or <")
        value = literal_text(cursor)
        if comparison in _EQUAL:
            return column, "=", value
        if is_null_key(value):
            what = f"PARTITION ({quote_name(column)} {comparison} {value})"
            raise cursor.refusal(what, "NULL is not compared; use = for the partition of NULL")
        return column, comparison, value

    return PartitionSpec(cursor.in_brackets(item))


def is_null_key(literal: str) -> bool:
    """Return whether a literal of a PARTITION clause means NULL, as Spark reads it."""
    return literal.upper() == "NULL" or text_of(literal) == NULL_DIRECTORY


def partition_value(field: Field, literal: str, table: str) -> str:
    """Return a literal of a PARTITION clause as SQL, to be stored or compared as any other value.

    As in Spark, a text can be a value of each type, and each literal can be a text.
    """
    kind = field_type(field)
    if is_null_key(literal):
        return f"CAST(NULL AS {kind})"
    if str(field.type) in TEXTS:
        # VARCHAR(n) would cut it.
        return f"CAST({literal} AS STRING)"
    text = text_of(literal)
    if text is None and kind == "boolean":
        # Spark reads every value of the clause as a text, so 1 and 0 are truth values.
        text = literal.rstrip("LSYlsy")
    if text is None:
        return literal
    require_text(field.type, text, f"column {quote_name(field.name)} of {table}")
    return f"CAST(CAST({literal} AS STRING) AS {kind})"


def chosen_by(spec: PartitionSpec, table: TableVersion) -> str:
    """Return the condition of a PARTITION clause; its literals are values of their columns.

    Raises InvalidRequest for a column that is not a partition key itself.
    """
    keys = {k.column_id for k in table.partition if k.transform == IDENTITY}
    parts = []
    for column, comparison, literal in spec.values:
        field = table.columns.get((column,), table.full_name)
        if field.id not in keys:
            raise InvalidRequest(
                f"{table.full_name} is not partitioned by {quote_name(field.name)} itself; use"
                " DELETE FROM t WHERE"
            )
        value = partition_value(field, literal, table.full_name)
        word = "<=>" if comparison == "=" else comparison
        parts.append(f"{backticked(field.name)} {word} {value}")
    return " AND ".join(parts)
