"""CREATE, DROP, SHOW, USE and MERGE of branches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from shelduck.branches.branch_tables import require_branch
from shelduck.branches.merging import Resolution
from shelduck.branches.verb import BranchVerbs
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import PlainRows, Result, Unchanged
from shelduck.text.tokens.arguments import ShowObjects, is_like, listing
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import SchemaName, Statement


@dataclass(frozen=True, slots=True)
class CreateBranch(Statement):
    """CREATE BRANCH."""

    name: SchemaName
    source: SchemaName | None = None
    version: int | None = None
    timestamp: str | datetime | None = None
    tables: tuple[str, ...] | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropBranch(Statement):
    """DROP BRANCH."""

    name: SchemaName
    if_exists: bool = False


class ShowBranches(ShowObjects):
    """SHOW BRANCHES."""


@dataclass(frozen=True, slots=True)
class UseBranch(Statement):
    """USE BRANCH: names without a schema mean tables of the branch from now on."""

    name: SchemaName


@dataclass(frozen=True, slots=True)
class MergeBranch(Statement):
    """MERGE BRANCH; with ``dry_run``, only what it would do."""

    name: SchemaName
    into: SchemaName | None = None
    resolve: tuple[Resolution, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class UndoMerge(Statement):
    """UNDO MERGE BRANCH."""

    name: SchemaName


def read_create(cursor: Cursor) -> CreateBranch:
    """Read the statement behind ``CREATE BRANCH``."""
    if_not_exists = cursor.accept_if("NOT", "EXISTS")
    name = cursor.schema_name()
    version, timestamp, source, tables = None, None, None, None
    if cursor.accept("FROM") and not cursor.sees("VERSION") and not cursor.sees("TIMESTAMP"):
        source = cursor.schema_name()
    if cursor.accept("VERSION"):
        cursor.accept("AS", "OF")
        version = cursor.whole("a snapshot")
    elif cursor.accept("TIMESTAMP"):
        cursor.accept("AS", "OF")
        timestamp = cursor.string("a time as a string")
    if cursor.accept("WITH", "TABLES"):
        tables = cursor.in_brackets(lambda c: c.name("a table"))
    return CreateBranch(name, source, version, timestamp, tables, if_not_exists)


def read_drop(cursor: Cursor) -> DropBranch:
    """Read the statement behind ``DROP BRANCH``."""
    if_exists = cursor.accept_if("EXISTS")
    return DropBranch(cursor.schema_name(), if_exists)


def read_use(cursor: Cursor) -> UseBranch:
    """Read the statement behind ``USE BRANCH``."""
    return UseBranch(cursor.schema_name())


def read_merge(cursor: Cursor) -> MergeBranch:
    """Read the statement behind ``MERGE BRANCH``."""
    name = cursor.schema_name()
    into = cursor.schema_name() if cursor.accept("INTO") else None
    resolve = cursor.listed(_resolution) if cursor.accept("RESOLVE") else ()
    dry_run = cursor.accept("DRY", "RUN")
    return MergeBranch(name, into, tuple(resolve), dry_run)


def _resolution(cursor: Cursor) -> Resolution:
    """Read ``t USING OURS``, ``t.c USING THEIRS``, ``t WHERE (n > 1) USING OURS``, or ``ALL``."""
    table, column, where = None, None, None
    if not cursor.accept("ALL"):
        table = cursor.name("a table, or ALL")
        column = cursor.name("a column") if cursor.accept(".") else None
    if column is None and cursor.accept("WHERE"):
        start = cursor.at
        cursor.expect("(")
        cursor.at = start
        cursor.skip_group()
        where = cursor.since(start)
    cursor.expect("USING")
    using = cursor.accept_any("OURS", "THEIRS")
    if not using:
        raise cursor.failure("OURS or THEIRS")
    return Resolution(using.lower(), table, column, where)


def create_branch(runner: Runner, statement: CreateBranch) -> Result:
    """CREATE BRANCH."""
    source = statement.source
    return BranchVerbs(runner.state, runner.unit).create_branch(
        statement.name.schema,
        runner.state.current.schema if source is None else source.schema,
        version=statement.version,
        timestamp=statement.timestamp,
        tables=statement.tables,
        if_not_exists=statement.if_not_exists,
    )


def drop_branch(runner: Runner, statement: DropBranch) -> Result:
    """DROP BRANCH."""
    verbs = BranchVerbs(runner.state, runner.unit)
    return verbs.drop_branch(statement.name.schema, if_exists=statement.if_exists)


def show_branches(runner: Runner, statement: ShowBranches) -> PlainRows:
    """SHOW BRANCHES: what each came from, since when, and how many tables it has."""
    found = BranchVerbs(runner.state, runner.unit).branches()
    rows = [(b.name, b.source, b.base, b.tables) for b in found if is_like(b.name, statement.like)]
    return PlainRows("branch string, source string, base bigint, tables bigint", rows)


def use_branch(runner: Runner, statement: UseBranch) -> Result:
    """USE BRANCH."""
    schema = require_branch(runner.view(), statement.name.schema)
    runner.state.current.schema = schema
    return Unchanged(runner.view().workspace.base.id)


def merge_branch(runner: Runner, statement: MergeBranch) -> Result | PlainRows:
    """MERGE BRANCH, or what it would do."""
    verbs, name = BranchVerbs(runner.state, runner.unit), statement.name.schema
    require_branch(runner.view(), name, statement.into.schema if statement.into else None)
    if statement.dry_run:
        return verbs.branch_diff(name, resolve=statement.resolve).told
    return verbs.merge_branch(name, statement.resolve)


def read_undo(cursor: Cursor) -> UndoMerge:
    """Read the statement behind ``UNDO MERGE BRANCH``."""
    return UndoMerge(cursor.schema_name())


def undo_merge(runner: Runner, statement: UndoMerge) -> Result:
    """UNDO MERGE BRANCH."""
    return BranchVerbs(runner.state, runner.unit).undo_merge(statement.name.schema)


OPERATIONS = (
    Operation("CREATE BRANCH", CreateBranch, create_branch, read_create, only_lakes=True),
    Operation("DROP BRANCH", DropBranch, drop_branch, read_drop, only_lakes=True),
    Operation(
        *("SHOW BRANCHES", ShowBranches, show_branches, listing(ShowBranches)),
        only_lakes=True,
        of_current=True,
    ),
    Operation("USE BRANCH", UseBranch, use_branch, read_use, only_lakes=True),
    Operation("MERGE BRANCH", MergeBranch, merge_branch, read_merge, only_lakes=True),
    Operation("UNDO MERGE BRANCH", UndoMerge, undo_merge, read_undo, only_lakes=True),
)
