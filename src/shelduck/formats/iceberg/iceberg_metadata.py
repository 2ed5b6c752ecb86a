"""Table metadata: the content of an export's directory, and the next version."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from shelduck.engine.files.storage import (
    list_names,
    local_path,
    read_text,
    write_new_text,
    write_text,
)
from shelduck.errors import AlreadyExists, Conflict
from shelduck.formats.iceberg.iceberg_survey import NamedBelow, name_mapping_json
from shelduck.model.tables.table_version import TableVersion

JsonObject = dict[str, Any]

_OURS = re.compile(r"v([0-9]+)\.metadata\.json")
_ANY = re.compile(r".*\.metadata\.json(\.gz)?|.*\.gz\.metadata\.json")
_HINT = "version-hint.text"
_NAMES = "schema.name-mapping.default"
_NO_PARTITION = 999  # fields of partitions count from 1000


@dataclass(frozen=True, slots=True)
class PublishedMetadata:
    """A version of the metadata that readers see, and its number."""

    number: int
    path: str
    content: JsonObject

    @property
    def version(self) -> int:
        """The version of the format."""
        return int(self.content["format-version"])

    @property
    def snapshot(self) -> int:
        """The newest snapshot."""
        return int(self.content["current-snapshot-id"])


@dataclass(frozen=True, slots=True)
class NextSnapshot:
    """The snapshot that an export adds: ``schema`` without an id, and the next unused row id."""

    table: TableVersion
    version: int
    schema: JsonObject
    names: dict[NamedBelow, int]
    next_row_id: int


def newest_metadata(location: str, table: TableVersion) -> PublishedMetadata | None:
    """Return what an export to a directory left there; None if there is nothing.

    Raises AlreadyExists for the metadata of another table or another writer.
    """
    names = [n for n in list_names(f"{location}/metadata") if _ANY.fullmatch(n)]
    ours = _versions(names)
    foreign = sorted(set(names) - set(ours.values()))
    if foreign:
        raise AlreadyExists(
            f"{location} has Iceberg metadata of another writer ({foreign[0]}); export to another"
            " directory"
        )
    if not ours:
        return None
    number = max(ours)
    path = f"{location}/metadata/{ours[number]}"
    try:
        content = json.loads(read_text(path))
        uuid = content["table-uuid"]
        found = PublishedMetadata(number, path, content)
        _ = found.version, found.snapshot
    except (ValueError, TypeError, KeyError) as error:
        raise AlreadyExists(
            f"{path} is not table metadata that Shelduck wrote; export to another directory"
        ) from error
    if str(uuid).lower() != table.uuid.lower():
        raise AlreadyExists(
            f"{location} has the Iceberg metadata of another table ({uuid}, not {table.uuid} of"
            f" {table.full_name}); export to another directory"
        )
    return found


def next_metadata(
    location: str,
    before: PublishedMetadata | None,
    added: NextSnapshot,
    summary: dict[str, str],
    manifest_list: str,
    *,
    kept: Collection[int],
    now: int,
) -> JsonObject:
    """Return the metadata with one more snapshot; ``kept`` are snapshots that the lake still has.

    Snapshot ids and sequence numbers are the lake's. Earlier snapshots stay with their schemas,
    unless the lake has expired them or their files without field ids would be misread.
    """
    old = before.content if before is not None else {}
    names, agree = _merged(old, added.names)
    snapshots = [s for s in old.get("snapshots", []) if s["snapshot-id"] in kept and agree]
    snapshots = [s for s in snapshots if s["snapshot-id"] != added.table.snapshot.id]
    schemas, schema_id = _with_schema(old.get("schemas", []), added.schema)
    latest = max((s["timestamp-ms"] for s in snapshots), default=0)
    made = _snapshot(added, schema_id, summary, manifest_list, after=latest)
    made |= {"parent-snapshot-id": snapshots[-1]["snapshot-id"]} if snapshots else {}
    if added.version > 2:
        first = int(old.get("next-row-id", 0))
        made |= {"first-row-id": first, "added-rows": max(added.next_row_id - first, 0)}
    content: JsonObject = {
        "format-version": added.version,
        "table-uuid": added.table.uuid,
        "location": named(location),
        "last-sequence-number": added.table.snapshot.id,
        "last-updated-ms": max(now, made["timestamp-ms"]),
        "last-column-id": max(added.table.max_column_id, int(old.get("last-column-id", 0))),
        "schemas": schemas,
        "current-schema-id": schema_id,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": _NO_PARTITION,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": _properties(added.table, names),
        "current-snapshot-id": made["snapshot-id"],
        "snapshots": [*snapshots, made],
        "refs": {"main": {"snapshot-id": made["snapshot-id"], "type": "branch"}},
        "snapshot-log": _history(old, snapshots, made),
        "metadata-log": _log(before),
    }
    if added.version > 2:
        content["next-row-id"] = max(added.next_row_id, int(old.get("next-row-id", 0)))
    return content


def publish(location: str, before: PublishedMetadata | None, content: JsonObject) -> str:
    """Write the next version for readers to see, and return its path.

    The hint comes last: until then, readers that use the directory see the version before. Raises
    Conflict if another export to the directory came first.
    """
    number = 1 if before is None else before.number + 1
    path = f"{location}/metadata/v{number}.metadata.json"
    try:
        write_new_text(path, json.dumps(content, indent=2))
    except FileExistsError as error:
        raise Conflict(f"another export to {location} was faster; export again") from error
    _hint(location, number)
    return path


def show_newest(location: str, newest: PublishedMetadata) -> None:
    """Point readers of the directory to the newest version, if an interrupted export did not."""
    names = list_names(f"{location}/metadata")
    if _HINT not in names or read_text(f"{location}/metadata/{_HINT}") != str(newest.number):
        _hint(location, newest.number)


def _hint(location: str, number: int) -> None:
    """Point readers to a version, or to a newer one: a slow export must not take them back."""
    shown = 0
    while shown < number:
        shown = number
        write_text(f"{location}/metadata/{_HINT}", str(number))
        number = max(_versions(list_names(f"{location}/metadata")), default=number)


def _versions(names: Iterable[str]) -> dict[int, str]:
    """Return the names of the versions among files, by their numbers."""
    return {int(match[1]): n for n in names if (match := _OURS.fullmatch(n))}


def _snapshot(
    added: NextSnapshot, schema_id: int, summary: dict[str, str], manifest_list: str, *, after: int
) -> JsonObject:
    snapshot = added.table.snapshot
    return {
        "snapshot-id": snapshot.id,
        "sequence-number": snapshot.id,
        # Readers refuse times that go back.
        "timestamp-ms": max(int(snapshot.time.timestamp() * 1000), after),
        "manifest-list": manifest_list,
        "summary": summary,
        "schema-id": schema_id,
    }


def _with_schema(known: list[JsonObject], schema: JsonObject) -> tuple[list[JsonObject], int]:
    """Return all schemas, and the id of this one; equal schemas share one entry."""
    for one in known:
        if one["fields"] == schema["fields"]:
            return known, int(one["schema-id"])
    number = max((int(one["schema-id"]) for one in known), default=-1) + 1
    return [*known, schema | {"schema-id": number}], number


def _history(old: JsonObject, snapshots: list[JsonObject], made: JsonObject) -> list[JsonObject]:
    """Return when each snapshot became the newest one, after the last gap."""
    left = {s["snapshot-id"] for s in snapshots}
    found = [{"snapshot-id": made["snapshot-id"], "timestamp-ms": made["timestamp-ms"]}]
    for entry in reversed(old.get("snapshot-log", [])):
        if entry["snapshot-id"] not in left:
            break
        found.insert(0, entry)
    return found


def _properties(table: TableVersion, names: dict[NamedBelow, int]) -> dict[str, str]:
    found = {"shelduck.table": table.full_name}
    comment = table.comments.get(None)
    if comment is not None:
        found["comment"] = comment
    if names:
        found[_NAMES] = json.dumps(name_mapping_json(names))
    return found


def _log(before: PublishedMetadata | None) -> list[JsonObject]:
    if before is None:
        return []
    entry = {"metadata-file": named(before.path), "timestamp-ms": before.content["last-updated-ms"]}
    return [*before.content.get("metadata-log", []), entry]


def _merged(old: JsonObject, names: dict[NamedBelow, int]) -> tuple[dict[NamedBelow, int], bool]:
    """Return the names with those that files of earlier snapshots need, and whether all agree."""
    text = old.get("properties", {}).get(_NAMES)
    earlier = _named(json.loads(text), None) if text else {}
    agree = all(names.get(key, number) == number for key, number in earlier.items())
    return (earlier | names if agree else names), agree


def _named(entries: list[JsonObject], parent: int | None) -> dict[NamedBelow, int]:
    found: dict[NamedBelow, int] = {}
    for entry in entries:
        number = int(entry["field-id"])
        found |= {(parent, name): number for name in entry["names"]}
        found |= _named(entry.get("fields", []), number)
    return found


def named(path: str) -> str:
    """Return a path as the metadata names it: a URI, as Iceberg requires.

    Readers take a URI literally, without decoding it, but PyIceberg ends it at ``#`` and ``?``. So
    a local path with one of these has no scheme.
    """
    plain = local_path(path)
    if plain is not None and any(mark in plain for mark in "#?"):
        return plain
    return path if plain is None else f"file://{plain}"
