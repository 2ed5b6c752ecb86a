"""Writers for tests of concurrency; a module of its own, so that other processes can import it."""

from __future__ import annotations

import uuid

from shelduck.catalog.commit.commit import commit
from shelduck.catalog.databases.store import open_store
from shelduck.catalog.read import read
from shelduck.catalog.schema.lake_schema import open_lake
from shelduck.model.changes.change import AppendFiles, CommitInfo, CreateTable
from shelduck.model.tables.schema import TableId, new_schema
from shelduck.model.types.data_types import Member, Primitive
from tests.support.files import write_file


def append_rows(url: str, writer: int, count: int) -> list[int]:
    """Appends `count` files of one row to main.t and makes a table, returning the snapshots."""
    store = open_store(url)
    lake = open_lake(store)
    landed = []
    for number in range(count):
        with store.read() as connection:
            at = read.snapshot(connection)
            table = read.table(connection, at, "main", "t", lake)
        value = writer * 1000 + number
        file = write_file(table, [{"a": value}], {1: (str(value), str(value), 0)})
        change = AppendFiles(table.id, (file,))
        done = commit(store, lake, [change], base=at.id, info=CommitInfo(str(writer)))
        landed.append(int(done.snapshot.id))
    create = CreateTable(
        TableId(-1),
        table.schema,
        f"made_by_{writer}",
        str(uuid.uuid4()),
        f"made_by_{writer}/",
        new_schema([Member("a", Primitive("int32"))]),
    )
    done = commit(store, lake, [create], base=at.id, info=CommitInfo(str(writer)))
    store.close()
    return [*landed, int(done.snapshot.id)]
