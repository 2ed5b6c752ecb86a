"""DELETE and UPDATE, also with rows of another table, TRUNCATE and DROP PARTITION."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.errors import NotFound
from shelduck.lake.done import Done
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import Result
from shelduck.lake.unit import UnitOfWork
from shelduck.read.scan.matching import Where
from shelduck.text.query.expressions import expression_of, take_assignments, take_target
from shelduck.text.query.rewriting import Rewriting
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import Assignment, NamedTable, OfRows, OfTable, Selection
from shelduck.write.edit_verbs import EditVerbs, delete_from, update_in
from shelduck.write.hooks import carry_out_rows, changed_rows, settled_rows
from shelduck.write.merge.merge_clauses import MergeAction, When
from shelduck.write.statement.merge_into import MergeStatement, WrittenClause, merge
from shelduck.write.statement.row_sources import (
    PartitionSpec,
    chosen_by,
    read_partition_spec,
    selection,
    set_values,
    take_condition,
    take_joined,
)


class Delete(OfRows):
    """DELETE FROM."""


class DeleteUsing(MergeStatement):
    """DELETE … USING: a MERGE with nothing but a deletion of the rows that match."""


class Truncate(OfTable):
    """TRUNCATE TABLE."""


@dataclass(frozen=True, slots=True)
class DropPartitions(OfTable):
    """Hive's DROP PARTITION and TRUNCATE … PARTITION: the rows in any of these partitions."""

    specs: tuple[PartitionSpec, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Update(OfRows):
    """UPDATE; no path of ``assignments`` is equal to another one or within it."""

    assignments: tuple[Assignment, ...]


class UpdateFrom(MergeStatement):
    """UPDATE … FROM: a MERGE with nothing but an update of the rows that match."""


def read_delete(cursor: Cursor) -> Delete | DeleteUsing:
    """Read the statement behind ``DELETE``."""
    cursor.expect("FROM")
    found, alias = take_target(cursor, "WHERE")
    if cursor.accept("USING"):
        _, target, query, source, on = take_joined(cursor, found, alias, [])
        clause = WrittenClause(When.MATCHED, MergeAction.DELETE)
        return DeleteUsing(target, query, source, on, (clause,))
    return Delete(selection(cursor, found, alias))


def read_truncate(cursor: Cursor) -> Truncate | DropPartitions:
    """Read the statement behind ``TRUNCATE``."""
    # DuckDB may leave TABLE out; a table may have that name.
    if cursor.peek(1).may_name:
        cursor.expect("TABLE")
    name = cursor.table_name()
    if cursor.sees("PARTITION"):
        return DropPartitions(name, (read_partition_spec(cursor),))
    return Truncate(name)


def _partitions_dropped(cursor: Cursor, name: NamedTable) -> DropPartitions:
    cursor.expect("DROP")
    if_exists = cursor.accept_if("EXISTS")
    specs = cursor.listed(read_partition_spec)
    if cursor.sees("PURGE"):
        raise cursor.refusal(
            "DROP PARTITION ... PURGE", "files are kept for time travel; leave it out"
        )
    cursor.end()
    return DropPartitions(name, tuple(specs), if_exists)


def read_update(cursor: Cursor) -> Update | UpdateFrom:
    """Read the statement behind ``UPDATE``."""
    found, alias = take_target(cursor, "SET")
    cursor.expect("SET")
    first = cursor.at
    assignments = take_assignments(cursor, "WHERE", "FROM")
    if cursor.sees("FROM"):
        behind = cursor.at
        cursor.expect("FROM")
        texts, target, query, source, on = take_joined(cursor, found, alias, [(first, behind)])
        values = tuple(a.rewritten(texts) for a in assignments)
        clause = WrittenClause(When.MATCHED, MergeAction.UPDATE, assignments=values)
        return UpdateFrom(target, query, source, on, (clause,))
    condition = take_condition(cursor)
    cursor.end()
    texts = Rewriting(cursor, [(first, cursor.at)], target=found)
    return Update(
        Selection(texts.target(alias), expression_of(texts, condition)),
        tuple(a.rewritten(texts) for a in assignments),
    )


def delete(runner: Runner, statement: Delete) -> Result:
    """DELETE FROM."""
    condition = statement.rows.condition
    if condition is None:
        return runner.verbs(EditVerbs, statement.name).truncate()

    def prepare(unit: UnitOfWork) -> Done:
        inside = runner.inside(unit)
        rows = changed_rows(unit, inside.name(statement.name))
        with inside.views(condition) as named:
            where = Where(named(condition.text), statement.rows.target.alias)
            return delete_from(unit, rows, where)

    return carry_out_rows(runner.state, runner.unit, prepare)


def truncate(runner: Runner, statement: Truncate) -> Result:
    """TRUNCATE TABLE."""
    return runner.verbs(EditVerbs, statement.name).truncate()


def drop_partitions(runner: Runner, statement: DropPartitions) -> Result:
    """Delete the rows of partitions; NotFound if there are none, unless IF EXISTS."""
    table = runner.version(statement.name)
    condition = " OR ".join(f"({chosen_by(spec, table)})" for spec in statement.specs)
    done = runner.verbs(EditVerbs, statement.name).delete(condition)
    if not done.deleted and not statement.if_exists:
        told = " or ".join(map(str, statement.specs))
        raise NotFound(f"{table.full_name} has no rows in a partition with {told}")
    return done


def update(runner: Runner, statement: Update) -> Result:
    """UPDATE … SET."""
    target, condition = statement.rows.target, statement.rows.condition

    def prepare(unit: UnitOfWork) -> Done:
        inside = runner.inside(unit)
        rows = settled_rows(unit, inside.name(statement.name))
        with inside.views(condition, *(a.value for a in statement.assignments)) as named:
            where = Where(named(condition.text) if condition else "true", target.alias)
            values = set_values(target, statement.assignments, rows.table, named)
            return update_in(runner.state, rows, values, where)

    return carry_out_rows(runner.state, runner.unit, prepare)


OPERATIONS = (
    Operation("DELETE", Delete, delete, read_delete, counts=True),
    Operation("DELETE", DeleteUsing, merge, counts=True),
    Operation("UPDATE", Update, update, read_update, counts=True),
    Operation("UPDATE", UpdateFrom, merge, counts=True),
    Operation("TRUNCATE", Truncate, truncate, read_truncate, counts=True),
    Operation(
        *("DROP PARTITIONS", DropPartitions, drop_partitions),
        forms={"DROP [IF EXISTS] PARTITION (": _partitions_dropped},
        only_lakes=True,
    ),
)
