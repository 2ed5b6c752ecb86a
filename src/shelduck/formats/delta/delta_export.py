"""Writing the next version of a Delta log over a table's files.

An export is one file of the log, written last and either completely or not at all. It contains the
deleted rows, and the data files stay where they are. Files of earlier exports never change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any
from urllib.parse import quote

from shelduck.catalog.read.files.data_files import file_bounds
from shelduck.engine.files.storage import local_path, write_new_text
from shelduck.engine.session import SparkSession
from shelduck.errors import AlreadyExists, Conflict
from shelduck.formats.delta.delta_rules import CHECKS, GENERATES, NUMBERS
from shelduck.formats.delta.delta_schema import (
    FEATURE,
    INVARIANTS,
    MAPPING_ID,
    PHYSICAL_NAME,
    TYPE_CHANGES,
    told_changes,
    told_of,
    writer_features,
)
from shelduck.formats.delta.delta_survey import DeltaSurvey
from shelduck.formats.delta.log import (
    LOG,
    MODE,
    VECTOR,
    Added,
    LoggedVector,
    Metadata,
    Protocol,
    State,
    has_log,
    read_log,
)
from shelduck.formats.delta.vectors import bitmap, inline_vector
from shelduck.formats.report import Exported
from shelduck.model.files.data_file import ColumnStats, DataFile
from shelduck.model.tables.constraints import SHOWN_CHECK
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.types.data_types import SIGNED
from shelduck.model.types.temporal import date_number
from shelduck.write.deletes.position_files import FILE, POSITION, by_file, dead_positions

TABLE_KEY = "shelduck.table"
ENGINE = "Shelduck"
Action = dict[str, Any]
_OF_WRITERS = {FEATURE, INVARIANTS, CHECKS, GENERATES, NUMBERS}


def published(location: str, table: TableVersion) -> State | None:
    """Return the last export to a directory, or None if the directory has no Delta log.

    Raises AlreadyExists for the log of another table, or a log to which others have written.
    """
    if not has_log(location):
        return None
    log = read_log(location)
    *_, (last, state) = log.replay()
    if state.metadata.configuration.get(TABLE_KEY) != table.uuid:
        raise AlreadyExists(
            f"{location} contains a Delta table that is not an export of {table.full_name}; export"
            " to another directory"
        )
    if not (last.engine or "").startswith(ENGINE):
        raise AlreadyExists(
            f"version {last.version} of the Delta table at {location} was written by"
            f" {last.engine or 'an unknown writer'}, so the table is no longer the export; export"
            " to another directory"
        )
    return state


def export_to_delta(
    spark: SparkSession, found: DeltaSurvey, location: str, before: State | None
) -> Exported:
    """Write the version of a table that is ready, after what was exported ``before``.

    Nothing is written if nothing changed. Raises Conflict if another export came first.
    """
    found.report.require_ready()
    now = int(time.time() * 1000)
    actions = _DeltaExport(spark, found, before, now).actions()
    done = Exported(location, found.table.snapshot.id, len(found.rows.files), found.report)
    if not actions:
        return done
    info = {
        "timestamp": now,
        "operation": "WRITE",
        "operationParameters": {"mode": "Overwrite"},
        "engineInfo": ENGINE,
        "shelduck": {"table": found.table.uuid, "snapshot": found.table.snapshot.id},
    }
    version = 0 if before is None else before.version + 1
    lines = [json.dumps(a, separators=(",", ":")) for a in ({"commitInfo": info}, *actions)]
    try:
        write_new_text(f"{location}/{LOG}/{version:020}.json", "\n".join(lines) + "\n")
    except FileExistsError as error:
        raise Conflict(
            f"another writer created version {version} of the Delta table at {location}; export"
            " again"
        ) from error
    return done


@dataclass(frozen=True)
class _DeltaExport:
    spark: SparkSession
    found: DeltaSurvey
    before: State | None
    now: int

    def actions(self) -> list[Action]:
        """Return the actions of the next version, none if nothing is new."""
        vectors = self._vectors()
        files = {
            path: (f, Added(path, f.file_size_bytes, {}, vectors.get(f.id)))
            for f in self.found.rows.files
            for path in [local_path(f.path) or f.path]
        }
        known = self.before.files if self.before is not None else {}
        gone = [a for path, a in known.items() if path not in files or files[path][1] != a]
        new = [(f, a) for path, (f, a) in files.items() if known.get(path) != a]
        rows, leaves = self.found.rows, [f.id for f in self.found.fields if f.is_leaf]
        told = rows.store.ask(file_bounds, rows.table, leaves) if new else {}
        return [
            *self._head(has_vectors=bool(vectors)),
            *(
                file_action("remove", a, deletionTimestamp=self.now, extendedFileMetadata=True)
                for a in gone
            ),
            *(
                file_action(
                    *("add", a),
                    modificationTime=self.now,
                    stats=stats_of(self.found, f, told, has_vector=a.vector is not None),
                )
                for f, a in new
            ),
        ]

    def _head(self, *, has_vectors: bool) -> list[Action]:
        """Return the protocol and the metadata if they have changed."""
        old = self.before
        asked, told = (old.protocol, old.metadata) if old is not None else (None, None)
        protocol = protocol_of(self.found, asked, has_vectors=has_vectors)
        metadata = metadata_of(self.found, told, has_vectors=has_vectors)
        head: list[Action] = []
        if old is None or protocol != old.protocol:
            head.append(protocol_action(protocol))
        if old is None or metadata != old.metadata:
            head.append(metadata_action(self.found, metadata, self.now))
        return head

    def _vectors(self) -> dict[int, LoggedVector]:
        """Return the deletion vector of each file that has deleted rows, by data file id."""
        rows = self.found.rows
        dead = dead_positions(self.spark, rows.files, rows.table)
        if dead is None:
            return {}
        found: dict[int, LoggedVector] = {}
        for number, places in by_file(dead.select(FILE, POSITION).toArrow()).items():
            positions = bitmap()(places.to_numpy())
            # The same rows give the same text in every export.
            positions.run_optimize()
            found[number] = inline_vector(positions)
        return found


def metadata_of(found: DeltaSurvey, before: Metadata | None, *, has_vectors: bool) -> Metadata:
    """Return the metadata of the next version; settings from before stay."""
    known = before.configuration if before is not None else {}
    settings = {k: v for k, v in known.items() if not k.startswith(SHOWN_CHECK)}
    settings |= {
        **found.rules.checks,
        MODE: found.mode,
        "delta.columnMapping.maxColumnId": str(found.table.max_column_id),
        TABLE_KEY: found.table.uuid,
    }
    if has_vectors:
        settings["delta.enableDeletionVectors"] = "true"
    schema = {"type": "struct", "fields": [_member(f, found) for f in found.fields]}
    return Metadata(
        found.table.uuid if before is None else before.table_id,
        json.dumps(schema, separators=(",", ":")),
        (),
        settings,
        found.table.comments.get(None),
    )


def protocol_of(found: DeltaSurvey, before: Protocol | None, *, has_vectors: bool) -> Protocol:
    """Return what readers of the next version must support.

    Once there were deletion vectors, the feature stays: the log still names files that had them. So
    do the features that concern only writers.
    """
    features = {"columnMapping"}
    if has_vectors or (before is not None and "deletionVectors" in before.features):
        features.add("deletionVectors")
    if any(found.narrow.values()):
        features.add("typeWidening")
    if any(shown.type == "timestamp_ntz" for shown in found.types.values()):
        features.add("timestampNtz")
    if any(shown.type == "variant" for shown in found.types.values()):
        # DuckDB and Spark shred variants as they like.
        features |= {"variantType", "variantShredding-preview"}
    more = writer_features(found.fields) | found.rules.features
    if before is not None:
        more |= before.writer_features & _OF_WRITERS
    return Protocol(3, frozenset(features), frozenset(features | more))


def metadata_action(found: DeltaSurvey, made: Metadata, created: int) -> Action:
    """Return the action that describes the columns."""
    body: Action = {
        "id": made.table_id,
        "name": found.table.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": made.schema,
        "partitionColumns": [],
        "configuration": dict(made.configuration),
        "createdTime": created,
    }
    if made.description is not None:
        body["description"] = made.description
    return {"metaData": body}


def protocol_action(made: Protocol) -> Action:
    """Return the action that says what readers and writers must support."""
    return {
        "protocol": {
            "minReaderVersion": made.reader_version,
            "minWriterVersion": 7,
            "readerFeatures": sorted(made.features),
            "writerFeatures": sorted(made.writer_features),
        }
    }


def file_action(kind: str, file: Added, **told: object) -> Action:
    """Return the action that adds a file, or removes it in its previous state."""
    same = {
        "path": file_uri(file.path),
        "partitionValues": {},
        "size": file.size,
        "dataChange": True,
    }
    return {kind: same | told | _vector(file.vector)}


def file_uri(path: str) -> str:
    """Return a file's absolute path as in the log, percent-encoded.

    A local path has no scheme: DuckDB 1.5 reads ``file:///a`` as a name below the table.
    """
    plain = local_path(path)
    if plain is not None:
        return quote(plain)
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{quote(rest)}"


def stats_of(
    found: DeltaSurvey,
    file: DataFile,
    known: Mapping[int, Mapping[int, ColumnStats]],
    *,
    has_vector: bool,
) -> str:
    """Return the statistics of a file, without any that are not certain.

    ``known`` are those of the catalog, per column by data file.

    Only integers and dates have bounds: texts are cut, floats may have been narrower, and readers
    disagree on the digits of timestamps.
    """
    low: Action = {}
    high: Action = {}
    nulls: Action = {}
    for top in found.fields:
        stats = known.get(top.id, {}).get(file.id)
        if stats is None or not top.is_leaf:
            continue
        name = found.names[top.id]
        if stats.null_count + stats.value_count == file.record_count:
            nulls[name] = stats.null_count
        bounds = _bounds(top, stats)
        if bounds is not None:
            low[name], high[name] = bounds
    told: Action = {"numRecords": file.record_count, "nullCount": nulls}
    if low:
        told |= {"minValues": low, "maxValues": high}
    # Deleted rows count in all of these.
    return json.dumps(told | {"tightBounds": not has_vector}, separators=(",", ":"))


def _bounds(leaf: Field, stats: ColumnStats) -> tuple[int | str, int | str] | None:
    low, high = stats.min_value, stats.max_value
    if low is None or high is None:
        return None
    name = str(leaf.shape)
    if name in SIGNED and name != "int128":
        return int(low), int(high)
    plain = len(low) == len(high) == len("2024-01-31")
    if name == "date" and plain and date_number(low) is not None and date_number(high) is not None:
        return low, high
    return None


def _vector(vector: LoggedVector | None) -> Action:
    if vector is None:
        return {}
    told = zip(VECTOR, astuple(vector), strict=True)
    return {"deletionVector": {name: value for name, value in told if value is not None}}


def _member(f: Field, found: DeltaSurvey) -> Action:
    """Return a column or struct member, including its type history."""
    told: Action = {MAPPING_ID: int(f.id), PHYSICAL_NAME: found.names[f.id]}
    comment = found.table.comments.get(f.id)
    if comment is not None:
        told["comment"] = comment
    told |= told_of(f, is_top=any(f is top for top in found.fields))
    told |= found.rules.columns.get(f.id, {})
    changes = [
        {"fromType": old, "toType": new} | ({"fieldPath": ".".join(path)} if path else {})
        for leaf, path in _leaves_of(f, ())
        for old, new in told_changes(_types_before(found, leaf), found.types[leaf.id].type)
    ]
    if changes:
        told[TYPE_CHANGES] = changes
    return {"name": f.name, "type": _type(f, found), "nullable": f.nullable, "metadata": told}


def _types_before(found: DeltaSurvey, leaf: Field) -> set[str]:
    """Return the types of a leaf's history; none if all files hold the current type."""
    narrow = found.narrow.get(leaf.id, ())
    return {*narrow, *found.earlier.get(leaf.id, ())} if narrow else set()


def _leaves_of(f: Field, path: tuple[str, ...]) -> Iterator[tuple[Field, tuple[str, ...]]]:
    """Yield the leaves below a field with their path, except those inside structs."""
    if f.is_leaf:
        yield f, path
    elif f.shape is not Kind.STRUCT:
        for child in f.children:
            yield from _leaves_of(child, (*path, child.name))


def _type(f: Field, found: DeltaSurvey) -> str | Action:
    if f.is_leaf:
        return found.types[f.id].type
    if f.shape is Kind.STRUCT:
        return {"type": "struct", "fields": [_member(c, found) for c in f.children]}
    if f.shape is Kind.LIST:
        return {"type": "array", "elementType": _type(f.children[0], found), "containsNull": True}
    key, value = f.children
    return {
        "type": "map",
        "keyType": _type(key, found),
        "valueType": _type(value, found),
        "valueContainsNull": True,
    }
