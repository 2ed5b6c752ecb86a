"""Schema evolution by written rows: the columns that they need go into the same snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from shelduck.engine.rows.needed_columns import NeededChange, differences, schema_changes
from shelduck.engine.session import StructType
from shelduck.errors import InvalidRequest, ShelduckError
from shelduck.lake.done import Done
from shelduck.lake.evolution.plan import plan_alter
from shelduck.lake.lookup import with_cost
from shelduck.lake.state import LakeState
from shelduck.model.changes.change import AlterTable, altered
from shelduck.model.changes.evolution import Evolution
from shelduck.model.changes.schema_change import AddColumn, SchemaChange
from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.keys import KeyModel, table_keys
from shelduck.model.tables.lengths import is_longer
from shelduck.model.tables.properties import widens_by_itself
from shelduck.model.tables.schema import path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import quote_name
from shelduck.model.types.data_types import Decimal, Member, Primitive, type_text
from shelduck.model.types.promotions import promotion
from shelduck.read.table_rows import TableRows

_TEXT = Primitive("varchar")


def require_by_name(what: str, evolution: Evolution, *, by_position: bool) -> None:
    """Raise InvalidRequest if rows that change columns go by position; ``what`` names the call."""
    if by_position and not evolution.is_none:
        raise InvalidRequest(
            f"cannot {what} by_position with evolve, merge_schema or rescue: they go by the names"
            " of columns; leave out one of them"
        )


def require_expected(table: TableVersion, expects: Sequence[Member]) -> None:
    """Raise InvalidRequest, with all differences, unless a table is as its writer expects it.

    Without expected columns, it may be any.
    It has the columns, their types hold every value of the expected ones, and NULL where the writer
    may give it. It needs no value of a column that the writer does not know.
    """
    if not expects:
        return
    problems = [text for member in expects if (text := _difference(table, member)) is not None]
    known = {member.name.lower() for member in expects}
    made = {one.column for one in computed_of(table.properties, table.full_name)}
    problems += [
        f"column {quote_name(f.name)} is NOT NULL without a default, and is not expected"
        for f in table.columns
        if f.name.lower() not in known and not f.nullable and f.default is None and f.id not in made
    ]
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise InvalidRequest(
            f"{table.full_name} is not as its writer expects it:{listed}\nits columns:"
            f" {', '.join(map(quote_name, table.columns.names))}; change the writer, or what it"
            " expects",
            about="expect",
        )


def _difference(table: TableVersion, member: Member) -> str | None:
    there, name = table.columns.find((member.name,)), quote_name(member.name)
    if there is None:
        return f"column {name} does not exist"
    is_plain = there.is_leaf and isinstance(member.type, Primitive | Decimal)
    fits = there.type == member.type and is_longer(member.type, there.type) is None
    if not fits and not (is_plain and promotion(member.type, there.type).is_light):
        return f"column {name} has type {type_text(there.type)}, expected {type_text(member.type)}"
    if member.nullable and not there.nullable:
        return f"column {name} is NOT NULL, expected a nullable column"
    return None


def evolved(
    table: TableVersion, given: StructType, evolution: Evolution
) -> tuple[TableVersion, AlterTable | None]:
    """Return a table with the columns and wider types that rows of ``given`` need, and the change.

    The change is None if the table already has them all, or ``evolution`` allows none. Raises what
    `plan_alter` and `require_expected` raise, and InvalidRequest for a new column of an AGGREGATE
    table, whose aggregation is unknown, and for a rescue column that cannot hold texts.
    """
    require_expected(table, evolution.expects)
    if evolution.is_none:
        return table, None
    widens = partial(widens_by_itself, table.properties)
    changes = schema_changes(table.columns, given, evolution, widens)
    keys = table_keys(table)
    is_aggregate = keys is not None and keys.model is KeyModel.AGGREGATE
    if evolution.rescue is not None:
        if is_aggregate:
            raise InvalidRequest(
                f"cannot rescue values of rows for {table.full_name}: an AGGREGATE KEY table"
                " combines rows, and has no row for each of them; leave out the rescue column"
            )
        changes += _rescue_column(table, given, evolution.rescue)
    if is_aggregate:
        for change in changes:
            if isinstance(change, AddColumn) and len(change.path) == 1:
                raise InvalidRequest(
                    f"cannot add column {path_text(change.path)} to {table.full_name}: its columns"
                    " need an aggregation type; use ALTER TABLE … ADD COLUMN first"
                )
    alter = plan_alter(table, changes).change if changes else None
    return (table, None) if alter is None else (altered(table, alter), alter)


def evolved_rows(
    rows: TableRows, given: StructType, evolution: Evolution
) -> tuple[TableRows, AlterTable | None]:
    """Return the rows of the evolved table, and the change of its columns."""
    table, change = evolved(rows.table, given, evolution)
    if change is None:
        return rows, None
    unsafe = rows.unsafe_bounds | change.unsafe_bounds
    return replace(rows, table=table, unsafe_bounds=unsafe), change


def evolving(
    state: LakeState,
    rows: TableRows,
    given: StructType,
    evolution: Evolution,
    write: Callable[[TableRows], Done],
) -> Done:
    """Return what ``write`` does with the rows of the evolved table, and the change of its columns.

    If it does nothing, the columns stay.
    """
    rows, alter = evolved_rows(rows, given, evolution)
    with telling_plan(state, rows.table, given, evolution):
        done = write(rows)
    return done if done.is_nothing else replace(done, alter=alter)


@contextmanager
def telling_plan(
    state: LakeState, table: TableVersion, given: StructType, evolution: Evolution
) -> Iterator[None]:
    """Add to an error about rows that do not fit the ALTER TABLE that would make them fit.

    Only for writers that let rows change the columns: others want the columns as they are.
    """
    try:
        yield
    except InvalidRequest as error:
        if not (evolution.adds or evolution.widens):
            raise
        lines = [_line(state, table, one) for one in differences(table.columns, given)]
        if not lines:
            raise
        listed = "".join(f"\n  - {line}" for line in lines)
        raise InvalidRequest(
            f'{error}\ncast the rows, append them with rescue="_rescued", or change the'
            f" table:{listed}",
            about=error.about,
        ) from error


def _rescue_column(table: TableVersion, given: StructType, name: str) -> list[SchemaChange]:
    if any(member.lower() == name.lower() for member in given.names):
        raise InvalidRequest(
            f"the rows for {table.full_name} already have a column {quote_name(name)}; choose"
            " another name for the rescue column"
        )
    found = table.columns.find((name,))
    if found is None:
        return [AddColumn((name,), _TEXT)]
    if found.type != _TEXT:
        raise InvalidRequest(
            f"column {quote_name(found.name)} of {table.full_name} cannot hold rescued values: it"
            f" is {type_text(found.type)}, not STRING; choose another name for the rescue column"
        )
    return []


def _line(state: LakeState, table: TableVersion, one: NeededChange) -> str:
    """Return the statement that makes a difference fit, what it costs, and why."""
    path, kind = path_text(one.path), one.given.simpleString().upper()
    if one.field is None:
        told = f"{path} of the rows is {kind}, the table does not have it"
    else:
        told = f"{path} of the rows is {kind}, of the table {type_text(one.field.type)}"
    if one.field is not None and one.field.type == _TEXT:
        return f"{told}: cast it to STRING"
    try:
        change = one.change
        verb = "ADD COLUMN {} {}" if isinstance(change, AddColumn) else "ALTER COLUMN {} TYPE {}"
        clause = verb.format(path, type_text(change.type))
        plan = with_cost(state, table, plan_alter(table, [change]))
    except ShelduckError as error:
        return f"{told}: {error}"
    [step] = plan.steps
    cost = step.weight
    if plan.is_heavy:
        kept = f", {step.rows_in_catalog} of them in the catalog" if step.rows_in_catalog else ""
        cost += f", {step.files_to_rewrite} file(s) with {step.rows_to_rewrite} row(s){kept}"
    return f"{told}: ALTER TABLE {table.full_name} {clause} ({cost}: {step.reason})"
