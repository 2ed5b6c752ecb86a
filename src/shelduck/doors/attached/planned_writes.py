"""Writes of a driver without Python that its plans tell: rows, merges, batches of streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from shelduck.doors.attached.attached_table import AttachedTable
from shelduck.doors.attached.lake_writer import LakeMerge, require_sink_mode
from shelduck.engine.bridge.lake_catalog import taken_columns
from shelduck.engine.rows.store_rules import require_text
from shelduck.engine.session import DataFrame
from shelduck.errors import Unsupported
from shelduck.lake.spark_options import (
    EVOLUTION,
    OVERWRITE_MODE,
    OVERWRITE_SCHEMA,
    evolution_asked,
    is_true,
    option_value,
    refuse_made,
    refuse_written,
    wants_partitions,
)
from shelduck.model.changes.evolution import NO_EVOLUTION
from shelduck.model.text.names import quote_name
from shelduck.objects.table import Table


def write_as_told(
    table: Table,
    named: AttachedTable,
    rows: DataFrame,
    told: Sequence[str],
    *,
    is_made: bool,
    ways: tuple[Callable[[], None], Callable[[], None]] | None = None,
) -> None:
    """Write rows as `LakeWrite` and `WritesByPlan` tell: see there.

    ``is_made`` says that the table is made for these rows, and has their columns. With ``ways``, it
    is there: the first is called if it stays, with other rows, the second replaces it.
    """
    mode, condition, matching, size, *more = told
    fixed, options = by_name(more[: int(size)]), by_name(more[int(size) :])
    if ways is not None:
        is_made = is_true(option_value(options, OVERWRITE_SCHEMA) or False, OVERWRITE_SCHEMA)
        ways[is_made]()
        mode, matching = ("append", matching) if is_made else ("overwrite", "by name")
    if matching not in ("by name", "by position"):
        raise Unsupported(
            f"cannot write to {table.name}: this Spark does not tell whether columns go by name"
            " or by position; use lake.table(name).append or INSERT INTO"
        )
    by_position = matching == "by position"
    if mode == "overwrite" and by_position and wants_partitions(options) and named.is_partitioned:
        mode = "overwrite partitions"
    evolves = not by_position and not is_made
    refuse = refuse_made if is_made else refuse_written
    refuse(_without(options, mode, evolves=evolves), f"a write into {table.name}")
    for column, text in fixed.items():
        # Spark casts it, and may round it.
        field = table.columns.get((column,), str(table.name))
        require_text(field.type, text, f"column {quote_name(column)} of {table.name}")
    evolution = evolution_asked(options) if evolves else NO_EVOLUTION
    write: Callable[..., object] = table.append
    if mode == "overwrite partitions":
        write = table.overwrite_partitions
    elif mode != "append":
        write = partial(table.overwrite, where=None if mode == "overwrite" else condition)
    write(rows, by_position=by_position, **evolution.arguments)


def merge_as_told(table: AttachedTable, source: DataFrame, told: Sequence[str]) -> None:
    """Merge a source as `WritesByPlan` tells: clauses, whose columns a token names."""
    token, evolves, *clauses = told
    columns = iter(taken_columns(source.sparkSession, token))
    merge = LakeMerge(source, next(columns), table.merge)
    if evolves:
        merge.withSchemaEvolution()
    while clauses:
        when, has_condition, action, size, *clauses = clauses
        clause = getattr(merge, when)(next(columns) if has_condition else None)
        names, clauses = clauses[: int(size)], clauses[int(size) :]
        values = {name: next(columns) for name in names}
        getattr(clause, action)(*([values] if values or action in ("update", "insert") else []))
    merge.merge()


def land_as_told(table: AttachedTable, batch: DataFrame | None, told: Sequence[str]) -> None:
    """Write a batch of a stream once; without one, refuse what the table cannot do."""
    mode, number = told
    require_sink_mode(mode.lower(), table.name)
    if batch is not None:
        table.sink(replaces=mode.lower() == "complete", evolution=NO_EVOLUTION)(batch, int(number))


def by_name(told: Sequence[str]) -> dict[str, str]:
    """Return values by name, given as each name and its value."""
    return dict(zip(told[::2], told[1::2], strict=True))


def _without(options: Mapping[str, str], mode: str, *, evolves: bool) -> dict[str, str]:
    """Return the options that a write does not follow."""
    known = {name.lower() for name in EVOLUTION} if evolves else set()
    if mode == "overwrite partitions":
        known.add(OVERWRITE_MODE.lower())
    return {name: value for name, value in options.items() if name.lower() not in known}
