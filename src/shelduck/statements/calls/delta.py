"""CALL import_delta."""

from __future__ import annotations

from collections.abc import Callable

from shelduck.errors import InvalidRequest
from shelduck.sql.tokens.parts import Argument
from shelduck.statements.arguments import table_name, text
from shelduck.statements.runner import Answer, Runner
from shelduck.verbs.lake.delta_import import LakeBorders
from shelduck.work.results import PlainRows


def import_delta(
    runner: Runner, path: Argument, table: Argument, *, schema: Argument = None
) -> PlainRows:
    """Make a Delta table part of the lake; one row for each version that became a snapshot."""
    if runner.unit is not None:
        raise InvalidRequest(
            "import_delta() makes many snapshots and cannot be part of a transaction; run it"
            " outside of the transaction"
        )
    name = table_name(runner, table, schema)
    done = LakeBorders(runner.state, None).import_delta(text(path, "path"), str(name))
    columns = "delta_version bigint, snapshot_id bigint"
    return PlainRows(columns, list(done.snapshots.items()))


PROCEDURES: dict[str, Callable[..., Answer]] = {
    "import_delta": import_delta,
}
