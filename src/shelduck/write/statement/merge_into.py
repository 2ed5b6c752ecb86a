"""MERGE INTO."""

from __future__ import annotations

from dataclasses import dataclass, field

from shelduck.model.tables.schema import Path
from shelduck.model.text.quoting import backticked
from shelduck.text.query.expressions import (
    AssignmentSpan,
    expression_of,
    skip_expression,
    take_assignments,
    take_target,
    take_value,
)
from shelduck.text.query.rewriting import Rewriting, Span
from shelduck.text.statements import row_statements as rs
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.write.statement.edit_clauses import take_source

_MATCHED, _NOT_MATCHED, _BY_SOURCE = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"


@dataclass(slots=True)
class _Clause:
    """A WHEN clause whose expressions are not rewritten yet."""

    condition: Span | None = None
    whole: rs.DeleteRow | rs.DoNothing | rs.RaiseError | None = None
    by_position: bool = False
    assignments: list[AssignmentSpan] | None = None
    columns: list[Path] | None = None
    values: list[Span | None] = field(default_factory=list)

    def changing(self, texts: Rewriting) -> rs.MatchedClause:
        """Return the clause as one that changes a row of the target."""
        condition = expression_of(texts, self.condition)
        if self.whole is not None:
            return rs.MatchedClause(self.whole, condition)
        if self.assignments is None:
            return rs.MatchedClause(rs.UpdateAll(self.by_position), condition)
        assignments = tuple(a.rewritten(texts) for a in self.assignments)
        return rs.MatchedClause(rs.UpdateSet(assignments), condition)

    def inserting(self, texts: Rewriting) -> rs.NotMatchedClause:
        """Return the clause as one that inserts a row."""
        condition = expression_of(texts, self.condition)
        if isinstance(self.whole, rs.DoNothing | rs.RaiseError):
            return rs.NotMatchedClause(self.whole, condition)
        if self.columns is None:
            return rs.NotMatchedClause(rs.InsertAll(self.by_position), condition)
        values = tuple(expression_of(texts, value) for value in self.values)
        return rs.NotMatchedClause(rs.InsertRow(tuple(self.columns), values), condition)


def with_queries_inside(cursor: Cursor) -> Cursor | None:
    """Return ``WITH q AS (…) MERGE …`` with the queries of WITH inside of its source.

    None for any other text.
    """
    tokens = cursor.tokens
    merge = cursor.at_top("MERGE", 1)
    using = None if merge is None else cursor.at_top("USING", merge)
    if merge is None or using is None or tokens[0].key != "WITH":
        return None
    inner = Cursor(cursor.text, tokens, using + 1)
    name = None if inner.sees("(") else inner.path("a source")[-1]
    if name is None:
        inner.skip_group()
    first, behind = tokens[using + 1].start, tokens[inner.at - 1].end
    # Otherwise it has an alias.
    called = f" AS {backticked(name)}" if name is not None and inner.sees("ON") else ""
    start = tokens[merge].start
    return cursor.moved(
        *(slice(start, first), "(", slice(tokens[0].start, start), "SELECT * FROM "),
        *(slice(first, behind), " AS __shelduck_inside)" if name is None else ")", called),
        slice(behind, tokens[-1].start),
    )


def read_merge(cursor: Cursor) -> rs.MergeStatement:
    """Read the statement behind ``MERGE``."""
    evolution = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    target, alias = take_target(cursor, "USING")
    cursor.expect("USING")
    source = take_source(cursor, "ON")
    behind = cursor.at
    condition, equal = _on(cursor)
    clauses = _clauses(cursor)
    cursor.end()
    spans = [*source.spans, (behind + 1, cursor.at)]
    texts = Rewriting(cursor, spans, target=target, source=source.table)
    query, source_alias = source.rewritten(texts)
    return rs.MergeStatement(
        texts.target(alias),
        query,
        source_alias,
        equal if condition is None else texts.expression(condition),
        tuple(c.changing(texts) for c in clauses[_MATCHED]),
        tuple(c.inserting(texts) for c in clauses[_NOT_MATCHED]),
        tuple(c.changing(texts) for c in clauses[_BY_SOURCE]),
        evolution,
    )


def _on(cursor: Cursor) -> tuple[Span | None, tuple[str, ...]]:
    """Take ON and a condition, or USING and the columns that are equal in both."""
    if cursor.accept("USING"):
        return None, cursor.columns()
    cursor.expect("ON")
    return skip_expression(cursor, ("WHEN",), what="a condition"), ()


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
    if cursor.accept("DO", "NOTHING"):
        clause.whole = rs.DoNothing()
    elif cursor.accept("ERROR"):
        has_text = cursor.peek().kind is TokenKind.STRING
        clause.whole = rs.RaiseError(cursor.string() if has_text else f"MERGE: WHEN {kind}")
    elif kind == _NOT_MATCHED:
        if not cursor.accept("INSERT"):
            raise cursor.failure(f"INSERT (WHEN {kind} has no row to change)")
        _insert(cursor, clause)
    elif cursor.accept("DELETE"):
        clause.whole = rs.DeleteRow()
    elif cursor.accept("UPDATE"):
        _update(cursor, clause, kind)
    else:
        raise cursor.failure("UPDATE or DELETE")
    return clause


def _update(cursor: Cursor, clause: _Clause, kind: str) -> None:
    """Take what follows UPDATE: SET and assignments, or all columns."""
    if cursor.accept("SET") and not cursor.sees("*"):
        clause.assignments = take_assignments(cursor, "WHEN")
        return
    if kind == _BY_SOURCE:
        raise cursor.failure("a column (WHEN NOT MATCHED BY SOURCE has no source row for *)")
    _take_all(cursor, clause)


def _take_all(cursor: Cursor, clause: _Clause) -> None:
    """Take ``*`` or BY NAME, else BY POSITION or nothing, which means that to DuckDB."""
    by_name = cursor.accept("*") or cursor.accept("BY", "NAME")
    if not by_name:
        cursor.accept("BY", "POSITION")
    clause.by_position = not by_name


def _insert(cursor: Cursor, clause: _Clause) -> None:
    """Take what follows INSERT: columns and values, or all columns."""
    if cursor.accept("VALUES", "("):
        clause.columns = []
        _take_values(cursor, clause)
        return
    if not cursor.accept("("):
        _take_all(cursor, clause)
        return
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
    _take_values(cursor, clause)


def _take_values(cursor: Cursor, clause: _Clause) -> None:
    clause.values += cursor.listed(lambda c: take_value(c, (",", ")")))
    if clause.columns and len(clause.values) != len(clause.columns):
        raise cursor.failure(f"{len(clause.columns)} values, one for each column")
    cursor.expect(")")
