"""The catalog of a lake, read without Spark: commands that only look at it start at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shelduck.catalog.databases.store import Store, open_store
from shelduck.catalog.read import read as catalog_read
from shelduck.catalog.running import job_rows as catalog_jobs
from shelduck.catalog.schema.lake_schema import LakeInfo, open_lake
from shelduck.cli.config import wanted_lake
from shelduck.errors import NotFound
from shelduck.lake.results import TableName, table_name
from shelduck.model.changes.job import Job
from shelduck.model.tables.table_version import DEFAULT_SCHEMA, Snapshot, TableVersion
from shelduck.model.text.names import split_name


@contextmanager
def reading(catalog: str) -> Iterator[CatalogReader]:
    """Yield the reader of the lake of an address or a name; NotFound if there is none."""
    store = open_store(wanted_lake(catalog).catalog)
    try:
        yield CatalogReader(store, open_lake(store))
    finally:
        store.close()


class CatalogReader:
    """The newest snapshot of a lake."""

    def __init__(self, store: Store, info: LakeInfo) -> None:
        self._store = store
        self._info = info

    def tables(self, schema: str | None = None) -> list[TableName]:
        """Return the tables of one schema, or of all; NotFound for a schema that is not there."""
        with self._store.read() as connection:
            at = catalog_read.snapshot(connection)
            every = catalog_read.schemas(connection, at, self._info)
            chosen = [s for s in every if schema is None or s.text.lower() == schema.lower()]
            # A name with a dot needs no quotes if it is the only one.
            chosen = chosen or [s for s in every if s.name.lower() == str(schema).lower()]
            if schema is not None and not chosen:
                raise NotFound.named("schema", schema, [s.text for s in every])
            return [
                TableName(s.name, name)
                for s in chosen
                for name in catalog_read.table_names(connection, at, s)
            ]

    def table(self, name: str) -> TableVersion:
        """Return a table by ``table`` or ``schema.table``; NotFound lists similar names."""
        found = table_name(split_name(name), DEFAULT_SCHEMA)
        with self._store.read() as connection:
            at = catalog_read.snapshot(connection)
            return catalog_read.table(connection, at, found.home, found.name, self._info)

    def history(
        self, table: str | None = None, *, limit: int | None = None, before: int | None = None
    ) -> list[Snapshot]:
        """Return all snapshots, oldest first, or those that changed a table, newest first.

        ``limit`` and ``before`` are those of `Table.history`.
        """
        found = None if table is None else self.table(table)
        with self._store.read() as connection:
            if found is None:
                return catalog_read.snapshots(connection, limit=limit, before=before)
            return catalog_read.table_history(connection, found, limit=limit, before=before)

    def jobs(self) -> list[Job]:
        """Return all jobs, newest first."""
        return self._store.ask(catalog_jobs.jobs)
