"""Shelduck: a lakehouse engine for Spark that changes the shape of tables while they are used.

import shelduck
lake = shelduck.connect("sqlite:////data/lake.db", data_path="/data/files")

Each name is imported when it is first used: ``import shelduck`` alone loads no Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # What type checkers and editors see; a test compares it with the table below.
    from shelduck.alter.schema_changes import add_column as add_column
    from shelduck.alter.schema_changes import add_constraint as add_constraint
    from shelduck.alter.schema_changes import add_index as add_index
    from shelduck.alter.schema_changes import change_type as change_type
    from shelduck.alter.schema_changes import drop_column as drop_column
    from shelduck.alter.schema_changes import drop_constraint as drop_constraint
    from shelduck.alter.schema_changes import drop_default as drop_default
    from shelduck.alter.schema_changes import drop_index as drop_index
    from shelduck.alter.schema_changes import drop_not_null as drop_not_null
    from shelduck.alter.schema_changes import modify_column as modify_column
    from shelduck.alter.schema_changes import move_column as move_column
    from shelduck.alter.schema_changes import order_columns as order_columns
    from shelduck.alter.schema_changes import rename_column as rename_column
    from shelduck.alter.schema_changes import reset_partitioning as reset_partitioning
    from shelduck.alter.schema_changes import reset_sorting as reset_sorting
    from shelduck.alter.schema_changes import rewrite_files as rewrite_files
    from shelduck.alter.schema_changes import set_comment as set_comment
    from shelduck.alter.schema_changes import set_default as set_default
    from shelduck.alter.schema_changes import set_encoding as set_encoding
    from shelduck.alter.schema_changes import set_not_null as set_not_null
    from shelduck.alter.schema_changes import set_partitioning as set_partitioning
    from shelduck.alter.schema_changes import set_properties as set_properties
    from shelduck.alter.schema_changes import set_sorting as set_sorting
    from shelduck.alter.schema_changes import unset_properties as unset_properties
    from shelduck.alter.schema_changes import validate_constraint as validate_constraint
    from shelduck.branches.branch_diff import BranchDiff as BranchDiff
    from shelduck.branches.branch_diff import RowCounts as RowCounts
    from shelduck.branches.branch_diff import TableDiff as TableDiff
    from shelduck.branches.branch_tables import BranchInfo as BranchInfo
    from shelduck.branches.merging import MergeConflict as MergeConflict
    from shelduck.branches.merging import Resolution as Resolution
    from shelduck.carry.verb import ColumnLineage as ColumnLineage
    from shelduck.carry.verb import Stream as Stream
    from shelduck.doors.attached.attach import attach as attach
    from shelduck.doors.attached.attach import detach as detach
    from shelduck.doors.attached.attach import register as register
    from shelduck.doors.attached.attach import session as session
    from shelduck.doors.connect import connect as connect
    from shelduck.doors.lake import Lake as Lake
    from shelduck.doors.lake import Transaction as Transaction
    from shelduck.errors import AlreadyExists as AlreadyExists
    from shelduck.errors import CatalogUnavailable as CatalogUnavailable
    from shelduck.errors import Conflict as Conflict
    from shelduck.errors import CorruptLake as CorruptLake
    from shelduck.errors import InvalidRequest as InvalidRequest
    from shelduck.errors import NewerFormat as NewerFormat
    from shelduck.errors import NotFound as NotFound
    from shelduck.errors import OutcomeUnknown as OutcomeUnknown
    from shelduck.errors import ShelduckError as ShelduckError
    from shelduck.errors import SparkFailed as SparkFailed
    from shelduck.errors import StorageUnavailable as StorageUnavailable
    from shelduck.errors import Unsupported as Unsupported
    from shelduck.formats.delta.import_verbs import DeltaImported as DeltaImported
    from shelduck.formats.report import Exported as Exported
    from shelduck.formats.report import ExportReport as ExportReport
    from shelduck.formats.report import FileRewrite as FileRewrite
    from shelduck.formats.report import Loss as Loss
    from shelduck.jobs.jobs import SchemaChangeJob as SchemaChangeJob
    from shelduck.keys.key_draft import aggregate as aggregate
    from shelduck.keys.key_draft import duplicate as duplicate
    from shelduck.keys.key_draft import unique as unique
    from shelduck.lake.evolution.alter_plan import AlterPlan as AlterPlan
    from shelduck.lake.evolution.alter_plan import AlterStep as AlterStep
    from shelduck.lake.results import Checkpointed as Checkpointed
    from shelduck.lake.results import Committed as Committed
    from shelduck.lake.results import Compacted as Compacted
    from shelduck.lake.results import Expired as Expired
    from shelduck.lake.results import FilesDeleted as FilesDeleted
    from shelduck.lake.results import Migrated as Migrated
    from shelduck.lake.results import PlainRows as PlainRows
    from shelduck.lake.results import Snapshot as Snapshot
    from shelduck.lake.results import Staged as Staged
    from shelduck.lake.results import TableName as TableName
    from shelduck.lake.results import Unchanged as Unchanged
    from shelduck.model.changes.job import JobState as JobState
    from shelduck.objects.catalog_verbs import Table as Table
    from shelduck.objects.restore import RestorePlan as RestorePlan
    from shelduck.upkeep.maintain import Maintained as Maintained
    from shelduck.upkeep.maintain import MaintenanceStep as MaintenanceStep
    from shelduck.write.edit_verbs import when_matched_delete as when_matched_delete
    from shelduck.write.edit_verbs import when_matched_update as when_matched_update
    from shelduck.write.edit_verbs import when_matched_update_all as when_matched_update_all
    from shelduck.write.edit_verbs import (
        when_not_matched_by_source_delete as when_not_matched_by_source_delete,
    )
    from shelduck.write.edit_verbs import (
        when_not_matched_by_source_update as when_not_matched_by_source_update,
    )
    from shelduck.write.edit_verbs import when_not_matched_insert as when_not_matched_insert
    from shelduck.write.edit_verbs import when_not_matched_insert_all as when_not_matched_insert_all

__version__ = "0.2.0"

_NAMES = {
    "shelduck.alter.schema_changes": (
        "add_column add_constraint add_index change_type drop_column drop_constraint drop_default "
        "drop_index drop_not_null modify_column move_column order_columns rename_column "
        "reset_partitioning reset_sorting rewrite_files set_comment set_default set_encoding "
        "set_not_null set_partitioning set_properties set_sorting unset_properties "
        "validate_constraint"
    ),
    "shelduck.branches.branch_diff": "BranchDiff RowCounts TableDiff",
    "shelduck.branches.branch_tables": "BranchInfo",
    "shelduck.branches.merging": "MergeConflict Resolution",
    "shelduck.carry.verb": "ColumnLineage Stream",
    "shelduck.doors.connect": "connect",
    "shelduck.doors.lake": "Lake Transaction",
    "shelduck.doors.attached.attach": "attach detach register session",
    "shelduck.formats.report": "Exported ExportReport FileRewrite Loss",
    "shelduck.errors": (
        "AlreadyExists CatalogUnavailable Conflict CorruptLake InvalidRequest NewerFormat "
        "NotFound OutcomeUnknown ShelduckError SparkFailed StorageUnavailable Unsupported"
    ),
    "shelduck.lake.evolution.alter_plan": "AlterPlan AlterStep",
    "shelduck.jobs.jobs": "SchemaChangeJob",
    "shelduck.model.changes.job": "JobState",
    "shelduck.formats.delta.import_verbs": "DeltaImported",
    "shelduck.keys.key_draft": "aggregate duplicate unique",
    "shelduck.write.edit_verbs": (
        "when_matched_delete when_matched_update when_matched_update_all "
        "when_not_matched_by_source_delete when_not_matched_by_source_update "
        "when_not_matched_insert when_not_matched_insert_all"
    ),
    "shelduck.objects.restore": "RestorePlan",
    "shelduck.objects.catalog_verbs": "Table",
    "shelduck.upkeep.maintain": "Maintained MaintenanceStep",
    "shelduck.lake.results": "Checkpointed Committed Compacted Expired FilesDeleted Migrated"
    " PlainRows Snapshot Staged TableName Unchanged",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_MODULES)


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> object:
        """Return a public name; its module is imported with the first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_MODULES[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
