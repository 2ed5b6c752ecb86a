"""A table of an attached lake, for calls of Spark that reach no catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shelduck.engine.failures import telling_spark
from shelduck.engine.named_errors import told_as_sparks
from shelduck.engine.session import DataFrame
from shelduck.lake.done import Done
from shelduck.lake.operation import QueryScope
from shelduck.lake.results import TableName
from shelduck.lake.spark_options import ReadOptions
from shelduck.lake.state import LakeState
from shelduck.lake.table_changes import changes_between
from shelduck.lake.unit import UnitOfWork, view_of
from shelduck.model.changes.evolution import Evolution
from shelduck.model.tables.table_version import DEFAULT_SCHEMA
from shelduck.objects.table import Table
from shelduck.objects.targets import relation_frame
from shelduck.read.scan.matching import Column
from shelduck.text.tokens.parts import NamedTable, Relation, Target
from shelduck.write.edit_verbs import merge_into
from shelduck.write.hooks import carry_out_rows, settled_rows
from shelduck.write.merge.merge_clauses import Merge, MergeClause


@dataclass(frozen=True, slots=True)
class AttachedTable:
    """One table by its name in the lake; ``catalog`` is what the session calls the lake."""

    state: LakeState
    catalog: str
    table: TableName

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

    def read(self, version: int | None, timestamp: str | None) -> DataFrame:
        """Return its rows as of a snapshot; a view of that snapshot is read too."""
        relation = Relation(NamedTable(self.table.parts), "", version, timestamp)
        with told_as_sparks():
            return relation_frame(view_of(self.state, None), relation, QueryScope(DEFAULT_SCHEMA))

    def changes(self, start: int | str, end: int | str | None) -> DataFrame:
        """Return what happened to its rows from a snapshot or time to another."""
        with told_as_sparks():
            return changes_between(view_of(self.state, None), self.table, start, end)

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
