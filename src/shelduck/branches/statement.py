"""CREATE, DROP, SHOW, USE and MERGE of branches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from shelduck.branches.branch_tables import require_branch
from shelduck.branches.merging import Resolution
from shelduck.branches.verb import (
    BranchVerbs,
    NewBranch,
    branch_table,
    create_branch,
    drop_branch_of_table,
)
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import PlainRows, Result, Unchanged, table_name
from shelduck.lake.unit import refuse_in_transaction
from shelduck.text.tokens.arguments import ShowObjects, is_like, listing
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import tokenize
from shelduck.text.tokens.parts import NamedTable, OfAltered, OfSchema, SchemaName


@dataclass(frozen=True, slots=True)
class CreateBranch(OfSchema):
    """CREATE BRANCH, whose name is that of the schema; ``wish`` says the rest of the branch."""

    wish: NewBranch
    source: SchemaName | None = None
    tables: tuple[str, ...] | None = None


class CreateTag(CreateBranch):
    """CREATE TAG."""


@dataclass(frozen=True, slots=True)
class DropBranch(OfSchema):
    """DROP BRANCH."""

    if_exists: bool = False


class DropTag(DropBranch):
    """DROP TAG."""


class ShowBranches(ShowObjects):
    """SHOW BRANCHES."""


class ShowTags(ShowObjects):
    """SHOW TAGS."""


@dataclass(frozen=True, slots=True)
class BranchTable(OfAltered):
    """Iceberg's ALTER TABLE … CREATE, REPLACE or DROP of a BRANCH or TAG of one table."""

    word: str
    wish: NewBranch


class UseBranch(OfSchema):
    """USE BRANCH: names without a schema mean tables of the branch from now on."""


@dataclass(frozen=True, slots=True)
class MergeBranch(OfSchema):
    """MERGE BRANCH; with ``dry_run``, only what it would do."""

    into: SchemaName | None = None
    resolve: tuple[Resolution, ...] = ()
    dry_run: bool = False


class UndoMerge(OfSchema):
    """UNDO MERGE BRANCH."""


def read_create(kind: type[CreateBranch], cursor: Cursor) -> CreateBranch:
    """Read the statement behind ``CREATE BRANCH`` or ``CREATE TAG``."""
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
    begin = version, timestamp, _retained(cursor)
    wish = NewBranch(name.schema, kind is CreateTag, *begin, if_not_exists)
    return kind(name, wish, source, tables)


def _retained(cursor: Cursor) -> str | None:
    """Take RETAIN and a span, and return that."""
    if not cursor.accept("RETAIN"):
        return None
    number = cursor.whole("a number of days")
    unit = cursor.accept_any("DAYS", "HOURS", "MINUTES", "DAY", "HOUR", "MINUTE")
    if not unit:
        raise cursor.failure("DAYS, HOURS or MINUTES")
    return f"{number} {unit.lower()}"


def read_drop(kind: type[DropBranch], cursor: Cursor) -> DropBranch:
    """Read the statement behind ``DROP BRANCH`` or ``DROP TAG``."""
    if_exists = cursor.accept_if("EXISTS")
    return kind(cursor.schema_name(), if_exists)


def read_of_table(cursor: Cursor, name: NamedTable) -> BranchTable | None:
    """Read what stands behind ``ALTER TABLE t``; None for a column called branch or tag."""
    start = cursor.at
    word = cursor.take().key
    replaces = cursor.accept("OR", "REPLACE")
    is_tag = cursor.take().key == "TAG"
    if_not_exists = word == "CREATE" and cursor.accept_if("NOT", "EXISTS")
    if_exists = word == "DROP" and cursor.accept_if("EXISTS")
    if not cursor.peek().may_name or cursor.sees(","):
        cursor.at = start
        return None
    branch = cursor.name("a branch")
    version = cursor.whole("a snapshot") if cursor.accept("AS", "OF", "VERSION") else None
    retain = _retained(cursor)
    if cursor.sees("WITH", "SNAPSHOT", "RETENTION"):
        raise cursor.refusal(
            "WITH SNAPSHOT RETENTION",
            "snapshots are those of the whole lake: leave it out, and use CALL expire_snapshots()",
        )
    word = "CREATE OR REPLACE" if replaces else word
    wish = NewBranch(branch, is_tag, version, None, retain, if_not_exists or if_exists)
    return BranchTable(name, word, wish)


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


def resolution_of(text: str) -> Resolution:
    """Return what stands behind RESOLVE, given on its own."""
    cursor = Cursor(text, tokenize(text))
    found = _resolution(cursor)
    cursor.end()
    return found


def make_branch(runner: Runner, statement: CreateBranch) -> Result:
    """CREATE BRANCH, or CREATE TAG."""
    # `read_create` saw the name with its catalog, which is gone now.
    wish = replace(statement.wish, name=statement.name.schema)
    source = statement.source.schema if statement.source else runner.state.current.schema
    return create_branch(runner.state, runner.unit, wish, source, statement.tables)


def drop_branch(runner: Runner, statement: DropBranch) -> Result:
    """DROP BRANCH, or DROP TAG."""
    verbs = BranchVerbs(runner.state, runner.unit)
    drop = verbs.drop_tag if isinstance(statement, DropTag) else verbs.drop_branch
    return drop(statement.name.schema, if_exists=statement.if_exists)


def branch_of_table(runner: Runner, statement: BranchTable) -> Result:
    """ALTER TABLE … CREATE, REPLACE or DROP of a BRANCH or TAG."""
    word, wish = statement.word, statement.wish
    # Whatever branch the session works on.
    table = table_name(statement.name.parts, runner.state.current.schema)
    if word == "DROP":
        return drop_branch_of_table(
            runner.state, runner.unit, table, wish, if_exists=wish.if_not_exists
        )
    refuse_in_transaction(runner.unit, f"{word} {wish.kind.upper()}")
    creates, replaces = word != "REPLACE", word != "CREATE"
    return branch_table(runner.state, table, wish, creates=creates, replaces=replaces)


def show_branches(runner: Runner, statement: ShowBranches | ShowTags) -> PlainRows:
    """SHOW BRANCHES, or TAGS: what each came from, since when, how many tables, until when."""
    verbs, is_tag = BranchVerbs(runner.state, runner.unit), isinstance(statement, ShowTags)
    rows = [
        (b.name, b.source, b.base, b.tables, b.until)
        for b in (verbs.tags() if is_tag else verbs.branches())
        if is_like(b.name, statement.like)
    ]
    columns = "source string, base bigint, tables bigint, until timestamp"
    return PlainRows(f"{'tag' if is_tag else 'branch'} string, {columns}", rows)


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
    *(
        Operation(title, kind, make_branch, partial(read_create, kind), only_lakes=True)
        for title, kind in (("CREATE BRANCH", CreateBranch), ("CREATE TAG", CreateTag))
    ),
    *(
        Operation(title, kind, drop_branch, partial(read_drop, kind), only_lakes=True)
        for title, kind in (("DROP BRANCH", DropBranch), ("DROP TAG", DropTag))
    ),
    *(
        Operation(title, kind, show_branches, listing(kind), only_lakes=True, of_current=True)
        for title, kind in (("SHOW BRANCHES", ShowBranches), ("SHOW TAGS", ShowTags))
    ),
    Operation(
        *("ALTER BRANCH", BranchTable, branch_of_table),
        forms=dict.fromkeys(
            ("CREATE [OR REPLACE] BRANCH|TAG", "REPLACE|DROP BRANCH|TAG"), read_of_table
        ),
        only_lakes=True,
    ),
    Operation("USE BRANCH", UseBranch, use_branch, read_use, only_lakes=True),
    Operation("MERGE BRANCH", MergeBranch, merge_branch, read_merge, only_lakes=True),
    Operation("UNDO MERGE BRANCH", UndoMerge, undo_merge, read_undo, only_lakes=True),
)
