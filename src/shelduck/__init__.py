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
    from shelduck.api.connect import connect as connect
    from shelduck.api.lake import Lake as Lake
    from shelduck.api.lake import Transaction as Transaction
    from shelduck.api.schema_changes import add_column as add_column
    from shelduck.api.schema_changes import add_constraint as add_constraint
    from shelduck.api.schema_changes import change_type as change_type
    from shelduck.api.schema_changes import drop_column as drop_column
    from shelduck.api.schema_changes import drop_constraint as drop_constraint
    from shelduck.api.schema_changes import drop_default as drop_default
    from shelduck.api.schema_changes import drop_not_null as drop_not_null
    from shelduck.api.schema_changes import modify_column as modify_column
    from shelduck.api.schema_changes import move_column as move_column
    from shelduck.api.schema_changes import order_columns as order_columns
    from shelduck.api.schema_changes import rename_column as rename_column
    from shelduck.api.schema_changes import reset_partitioning as reset_partitioning
    from shelduck.api.schema_changes import reset_sorting as reset_sorting
    from shelduck.api.schema_changes import rewrite_files as rewrite_files
    from shelduck.api.schema_changes import set_comment as set_comment
    from shelduck.api.schema_changes import set_default as set_default
    from shelduck.api.schema_changes import set_not_null as set_not_null
    from shelduck.api.schema_changes import set_partitioning as set_partitioning
    from shelduck.api.schema_changes import set_properties as set_properties
    from shelduck.api.schema_changes import set_sorting as set_sorting
    from shelduck.api.schema_changes import unset_properties as unset_properties
    from shelduck.api.schema_changes import validate_constraint as validate_constraint
    from shelduck.attached.attach import attach as attach
    from shelduck.attached.attach import detach as detach
    from shelduck.attached.attach import register as register
    from shelduck.attached.attach import session as session
    from shelduck.borders.delta.import_verbs import DeltaImported as DeltaImported
    from shelduck.borders.report import Exported as Exported
    from shelduck.borders.report import ExportReport as ExportReport
    from shelduck.borders.report import FileRewrite as FileRewrite
    from shelduck.borders.report import Loss as Loss
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
    from shelduck.evolution.alter_plan import AlterPlan as AlterPlan
    from shelduck.evolution.alter_plan import AlterStep as AlterStep
    from shelduck.jobs.jobs import SchemaChangeJob as SchemaChangeJob
    from shelduck.keys.key_verbs import aggregate as aggregate
    from shelduck.keys.key_verbs import duplicate as duplicate
    from shelduck.keys.key_verbs import unique as unique
    from shelduck.model.changes.job import JobState as JobState
    from shelduck.rows.edit_verbs import when_matched_delete as when_matched_delete
    from shelduck.rows.edit_verbs import when_matched_update as when_matched_update
    from shelduck.rows.edit_verbs import when_matched_update_all as when_matched_update_all
    from shelduck.rows.edit_verbs import (
        when_not_matched_by_source_delete as when_not_matched_by_source_delete,
    )
    from shelduck.rows.edit_verbs import (
        when_not_matched_by_source_update as when_not_matched_by_source_update,
    )
    from shelduck.rows.edit_verbs import when_not_matched_insert as when_not_matched_insert
    from shelduck.rows.edit_verbs import when_not_matched_insert_all as when_not_matched_insert_all
    from shelduck.rows.restore import RestorePlan as RestorePlan
    from shelduck.upkeep.maintain import Maintained as Maintained
    from shelduck.upkeep.maintain import MaintenanceStep as MaintenanceStep
    from shelduck.verbs.table import Table as Table
    from shelduck.work.results import Checkpointed as Checkpointed
    from shelduck.work.results import Committed as Committed
    from shelduck.work.results import Compacted as Compacted
    from shelduck.work.results import Expired as Expired
    from shelduck.work.results import FilesDeleted as FilesDeleted
    from shelduck.work.results import Migrated as Migrated
    from shelduck.work.results import PlainRows as PlainRows
    from shelduck.work.results import Snapshot as Snapshot
    from shelduck.work.results import Staged as Staged
    from shelduck.work.results import TableName as TableName
    from shelduck.work.results import Unchanged as Unchanged

__version__ = "0.2.0"

_NAMES = {
    "shelduck.api.schema_changes": (
        "add_column add_constraint change_type drop_column drop_constraint drop_default "
        "drop_not_null modify_column move_column order_columns rename_column reset_partitioning "
        "reset_sorting rewrite_files set_comment set_default set_not_null set_partitioning "
        "set_properties set_sorting unset_properties validate_constraint"
    ),
    "shelduck.api.connect": "connect",
    "shelduck.api.lake": "Lake Transaction",
    "shelduck.attached.attach": "attach detach register session",
    "shelduck.borders.report": "Exported ExportReport FileRewrite Loss",
    "shelduck.errors": (
        "AlreadyExists CatalogUnavailable Conflict CorruptLake InvalidRequest NewerFormat "
        "NotFound OutcomeUnknown ShelduckError SparkFailed StorageUnavailable Unsupported"
    ),
    "shelduck.evolution.alter_plan": "AlterPlan AlterStep",
    "shelduck.jobs.jobs": "SchemaChangeJob",
    "shelduck.model.changes.job": "JobState",
    "shelduck.borders.delta.import_verbs": "DeltaImported",
    "shelduck.keys.key_verbs": "aggregate duplicate unique",
    "shelduck.rows.edit_verbs": (
        "when_matched_delete when_matched_update when_matched_update_all "
        "when_not_matched_by_source_delete when_not_matched_by_source_update "
        "when_not_matched_insert when_not_matched_insert_all"
    ),
    "shelduck.rows.restore": "RestorePlan",
    "shelduck.verbs.table": "Table",
    "shelduck.upkeep.maintain": "Maintained MaintenanceStep",
    "shelduck.work.results": "Checkpointed Committed Compacted Expired FilesDeleted Migrated"
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
