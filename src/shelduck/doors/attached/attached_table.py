"""A table of an attached lake, for calls of Spark that reach no catalog.

And the writes into it that Spark's plans tell: rows, merges, batches of streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge.lake_catalog import taken_columns
from shelduck.engine.failures import telling_spark
from shelduck.engine.named_errors import told_as_sparks
from shelduck.engine.rows.assignments import SetValue
from shelduck.engine.rows.store_rules import MARK, default_text, require_text
from shelduck.engine.session import DataFrame, merges_schemas
from shelduck.engine.types import spark_type
from shelduck.errors import InvalidRequest, ShelduckError, Unsupported
from shelduck.lake.branch_names import name_on_branch
from shelduck.lake.done import Done
from shelduck.lake.operation import QueryScope
from shelduck.lake.results import TableName
from shelduck.lake.spark_options import (
    EVOLUTION,
    OVERWRITE_MODE,
    OVERWRITE_SCHEMA,
    REPLACE_WHERE,
    ChangesWanted,
    ReadOptions,
    evolution_asked,
    is_true,
    option_value,
    refuse_made,
    refuse_others,
    refuse_written,
    wants_partitions,
    without_options,
)
from shelduck.lake.state import LakeState
from shelduck.lake.table_changes import changes_between, spark_changes
from shelduck.lake.unit import UnitOfWork, view_of
from shelduck.model.changes.evolution import FULL_EVOLUTION, NO_EVOLUTION, Evolution
from shelduck.model.tables.schema import Field, Schema
from shelduck.model.tables.table_version import DEFAULT_SCHEMA
from shelduck.model.text.names import quote_name, quote_text, split_name
from shelduck.objects.catalog_verbs import Table
from shelduck.objects.targets import relation_frame
from shelduck.read.scan.matching import Column
from shelduck.text.ddl.defaults import expression_for_spark
from shelduck.text.tokens.parts import NamedTable, Relation, Target
from shelduck.write.edit_verbs import merge_into
from shelduck.write.hooks import carry_out_rows, settled_rows
from shelduck.write.merge.merge_clauses import Merge, MergeAction, MergeClause, When

CHECKPOINT = "checkpointLocation"
# Spark stores the argument of queryName() as an option.
_NAME = "queryName"


@dataclass(frozen=True, slots=True)
class AttachedTable:
    """One table by its name in the lake; ``catalog`` is what the session calls the lake."""

    state: LakeState
    catalog: str
    table: TableName

    @classmethod
    def meant(cls, state: LakeState, catalog: str, name: TableName) -> AttachedTable:
        """Return the table that a name means, on the branch of the session if it has one."""
        if state.branch:
            name = name_on_branch(UnitOfWork(state).workspace, name, state.branch)
        return cls(state, catalog, name)

    @property
    def name(self) -> str:
        """The name in the lake."""
        return str(self.table)

    @property
    def is_there(self) -> bool:
        """Whether the lake has such a table."""
        return view_of(self.state, None).workspace.has_table(self.table)

    @property
    def is_partitioned(self) -> bool:
        """Whether it is there and has partitions."""
        workspace = view_of(self.state, None).workspace
        return workspace.has_table(self.table) and bool(workspace.table(self.table).partition)

    def sink(self, *, replaces: bool, evolution: Evolution) -> Callable[[DataFrame, int], None]:
        """Return a function for ``foreachBatch`` that writes each batch to it exactly once.

        With ``replaces``, a batch replaces all rows.
        """

        def write(table: Table, batch: DataFrame) -> object:
            if replaces:
                return table.overwrite(batch)
            return table.append(batch, **evolution.arguments)

        return Table(self.state, self.table).sink(write=write)

    def read_as(self, wanted: ReadOptions) -> DataFrame:
        """Return what the options of a reader ask for."""
        if wanted.changes is not None:
            return self.changes(*wanted.changes)
        return self.read(wanted.version, wanted.timestamp)

    def read(self, version: int | str | None, timestamp: str | None) -> DataFrame:
        """Return its rows as of a snapshot; a view of that snapshot is read too."""
        relation = Relation(NamedTable(self.table.parts), "", version, timestamp)
        with told_as_sparks():
            return relation_frame(view_of(self.state, None), relation, QueryScope(DEFAULT_SCHEMA))

    def changes(self, start: int | str, end: int | str | None) -> DataFrame:
        """Return what happened to its rows from a snapshot or time to another."""
        with told_as_sparks():
            return changes_between(view_of(self.state, None), self.table, start, end)

    def spark_changes(self, wanted: ChangesWanted) -> DataFrame:
        """Return what Spark's CHANGES shows of it."""
        with told_as_sparks():
            return spark_changes(view_of(self.state, None), self.table, wanted)

    def merge(
        self, source: DataFrame, on: Column, clauses: Sequence[MergeClause], evolves: bool
    ) -> None:
        """Merge a source, whose columns keep the names that they have in it.

        Columns of the table may have its name before them, with those of schema and catalog.
        """
        names = (self.catalog, *self.table.parts)
        target = Target(NamedTable(names), "", self.table.name)

        def prepare(unit: UnitOfWork) -> Done:
            rows = settled_rows(unit, self.table)
            columns = rows.table.columns.names
            meant = tuple(_without_table(clause, target, columns) for clause in clauses)
            *qualifier, alias = names
            wanted = Merge(on, meant, alias, None, evolves, tuple(qualifier))
            return merge_into(self.state, rows, source, wanted)

        with told_as_sparks(), telling_spark(lambda: f"MERGE of {self.name}"):
            carry_out_rows(self.state, None, prepare)


def _without_table(clause: MergeClause, target: Target, columns: Sequence[str]) -> MergeClause:
    if not clause.values:
        return clause
    values = [replace(value, path=target.column(value.path, columns)) for value in clause.values]
    return replace(clause, values=tuple(values))


def write_as_told(
    table: Table,
    named: AttachedTable,
    rows: DataFrame,
    told: Sequence[str],
    *,
    is_made: bool,
    ways: tuple[Callable[[], None], Callable[[], None]] | None = None,
) -> None:
    """Write rows as `WritesByPlan` tells: see there.

    ``is_made`` says that the table is made for these rows, and has their columns. With ``ways``, it
    is there: the first is called if it stays, with other rows, the second replaces it.
    """
    mode, condition, matching, size, *more = told
    fixed, options = by_name(more[: int(size)]), by_name(more[int(size) :])
    if ways is not None:
        is_made = is_true(option_value(options, OVERWRITE_SCHEMA) or False, OVERWRITE_SCHEMA)
        ways[is_made]()
        mode, matching = ("append", matching) if is_made else ("overwrite", "by name")
    by_position = matching == "by position"
    evolves = not by_position and not is_made
    known = EVOLUTION if evolves else ()
    if by_position or (ways is not None and not is_made):
        mode, condition = _what_is_replaced(mode, condition, options, named)
        known = (*known, OVERWRITE_MODE, REPLACE_WHERE)
    elif mode == "overwrite partitions":
        known = (*known, OVERWRITE_MODE)
    refuse = refuse_made if is_made else refuse_written
    refuse(without_options(options, known), f"a write into {table.name}")
    for column, text in fixed.items():
        # Spark casts it, and may round it.
        field = table.columns.get((column,), str(table.name))
        require_text(field.type, text, f"column {quote_name(column)} of {table.name}")
    evolution = evolution_asked(options) if evolves else NO_EVOLUTION
    if evolves and mode == "append" and evolution.is_none and merges_schemas(rows.sparkSession):
        evolution = replace(FULL_EVOLUTION, expects=evolution.expects)
    write: Callable[..., object] = table.append
    if mode == "overwrite partitions":
        write = table.overwrite_partitions
    elif mode != "append":
        write = partial(table.overwrite, where=None if mode == "overwrite" else condition)
    write(rows, by_position=by_position, **evolution.arguments)


def _what_is_replaced(
    mode: str, condition: str, options: Mapping[str, str], table: AttachedTable
) -> tuple[str, str]:
    """Return the mode and the condition of rows that replace others, as options say.

    The option of the writer decides before the setting of the session, which Spark follows.
    """
    where = option_value(options, REPLACE_WHERE)
    if where is not None:
        return "replace", where
    if not mode.startswith("overwrite") or option_value(options, OVERWRITE_MODE) is None:
        return mode, condition
    is_less = wants_partitions(options) and table.is_partitioned
    return ("overwrite partitions" if is_less else "overwrite"), condition


def merge_as_told(table: AttachedTable, source: DataFrame, told: Sequence[str]) -> None:
    """Merge a source as `WritesByPlan` tells: clauses, whose columns a token names."""
    token, evolves, *told = told
    columns = iter(taken_columns(source.sparkSession, token))
    on, clauses = next(columns), []
    while told:
        when, has_condition, action, size, *told = told
        condition = next(columns) if has_condition else None
        names, told = ([], told) if size == "*" else (told[: int(size)], told[int(size) :])
        values = None if size == "*" else tuple(_set_values(names, columns))
        clauses.append(_clause(When[when], MergeAction[action], values, condition))
    table.merge(source, on, clauses, bool(evolves))


def _clause(
    when: When, action: MergeAction, values: tuple[SetValue, ...] | None, condition: Column | None
) -> MergeClause:
    if action is MergeAction.DELETE:
        return MergeClause(when, action, condition=condition)
    if values is None and when is When.NOT_MATCHED_BY_SOURCE:
        raise InvalidRequest(
            f"WHEN {when.value} has no source row to take all columns from; name the"
            ' columns, as in update({"column": value})'
        )
    if values == ():
        raise InvalidRequest('no column is set; pass {"column": value, ...}')
    return MergeClause(when, action, values, condition)


def _set_values(names: Sequence[str], values: Iterator[Column]) -> Iterator[SetValue]:
    for name in names:
        value = next(values)
        # SQL's word for the column's default, which Spark also accepts here.
        is_default = str(value).upper() == "COLUMN<'DEFAULT'>"
        yield SetValue(split_name(name), None if is_default else value)


def land_as_told(table: AttachedTable, batch: DataFrame | None, told: Sequence[str]) -> None:
    """Write a batch of a stream once; without one, refuse what the table cannot do."""
    mode, number, *options = told
    evolution = require_stream(table.name, mode.lower(), by_name(options))
    if batch is not None:
        table.sink(replaces=mode.lower() == "complete", evolution=evolution)(batch, int(number))


def require_stream(table: str, mode: str, options: Mapping[str, str]) -> Evolution:
    """Return what a stream with these options may change in the columns of a table.

    Raises Unsupported for an output mode in which a stream cannot write to a table, InvalidRequest
    for an option.
    """
    if mode not in ("append", "complete"):
        raise Unsupported(
            f"toTable does not support output mode {mode!r} for {table}; use foreachBatch"
            " with a function that merges each batch, such as batch.mergeInto"
        )
    refuse_others(options, (CHECKPOINT, *EVOLUTION, _NAME), f"a stream into {table}")
    evolution = evolution_asked(options)
    if mode == "complete" and evolution != NO_EVOLUTION:
        raise InvalidRequest(
            f"a stream into {table} with output mode 'complete' replaces all rows and keeps"
            f" the columns; leave out {', '.join(EVOLUTION)}",
            about="option",
        )
    return evolution


def by_name(told: Sequence[str]) -> dict[str, str]:
    """Return values by name, given as each name and its value."""
    return dict(zip(told[::2], told[1::2], strict=True))


def write_schema(columns: Schema) -> T.StructType:
    """Return the columns, all of them nullable, as those of a table to write to.

    The lake, which sees the rows next, checks whether a column accepts NULL.
    """
    found = T.StructType()
    for column in columns.fields:
        kind = spark_type(column.type, column.name)
        metadata = None
        if column.default is not None:
            text = _default(column, kind)
            # For Spark, a column has a default if it has both. The second one is for existing rows,
            # which do not matter for a table that is only written to.
            metadata = {"CURRENT_DEFAULT": text, "EXISTS_DEFAULT": "NULL"}
        found.add(T.StructField(column.name, _unlike(kind), nullable=True, metadata=metadata))
    return found


def _unlike(kind: T.DataType) -> T.DataType:
    """Return a type whose structs have one more field each.

    Behind a list of columns, Spark renames the fields of rows by position if a struct of the table
    has as many, and the lake could not find them by name.
    """
    if isinstance(kind, T.StructType):
        parts = [T.StructField(f.name, _unlike(f.dataType)) for f in kind]
        return T.StructType([*parts, T.StructField("__shelduck_more", T.BooleanType())])
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_unlike(kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(_unlike(kind.keyType), _unlike(kind.valueType))
    return kind


def _default(column: Field, kind: T.DataType) -> str:
    """Return the SQL of a column's default; without one, SQL that fails the write."""
    default = column.default
    assert default is not None
    name = kind.simpleString()
    try:
        if default.literal:
            return default_text(column.leaf, default.text, column.name)
        return f"CAST({expression_for_spark(default.text)} AS {name})"
    except ShelduckError as error:
        told = f"{MARK}column {column.name!r} is missing and its default fails: {error}"
        return f"CAST(raise_error({quote_text(told)}) AS {name})"
