"""A lake and the shortest words for committing to it and for asking DuckDB about it."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import replace

from shelduck.catalog.commit.commit import commit
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.read import read
from shelduck.catalog.schema.lake_schema import open_or_create_lake
from shelduck.model.changes.change import (
    AppendFiles,
    CommitInfo,
    CreateSchema,
    CreateTable,
    alteration,
)
from shelduck.model.changes.records import LearnLayouts
from shelduck.model.changes.schema_change import SchemaDraft, apply_change, refuse_empty
from shelduck.model.tables.schema import SchemaId, TableId, new_schema
from shelduck.model.tables.table_version import SchemaInfo, TableVersion
from shelduck.model.text.names import directory
from shelduck.model.types.data_types import Member, parse_type
from tests.support.ducklakepy_oracle import oracle_at
from tests.support.files import write_file

NESTED = {
    "id": "bigint",
    "tags": "array<string>",
    "s": "struct<x: int, y: struct<z: double>>",
    "m": "map<string, int>",
}

PLAIN = {"DATA_INLINING_ROW_LIMIT": 0}


class Lake:
    """A lake and the shortest words for committing to it."""

    def __init__(self, url, data_path):
        self.url = url
        self.store = open_store(url)
        self.info = open_or_create_lake(self.store, data_path)

    def head(self):
        with self.store.read() as connection:
            return read.snapshot(connection)

    def table(self, name, schema="main"):
        with self.store.read() as connection:
            return read.table(connection, read.snapshot(connection), schema, name, self.info)

    def schema(self, name="main"):
        with self.store.read() as connection:
            found = read.schemas(connection, read.snapshot(connection), self.info)
        return next(s for s in found if s.name == name)

    def files(self, name):
        with self.store.read() as connection:
            table = read.table(connection, read.snapshot(connection), "main", name, self.info)
            return read.data_files(connection, table)

    def commit(self, *changes, base=None, info=CommitInfo(), learned=None):  # noqa: B008
        base = self.head().id if base is None else base
        return commit(
            self.store, self.info, [*changes, LearnLayouts(learned or {})], base=base, info=info
        )

    def create(self, name="t", **columns):
        return self.commit(created(self.schema(), name, **columns))

    def alter(self, name, *changes):
        return self.commit(altered(self.table(name), *changes))

    def append(self, name, rows, bounds=None):
        table = self.table(name)
        return self.commit(AppendFiles(table.id, (write_file(table, rows, bounds),)))

    @contextmanager
    def duckdb(self, options=PLAIN):
        self.store.close()
        with oracle_at(self.url, None, options) as oracle:
            yield oracle

    def tell(self, *statements, inline=0):
        with self.duckdb({"DATA_INLINING_ROW_LIMIT": inline}) as oracle:
            for statement in statements:
                oracle.execute(statement)

    def ask(self, query):
        with self.duckdb() as oracle:
            return oracle.sql(query)

    def metadata(self, table):
        return self.metadata_of_all()[table]

    def metadata_of_all(self):
        with self.duckdb() as oracle:
            return oracle.dump_metadata()


def created(schema, name="t", number=-1, **columns):
    members = [Member(n, parse_type(kind)) for n, kind in columns.items()]
    unique = str(uuid.uuid4())
    place = directory(name, unique)
    return CreateTable(TableId(number), schema, name, unique, place, new_schema(members))


def apply_changes(draft, changes, table):
    """The draft of a schema after all changes in order."""
    for change in changes:
        draft = apply_change(draft, change, table)
    refuse_empty(draft, table)
    return draft


def altered(table, *changes):
    draft = SchemaDraft(table.columns, table.max_column_id + 1, dict(table.comments))
    after = apply_changes(draft, changes, table.full_name)
    then = replace(table, columns=after.columns, comments=after.comments)
    checked = bool(after.must_hold_no_null)
    return alteration(table, then, after.unsafe_bounds, excludes_inserts=checked)


def new_schema_info(lake, name, number=-9):
    unique = str(uuid.uuid4())
    path = lake.info.data_path + directory(name, unique)
    return CreateSchema(SchemaInfo(SchemaId(number), name, path), unique)


def provisional(create, lake):
    """The table version of a table that is created in the same commit."""
    return TableVersion(
        id=create.id,
        uuid=create.uuid,
        schema=create.schema,
        name=create.name,
        path=create.schema.path + create.directory,
        columns=create.columns,
        snapshot=lake.head(),
        begin_snapshot=lake.head().id,
        max_column_id=max(f.id for f in create.columns.walk()),
        first_names={},
        comments={},
    )


def statements(lake, *changes):
    """How many statements a commit takes that nobody else came before."""
    base = lake.head().id
    before = lake.store.statements
    lake.commit(*changes, base=base)
    return lake.store.statements - before
