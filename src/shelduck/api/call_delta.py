"""CALL import_delta."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.api.arguments import table_name, text
from shelduck.api.delta_import import LakeBorders
from shelduck.api.results import PlainRows
from shelduck.api.runner import Answer, Runner
from shelduck.errors import InvalidRequest
from shelduck.sql.upkeep_statements import Argument


def import_delta(
    runner: Runner, path: Argument, table: Argument, *, schema: Argument = None
) -> PlainRows:
    """Make a Delta table part of the lake; one row for each version that became a snapshot."""
    if runner.unit is not None:
        raise InvalidRequest(
            "import_delta() makes many snapshots and is no part of a transaction; call it outside"
        )
    name = table_name(runner, table, schema)
    done = LakeBorders(runner.state, None).import_delta(text(path, "path"), str(name))
    columns = "delta_version bigint, snapshot_id bigint"
    return PlainRows(columns, list(done.snapshots.items()))


PROCEDURES: dict[str, Callable[..., Answer]] = {
    "import_delta": import_delta,
}
