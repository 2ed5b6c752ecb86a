"""MERGE INTO."""

from __future__ import annotations

from dataclasses import dataclass, field

from shelduck.model.tables.schema import Path
from shelduck.sql.query.expressions import (
    AssignmentSpan,
    expression_of,
    skip_expression,
    take_alias,
    take_assignments,
    take_target,
    take_value,
)
from shelduck.sql.query.query import begins_query
from shelduck.sql.query.relations import Found
from shelduck.sql.query.rewriting import Rewriting, Span
from shelduck.sql.query.travel import read_time
from shelduck.sql.statements.row_statements import (
    DeleteRow,
    InsertAll,
    InsertRow,
    MatchedClause,
    Merge,
    NotMatchedClause,
    UpdateAll,
    UpdateSet,
)
from shelduck.sql.tokens.cursor import Cursor
from shelduck.sql.tokens.parts import Query

_MATCHED, _NOT_MATCHED, _BY_SOURCE = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"


@dataclass(slots=True)
class _Clause:
    """A WHEN clause whose expressions are not rewritten yet."""

    condition: Span | None = None
    deletes: bool = False
    assignments: list[AssignmentSpan] | None = None
    columns: list[Path] | None = None
    values: list[Span | None] = field(default_factory=list)

    def changing(self, texts: Rewriting) -> MatchedClause:
        """Return the clause as one that changes a row of the target."""
        condition = expression_of(texts, self.condition)
        if self.deletes:
            return MatchedClause(DeleteRow(), condition)
        if self.assignments is None:
            return MatchedClause(UpdateAll(), condition)
        assignments = tuple(a.rewritten(texts) for a in self.assignments)
        return MatchedClause(UpdateSet(assignments), condition)

    def inserting(self, texts: Rewriting) -> NotMatchedClause:
        """Return the clause as one that inserts a row."""
        condition = expression_of(texts, self.condition)
        if self.columns is None:
            return NotMatchedClause(InsertAll(), condition)
        values = tuple(expression_of(texts, value) for value in self.values)
        return NotMatchedClause(InsertRow(tuple(self.columns), values), condition)


@dataclass(frozen=True, slots=True)
class _Source:
    """The table behind USING, or the tokens of the query there, and the alias as written."""

    alias: str | None
    table: Found | None = None
    query: Span | None = None


def read_merge(cursor: Cursor) -> Merge:
    """Read the statement behind ``MERGE``."""
    evolution = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    target, alias = take_target(cursor, "USING")
    cursor.expect("USING")
    source = _source(cursor)
    cursor.expect("ON")
    condition = skip_expression(cursor, ("WHEN",), what="a condition")
    clauses = _clauses(cursor)
    cursor.end()
    spans = [(condition[0], cursor.at)]
    if source.query is not None:
        spans.insert(0, source.query)
    texts = Rewriting(cursor, spans, target=target, source=source.table)
    query, source_alias = _source_query(texts, source)
    return Merge(
        texts.target(alias),
        query,
        source_alias,
        texts.expression(condition),
        tuple(c.changing(texts) for c in clauses[_MATCHED]),
        tuple(c.inserting(texts) for c in clauses[_NOT_MATCHED]),
        tuple(c.changing(texts) for c in clauses[_BY_SOURCE]),
        evolution,
    )


def _source(cursor: Cursor) -> _Source:
    if cursor.sees("("):
        if not begins_query(cursor):
            cursor.take()
            raise cursor.failure("a query: SELECT, WITH, FROM, VALUES or TABLE")
        first = cursor.at
        cursor.skip_group()
        span = (first + 1, cursor.at - 1)
        return _Source(take_alias(cursor, "ON"), query=span)
    first_token = cursor.peek()
    name = cursor.table_name()
    if cursor.sees("("):
        raise cursor.failure("a table, or a query in brackets: USING (SELECT ...)")
    version, timestamp = read_time(cursor)
    end = cursor.tokens[cursor.at - 1].end
    alias = take_alias(cursor, "ON")
    found = Found(name, first_token.start, end, None if alias else end, version, timestamp)
    return _Source(alias, table=found)


def _source_query(texts: Rewriting, source: _Source) -> tuple[Query, str | None]:
    if source.query is not None:
        return texts.query(source.query), source.alias
    query, own_name = texts.source()
    return query, source.alias or own_name


def _clauses(cursor: Cursor) -> dict[str, list[_Clause]]:
    found: dict[str, list[_Clause]] = {_MATCHED: [], _NOT_MATCHED: [], _BY_SOURCE: []}
    if not cursor.sees("WHEN"):
        raise cursor.failure("WHEN MATCHED or WHEN NOT MATCHED")
    while cursor.sees("WHEN"):
        start = cursor.at
        cursor.take()
        kind = _kind(cursor)
        if found[kind] and found[kind][-1].condition is None:
            cursor.at = start
            raise cursor.failure(
                f"no further WHEN {kind} (the previous one has no condition and takes every row)"
            )
        found[kind].append(_clause(cursor, kind))
    return found


def _kind(cursor: Cursor) -> str:
    if cursor.accept("MATCHED"):
        return _MATCHED
    if not cursor.accept("NOT", "MATCHED"):
        raise cursor.failure("MATCHED or NOT MATCHED")
    if not cursor.accept("BY"):
        return _NOT_MATCHED
    side = cursor.accept_any("TARGET", "SOURCE")
    if not side:
        raise cursor.failure("TARGET or SOURCE")
    return _BY_SOURCE if side == "SOURCE" else _NOT_MATCHED


def _clause(cursor: Cursor, kind: str) -> _Clause:
    clause = _Clause()
    if cursor.accept("AND"):
        clause.condition = skip_expression(cursor, ("THEN",), what="a condition")
    cursor.expect("THEN")
    if kind == _NOT_MATCHED:
        if not cursor.accept("INSERT"):
            raise cursor.failure(f"INSERT (WHEN {kind} has no row to change)")
        if not cursor.accept("*"):
            _insert(cursor, clause)
        return clause
    action = cursor.accept_any("UPDATE", "DELETE")
    if not action:
        raise cursor.failure("UPDATE or DELETE")
    if action == "DELETE":
        clause.deletes = True
        return clause
    cursor.expect("SET")
    if not cursor.sees("*"):
        clause.assignments = take_assignments(cursor, "WHEN")
    elif kind == _BY_SOURCE:
        raise cursor.failure("a column (WHEN NOT MATCHED BY SOURCE has no source row for *)")
    else:
        cursor.take()
    return clause


def _insert(cursor: Cursor, clause: _Clause) -> None:
    if not cursor.accept("("):
        raise cursor.failure("* or the columns in brackets")
    clause.columns = []
    while True:
        start = cursor.at
        path = cursor.path()
        if [p.lower() for p in path] in [[p.lower() for p in other] for other in clause.columns]:
            cursor.at = start
            raise cursor.failure("each column only once")
        clause.columns.append(path)
        if not cursor.accept(","):
            break
    cursor.expect(")", "VALUES", "(")
    while True:
        clause.values.append(take_value(cursor, (",", ")")))
        if not cursor.accept(","):
            break
    if len(clause.values) != len(clause.columns):
        raise cursor.failure(f"{len(clause.columns)} values, one for each column")
    cursor.expect(")")
