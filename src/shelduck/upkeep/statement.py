"""Maintenance by SQL: OPTIMIZE, REORG, VACUUM and CHECKPOINT."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from shelduck.alter.statement import AlterTableStatement
from shelduck.files.verb import UpkeepVerbs
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import Compacted, FilesDeleted, PlainRows
from shelduck.model.changes.modify import RewriteOlderFiles
from shelduck.read.scan.matching import Where
from shelduck.text.query.expressions import take_target
from shelduck.text.tokens.arguments import read_argument
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import NamedTable, OfRows, OfTable, Statement
from shelduck.upkeep.lake_upkeep import ORPHAN_AGE, LakeUpkeep
from shelduck.write.statement.row_sources import selection

_COMPACTED = (
    "schema_name string, table_name string, files_processed bigint, files_created bigint,"
    " bytes_before bigint, bytes_after bigint, files_skipped bigint, snapshot bigint,"
    " note string"
)


class Optimize(OfRows):
    """OPTIMIZE: compaction of a table, or of the files in which the condition can be true."""


class Reorg(OfTable):
    """REORG TABLE … APPLY (PURGE): files with deleted rows are written again."""


@dataclass(frozen=True, slots=True)
class Vacuum(Statement):
    """VACUUM of a table, or of the lake when ``name`` is None."""

    name: NamedTable | None = None
    retain_hours: float | None = None
    dry_run: bool = False


class Checkpoint(Statement):
    """CHECKPOINT: all maintenance of the lake."""


def read_optimize(cursor: Cursor) -> Optimize | AlterTableStatement:
    """Read the statement behind ``OPTIMIZE``; FULL writes all files in today's layout."""
    start = cursor.at
    name = cursor.table_name()
    if cursor.accept("FULL"):
        return AlterTableStatement(name, (RewriteOlderFiles(),))
    cursor.at = start
    found, _ = take_target(cursor, "WHERE", alias=False)
    return Optimize(selection(cursor, found, None, ends=("ZORDER",)))


def read_reorg(cursor: Cursor) -> Reorg:
    """Read the statement behind ``REORG TABLE``."""
    name = cursor.table_name()
    cursor.expect("APPLY", "(", "PURGE", ")")
    return Reorg(name)


def read_vacuum(cursor: Cursor) -> Vacuum:
    """Read the statement behind ``VACUUM``."""
    name = None
    retains = cursor.sees("RETAIN") and cursor.peek(1).kind is TokenKind.NUMBER
    if cursor.peek().may_name and not retains and not cursor.sees("DRY", "RUN"):
        name = cursor.table_name()
    hours = None
    # Delta's words for how it looks for files: a lake asks its catalog.
    cursor.accept_any("LITE", "FULL")
    if cursor.accept("RETAIN"):
        hours = _hours(cursor)
    dry_run = cursor.accept("DRY", "RUN")
    return Vacuum(name, hours, dry_run)


def _hours(cursor: Cursor) -> float:
    value = read_argument(cursor)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value < 0:
        raise cursor.failure("a number of hours", cursor.at - 1)
    if not cursor.accept_any("HOURS", "HOUR"):
        raise cursor.failure("HOURS")
    return float(value)


def optimize(runner: Runner, statement: Optimize) -> PlainRows:
    """OPTIMIZE a table, or only its files with rows for which the condition is true."""
    table = runner.verbs(UpkeepVerbs, statement.name)
    condition = statement.rows.condition
    if condition is None:
        return compacted_rows([table.compact()])
    with runner.views(condition) as named:
        where = Where(named(condition.text), statement.rows.target.alias)
        return compacted_rows([table.compact(where=where)])


def reorg(runner: Runner, statement: Reorg) -> PlainRows:
    """REORG TABLE … APPLY (PURGE): every file with a deleted row is written again."""
    return compacted_rows([runner.verbs(UpkeepVerbs, statement.name).rewrite_deletes(0)])


def vacuum(runner: Runner, statement: Vacuum) -> PlainRows:
    """VACUUM: delete unneeded and orphaned files, of one table or of the lake."""
    lake = lake_of(runner)
    hours, dry_run = statement.retain_hours, statement.dry_run
    age = None if hours is None else timedelta(hours=hours)
    name = None if statement.name is None else str(runner.name(statement.name))
    old = lake.cleanup_old_files(older_than=age, table=name, dry_run=dry_run)
    lost = lake.remove_orphans(
        older_than=ORPHAN_AGE if age is None else age, table=name, dry_run=dry_run
    )
    return deleted_rows(FilesDeleted(old.files + lost.files, dry_run=dry_run))


def checkpoint(runner: Runner, *, dry_run: bool = False) -> PlainRows:
    """Do all maintenance; one row for each thing that was done."""
    done = lake_of(runner).checkpoint(dry_run=dry_run)
    return PlainRows("done string", [(line,) for line in str(done).splitlines()])


def lake_of(runner: Runner) -> LakeUpkeep:
    """Return the lake whose maintenance a statement asks for."""
    return LakeUpkeep(runner.state, runner.unit)


def compacted_rows(done: Iterable[Compacted]) -> PlainRows:
    """Return one row for each table that had files to rewrite."""
    rows = [
        (
            *(one.table.schema, one.table.name, one.files, one.new_files),
            *(one.bytes, one.new_bytes, one.skipped),
            one.snapshots[-1] if one.snapshots else None,
            one.note or None,
        )
        for one in done
        if not one.is_nothing
    ]
    return PlainRows(_COMPACTED, rows)


def deleted_rows(done: FilesDeleted) -> PlainRows:
    """Return one row for each file."""
    return PlainRows("path string", [(path,) for path in done.files])


OPERATIONS = (
    Operation("OPTIMIZE", Optimize, optimize, read_optimize, only_lakes=True),
    Operation("REORG", Reorg, reorg, read_reorg, "REORG TABLE", only_lakes=True),
    Operation("VACUUM", Vacuum, vacuum, read_vacuum, only_lakes=True, of_current=True),
    Operation(
        "CHECKPOINT",
        Checkpoint,
        lambda runner, _: checkpoint(runner),
        lambda _: Checkpoint(),
        of_current=True,
    ),
)
