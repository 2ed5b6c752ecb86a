"""CALL flush_inlined_data, fold and refresh_rollups."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.errors import InvalidRequest
from shelduck.statements.arguments import table_name as named_table
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs.table import Table
from shelduck.work.results import Committed, PlainRows, Result, TableName, Unchanged
from shelduck.work.turns import Turns


def flush_inlined_data(
    runner: Runner, table_name: str | None = None, *, schema: str | None = None
) -> PlainRows:
    """Move rows out of the catalog: of one table, of all in a schema, or of all in the lake."""
    if runner.unit is not None:
        raise InvalidRequest("a flush commits by itself; run it outside of the transaction")

    def flushed(name: TableName) -> tuple[TableName, Result]:
        return name, Table(runner.state, name).flush_inlined_data()

    if table_name is not None:
        done = [flushed(named_table(runner, table_name, schema))]
    else:
        names = runner.verbs.tables(schema)
        with Turns() as turns:
            done = list(turns.each(names, flushed))
    rows = [
        (name.schema, name.name, *_landed(result), result.note or None)
        for name, result in done
        if isinstance(result, Committed) or (isinstance(result, Unchanged) and result.note)
    ]
    columns = "schema_name string, table_name string, snapshot bigint, files bigint, note string"
    return PlainRows(columns, rows)


def _landed(result: Committed | Unchanged) -> tuple[int | None, int]:
    return result.snapshot if isinstance(result, Committed) else None, result.files


def fold(runner: Runner, table_name: str, *, schema: str | None = None) -> Answer:
    """Combine rows of the same key that other writers put into a table."""
    return Table(runner.state, named_table(runner, table_name, schema), runner.unit).fold()


def refresh_rollups(runner: Runner, table_name: str, *, schema: str | None = None) -> Answer:
    """Update all rollups of a table that another writer left outdated."""
    name = named_table(runner, table_name, schema)
    return Table(runner.state, name, runner.unit).refresh_rollups()


PROCEDURES: dict[str, Callable[..., Answer]] = {
    "flush_inlined_data": flush_inlined_data,
    "fold": fold,
    "refresh_rollups": refresh_rollups,
}
