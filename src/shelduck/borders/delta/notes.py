"""The parts of a Delta table that an import leaves out: the report names everything.

Everything that is listed here as known is imported, has a separate note, or only concerns how Delta
stores its log and files. Everything else is named with its name in the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shelduck.borders.delta.columns import Columns
from shelduck.borders.delta.defaults import DEFAULT, LENGTH, is_lost
from shelduck.borders.delta.log import DeltaLog
from shelduck.borders.delta.schema import DeltaField
from shelduck.model.tables.schema import Field, path_text

_CONSTRAINT = "delta.constraints."
_COLLATIONS = "__COLLATIONS"
_BINARY = "UTF8_BINARY"
_COLLATED = re.compile(r"string collate (\S+)", re.IGNORECASE)

_FIELD_KEYS = frozenset(
    f"comment {DEFAULT} EXISTS_DEFAULT delta.invariants delta.typeChanges"
    f" delta.generationExpression {_COLLATIONS} {LENGTH}".split()
)
_FIELD_PREFIXES = ("delta.columnMapping.", "delta.identity.")
_SETTINGS = frozenset(
    "delta.appendOnly delta.enableChangeDataFeed delta.enableDeletionVectors"
    " delta.enableInCommitTimestamps delta.enableRowTracking delta.enableTypeWidening"
    " delta.minReaderVersion delta.minWriterVersion shelduck.table".split()
)
_SETTING_PREFIXES = (
    _CONSTRAINT,
    "delta.checkpoint",
    "delta.columnMapping.",
    "delta.feature.",
    "delta.inCommitTimestamp",
    "delta.rowTracking.",
)
# Features that a reader knows, that columns and settings show, or that concern only the log.
_FEATURES = frozenset(
    "allowColumnDefaults appendOnly changeDataFeed checkConstraints checkpointProtection collations"
    " collations-preview columnMapping deletionVectors generatedColumns identityColumns"
    " inCommitTimestamp invariants materializePartitionColumns rowTracking timestampNtz"
    " typeWidening typeWidening-preview v2Checkpoint vacuumProtocolCheck variantShredding"
    " variantShredding-preview variantType variantType-preview".split()
)
_WITH_DOMAINS = ("clustering", "rowTracking")


def notes_of_columns(columns: Iterable[Columns]) -> list[str]:
    """Return the properties of these columns in Delta that they lose here, each one once."""
    found: dict[str, None] = {}
    for one in columns:
        for top in one.schema:
            for f, path in _walk(top, ()):
                for what in _lost(one.origin[f.id], f, is_nested=len(path) > 1):
                    found[f"column {path_text(path)!r}: {what}"] = None
    return list(found)


def notes_of_settings(log: DeltaLog) -> Iterator[str]:
    """Yield what the newest settings and features require of writers, and Shelduck does not."""
    metadata = next((s.metadata for s in reversed(log.steps) if s.metadata is not None), None)
    if metadata is not None:
        yield from _of_settings(metadata.configuration)
    protocol = next((s.protocol for s in reversed(log.steps) if s.protocol is not None), None)
    if protocol is not None:
        yield from _of_features(protocol.writer_features)


def _walk(f: Field, path: tuple[str, ...]) -> Iterator[tuple[Field, tuple[str, ...]]]:
    below = (*path, f.name)
    yield f, below
    for child in f.children:
        yield from _walk(child, below)


def _lost(origin: DeltaField, made: Field, *, is_nested: bool) -> Iterator[str]:
    told = origin.metadata
    if "delta.generationExpression" in told:
        yield "its values were generated in Delta, and are plain values here"
    if any(n.startswith("delta.identity.") for n in told):
        yield "it was an identity column in Delta, and is a plain column here"
    if is_lost(origin, made):
        yield f"its default {told['CURRENT_DEFAULT']!r} was not carried over"
    if "delta.invariants" in told:
        yield "its invariant was not carried over"
    if is_nested and not origin.nullable:
        yield "NOT NULL inside a nested column was not carried over"
    for name in _collations(origin):
        yield f"its collation {name} was not carried over: text is compared by its bytes here"
    for key in sorted(told):
        if key not in _FIELD_KEYS and not key.startswith(_FIELD_PREFIXES):
            yield f"its setting {key!r} was not carried over"


def _collations(origin: DeltaField) -> Iterator[str]:
    told: Any = origin.metadata.get(_COLLATIONS) or {}
    names = {str(name) for name in told.values()} if isinstance(told, Mapping) else {str(told)}
    match = _COLLATED.fullmatch(origin.declared)
    if match:
        names.add(match[1])
    yield from sorted(n for n in names if n.rpartition(".")[2].upper() != _BINARY)


def _of_settings(settings: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(settings.items()):
        if name.startswith(_CONSTRAINT):
            yield f"CHECK constraint {name.removeprefix(_CONSTRAINT)!r} ({value}) is not enforced"
    wanted = {k for k, v in settings.items() if v.lower() == "true"}
    if "delta.enableChangeDataFeed" in wanted:
        yield "the change data feed was left out: Table.changes reads the changes of every table"
    if "delta.appendOnly" in wanted:
        yield "appendOnly was not carried over: rows can be changed and deleted"
    if "delta.enableRowTracking" in wanted:
        yield "row ids of Delta were left out: rows have row ids of DuckLake"
    others = [k for k in settings if k not in _SETTINGS and not k.startswith(_SETTING_PREFIXES)]
    if others:
        yield f"table properties were not carried over: {', '.join(sorted(others))}"


def _of_features(features: frozenset[str]) -> Iterator[str]:
    if "clustering" in features:
        yield "clustering was not carried over: ALTER TABLE … SET SORTED BY sorts files here"
    known = _FEATURES | {"clustering"}
    if any(name in features for name in _WITH_DOMAINS):
        # These two store their data in domains; other domains have no reader here.
        known |= {"domainMetadata"}
    others = sorted(features - known)
    if others:
        yield f"features that Delta requires of writers were left out: {', '.join(others)}"
