"""The actions of a Delta log that describe a table's columns and files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from shelduck.borders.delta.delta_schema import (
    FEATURE,
    MAPPING_ID,
    MODE,
    PHYSICAL_NAME,
    told_of,
    writer_features,
)
from shelduck.borders.delta.delta_survey import DeltaSurvey
from shelduck.borders.delta.delta_type_changes import TYPE_CHANGES, told_changes
from shelduck.borders.delta.log import Added, LoggedVector, Metadata, Protocol
from shelduck.model.files.data_file import ColumnStats, DataFile
from shelduck.model.tables.schema import Field, FieldId, Kind
from shelduck.model.types.data_types import SIGNED
from shelduck.model.types.temporal import date_number
from shelduck.spark.files.storage import local_path

TABLE_KEY = "shelduck.table"
ENGINE = "Shelduck"
Action = dict[str, Any]
_PATHS = {Kind.LIST: ("element",), Kind.MAP: ("key", "value")}


def metadata_of(found: DeltaSurvey, before: Metadata | None, *, has_vectors: bool) -> Metadata:
    """Return the metadata of the next version; settings from before stay."""
    settings = dict(before.configuration) if before is not None else {}
    settings |= {
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

    Once there were deletion vectors, the feature stays: the log still names files that had them.
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
    more = writer_features(found.fields)
    if before is not None and FEATURE in before.writer_features:
        more.add(FEATURE)
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


def add_action(added: Added, stats: str, time: int) -> Action:
    """Return the action that adds a file."""
    body: Action = {
        "path": file_uri(added.path),
        "partitionValues": {},
        "size": added.size,
        "modificationTime": time,
        "dataChange": True,
        "stats": stats,
    }
    return {"add": body | _vector(added.vector)}


def remove_action(removed: Added, time: int) -> Action:
    """Return the action that removes a file, or its previous state."""
    body: Action = {
        "path": file_uri(removed.path),
        "deletionTimestamp": time,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": removed.size,
    }
    return {"remove": body | _vector(removed.vector)}


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
    found: DeltaSurvey, file: DataFile, known: Mapping[FieldId, ColumnStats], *, has_vector: bool
) -> str:
    """Return the statistics of a file, without any that are not certain.

    Only integers and dates have bounds: texts are cut, floats may have been narrower, and readers
    disagree on the digits of timestamps.
    """
    low: Action = {}
    high: Action = {}
    nulls: Action = {}
    for top in found.fields:
        stats = known.get(top.id)
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
    found: Action = {
        "storageType": vector.storage,
        "pathOrInlineDv": vector.place,
        "sizeInBytes": vector.size,
        "cardinality": vector.cardinality,
    }
    if vector.offset is not None:
        found["offset"] = vector.offset
    return {"deletionVector": found}


def _member(f: Field, found: DeltaSurvey) -> Action:
    """Return a column or struct member, including its type history."""
    told: Action = {MAPPING_ID: int(f.id), PHYSICAL_NAME: found.names[f.id]}
    comment = found.table.comments.get(f.id)
    if comment is not None:
        told["comment"] = comment
    told |= told_of(f, is_top=any(f is top for top in found.fields))
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
        yield from _parts_of(f.children, _PATHS[_kind(f)], path)


def _parts_of(
    children: Sequence[Field], names: Iterable[str], path: tuple[str, ...]
) -> Iterator[tuple[Field, tuple[str, ...]]]:
    for child, name in zip(children, names, strict=True):
        yield from _leaves_of(child, (*path, name))


def _kind(f: Field) -> Kind:
    assert isinstance(f.shape, Kind)
    return f.shape


def _type(f: Field, found: DeltaSurvey) -> str | Action:
    if f.is_leaf:
        return found.types[f.id].type
    if f.shape is Kind.STRUCT:
        return {"type": "struct", "fields": [_member(c, found) for c in f.children]}
    if f.shape is Kind.LIST:
        return {
            "type": "array",
            "elementType": _type(f.children[0], found),
            "containsNull": True,
        }
    key, value = f.children
    return {
        "type": "map",
        "keyType": _type(key, found),
        "valueType": _type(value, found),
        "valueContainsNull": True,
    }
