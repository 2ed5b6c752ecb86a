"""Queries, and EXPLAIN of a query or of another statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shelduck.alter.statement import AlterTableStatement
from shelduck.alter.verb import ShapeVerbs
from shelduck.engine.bridge import engine_for
from shelduck.engine.session import DataFrame
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import PlainRows
from shelduck.materialized.statement import RefreshMaterializedView
from shelduck.model.tables.schema import Path
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.read.scan.rollup_rule import collecting_choices
from shelduck.text.query.rewriting import begins_query, read_query
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.parts import NamedTable, Query, Relation, Statement, Target, query_over
from shelduck.write.merge.merge_clauses import join_of
from shelduck.write.statement.delete_and_update import Delete, Update
from shelduck.write.statement.insert_into import Insert
from shelduck.write.statement.merge_into import MergeStatement
from shelduck.write.statement.returning import Changing

_MODES = ("EXTENDED", "FORMATTED", "COST", "CODEGEN", "LOGICAL")


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """EXPLAIN a query; ``mode`` is simple, extended, formatted, cost, codegen or analyze.

    Of a statement that changes rows it is the query that finds them; ``changed`` is their table,
    and ``assigned`` are columns that get a value, before which the name of ``target`` may stand.
    """

    query: Query
    mode: str = "simple"
    changed: NamedTable | None = None
    assigned: tuple[Path, ...] = ()
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class ExplainAlter(Statement):
    """EXPLAIN ALTER TABLE: what it would do, as `Table.plan_alter` says."""

    statement: AlterTableStatement


def read_explain(cursor: Cursor, read: Callable[[Cursor], Statement]) -> Statement:
    """Read the statement behind ``EXPLAIN``: a query, or a change of a table, by ``read``."""
    mode = cursor.accept_any(*_MODES, "ANALYZE")
    if mode == "LOGICAL":
        raise cursor.refusal("EXPLAIN LOGICAL", "use EXPLAIN EXTENDED")
    if begins_query(cursor):
        return Explain(read_query(cursor), mode.lower() or "simple")
    changes = cursor.peek().key in ("INSERT", "UPDATE", "DELETE", "MERGE", "ALTER", "REFRESH")
    if changes and mode == "ANALYZE":
        raise cursor.refusal("EXPLAIN ANALYZE of a statement that changes a table", "use EXPLAIN")
    found = read(cursor) if changes else None
    if isinstance(found, AlterTableStatement):
        return ExplainAlter(found)
    if isinstance(found, RefreshMaterializedView):
        return replace(found, explains=True)
    if not isinstance(found, Changing):
        raise cursor.refusal(
            "EXPLAIN of such a statement",
            "it shows plans of queries, INSERT, UPDATE, DELETE, MERGE, ALTER TABLE and REFRESH",
        )
    return Explain(_changed_rows(found), mode.lower() or "simple", found.name, *_assigned(found))


def _assigned(statement: Changing) -> tuple[tuple[Path, ...], Target | None]:
    """Return the columns that a statement gives values, as written, and the table before them."""
    if isinstance(statement, Insert):
        return tuple((name,) for name in statement.columns or ()), None
    if isinstance(statement, Update):
        return tuple(a.path for a in statement.assignments), statement.rows.target
    if isinstance(statement, Delete):
        return (), None
    assigned = [a.path for clause in statement.clauses for a in clause.assignments or ()]
    return tuple(path for path in assigned if path), statement.target


def _changed_rows(statement: Changing) -> Query:
    """Return the query that finds the rows of a statement, with the values that they get."""
    if isinstance(statement, Insert):
        return statement.source
    if isinstance(statement, MergeStatement):
        return _joined(statement)
    assigned = statement.assignments if isinstance(statement, Update) else ()
    values = [a.value for a in assigned if a.value is not None]
    columns = ", ".join(["*", *(f"({value.text})" for value in values)])
    query = statement.rows.query(columns)
    return _with_target(query_over(query.text, query, *values), statement.rows.target)


def _joined(merge: MergeStatement) -> Query:
    """Return the join of a MERGE; which rows of the two sides are kept, its clauses say."""
    kind = join_of({clause.when for clause in merge.clauses}).replace("_", " ").upper()
    on = merge.condition
    using = (
        f"USING ({', '.join(map(backticked, on))})" if isinstance(on, tuple) else f"ON ({on.text})"
    )
    alias = f" AS {backticked(merge.source_alias)}" if merge.source_alias else ""
    text = f"SELECT * FROM {merge.target.source} {kind} JOIN ({merge.source.text}){alias} {using}"
    return _with_target(
        query_over(text, merge.source, *([] if isinstance(on, tuple) else [on])), merge.target
    )


def _with_target(query: Query, target: Target) -> Query:
    made = Relation(target.name, target.placeholder)
    return replace(query, relations=(*query.relations, made))


def query(runner: Runner, statement: Query) -> DataFrame:
    """SELECT, WITH, VALUES, TABLE."""
    return runner.query(statement)


def explain(runner: Runner, statement: Explain) -> DataFrame | PlainRows:
    """Return Spark's plan of a query as text, preceded by which rollups answer it and why.

    ANALYZE runs the query and shows what it measured.
    """
    if statement.changed is not None:
        _require_assigned(runner.version(statement.changed), statement)
    if statement.mode == "analyze":
        rows = runner.query(statement.query)
        return PlainRows("plan string", [(engine_for(rows.sparkSession).measured_plan(rows),)])
    # EXPLAIN would show what is wrong with a query as if it were a plan.
    runner.query(statement.query)
    mode = "" if statement.mode == "simple" else f"{statement.mode.upper()} "
    with collecting_choices(runner.state.spark) as reasons:
        plan = runner.query(statement.query, f"EXPLAIN {mode}")
    if not reasons:
        return plan
    # One row of text.
    lines = [*dict.fromkeys(reasons), *(row[0] for row in plan.collect())]
    return PlainRows("plan string", [("\n".join(lines),)])


def _require_assigned(table: TableVersion, statement: Explain) -> None:
    """Raise NotFound for a column that the statement gives a value and the table does not have."""
    for path in statement.assigned:
        target = statement.target
        own = path if target is None else target.column(path, table.columns.names)
        table.columns.get(own, table.full_name)


def explain_alter(runner: Runner, statement: ExplainAlter) -> PlainRows:
    """EXPLAIN ALTER TABLE: which changes are light, and what a job would do; nothing is changed."""
    wanted = statement.statement
    plan = runner.verbs(ShapeVerbs, wanted.name).plan_alter(*wanted.changes)
    return PlainRows("plan string", [(str(plan),)])


OPERATIONS = (
    Operation("QUERY", Query, query),
    Operation("EXPLAIN", Explain, explain),
    Operation("EXPLAIN ALTER", ExplainAlter, explain_alter),
)
