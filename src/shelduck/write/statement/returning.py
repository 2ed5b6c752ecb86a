"""RETURNING: a statement that answers with the rows that it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shelduck.engine.session import DataFrame
from shelduck.errors import Unsupported
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import Committed
from shelduck.lake.table_changes import changes_of
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.images import CAME, nothing, rows_of, with_action
from shelduck.text.query.expressions import ends_operand
from shelduck.text.query.rewriting import read_query
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import Token, TokenKind
from shelduck.text.tokens.parts import Query, Statement
from shelduck.write.row_verbs import RowVerbs
from shelduck.write.statement import delete_and_update, insert_into, merge_into
from shelduck.write.statement.delete_and_update import Delete, DeleteUsing, Update
from shelduck.write.statement.insert_into import Insert
from shelduck.write.statement.merge_into import MergeStatement

RETURNING_VERBS = ("INSERT", "UPDATE", "DELETE", "MERGE")
ACTION = "merge_action"
"""The column in which MERGE says what it did to a row: INSERT, UPDATE or DELETE."""
_CHANGED = "__shelduck_changed__"
_ACTIONS = {"insert": "INSERT", "update_postimage": "UPDATE", "delete": "DELETE"}
Changing = Insert | Update | Delete | MergeStatement
_RUN = {
    one.value: one.run
    for module in (delete_and_update, insert_into, merge_into)
    for one in module.OPERATIONS
}


@dataclass(frozen=True, slots=True)
class Returning(Statement):
    """A statement with RETURNING; ``rows`` is the query over the rows that it changed.

    ``changed`` is the placeholder of these rows in the query.
    """

    statement: Changing
    rows: Query
    changed: str


def returning_at(cursor: Cursor) -> int | None:
    """Return which token is the word RETURNING of the statement, None without one.

    A column may be called so: it is the word only where an expression could end before it and
    another begins behind it.
    """
    depth = 0
    for n, token in enumerate(cursor.tokens[:-2]):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth or n == 0 or token.key != "RETURNING":
            continue
        behind = cursor.tokens[n + 1]
        starts = behind.key == "*" or behind.kind is not TokenKind.SYMBOL
        if starts and behind.key not in ("FROM", "WHERE", "AS") and ends_operand(cursor, n):
            return n
    return None


def with_returning(cursor: Cursor, at: int, read: Callable[[Cursor], Statement]) -> Returning:
    """Read a statement whose RETURNING is token ``at``; ``read`` reads what is before it."""
    tokens, word = cursor.tokens, cursor.tokens[at]
    inner = read(
        Cursor(
            cursor.text,
            [*tokens[:at], Token(TokenKind.END, "", word.start, word.start)],
            ntz=cursor.ntz,
        )
    )
    if not isinstance(inner, Changing):
        raise cursor.refusal("RETURNING", "use it with INSERT, UPDATE, DELETE or MERGE")
    target = inner.name.parts[-1] if isinstance(inner, Insert) else _alias(inner)
    listed = _returned(tokens[at + 1 :], leaves_action=type(inner) is MergeStatement)
    query = cursor.moved("SELECT ", *listed, f" FROM {_CHANGED} AS {backticked(target)}")
    return Returning(inner, read_query(query), _CHANGED)


def _returned(tokens: Sequence[Token], *, leaves_action: bool) -> Iterator[slice | str]:
    """Yield the parts of a list of columns, closed by END, in which ``*`` may leave one out."""
    start = tokens[0].start
    for n, token in enumerate(tokens[:-1] if leaves_action else ()):
        before = tokens[n - 1].key if n else ","
        if token.key == "*" and before in (",", ".") and tokens[n + 1].key in (",", ""):
            yield from (slice(start, token.end), f" EXCEPT ({ACTION})")
            start = token.end
    yield slice(start, tokens[-2].end)


def _alias(statement: Update | Delete | MergeStatement) -> str:
    if isinstance(statement, MergeStatement):
        return statement.target.alias
    return statement.rows.target.alias


def returning(runner: Runner, statement: Returning) -> DataFrame:
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
    done = _RUN[type(inner)](runner, inner)
    landed = done.snapshot if isinstance(done, Committed) else None
    rows = _shown(runner, table, landed, inner)
    return runner.query(statement.rows, given={statement.changed: rows})


def _shown(
    runner: Runner, table: TableVersion, snapshot: int | None, statement: Changing
) -> DataFrame:
    """Return the rows that a statement changed in a snapshot, none without one."""
    is_merge = type(statement) is MergeStatement
    if snapshot is None:
        return nothing(runner.verbs(RowVerbs, statement.name).read(), ACTION if is_merge else None)
    feed = changes_of(runner.state, table, snapshot, snapshot)
    if is_merge:
        return rows_of(with_action(feed, ACTION, _ACTIONS), _ACTIONS)
    is_delete = isinstance(statement, Delete | DeleteUsing)
    return rows_of(feed, ("delete",) if is_delete else CAME)


OPERATIONS = (Operation("RETURNING", Returning, returning),)
