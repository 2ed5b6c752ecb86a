"""Pinned views: made for old clients of a table, and read by what their pin says."""

from __future__ import annotations

from shelduck.catalog.commit.follow_pins import shape_of
from shelduck.catalog.read import read as catalog_read
from shelduck.errors import AlreadyExists, NotFound, Unsupported
from shelduck.lake.results import Result, TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, carry_out
from shelduck.model.tables.rollup import rollup_of
from shelduck.model.tables.schema import Schema, SnapshotId
from shelduck.model.tables.table_version import Snapshot, TableVersion
from shelduck.model.tables.view import Pin, ViewDefinition
from shelduck.text.pins.pin_queries import pin_texts


def pin_view(
    state: LakeState,
    unit: UnitOfWork | None,
    table: TableName,
    version: int,
    name: TableName,
    *,
    replaces: bool = False,
    if_not_exists: bool = False,
    comment: str | None = None,
) -> Result:
    """Make a view that shows a table in the columns that it had at snapshot ``version``.

    Raises NotFound if the table did not exist then, and Unsupported if SQL cannot express the view.
    """

    def stage(into: UnitOfWork) -> None:
        known = into.workspace.view(name)
        if known is not None and if_not_exists:
            return
        if into.workspace.has_table(name):
            raise AlreadyExists(f"table {name} already exists", about="table")
        now = into.workspace.table(table)
        if rollup_of(now) is not None:
            raise Unsupported(f"cannot pin {table}: it is a rollup; pin its base table")
        pin = Pin(now.id, SnapshotId(version))
        texts = pin_texts(pin, _shape_then(into, now, pin), now)
        if known is not None and replaces:
            into.workspace.drop_view(known)
        definition = ViewDefinition(texts.duckdb, (), texts.spark, comment, pin)
        into.workspace.create_view(name, definition)

    return carry_out(state, unit, stage)


def pinned_shape(unit: UnitOfWork, pin: Pin) -> tuple[Schema, TableVersion]:
    """Return the columns of a pinned view, under today's ids, and its table as the unit sees it.

    Raises NotFound if the table is gone.
    """
    with unit.workspace.reading() as connection:
        shape = shape_of(connection, pin, unit.workspace.base, unit.state.info)
        now = unit.workspace.table_of(pin.table_id)
    return _present(pin, shape, now)


def pinned_query(unit: UnitOfWork, pin: Pin, at: Snapshot | None = None) -> str:
    """Return the Spark query of a pinned view for the table of today, or of a snapshot.

    Raises NotFound if the table is gone, and Unsupported if SQL cannot express the view any more.
    """
    if at is None:
        return pin_texts(pin, *pinned_shape(unit, pin)).spark
    with unit.state.store.read() as connection:
        shape = shape_of(connection, pin, at, unit.state.info)
        then = catalog_read.table_by_id(connection, pin.table_id, at, unit.state.info)
    return pin_texts(pin, *_present(pin, shape, then)).spark


def _present(
    pin: Pin, shape: Schema | None, table: TableVersion | None
) -> tuple[Schema, TableVersion]:
    if shape is None or table is None:
        raise NotFound(
            f"the table whose columns of snapshot {pin.snapshot} it shows was dropped; drop the"
            " view, or pin it to another table"
        )
    return shape, table


def _shape_then(unit: UnitOfWork, now: TableVersion, pin: Pin) -> Schema:
    """Return the columns that a table had; NotFound if there was no snapshot or no such table."""
    with unit.workspace.reading() as connection:
        _ = catalog_read.snapshot(connection, version=pin.snapshot)
        shape = shape_of(connection, pin, unit.workspace.base, unit.state.info)
    if shape is None:
        raise NotFound(
            f"table {now.full_name} did not exist at snapshot {pin.snapshot}; DESCRIBE HISTORY"
            f" {now.full_name} shows its snapshots",
            about="snapshot",
        )
    return shape
