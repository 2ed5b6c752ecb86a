"""Writing the Iceberg metadata of a table: deletes, manifests, then the version that readers see.

Deletes are bitmaps in one Puffin file; metrics of files are rows, counts, and bounds if certain.

Files of earlier exports do not change, so their readers can continue. An export that is interrupted
leaves files to which nothing refers.
"""

from __future__ import annotations

import json
import struct
import time
import uuid
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, cast

from pydantic import ValidationError
from pyiceberg.conversions import to_bytes
from pyiceberg.exceptions import ValidationError as SchemaError
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntry, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.types import PrimitiveType
from pyroaring import BitMap64

from shelduck.catalog.read.read import Connection, file_bounds
from shelduck.catalog.read.table_facts import next_row_id, snapshot_ids
from shelduck.engine.files.storage import delete_directory, delete_file, list_names, write_bytes
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.errors import Conflict, Unsupported
from shelduck.formats.iceberg.iceberg_metadata import (
    JsonObject,
    NextSnapshot,
    PublishedMetadata,
    named,
    next_metadata,
    publish,
)
from shelduck.formats.iceberg.iceberg_survey import IcebergSurvey
from shelduck.formats.iceberg.iceberg_types import certain_bounds, schema_json
from shelduck.formats.iceberg.manifests import (
    IcebergCommit,
    LakeIO,
    ManifestRow,
    Version,
    gone_entry,
    live_entries,
    write_manifest_list,
    write_manifests,
)
from shelduck.formats.report import Exported
from shelduck.model.files.data_file import ColumnStats, DataFile, PhysicalField
from shelduck.model.files.place import place_below
from shelduck.model.tables.schema import Field, FieldId, Kind
from shelduck.write.deletes.position_files import (
    FILE,
    PATH,
    POSITION,
    by_file,
    dead_positions,
    write_position_files,
)

# Iceberg's names for the columns of a delete file.
_IDS = {PATH: 2147483546, POSITION: 2147483545}
_MAGIC = b"PFA1"
_VECTOR_MAGIC = b"\xd1\xd3\x39\x64"
# The field id of a row's position, to which the bitmap refers.
_POSITION_FIELD = 2147483645
# Their statistics count no values although there are some.
_UNCOUNTED = ("timetz", "interval")
_FILES_AT_ONCE = 1_000


def export_to_iceberg(
    spark: SparkSession, found: IcebergSurvey, location: str, before: PublishedMetadata | None
) -> Exported:
    """Write the metadata of a table that is ready, after what was exported ``before``.

    ``location`` is a directory without a slash at its end. If anything fails, all written files are
    removed, and readers see what they saw before. Raises Unsupported for sibling names that Iceberg
    does not allow, Conflict if another export to the directory came first.
    """
    found.report.require_ready()
    work = _IcebergExport(spark, found, location, before)
    try:
        content = work.run()
        # PyIceberg reads it here as readers will: nobody must see what it refuses.
        TableMetadataUtil.parse_obj(content)
    except BaseException:
        work.discard()
        raise
    try:
        path = publish(location, before, content)
    except Conflict:
        # After any other error readers may see it, whatever the storage returned.
        work.discard()
        raise
    return Exported(path, found.table.snapshot.id, len(found.rows.files), found.report)


class _IcebergExport:
    """One export; everything that it writes has a unique name until the last step."""

    def __init__(
        self,
        spark: SparkSession,
        found: IcebergSurvey,
        location: str,
        before: PublishedMetadata | None,
    ) -> None:
        self.spark = spark
        self.found = found
        self.table = found.table
        self.location = location
        self.before = before
        self.name = str(uuid.uuid4())
        self.deletes_place = place_below(f"{location}/", f"data/{self.name}-deletes")
        self.deletes = str(self.deletes_place)
        self.counts = dict.fromkeys(("added", "removed", "kept", "deletes", "delete_files"), 0)
        self.records = dict.fromkeys(("added", "removed", "kept"), 0)

    def run(self) -> JsonObject:
        """Write deletes and manifests, and return the metadata that names them."""
        version = self.found.version
        schema = schema_json(self.found.shown, version, self.table.comments)
        parsed = _parsed(schema, self.table.full_name)
        old = self._entries_before()
        commit = IcebergCommit(
            cast("Version", version),
            self.table.snapshot.id,
            None if self.before is None else self.before.snapshot,
            schema,
            f"{self.location}/metadata/{self.name}",
            0 if self.before is None else int(self.before.content.get("next-row-id", 0)),
        )
        manifests = [
            *write_manifests(commit, self._data(parsed, old)),
            *write_manifests(commit, self._dead(version), deletes=True),
        ]
        return self._content(schema, manifests, commit)

    def discard(self) -> None:
        """Remove all written files."""
        delete_directory(self.deletes_place)
        folder = f"{self.location}/metadata"
        for name in list_names(folder):
            if name.startswith(self.name):
                delete_file(place_below(f"{folder}/", name))

    def _entries_before(self) -> dict[str, ManifestEntry]:
        if self.before is None:
            return {}
        metadata = TableMetadataUtil.parse_obj(self.before.content)
        snapshot = metadata.current_snapshot()
        if snapshot is None:
            return {}
        return {e.data_file.file_path: e for e in live_entries(snapshot.manifests(LakeIO()))}

    def _data(self, schema: Schema, old: dict[str, ManifestEntry]) -> Iterator[ManifestRow]:
        left = dict(old)
        with self.found.rows.store.read() as connection:
            for file, row in described(connection, self.found, schema):
                before = left.pop(row["file_path"], None)
                self._count("added" if before is None else "kept", file.record_count or 0)
                yield ManifestRow(row, before)
        for gone in left.values():
            self._count("removed", gone.data_file.record_count)
            yield gone_entry(gone)

    def _count(self, what: str, records: int) -> None:
        self.counts[what] += 1
        self.records[what] += records

    def _dead(self, version: int) -> Iterator[ManifestRow]:
        dead = dead_positions(self.spark, self.found.rows.files, self.table)
        if dead is None:
            return
        names = {f.id: named(f.path) for f in self.found.rows.files}
        for row in (self._vectors if version > 2 else self._positions)(dead, names):
            self.counts["delete_files"] += 1
            self.counts["deletes"] += row["record_count"]
            yield ManifestRow(row)

    def _positions(self, dead: DataFrame, names: dict[int, str]) -> Iterator[dict[str, Any]]:
        written = write_position_files(self.spark, dead, names.items(), self.deletes_place, _IDS)
        for number, file in written.items():
            # Equal bounds say that the file is about this one data file.
            bounds = {_IDS[PATH]: names[number].encode()}
            yield {
                "content": DataFileContent.POSITION_DELETES,
                "file_path": named(f"{self.deletes}/{file.path}"),
                "file_format": FileFormat.PARQUET,
                "record_count": file.delete_count,
                "file_size_in_bytes": file.file_size_bytes,
                "lower_bounds": bounds,
                "upper_bounds": bounds,
            }

    def _vectors(self, dead: DataFrame, names: dict[int, str]) -> Iterator[dict[str, Any]]:
        """Write the positions as deletion vectors."""
        puffin = PuffinWriter()
        for number, places in by_file(dead.select(FILE, POSITION).toArrow()).items():
            puffin.add(names[number], places.to_numpy())
        place = f"{self.deletes}/vectors.puffin"
        content = puffin.bytes()
        write_bytes(place, content)
        for blob in puffin.blobs:
            yield {
                "content": DataFileContent.POSITION_DELETES,
                "file_path": named(place),
                "file_format": FileFormat.PUFFIN,
                "record_count": int(blob["properties"]["cardinality"]),
                "file_size_in_bytes": len(content),
                "referenced_data_file": blob["properties"]["referenced-data-file"],
                "content_offset": blob["offset"],
                "content_size_in_bytes": blob["length"],
            }

    def _content(
        self, schema: JsonObject, manifests: list[ManifestFile], commit: IcebergCommit
    ) -> JsonObject:
        with self.found.rows.store.read() as connection:
            kept = set(snapshot_ids(connection))
            next_row = next_row_id(connection, self.table.id)
        added = NextSnapshot(
            self.table, self.found.version, schema, dict(self.found.names), next_row
        )
        return next_metadata(
            self.location,
            self.before,
            added,
            self._summary(),
            write_manifest_list(commit, manifests),
            kept=kept,
            now=int(time.time() * 1000),
        )

    def _summary(self) -> dict[str, str]:
        counts, records = self.counts, self.records
        is_append = not counts["removed"] and not counts["delete_files"]
        is_delete = not counts["added"] and not is_append
        found = {
            "added-data-files": counts["added"],
            "deleted-data-files": counts["removed"],
            "added-records": records["added"],
            "deleted-records": records["removed"],
            "total-data-files": counts["added"] + counts["kept"],
            "total-records": records["added"] + records["kept"],
            "total-delete-files": counts["delete_files"],
            "total-position-deletes": counts["deletes"],
            "total-equality-deletes": 0,
        }
        operation = "append" if is_append else "delete" if is_delete else "overwrite"
        return {"operation": operation} | {name: str(value) for name, value in found.items()}


def _parsed(schema: JsonObject, table: str) -> Schema:
    """Return the schema in PyIceberg's form; Unsupported for names that it cannot tell apart."""
    try:
        parsed = Schema.model_validate(schema)
        _ = parsed.column_names
    except (ValidationError, SchemaError) as error:
        raise Unsupported(
            f"cannot express the columns of {table} as an Iceberg schema: {error}; Iceberg refers"
            " to a field of a struct as column.field, so rename the column that clashes"
        ) from error
    return parsed


class PuffinWriter:
    """The bytes of a Puffin file, and what its footer tells of each vector."""

    def __init__(self) -> None:
        self._content = bytearray(_MAGIC)
        self.blobs: list[JsonObject] = []

    def add(self, data_file: str, positions: Iterable[int]) -> None:
        """Add the deleted positions of a data file, by its path in the metadata."""
        bitmap = BitMap64(positions)
        bitmap.run_optimize()
        vector = _VECTOR_MAGIC + bitmap.serialize()
        blob = struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
        told = {"referenced-data-file": data_file, "cardinality": str(len(bitmap))}
        self.blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_POSITION_FIELD],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(self._content),
                "length": len(blob),
                "properties": told,
            }
        )
        self._content += blob

    def bytes(self) -> bytes:
        """Return the whole file."""
        payload = json.dumps({"blobs": self.blobs}).encode()
        flags = bytes(4)
        footer = _MAGIC + payload + struct.pack("<i", len(payload)) + flags + _MAGIC
        return bytes(self._content) + footer


def described(
    connection: Connection, found: IcebergSurvey, schema: Schema
) -> Iterator[tuple[DataFile, dict[str, Any]]]:
    """Yield each data file with the arguments of its row in a manifest; a statement per 1,000.

    Parts of lists and maps have neither counts nor bounds, because theirs are not reliable.
    """
    files = found.rows.files
    leaves = dict(_counted_leaves(found.shown.fields))
    for start in range(0, len(files), _FILES_AT_ONCE):
        part = files[start : start + _FILES_AT_ONCE]
        stats = file_bounds(connection, found.table, leaves, [f.id for f in part])
        for file in part:
            told = [
                (*leaves[number], stored, known)
                for number, stored in found.stored[file.id].items()
                if (known := stats.get(number, {}).get(file.id)) is not None
            ]
            yield file, _file_row(file) | _columns(file, told, schema)


def _file_row(file: DataFile) -> dict[str, Any]:
    return {
        "content": DataFileContent.DATA,
        "file_path": named(file.path),
        "file_format": FileFormat.PARQUET,
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_bytes,
        "first_row_id": file.row_id_start,
    }


def _columns(
    file: DataFile, told: Iterable[tuple[Field, bool, PhysicalField, ColumnStats]], schema: Schema
) -> dict[str, Any]:
    columns: dict[str, dict[int, Any]] = defaultdict(dict)
    for field, is_top, stored, known in told:
        columns["column_sizes"][field.id] = known.column_size_bytes
        if is_top and str(stored.shape) not in _UNCOUNTED:
            _count(columns, field.id, known, file)
        bounds = certain_bounds(field, stored, known)
        if bounds is not None:
            kind = cast("PrimitiveType", schema.find_type(field.id))
            for name, value in zip(("lower_bounds", "upper_bounds"), bounds, strict=True):
                columns[name][field.id] = to_bytes(kind, value)
    return columns


def _count(
    columns: dict[str, dict[int, Any]], field_id: int, known: ColumnStats, file: DataFile
) -> None:
    if known.value_count + known.null_count != file.record_count:
        return
    columns["value_counts"][field_id] = file.record_count
    columns["null_value_counts"][field_id] = known.null_count
    if known.contains_nan is False:
        columns["nan_value_counts"][field_id] = 0


def _counted_leaves(
    fields: Iterable[Field], *, is_top: bool = True
) -> Iterator[tuple[FieldId, tuple[Field, bool]]]:
    for field in fields:
        if field.is_leaf:
            yield field.id, (field, is_top)
        elif field.shape is Kind.STRUCT:
            yield from _counted_leaves(field.children, is_top=False)
