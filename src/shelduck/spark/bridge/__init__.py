"""The door into Spark's JVM: own listing, deletes inside the scan, ids on every field."""

from __future__ import annotations

from shelduck.spark.bridge.codec import DAMAGED, Constant, Deletes, FileEntry, field_rows
from shelduck.spark.bridge.jvm import checkpoint, has_jvm
from shelduck.spark.bridge.relation import Bridge, Lister, bridge_for

__all__ = [
    "DAMAGED",
    "Bridge",
    "Constant",
    "Deletes",
    "FileEntry",
    "Lister",
    "bridge_for",
    "checkpoint",
    "field_rows",
    "has_jvm",
]
