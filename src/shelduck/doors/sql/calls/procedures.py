"""The procedures that CALL knows, by name.

A procedure is a function of the `Runner` and its arguments; the parameters of the function are
those of the procedure, with their types, and those after ``*`` must be named. Each module next to
this one has a dictionary of its procedures; they are merged here. Those of Iceberg that mean
something for a lake have its names, arguments and columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, fields
from datetime import timedelta

from shelduck.branches.verb import fast_forward as fast_forward_table
from shelduck.carry.verb import CarryVerbs, ColumnLineage
from shelduck.doors.sql import transactions
from shelduck.doors.sql.call_arguments import Moment, Texts, by_name, table_name, table_of, values
from shelduck.doors.sql.calls import exchange, functions, upkeep_calls
from shelduck.errors import InvalidRequest, NotFound, Unsupported
from shelduck.lake.operation import Answer, Operation, Procedure, Runner
from shelduck.lake.results import Committed, PlainRows, Result
from shelduck.lake.results import table_name as plain_name
from shelduck.lake.unit import refuse_in_transaction
from shelduck.model.text.names import split_name
from shelduck.text import foreign_words
from shelduck.text.tokens.arguments import read_call
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import Argument, Call
from shelduck.upkeep.statement import compacted_rows, lake_of


def call(runner: Runner, statement: Call) -> Answer:
    """CALL: run a procedure.

    Raises NotFound, with similar names, for one that does not exist, and Unsupported for one that
    only another system has.
    """
    name = statement.procedure
    procedure = PROCEDURES.get(name)
    if procedure is None:
        instead = foreign_words.PROCEDURES.get(name)
        if instead is not None:
            raise Unsupported(f"procedure {name!r} of Iceberg is not supported; {instead}")
        raise NotFound.named("procedure", name, sorted(PROCEDURES))
    return procedure(runner, **values(runner, procedure, statement))


def read_call_statement(cursor: Cursor) -> Call:
    """Read the statement behind ``CALL``."""
    return read_call(cursor, cursor.path("a procedure"), "procedure")


# Iceberg's own default.
_ORPHAN_AGE = timedelta(days=3)


def rollback_to_snapshot(runner: Runner, table: str, snapshot_id: int) -> PlainRows:
    """Give a table the rows and columns of a snapshot again; a commit, as RESTORE is."""
    return _restored(runner, lambda: table_of(runner, table).restore(version=snapshot_id))


def rollback_to_timestamp(runner: Runner, table: str, timestamp: Moment) -> PlainRows:
    """Give a table the rows and columns of a time again."""
    return _restored(runner, lambda: table_of(runner, table).restore(timestamp=timestamp))


def ancestors_of(runner: Runner, table: str, snapshot_id: int | None = None) -> PlainRows:
    """Show the snapshots that changed a table, newest first, up to one of them."""
    last, found = snapshot_id, table_of(runner, table).history()
    rows = [(s.id, s.time) for s in found if last is None or s.id <= last]
    if last is not None and last not in dict(rows):
        raise NotFound(f"snapshot {last} did not change table {table}", about="snapshot")
    return PlainRows("snapshot_id bigint, timestamp timestamp", rows)


def fast_forward(runner: Runner, table: str, branch: str, to: str) -> PlainRows:
    """Give a table what a branch of it did, if nobody has changed the table since.

    ``branch`` is the table's schema, or Iceberg's word for it, ``main``.
    """
    refuse_in_transaction(runner.unit, "fast_forward()")
    # Whatever branch the session works on.
    name = plain_name(split_name(table), runner.state.current.schema)
    if branch.lower() not in ("main", name.schema.lower()):
        raise InvalidRequest(
            f"{name} is in schema {name.schema!r}, not {branch!r}; name the table of {branch!r}"
        )
    before = runner.view().workspace.base.id
    done = fast_forward_table(runner.state, name, to)
    now = done.snapshot if isinstance(done, Committed) else before
    columns = "branch_updated string, previous_ref bigint, updated_ref bigint"
    return PlainRows(columns, [(branch, before, now)])


def carry(
    runner: Runner,
    source: str,
    sink: str,
    *,
    select: Texts | None = None,
    where: str | None = None,
    on_drop: str = "drop",
    query_id: str | None = None,
    starting_version: Argument = None,
    key: Texts | None = None,
) -> PlainRows:
    """Carry what is new in a table, rows and changes of columns, into another one.

    Shows the last snapshot that came, NULL if nothing is new. See `Lake.stream` and `Stream.to`.
    """
    lake = CarryVerbs(runner.state, runner.unit)
    name = str(table_name(runner, source))
    stream = lake.stream(name, starting_version=starting_version, key=key or ())  # type: ignore[arg-type]
    stream = stream if where is None else stream.where(where)
    stream = stream if select is None else stream.select(*select)
    last = stream.to(str(table_name(runner, sink)), on_drop=on_drop, query_id=query_id)  # type: ignore[arg-type]
    return PlainRows("snapshot bigint", [(last,)])


def lineage(runner: Runner, table: str | None = None) -> PlainRows:
    """Show which columns follow which through streams, of one table or of all."""
    name = None if table is None else str(table_name(runner, table))
    found = CarryVerbs(runner.state, runner.unit).lineage(name)
    columns = ", ".join(f"{f.name} string" for f in fields(ColumnLineage))
    return PlainRows(columns, [astuple(one) for one in found])


def rewrite_position_delete_files(runner: Runner, table: str) -> PlainRows:
    """Write the files again that have deleted rows."""
    return compacted_rows([table_of(runner, table).rewrite_deletes(0)])


def rewrite_manifests(runner: Runner, table: str, use_caching: bool = True) -> PlainRows:  # noqa: ARG001
    """Do nothing: a lake has no manifests."""
    table_of(runner, table).history(limit=1)
    return PlainRows("rewritten_manifests_count int, added_manifests_count int", [(0, 0)])


def remove_orphan_files(
    runner: Runner,
    table: str | None = None,
    older_than: Moment | None = None,
    *,
    dry_run: bool = False,
) -> PlainRows:
    """Delete files that no snapshot knows and that are older than three days; one row for each."""
    name = None if table is None else str(table_name(runner, table))
    done = lake_of(runner).remove_orphans(
        older_than=older_than or _ORPHAN_AGE, table=name, dry_run=dry_run
    )
    return PlainRows("orphan_file_location string", [(path,) for path in done.files])


def _restored(runner: Runner, restore: Callable[[], Result]) -> PlainRows:
    before = runner.view().workspace.base.id
    done = restore()
    now = done.snapshot if isinstance(done, Committed) else before
    return PlainRows("previous_snapshot_id bigint, current_snapshot_id bigint", [(before, now)])


_OF_ICEBERG = by_name(
    *(
        ancestors_of,
        fast_forward,
        remove_orphan_files,
        rewrite_manifests,
        rewrite_position_delete_files,
    ),
    *(rollback_to_snapshot, rollback_to_timestamp),
) | {"set_current_snapshot": rollback_to_snapshot}
PROCEDURES: dict[str, Procedure] = {
    **by_name(carry, lineage),
    **exchange.PROCEDURES,
    **transactions.PROCEDURES,
    **functions.PROCEDURES,
    **upkeep_calls.PROCEDURES,
    **_OF_ICEBERG,
}
OPERATIONS = (Operation("CALL", Call, call, read_call_statement),)
