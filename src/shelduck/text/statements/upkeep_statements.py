"""Statements about transactions, maintenance and history, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shelduck.model.tables.schema import Path
from shelduck.text.tokens.parts import (
    Expression,
    NamedTable,
    OfRows,
    OfTable,
    SchemaName,
    Statement,
)


@dataclass(frozen=True, slots=True)
class ShowJobs(Statement):
    """SHOW ALTER TABLE COLUMN; ``tail`` is WHERE, ORDER BY and LIMIT as text.

    With ``rollups`` it is SHOW ALTER TABLE ROLLUP, which MATERIALIZED VIEW is another word for.
    """

    schema: SchemaName | None
    tail: str = ""
    rollups: bool = False


@dataclass(frozen=True, slots=True)
class CancelJob(OfTable, Statement):
    """CANCEL ALTER TABLE COLUMN: the open job of a table, or only if it is one of these.

    With ``rollups`` it is CANCEL ALTER TABLE ROLLUP or MATERIALIZED VIEW.
    """

    jobs: tuple[int, ...] = ()
    rollups: bool = False


@dataclass(frozen=True, slots=True)
class AlterJob(Statement):
    """ALTER JOB n PAUSE, RESUME or SET (…); ``action`` is the word, ``pace`` what SET sets."""

    job: int
    action: str
    pace: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UndoJob(OfTable, Statement):
    """ALTER TABLE … UNDO JOB: the job, how new values are converted back, and the new job's."""

    job: int
    using: str | None = None
    on_error_null: bool = False
    if_exists: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UndropColumn(OfTable, Statement):
    """ALTER TABLE … UNDROP COLUMN."""

    path: Path
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropFeature(OfTable, Statement):
    """ALTER TABLE … DROP FEATURE."""

    feature: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class BeginTransaction(Statement):
    """BEGIN or START TRANSACTION."""


@dataclass(frozen=True, slots=True)
class CommitTransaction(Statement):
    """COMMIT."""


@dataclass(frozen=True, slots=True)
class RollbackTransaction(Statement):
    """ROLLBACK."""


@dataclass(frozen=True, slots=True)
class SetVariable(Statement):
    """SET VARIABLE; without a value RESET VARIABLE."""

    name: str
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Optimize(OfRows, Statement):
    """OPTIMIZE: compaction of a table, or of the files in which the condition can be true."""


@dataclass(frozen=True, slots=True)
class Reorg(OfTable, Statement):
    """REORG TABLE … APPLY (PURGE): files with deleted rows are written again."""


@dataclass(frozen=True, slots=True)
class DescribeDetail(OfTable, Statement):
    """DESCRIBE DETAIL: one row about a table."""


@dataclass(frozen=True, slots=True)
class Vacuum(Statement):
    """VACUUM of a table, or of the lake when ``name`` is None."""

    name: NamedTable | None = None
    retain_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Restore(OfTable, Statement):
    """RESTORE TABLE to a snapshot id or to a time; exactly one of both is set."""

    version: int | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeHistory(OfTable, Statement):
    """DESCRIBE HISTORY; ``limit`` is the number of snapshots, newest first."""

    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint(Statement):
    """CHECKPOINT: all maintenance of the lake."""
