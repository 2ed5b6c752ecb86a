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
class UpdateAll:
    """UPDATE SET *: each column becomes the source's column of the same name, or place."""

    by_position: bool = False


@dataclass(frozen=True, slots=True)
class UpdateSet:
    """UPDATE SET with assignments, no path of which is equal to another one or within it."""

    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class DeleteRow:
    """DELETE, as an action of MERGE."""


@dataclass(frozen=True, slots=True)
class DoNothing:
    """DO NOTHING: the row stays, or does not come, and no later clause takes it."""


@dataclass(frozen=True, slots=True)
class RaiseError:
    """ERROR: a row that the clause takes fails the statement."""

    message: str


@dataclass(frozen=True, slots=True)
class InsertAll:
    """INSERT *: each column is the source's column of the same name, or place."""

    by_position: bool = False


@dataclass(frozen=True, slots=True)
class InsertRow:
    """INSERT (columns) VALUES (values): as many values as columns, None for DEFAULT.

    No columns are all columns of the table, in their order.
    """

    columns: tuple[Path, ...]
    values: tuple[Expression | None, ...]


@dataclass(frozen=True, slots=True)
class MatchedClause:
    """WHEN MATCHED or WHEN NOT MATCHED BY SOURCE; the latter never holds UpdateAll."""

    action: UpdateAll | UpdateSet | DeleteRow | DoNothing | RaiseError
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class NotMatchedClause:
    """WHEN NOT MATCHED [BY TARGET]; the condition sees the source alone."""

    action: InsertAll | InsertRow | DoNothing | RaiseError
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class MergeStatement(Statement):
    """MERGE INTO: the clauses of each kind in order, at least one in all.

    A row takes the first clause of its kind whose condition is true; only the last of a kind may be
    without one. ``source_alias`` is None for a query without an alias; a table has its own name.
    ``condition`` may be the names of columns that are equal in both, for USING (…).
    """

    target: Target
    source: Query
    source_alias: str | None
    condition: Expression | tuple[str, ...]
    matched: tuple[MatchedClause, ...] = ()
    not_matched: tuple[NotMatchedClause, ...] = ()
    not_matched_by_source: tuple[MatchedClause, ...] = ()
    schema_evolution: bool = False
    expects: tuple[Member, ...] = ()

    @property
    def name(self) -> NamedTable:
        """The table that is changed."""
        return self.target.name

    @property
    def clauses(self) -> list[tuple[When, MatchedClause | NotMatchedClause]]:
        """All clauses, each with the rows that it is for."""
        of_kinds: dict[When, Sequence[MatchedClause | NotMatchedClause]] = {
            When.MATCHED: self.matched,
            When.NOT_MATCHED_BY_SOURCE: self.not_matched_by_source,
            When.NOT_MATCHED: self.not_matched,
        }
        return [(when, clause) for when, some in of_kinds.items() for clause in some]


@dataclass(slots=True)
class _Clause:
    """A WHEN clause whose expressions are not rewritten yet."""

    condition: Span | None = None
    whole: DeleteRow | DoNothing | RaiseError | None = None
    by_position: bool = False
    assignments: list[AssignmentSpan] | None = None
    columns: list[Path] | None = None
    values: list[Span | None] = field(default_factory=list)

    def changing(self, texts: Rewriting) -> MatchedClause:
        """Return the clause as one that changes a row of the target."""
        condition = expression_of(texts, self.condition)
        if self.whole is not None:
            return MatchedClause(self.whole, condition)
        if self.assignments is None:
            return MatchedClause(UpdateAll(self.by_position), condition)
        assignments = tuple(a.rewritten(texts) for a in self.assignments)
        return MatchedClause(UpdateSet(assignments), condition)

    def inserting(self, texts: Rewriting) -> NotMatchedClause:
        """Return the clause as one that inserts a row."""
        condition = expression_of(texts, self.condition)
        if isinstance(self.whole, DoNothing | RaiseError):
            return NotMatchedClause(self.whole, condition)
        if self.columns is None:
            return NotMatchedClause(InsertAll(self.by_position), condition)
        values = tuple(expression_of(texts, value) for value in self.values)
        return NotMatchedClause(InsertRow(tuple(self.columns), values), condition)


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
        tuple(c.changing(texts) for c in clauses[When.MATCHED]),
        tuple(c.inserting(texts) for c in clauses[When.NOT_MATCHED]),
        tuple(c.changing(texts) for c in clauses[When.NOT_MATCHED_BY_SOURCE]),
        evolution,
        expects,
    )


def _on(cursor: Cursor) -> tuple[Span | None, tuple[str, ...]]:
    """Take ON and a condition, or USING and the columns that are equal in both."""
    if cursor.accept("USING"):
        return None, cursor.columns()
    cursor.expect("ON")
    return skip_expression(cursor, ("WHEN",), what="a condition"), ()


def _taken_clauses(cursor: Cursor) -> dict[When, list[_Clause]]:
    found: dict[When, list[_Clause]] = {when: [] for when in When}
    if not cursor.sees("WHEN"):
        raise cursor.failure("WHEN MATCHED or WHEN NOT MATCHED")
    while cursor.sees("WHEN"):
        start = cursor.at
        cursor.take()
        kind = _kind(cursor)
        if found[kind] and found[kind][-1].condition is None:
            cursor.at = start
            raise cursor.failure(
                f"no further WHEN {kind.value} (the previous one has no condition and takes every"
                " row)"
            )
        found[kind].append(_clause(cursor, kind))
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
    clause = _Clause()
    if cursor.accept("AND"):
        clause.condition = skip_expression(cursor, ("THEN",), what="a condition")
    cursor.expect("THEN")
    if cursor.accept("DO", "NOTHING"):
        clause.whole = DoNothing()
    elif cursor.accept("ERROR"):
        has_text = cursor.peek().kind is TokenKind.STRING
        clause.whole = RaiseError(cursor.string() if has_text else f"MERGE: WHEN {kind.value}")
    elif kind is When.NOT_MATCHED:
        if not cursor.accept("INSERT"):
            raise cursor.failure(f"INSERT (WHEN {kind.value} has no row to change)")
        _insert(cursor, clause)
    elif cursor.accept("DELETE"):
        clause.whole = DeleteRow()
    elif cursor.accept("UPDATE"):
        _update(cursor, clause, kind)
    else:
        raise cursor.failure("UPDATE or DELETE")
    return clause


def _update(cursor: Cursor, clause: _Clause, kind: When) -> None:
    """Take what follows UPDATE: SET and assignments, or all columns."""
    if cursor.accept("SET") and not cursor.sees("*"):
        clause.assignments = take_assignments(cursor, "WHEN")
        return
    if kind is When.NOT_MATCHED_BY_SOURCE:
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


def merge(runner: Runner, statement: MergeStatement) -> Result:
    """MERGE INTO."""

    def prepare(unit: UnitOfWork) -> Done:
        inside = runner.inside(unit)
        rows = settled_rows(unit, inside.name(statement.name))
        source, on = inside.query(statement.source), statement.condition
        with inside.views(*expressions_of(statement)) as named:
            wanted = Merge(
                on if isinstance(on, tuple) else named(on.text),
                tuple(clauses_of(statement, rows.table, source.columns, named)),
                statement.target.alias,
                statement.source_alias or NAMELESS,
                statement.schema_evolution,
                expects=statement.expects,
            )
            return merge_into(runner.state, rows, source, wanted)

    return carry_out_rows(runner.state, runner.unit, prepare)


def expressions_of(statement: MergeStatement) -> Iterator[Expression | None]:
    """Yield all expressions of a MERGE."""
    if isinstance(statement.condition, Expression):
        yield statement.condition
    for _, clause in statement.clauses:
        yield clause.condition
        match clause.action:
            case UpdateSet(assignments):
                yield from (a.value for a in assignments)
            case InsertRow(_, values):
                yield from values


def clauses_of(
    statement: MergeStatement,
    table: TableVersion,
    given: Sequence[str],
    named: Callable[[str], str],
) -> Iterator[MergeClause]:
    """Return the clauses of a MERGE; ``given`` are the source's columns.

    ``named`` replaces placeholders in a text by names of tables.
    """
    work = _Clauses(statement, table, given, named)
    return (work.made(when, clause) for when, clause in statement.clauses)


@dataclass(frozen=True, slots=True)
class _Clauses:
    statement: MergeStatement
    table: TableVersion
    given: Sequence[str]
    named: Callable[[str], str]

    def made(self, when: When, clause: MatchedClause | NotMatchedClause) -> MergeClause:
        """Return a clause with its values."""
        condition = self._text(clause.condition)
        match clause.action:
            case DeleteRow():
                return MergeClause(when, MergeAction.DELETE, condition=condition)
            case DoNothing():
                return MergeClause(when, MergeAction.NOTHING, condition=condition)
            case RaiseError(message):
                return MergeClause(when, MergeAction.ERROR, condition=condition, message=message)
            case UpdateSet(assignments):
                found = set_values(self.statement.target, assignments, self.table, self.named)
                return MergeClause(when, MergeAction.UPDATE, tuple(found), condition)
            case InsertRow(columns, cells):
                texts = [self._text(cell) for cell in cells]
                return MergeClause(when, MergeAction.INSERT, self._row(columns, texts), condition)
            case UpdateAll(by_position) | InsertAll(by_position) as every:
                is_new = isinstance(every, InsertAll)
                action = MergeAction.INSERT if is_new else MergeAction.UPDATE
                values = self._in_places() if by_position else None
                return MergeClause(when, action, values, condition)

    def _text(self, found: Expression | None) -> str | None:
        return None if found is None else self.named(found.text)

    def _in_places(self) -> tuple[SetValue, ...]:
        """Return for each column of the table the source's column at its place."""
        alias = backticked(self.statement.source_alias or NAMELESS)
        return self._row((), [f"{alias}.{backticked(name)}" for name in self.given])

    def _row(self, columns: Sequence[Path], values: Sequence[str | None]) -> tuple[SetValue, ...]:
        paths = columns or [(name,) for name in self.table.columns.names]
        if len(paths) != len(values):
            raise InvalidRequest(
                f"MERGE INTO {self.table.full_name}: the table has {len(paths)} column(s), but the"
                f" row to insert or update has {len(values)} value(s); use BY NAME, or list the"
                " columns"
            )
        known = self.table.columns
        return tuple(
            SetValue(path, None if value is None else as_time(value, known.find(path)))
            for path, value in zip(paths, values, strict=True)
        )


OPERATIONS = (Operation("MERGE", MergeStatement, merge, read_merge, counts=True),)
