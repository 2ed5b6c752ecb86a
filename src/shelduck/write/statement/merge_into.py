"""MERGE INTO."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from shelduck.engine.rows.assignments import SetValue
from shelduck.errors import InvalidRequest
from shelduck.lake.done import Done
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import Result
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.schema import Path
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.model.types.data_types import Member
from shelduck.text.query.expressions import (
    AssignmentSpan,
    expression_of,
    skip_expression,
    take_assignments,
    take_target,
    take_value,
)
from shelduck.text.query.rewriting import Rewriting, Span
from shelduck.text.query.value_rows import as_time
from shelduck.text.tokens.arguments import read_writer_words
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import Assignment, Expression, NamedTable, Query, Statement, Target
from shelduck.write.edit_verbs import merge_into
from shelduck.write.hooks import carry_out_rows, settled_rows
from shelduck.write.merge.merge_clauses import Merge, MergeAction, MergeClause, When
from shelduck.write.statement.row_sources import set_values, take_source

NAMELESS = "__shelduck_source__"
"""The alias of a source without one: its columns are referred to by name alone."""


@dataclass(frozen=True, slots=True)
class WrittenClause:
    """One WHEN … THEN as it is written; `MergeClause` has the values for a table.

    ``assignments`` are those of UPDATE and INSERT, None for ``*``: each column becomes the source's
    column of the same name or, with ``by_position``, place. Those of an INSERT without columns have
    no paths, and are for all columns of the table, in their order. ``message`` is that of ERROR.
    """

    when: When
    action: MergeAction
    condition: Expression | None = None
    assignments: tuple[Assignment, ...] | None = ()
    by_position: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class MergeStatement(Statement):
    """MERGE INTO, with at least one clause.

    A row takes the first clause of its kind whose condition is true; only the last of a kind may be
    without one. ``source_alias`` is None for a query without an alias; a table has its own name.
    ``condition`` may be the names of columns that are equal in both, for USING (…).
    """

    target: Target
    source: Query
    source_alias: str | None
    condition: Expression | tuple[str, ...]
    clauses: tuple[WrittenClause, ...]
    schema_evolution: bool = False
    expects: tuple[Member, ...] = ()

    @property
    def name(self) -> NamedTable:
        """The table that is changed."""
        return self.target.name


@dataclass(slots=True)
class _Clause:
    """A WHEN clause whose expressions are not rewritten yet."""

    when: When
    action: MergeAction = MergeAction.NOTHING
    condition: Span | None = None
    assignments: list[AssignmentSpan] | None = field(default_factory=list)
    by_position: bool = False
    message: str = ""

    def rewritten(self, texts: Rewriting) -> WrittenClause:
        """Return the clause as the statement holds it."""
        given = self.assignments
        return WrittenClause(
            *(self.when, self.action, expression_of(texts, self.condition)),
            None if given is None else tuple(a.rewritten(texts) for a in given),
            *(self.by_position, self.message),
        )


def read_merge(cursor: Cursor) -> MergeStatement:
    """Read the statement behind ``MERGE``."""
    evolution, expects = read_writer_words(cursor)
    cursor.expect("INTO")
    target, alias = take_target(cursor, "USING")
    cursor.expect("USING")
    source = take_source(cursor, "ON")
    behind = cursor.at
    condition, equal = _on(cursor)
    clauses = _taken_clauses(cursor)
    cursor.end()
    spans = [*source.spans, (behind + 1, cursor.at)]
    texts = Rewriting(cursor, spans, target=target, source=source.table)
    query, source_alias = source.rewritten(texts)
    return MergeStatement(
        texts.target(alias),
        query,
        source_alias,
        equal if condition is None else texts.expression(condition),
        tuple(clause.rewritten(texts) for clause in clauses),
        evolution,
        expects,
    )


def _on(cursor: Cursor) -> tuple[Span | None, tuple[str, ...]]:
    """Take ON and a condition, or USING and the columns that are equal in both."""
    if cursor.accept("USING"):
        return None, cursor.columns()
    cursor.expect("ON")
    return skip_expression(cursor, ("WHEN",), what="a condition"), ()


def _taken_clauses(cursor: Cursor) -> list[_Clause]:
    found: list[_Clause] = []
    if not cursor.sees("WHEN"):
        raise cursor.failure("WHEN MATCHED or WHEN NOT MATCHED")
    while cursor.sees("WHEN"):
        start = cursor.at
        cursor.take()
        kind = _kind(cursor)
        if any(each.when is kind and each.condition is None for each in found):
            cursor.at = start
            raise cursor.failure(
                f"no further WHEN {kind.value} (the previous one has no condition and takes every"
                " row)"
            )
        found.append(_clause(cursor, kind))
    return found


def _kind(cursor: Cursor) -> When:
    if cursor.accept("MATCHED"):
        return When.MATCHED
    if not cursor.accept("NOT", "MATCHED"):
        raise cursor.failure("MATCHED or NOT MATCHED")
    if not cursor.accept("BY"):
        return When.NOT_MATCHED
    side = cursor.accept_any("TARGET", "SOURCE")
    if not side:
        raise cursor.failure("TARGET or SOURCE")
    return When.NOT_MATCHED_BY_SOURCE if side == "SOURCE" else When.NOT_MATCHED


def _clause(cursor: Cursor, kind: When) -> _Clause:
    clause = _Clause(kind)
    if cursor.accept("AND"):
        clause.condition = skip_expression(cursor, ("THEN",), what="a condition")
    cursor.expect("THEN")
    if cursor.accept("DO", "NOTHING"):
        return clause
    if cursor.accept("ERROR"):
        clause.action = MergeAction.ERROR
        has_text = cursor.peek().kind is TokenKind.STRING
        clause.message = cursor.string() if has_text else f"MERGE: WHEN {kind.value}"
    elif kind is When.NOT_MATCHED:
        if not cursor.accept("INSERT"):
            raise cursor.failure(f"INSERT (WHEN {kind.value} has no row to change)")
        clause.action = MergeAction.INSERT
        _insert(cursor, clause)
    elif cursor.accept("DELETE"):
        clause.action = MergeAction.DELETE
    elif cursor.accept("UPDATE"):
        clause.action = MergeAction.UPDATE
        _update(cursor, clause)
    else:
        raise cursor.failure("UPDATE or DELETE")
    return clause


def _update(cursor: Cursor, clause: _Clause) -> None:
    """Take what follows UPDATE: SET and assignments, or all columns."""
    if cursor.accept("SET") and not cursor.sees("*"):
        clause.assignments = take_assignments(cursor, "WHEN")
        return
    if clause.when is When.NOT_MATCHED_BY_SOURCE:
        raise cursor.failure("a column (WHEN NOT MATCHED BY SOURCE has no source row for *)")
    _take_all(cursor, clause)


def _take_all(cursor: Cursor, clause: _Clause) -> None:
    """Take ``*`` or BY NAME, else BY POSITION or nothing, which means that to DuckDB."""
    by_name = cursor.accept("*") or cursor.accept("BY", "NAME")
    if not by_name:
        cursor.accept("BY", "POSITION")
    clause.assignments, clause.by_position = None, not by_name


def _insert(cursor: Cursor, clause: _Clause) -> None:
    """Take what follows INSERT: columns and values, or all columns."""
    columns: list[Path] = []
    if not cursor.accept("VALUES", "("):
        if not cursor.accept("("):
            _take_all(cursor, clause)
            return
        while True:
            start = cursor.at
            path = cursor.path()
            if [p.lower() for p in path] in [[p.lower() for p in other] for other in columns]:
                cursor.at = start
                raise cursor.failure("each column only once")
            columns.append(path)
            if not cursor.accept(","):
                break
        cursor.expect(")", "VALUES", "(")
    values = cursor.listed(lambda c: take_value(c, (",", ")")))
    if columns and len(values) != len(columns):
        raise cursor.failure(f"{len(columns)} values, one for each column")
    cursor.expect(")")
    clause.assignments = list(map(AssignmentSpan, columns or [()] * len(values), values))


def merge(runner: Runner, statement: MergeStatement) -> Result:
    """MERGE INTO."""

    def prepare(unit: UnitOfWork) -> Done:
        inside = runner.inside(unit)
        rows = settled_rows(unit, inside.name(statement.name))
        source, on = inside.query(statement.source), statement.condition
        with inside.views(*_expressions_of(statement)) as named:
            work = _Clauses(statement, rows.table, source.columns, named)
            wanted = Merge(
                on if isinstance(on, tuple) else named(on.text),
                tuple(map(work.made, statement.clauses)),
                statement.target.alias,
                statement.source_alias or NAMELESS,
                statement.schema_evolution,
                expects=statement.expects,
            )
            return merge_into(runner.state, rows, source, wanted)

    return carry_out_rows(runner.state, runner.unit, prepare)


def _expressions_of(statement: MergeStatement) -> Iterator[Expression | None]:
    if isinstance(statement.condition, Expression):
        yield statement.condition
    for clause in statement.clauses:
        yield clause.condition
        yield from (a.value for a in clause.assignments or ())


@dataclass(frozen=True, slots=True)
class _Clauses:
    """The clauses of a MERGE for a table; ``given`` are the source's columns.

    ``named`` replaces placeholders in a text by names of tables.
    """

    statement: MergeStatement
    table: TableVersion
    given: Sequence[str]
    named: Callable[[str], str]

    def made(self, clause: WrittenClause) -> MergeClause:
        """Return a clause with its values."""
        condition, values = self._text(clause.condition), clause.assignments
        made: Sequence[SetValue] | None = None
        if values is None:
            made = self._in_places() if clause.by_position else None
        elif clause.action is MergeAction.INSERT:
            made = self._row(
                [a.path for a in values if a.path], [self._text(a.value) for a in values]
            )
        else:
            made = set_values(self.statement.target, values, self.table, self.named)
        found = None if made is None else tuple(made)
        return MergeClause(clause.when, clause.action, found, condition, clause.message)

    def _text(self, found: Expression | None) -> str | None:
        return None if found is None else self.named(found.text)

    def _in_places(self) -> list[SetValue]:
        """Return for each column of the table the source's column at its place."""
        alias = backticked(self.statement.source_alias or NAMELESS)
        return self._row([], [f"{alias}.{backticked(name)}" for name in self.given])

    def _row(self, columns: Sequence[Path], values: Sequence[str | None]) -> list[SetValue]:
        paths = columns or [(name,) for name in self.table.columns.names]
        if len(paths) != len(values):
            raise InvalidRequest(
                f"MERGE INTO {self.table.full_name}: the table has {len(paths)} column(s), but the"
                f" row to insert or update has {len(values)} value(s); use BY NAME, or list the"
                " columns"
            )
        known = self.table.columns
        return [
            SetValue(path, None if value is None else as_time(value, known.find(path)))
            for path, value in zip(paths, values, strict=True)
        ]


OPERATIONS = (Operation("MERGE", MergeStatement, merge, read_merge, counts=True),)
