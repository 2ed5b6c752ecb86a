"""Statements that change existing rows, MERGE and its clauses, and RETURNING."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shelduck.doors.sql.run import inserts
from shelduck.doors.sql.runner import Runner, by_statement
from shelduck.engine.rows.assignments import SetValue
from shelduck.engine.session import DataFrame
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.done import Done
from shelduck.lake.results import Committed, Result
from shelduck.lake.table_changes import changes_of
from shelduck.lake.unit import UnitOfWork
from shelduck.model.tables.schema import Path
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.quoting import backticked
from shelduck.read.scan.images import CAME, nothing, rows_of, with_action
from shelduck.read.scan.matching import Where
from shelduck.text.statements import row_statements as st
from shelduck.text.statements.upkeep_statements import Restore
from shelduck.text.tokens.parts import Expression, Target
from shelduck.write.edit_verbs import delete_from, merge_into, update_in
from shelduck.write.hooks import carry_out_rows, changed_rows, settled_rows
from shelduck.write.merge.merge_clauses import Merge, MergeAction, MergeClause, When
from shelduck.write.statement.edit_clauses import ACTION
from shelduck.write.statement.insert import as_time

NAMELESS = "__shelduck_source__"
"""The alias of a source without one: its columns are referred to by name alone."""
_ACTIONS = {"insert": "INSERT", "update_postimage": "UPDATE", "delete": "DELETE"}
Changing = st.Insert | st.Update | st.Delete | st.MergeStatement


def delete(runner: Runner, statement: st.Delete) -> Result:
    """DELETE FROM."""
    condition = statement.rows.condition
    if condition is None:
        return runner.table(statement.name).truncate()

    def prepare(unit: UnitOfWork) -> Done:
        inside = Runner(runner.state, unit)
        rows = changed_rows(unit, inside.name(statement.name))
        with inside.views(condition) as named:
            where = Where(named(condition.text), statement.rows.target.alias)
            return delete_from(unit, rows, where)

    return carry_out_rows(runner.state, runner.unit, prepare)


def truncate(runner: Runner, statement: st.Truncate) -> Result:
    """TRUNCATE TABLE."""
    return runner.table(statement.name).truncate()


def update(runner: Runner, statement: st.Update) -> Result:
    """UPDATE … SET."""
    target, condition = statement.rows.target, statement.rows.condition

    def prepare(unit: UnitOfWork) -> Done:
        inside = Runner(runner.state, unit)
        rows = settled_rows(unit, inside.name(statement.name))
        with inside.views(condition, *(a.value for a in statement.assignments)) as named:
            where = Where(named(condition.text) if condition else "true", target.alias)
            values = set_values(target, statement.assignments, rows.table, named)
            return update_in(runner.state, rows, values, where)

    return carry_out_rows(runner.state, runner.unit, prepare)


def merge(runner: Runner, statement: st.MergeStatement) -> Result:
    """MERGE INTO."""

    def prepare(unit: UnitOfWork) -> Done:
        inside = Runner(runner.state, unit)
        rows = settled_rows(unit, inside.name(statement.name))
        source, on = inside.query(statement.source), statement.condition
        with inside.views(*expressions_of(statement)) as named:
            wanted = Merge(
                on if isinstance(on, tuple) else named(on.text),
                tuple(clauses_of(statement, rows.table, source.columns, named)),
                statement.target.alias,
                statement.source_alias or NAMELESS,
                statement.schema_evolution,
            )
            return merge_into(runner.state, rows, source, wanted)

    return carry_out_rows(runner.state, runner.unit, prepare)


def restore(runner: Runner, statement: Restore) -> Result:
    """RESTORE TABLE ... TO VERSION or TIMESTAMP AS OF."""
    table = runner.table(statement.name)
    return table.restore(version=statement.version, timestamp=statement.timestamp)


RUN = by_statement(delete, truncate, update, merge, restore) | {
    st.UpdateFrom: merge,
    st.DeleteUsing: merge,
}


def expressions_of(statement: st.MergeStatement) -> Iterator[Expression | None]:
    """Yield all expressions of a MERGE."""
    if isinstance(statement.condition, Expression):
        yield statement.condition
    for clause in (*statement.matched, *statement.not_matched_by_source):
        yield clause.condition
        if isinstance(clause.action, st.UpdateSet):
            yield from (a.value for a in clause.action.assignments)
    for insert in statement.not_matched:
        yield insert.condition
        if isinstance(insert.action, st.InsertRow):
            yield from insert.action.values


def clauses_of(
    statement: st.MergeStatement,
    table: TableVersion,
    given: Sequence[str],
    named: Callable[[str], str],
) -> Iterator[MergeClause]:
    """Yield the clauses of a MERGE; ``given`` are the source's columns.

    ``named`` replaces placeholders in a text by names of tables.
    """
    work = _Clauses(statement, table, given, named)
    for clause in statement.matched:
        yield work.changing(When.MATCHED, clause)
    for clause in statement.not_matched_by_source:
        yield work.changing(When.NOT_MATCHED_BY_SOURCE, clause)
    for new in statement.not_matched:
        yield work.inserting(new)


@dataclass(frozen=True, slots=True)
class _Clauses:
    statement: st.MergeStatement
    table: TableVersion
    given: Sequence[str]
    named: Callable[[str], str]

    def changing(self, when: When, clause: st.MatchedClause) -> MergeClause:
        """Return a clause for rows of the table."""
        condition = self._text(clause.condition)
        match clause.action:
            case st.DeleteRow():
                return MergeClause(when, MergeAction.DELETE, condition=condition)
            case st.UpdateAll(by_position):
                values = self._in_places() if by_position else None
                return MergeClause(when, MergeAction.UPDATE, values, condition)
            case st.UpdateSet(assignments):
                found = set_values(self.statement.target, assignments, self.table, self.named)
                return MergeClause(when, MergeAction.UPDATE, tuple(found), condition)
            case other:
                return _without_values(when, other, condition)

    def inserting(self, clause: st.NotMatchedClause) -> MergeClause:
        """Return a clause for rows of the source alone."""
        when, condition = When.NOT_MATCHED, self._text(clause.condition)
        match clause.action:
            case st.InsertAll(by_position):
                values = self._in_places() if by_position else None
                return MergeClause(when, MergeAction.INSERT, values, condition)
            case st.InsertRow(columns, cells):
                texts = [self._text(cell) for cell in cells]
                return MergeClause(when, MergeAction.INSERT, self._row(columns, texts), condition)
            case other:
                return _without_values(when, other, condition)

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


def _without_values(
    when: When, action: st.DoNothing | st.RaiseError, condition: str | None
) -> MergeClause:
    if isinstance(action, st.RaiseError):
        return MergeClause(when, MergeAction.ERROR, condition=condition, message=action.message)
    return MergeClause(when, MergeAction.NOTHING, condition=condition)


def set_values(
    target: Target,
    assignments: Sequence[st.Assignment],
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


_EDITS = inserts.RUN | RUN


def returning(runner: Runner, statement: st.Returning) -> DataFrame:
    """Run a statement and return what RETURNING asks of the rows that it changed.

    INSERT and UPDATE return rows as they are now, DELETE as they were; MERGE returns both, with
    ``merge_action``. They are read after the commit, at its snapshot.
    """
    inner = statement.statement
    if runner.unit is not None:
        raise Unsupported(
            "RETURNING is not supported in a transaction; SELECT the rows after the statement"
        )
    # Refuse what RETURNING cannot be before anything is changed.
    table = runner.version(inner.name)
    runner.query(statement.rows, given={statement.changed: _shown(runner, table, None, inner)})
    done = _EDITS[type(inner)](runner, inner)
    landed = done.snapshot if isinstance(done, Committed) else None
    rows = _shown(runner, table, landed, inner)
    return runner.query(statement.rows, given={statement.changed: rows})


def _shown(
    runner: Runner, table: TableVersion, snapshot: int | None, statement: Changing
) -> DataFrame:
    """Return the rows that a statement changed in a snapshot, none without one."""
    is_merge = type(statement) is st.MergeStatement
    if snapshot is None:
        return nothing(runner.table(statement.name).read(), ACTION if is_merge else None)
    feed = changes_of(runner.state, table, snapshot, snapshot)
    if is_merge:
        return rows_of(with_action(feed, ACTION, _ACTIONS), _ACTIONS)
    is_delete = isinstance(statement, st.Delete | st.DeleteUsing)
    return rows_of(feed, ("delete",) if is_delete else CAME)


RETURNING = by_statement(returning)
