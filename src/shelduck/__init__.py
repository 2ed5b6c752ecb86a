"""Shelduck: a lakehouse engine for Spark that changes the shape of tables while they are used.

import shelduck
lake = shelduck.connect("sqlite:////data/lake.db", data_path="/data/files")
"""

from __future__ import annotations

from shelduck.api.changes import (
    add_column,
    change_type,
    drop_column,
    drop_default,
    drop_not_null,
    modify_column,
    move_column,
    order_columns,
    rename_column,
    reset_partitioning,
    reset_sorting,
    rewrite_files,
    set_comment,
    set_default,
    set_not_null,
    set_partitioning,
    set_properties,
    set_sorting,
    unset_properties,
)
from shelduck.api.connect import connect
from shelduck.api.lake import Lake
from shelduck.api.transaction import Transaction
from shelduck.attached.attach import attach, detach, register, session
from shelduck.borders.report import Exported, ExportReport, FileRewrite, Loss
from shelduck.errors import (
    AlreadyExists,
    CatalogUnavailable,
    Conflict,
    CorruptLake,
    InvalidRequest,
    NewerFormat,
    NotFound,
    OutcomeUnknown,
    ShelduckError,
    StorageUnavailable,
    Unsupported,
)
from shelduck.evolution.alter_plan import AlterPlan, AlterStep
from shelduck.jobs.jobs import SchemaChangeJob
from shelduck.model.changes.job import JobState
from shelduck.verbs.lake.delta_import import DeltaImported
from shelduck.verbs.lake.keys import aggregate, duplicate, unique
from shelduck.verbs.table.merge_clauses import (
    when_matched_delete,
    when_matched_update,
    when_matched_update_all,
    when_not_matched_by_source_delete,
    when_not_matched_by_source_update,
    when_not_matched_insert,
    when_not_matched_insert_all,
)
from shelduck.verbs.table.restore import RestorePlan
from shelduck.verbs.table.table import Table
from shelduck.work.results import Committed, PlainRows, Snapshot, Staged, TableName, Unchanged
from shelduck.work.upkeep_results import Checkpointed, Compacted, Expired, FilesDeleted

__version__ = "0.1.0"

__all__ = [
    "AlreadyExists",
    "AlterPlan",
    "AlterStep",
    "CatalogUnavailable",
    "Checkpointed",
    "Committed",
    "Compacted",
    "Conflict",
    "CorruptLake",
    "DeltaImported",
    "Expired",
    "ExportReport",
    "Exported",
    "FileRewrite",
    "FilesDeleted",
    "InvalidRequest",
    "JobState",
    "Lake",
    "Loss",
    "NewerFormat",
    "NotFound",
    "OutcomeUnknown",
    "PlainRows",
    "RestorePlan",
    "SchemaChangeJob",
    "ShelduckError",
    "Snapshot",
    "Staged",
    "StorageUnavailable",
    "Table",
    "TableName",
    "Transaction",
    "Unchanged",
    "Unsupported",
    "add_column",
    "aggregate",
    "attach",
    "change_type",
    "connect",
    "detach",
    "drop_column",
    "drop_default",
    "drop_not_null",
    "duplicate",
    "modify_column",
    "move_column",
    "order_columns",
    "register",
    "rename_column",
    "reset_partitioning",
    "reset_sorting",
    "rewrite_files",
    "session",
    "set_comment",
    "set_default",
    "set_not_null",
    "set_partitioning",
    "set_properties",
    "set_sorting",
    "unique",
    "unset_properties",
    "when_matched_delete",
    "when_matched_update",
    "when_matched_update_all",
    "when_not_matched_by_source_delete",
    "when_not_matched_by_source_update",
    "when_not_matched_insert",
    "when_not_matched_insert_all",
]
