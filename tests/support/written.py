"""A table that DuckDB made, and files written for it put into its catalog (SQLite) by hand."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from shelduck.model.tables.schema import FieldId, Schema, SchemaId, SnapshotId, TableId, new_schema
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.types.data_types import Member, parse_type
from tests.support.oracle import DuckDBOracle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shelduck.model.files.data_file import NewDataFile

NO_INLINING = {"DATA_INLINING_ROW_LIMIT": 0}


@dataclass(frozen=True)
class HandMadeLake:
    """A lake in SQLite below `folder`, made and read by DuckDB."""

    folder: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/catalog.db"

    def oracle(self) -> DuckDBOracle:
        return DuckDBOracle(self.url, f"{self.folder}/data/", NO_INLINING)

    def create(self, name: str, ddl: str) -> None:
        """Makes a table in DuckDB's words."""
        with self.oracle() as oracle:
            oracle.execute(f'CREATE TABLE "{name}" ({ddl})')

    def publish(self, name: str, files: Iterable[NewDataFile]) -> None:
        """Puts files into a table as one snapshot, with their statistics."""
        with closing(sqlite3.connect(self.folder / "catalog.db", isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            _publish(db, name, list(files))
            db.execute("COMMIT")


def table_version(
    lake: HandMadeLake, name: str, schema: Schema, first_names: dict[FieldId, str] | None = None
) -> TableVersion:
    """The first version of a table in the default schema of `lake`."""
    snapshot = Snapshot(SnapshotId(1), datetime(2024, 1, 1, tzinfo=UTC), 1, 2, 0)
    return TableVersion(
        id=TableId(1),
        uuid="0198c0de-0000-7000-8000-000000000001",
        schema=SchemaInfo(SchemaId(0), "main", f"{lake.folder}/data/main/"),
        name=name,
        path=f"{lake.folder}/data/main/{name}/",
        columns=schema,
        snapshot=snapshot,
        begin_snapshot=snapshot.id,
        max_column_id=max(f.id for f in schema.walk()),
        first_names=first_names or {f.id: f.name for f in schema.walk()},
        comments={},
    )


def columns(**kinds: str) -> Schema:
    """Columns by name and type; a trailing ` not null` is understood."""
    return new_schema(
        [
            Member(
                name,
                parse_type(kind.removesuffix(" not null")),
                nullable=not kind.endswith(" not null"),
            )
            for name, kind in kinds.items()
        ]
    )


def _publish(db: sqlite3.Connection, name: str, files: list[NewDataFile]) -> None:
    [(before, version, catalog_id, file_id)] = db.execute(
        "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot"
        " ORDER BY snapshot_id DESC LIMIT 1"
    )
    [(table,)] = db.execute("SELECT table_id FROM ducklake_table WHERE table_name = ?", [name])
    db.execute(
        "INSERT INTO ducklake_snapshot SELECT ?, snapshot_time, ?, ?, ? FROM ducklake_snapshot"
        " WHERE snapshot_id = ?",
        [before + 1, version, catalog_id, file_id + len(files), before],
    )
    db.execute(
        "INSERT INTO ducklake_snapshot_changes VALUES (?, ?, NULL, NULL, NULL)",
        [before + 1, f"inserted_into_table:{table}"],
    )
    row = 0
    for n, file in enumerate(files):
        db.execute(
            "INSERT INTO ducklake_data_file VALUES"
            " (?, ?, ?, NULL, NULL, ?, 1, 'parquet', ?, ?, ?, ?, NULL, NULL, NULL, NULL)",
            [file_id + n, table, before + 1, file.path, file.record_count, file.file_size_bytes,
             file.footer_size, row],
        )  # fmt: skip
        row += file.record_count
        for s in file.stats:
            db.execute(
                "INSERT INTO ducklake_file_column_stats VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                [file_id + n, table, s.column_id, s.column_size_bytes, s.value_count, s.null_count,
                 s.min_value, s.max_value, s.contains_nan],
            )  # fmt: skip
    db.execute("INSERT INTO ducklake_table_stats VALUES (?, ?, ?, 1)", [table, row, row])
