"""The bridge into Spark's JVM: its own file listing, deletes in the scan, ids on every field."""

from __future__ import annotations

from shelduck.engine.bridge.codec import Constant, Deletes, FileEntry, Report, Reports, field_rows
from shelduck.engine.bridge.faults import DAMAGED, file_fault
from shelduck.engine.bridge.jvm import has_jvm
from shelduck.engine.bridge.named import (
    ALL,
    Named,
    Sql,
    Wildcard,
    checkpoint,
    column_of,
    equal_columns,
    select_named,
    select_names,
)
from shelduck.engine.bridge.relation import Bridge, FileRelation, Lister, bridge_for

__all__ = [
    "ALL",
    "DAMAGED",
    "Bridge",
    "Constant",
    "Deletes",
    "FileEntry",
    "FileRelation",
    "Lister",
    "Named",
    "Report",
    "Reports",
    "Sql",
    "Wildcard",
    "bridge_for",
    "checkpoint",
    "column_of",
    "equal_columns",
    "field_rows",
    "file_fault",
    "has_jvm",
    "select_named",
    "select_names",
]
