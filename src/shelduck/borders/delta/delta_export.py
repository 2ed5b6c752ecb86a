"""Writing the next version of a Delta log over a table's files.

An export is one file of the log, written last and either completely or not at all. It contains the
deleted rows, and the data files stay where they are. Files of earlier exports never change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from shelduck.borders.delta.actions import (
    ENGINE,
    TABLE_KEY,
    Action,
    add_action,
    metadata_action,
    metadata_of,
    protocol_action,
    protocol_of,
    remove_action,
    stats_of,
)
from shelduck.borders.delta.delta_schema import MODE
from shelduck.borders.delta.delta_survey import DeltaSurvey
from shelduck.borders.delta.log import (
    LOG,
    Added,
    LoggedVector,
    State,
    has_log,
    read_log,
)
from shelduck.borders.delta.vectors import bitmap, inline_vector
from shelduck.borders.report import Exported
from shelduck.catalog.read.files.data_files import file_bounds
from shelduck.errors import AlreadyExists, Conflict
from shelduck.model.files.data_file import ColumnStats
from shelduck.model.tables.schema import FieldId
from shelduck.model.tables.table_version import TableVersion
from shelduck.spark.deletes.position_files import FILE, POSITION, dead_positions
from shelduck.spark.files.storage import local_path, write_new_text
from shelduck.spark.session import SparkSession


@dataclass(frozen=True, slots=True)
class PublishedLog:
    """The newest version that was exported to a directory."""

    state: State

    @property
    def mode(self) -> str:
        """Return its mode of column mapping, which stays."""
        return self.state.metadata.configuration.get(MODE, "none")


def published(location: str, table: TableVersion) -> PublishedLog | None:
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
    return PublishedLog(state)


def export_to_delta(
    spark: SparkSession, found: DeltaSurvey, location: str, before: PublishedLog | None
) -> Exported:
    """Write the version of a table that is ready, after what was exported ``before``.

    Nothing is written if nothing changed. Raises Conflict if another export came first.
    """
    found.report.require_ready()
    now = int(time.time() * 1000)
    actions = _DeltaExport(
        spark, found, before.state if before is not None else None, now
    ).actions()
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
    version = 0 if before is None else before.state.version + 1
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
            _plain(f.path): (f, Added(_plain(f.path), f.file_size_bytes, {}, vectors.get(f.id)))
            for f in self.found.rows.files
        }
        known = self.before.files if self.before is not None else {}
        gone = [a for path, a in known.items() if path not in files or files[path][1] != a]
        new = [(f, a) for path, (f, a) in files.items() if known.get(path) != a]
        told = self._stats([f.id for f, _ in new])
        return [
            *self._head(has_vectors=bool(vectors)),
            *(remove_action(a, self.now) for a in gone),
            *(
                add_action(
                    a,
                    stats_of(self.found, f, told.get(f.id, {}), has_vector=a.vector is not None),
                    self.now,
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
        found: dict[int, Any] = {}
        for batch in dead.select(FILE, POSITION).toArrow().to_batches():
            grouped = pa.Table.from_batches([batch]).group_by(FILE).aggregate([(POSITION, "list")])
            columns = (grouped[name].to_pylist() for name in (FILE, f"{POSITION}_list"))
            for number, positions in zip(*columns, strict=True):
                found.setdefault(number, bitmap()()).update(positions)
        for positions in found.values():
            # The same rows give the same text in every export.
            positions.run_optimize()
        return {number: inline_vector(positions) for number, positions in found.items()}

    def _stats(self, files: list[int]) -> dict[int, dict[FieldId, ColumnStats]]:
        leaves = [f.id for f in self.found.fields if f.is_leaf]
        told: dict[int, dict[FieldId, ColumnStats]] = {}
        if not files:
            return told
        rows = self.found.rows
        with rows.store.read() as connection:
            bounds: Mapping[int, Mapping[int, ColumnStats]] = file_bounds(
                connection, rows.table, leaves
            )
        wanted = set(files)
        for column, by_file in bounds.items():
            for number, stats in by_file.items():
                if number in wanted:
                    told.setdefault(number, {})[FieldId(column)] = stats
        return told


def _plain(path: str) -> str:
    plain = local_path(path)
    return path if plain is None else plain
