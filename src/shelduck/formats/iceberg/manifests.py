"""Manifests and manifest lists: the Avro part of Iceberg's metadata, with PyIceberg's schemas.

PyIceberg's own manifest writers support neither deletes nor version 3, so the Avro files are
written with its writer and its schemas of each version instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.typedef import Record
from pyiceberg.types import StructType

from shelduck.engine.files.storage import filesystem, local_path
from shelduck.formats.iceberg.iceberg_metadata import named

Version = Literal[2, 3]
_ENTRIES = 10_000
_BLOCK = 1_000
_CODEC = {"avro.codec": "deflate"}


@dataclass(frozen=True, slots=True)
class IcebergCommit:
    """The facts that the manifests of one snapshot share.

    The paths of written files begin with ``prefix``; ``schema`` is the current one. Rows without
    their own ids get ids from ``first_row_id`` on.
    """

    version: Version
    snapshot: int
    parent: int | None
    schema: dict[str, Any]
    prefix: str
    first_row_id: int = 0


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One file in a manifest, by the arguments of its row; ``before`` is its previous entry."""

    file: dict[str, Any]
    before: ManifestEntry | None = None
    is_gone: bool = False


class LakeIO(FileIO):
    """Files through the lake's storage, with the same rights."""

    def new_input(self, location: str) -> InputFile:
        """Return a file for reading."""
        return _file(location)

    def new_output(self, location: str) -> OutputFile:
        """Return a file for writing."""
        return _file(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Refuse: an export itself knows which files belong to it."""
        raise NotImplementedError(f"{location} cannot be deleted here")


def write_manifests(
    commit: IcebergCommit, entries: Iterable[ManifestRow], *, deletes: bool = False
) -> list[ManifestFile]:
    """Write files into as many manifests as they need; none if there are no files."""
    left = iter(entries)
    written: list[ManifestFile] = []
    while first := list(islice(left, 1)):
        name = f"{'deletes' if deletes else 'data'}-{len(written)}"
        found = chain(first, islice(left, _ENTRIES - 1))
        written.append(_write_manifest(commit, found, f"{commit.prefix}-{name}.avro", deletes))
    return written


def write_manifest_list(commit: IcebergCommit, manifests: Sequence[ManifestFile]) -> str:
    """Write the list of a snapshot's manifests and return its path."""
    place = f"{commit.prefix}-list.avro"
    meta = {
        "snapshot-id": str(commit.snapshot),
        "parent-snapshot-id": "null" if commit.parent is None else str(commit.parent),
        "sequence-number": str(commit.snapshot),
        "format-version": str(commit.version),
        **_CODEC,
    }
    schema = MANIFEST_LIST_FILE_SCHEMAS[commit.version]
    with AvroOutputFile[ManifestFile](_file(place), schema, "manifest_file", metadata=meta) as out:
        if manifests:
            out.write_block(list(manifests))
    return named(place)


def live_entries(manifests: Iterable[ManifestFile]) -> Iterator[ManifestEntry]:
    """Yield the data files of a snapshot that was written before."""
    for manifest in manifests:
        if manifest.content == ManifestContent.DATA:
            yield from manifest.fetch_manifest_entry(LakeIO())


def gone_entry(before: ManifestEntry) -> ManifestRow:
    """Return the entry that says that a file no longer exists."""
    old = before.data_file
    kept = {name: getattr(old, name) for name in ("content", "file_path", "file_format")}
    sizes = {name: getattr(old, name) for name in ("record_count", "file_size_in_bytes")}
    return ManifestRow(kept | sizes, before, is_gone=True)


def _write_manifest(
    commit: IcebergCommit, entries: Iterable[ManifestRow], place: str, deletes: bool
) -> ManifestFile:
    version = commit.version
    out = _file(place)
    counts = dict.fromkeys(ManifestEntryStatus, (0, 0))
    oldest = commit.snapshot
    meta = {
        "schema": json.dumps(commit.schema),
        "partition-spec": "[]",
        "partition-spec-id": "0",
        "format-version": str(version),
        "content": "deletes" if deletes else "data",
        **_CODEC,
    }
    file_type = data_file_with_partition(StructType(), version)
    schema = manifest_entry_schema_with_data_file(version, file_type)
    rows = (_row(commit, entry) for entry in entries)
    with AvroOutputFile[ManifestEntry](out, schema, "manifest_entry", metadata=meta) as writer:
        while block := list(islice(rows, _BLOCK)):
            writer.write_block(block)
            for row in block:
                files, records = counts[row.status]
                counts[row.status] = (files + 1, records + row.data_file.record_count)
                if row.status != ManifestEntryStatus.DELETED and row.sequence_number is not None:
                    oldest = min(oldest, row.sequence_number)
    return ManifestFile.from_args(
        version,
        manifest_path=named(place),
        manifest_length=len(out),
        partition_spec_id=0,
        content=ManifestContent.DELETES if deletes else ManifestContent.DATA,
        sequence_number=commit.snapshot,
        min_sequence_number=oldest,
        added_snapshot_id=commit.snapshot,
        first_row_id=None if deletes else commit.first_row_id,
        **_counted(counts),
    )


def _counted(counts: dict[ManifestEntryStatus, tuple[int, int]]) -> dict[str, int]:
    return {
        f"{status.name.lower()}_{what}_count": number
        for status, found in counts.items()
        for what, number in zip(("files", "rows"), found, strict=True)
    }


def _row(commit: IcebergCommit, entry: ManifestRow) -> ManifestEntry:
    file = DataFile.from_args(commit.version, partition=Record(), **entry.file)
    before = entry.before
    if before is None:
        status = ManifestEntryStatus.ADDED
        return ManifestEntry.from_args(
            commit.version, status=status, snapshot_id=commit.snapshot, data_file=file
        )
    return ManifestEntry.from_args(
        commit.version,
        status=ManifestEntryStatus.DELETED if entry.is_gone else ManifestEntryStatus.EXISTING,
        snapshot_id=commit.snapshot if entry.is_gone else before.snapshot_id,
        sequence_number=before.sequence_number,
        file_sequence_number=before.file_sequence_number,
        data_file=file,
    )


def _file(location: str) -> PyArrowFile:
    files, name = filesystem(location)
    if local_path(location) is not None:
        files.create_dir(name.rpartition("/")[0], recursive=True)
    return PyArrowFile(named(location), name, files)
