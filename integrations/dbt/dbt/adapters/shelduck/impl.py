"""The adapter: how dbt finds out what a lake has, and what a lake can do."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any, ClassVar

from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.shelduck.connections import ShelduckConnectionManager
from dbt.adapters.shelduck.schema_changes import clauses
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtRuntimeError


class ShelduckAdapter(SparkAdapter):
    """dbt on a lake of Shelduck; what is not here is as on Spark."""

    ConnectionManager = ShelduckConnectionManager
    CONSTRAINT_SUPPORT: ClassVar = {
        ConstraintType.check: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }

    @classmethod
    def type(cls) -> str:
        return "shelduck"

    @classmethod
    def convert_time_type(cls, agate_table: Any, col_idx: int) -> str:
        """Return the type for times of a day, which Spark keeps as text."""
        return "string"

    @available.parse(lambda *_, **__: [])
    def valid_incremental_strategies(self) -> list[str]:
        """Return what an incremental model may do with its new rows."""
        return ["append", "merge", "insert_overwrite", "microbatch"]

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """Return the tables and views of a schema, none if there is no such schema."""
        # SHOW TABLES has the views too, as in Spark.
        kinds: dict[tuple[str, str], RelationType] = {}
        for kind in (RelationType.Table, RelationType.View):
            try:
                rows = self.execute_macro(
                    "shelduck_list", kwargs={"kind": f"{kind}s", "schema_relation": schema_relation}
                )
            except DbtRuntimeError as error:
                if "SCHEMA_NOT_FOUND" in str(error):
                    return []
                raise
            kinds |= {(schema, name): kind for schema, name, is_hidden in rows if not is_hidden}
        return [
            self.Relation.create(schema=schema, identifier=name, type=kind)
            for (schema, name), kind in kinds.items()
        ]

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        """Return the columns of a relation as the documentation shows them."""
        rows = self.execute_macro(
            "shelduck_describe", kwargs={"relation": relation, "extended": True}
        )
        told = [tuple(row) for row in rows]
        columns = list(takewhile(lambda row: row[0] and not row[0].startswith("#"), told))
        comment_of_all = next((row[1] for row in told[len(columns) :] if row[0] == "Comment"), None)
        for number, (name, kind, comment) in enumerate(columns):
            yield {
                "table_database": None,
                "table_schema": relation.schema,
                "table_name": relation.identifier,
                "table_type": str(relation.type),
                "table_owner": None,
                "table_comment": comment_of_all,
                "column_name": name,
                "column_index": number,
                "column_type": kind,
                "column_comment": comment,
            }

    def _names_and_types(self, relation: BaseRelation) -> list[tuple[str, str]]:
        return [(c.name, c.dtype) for c in self.get_columns_in_relation(relation)]

    @available.parse_none
    def expand_target_column_types(
        self, from_relation: BaseRelation, to_relation: BaseRelation
    ) -> None:
        """Make columns of a snapshot as wide as those of its new rows, at all depths."""
        target = self._names_and_types(to_relation)
        known = {name.lower() for name, _ in target}
        source = [
            column for column in self._names_and_types(from_relation) if column[0].lower() in known
        ]
        found = ", ".join(clause.text for clause in clauses(target, source, follows=False))
        if found:
            self.execute(f"alter table {to_relation} {found}", auto_begin=False, fetch=False)

    @available.parse(lambda *_, **__: [])
    def schema_clauses(
        self, target: BaseRelation, source: BaseRelation, how: str, heavy: str
    ) -> list[str]:
        """Return the clauses of an ALTER TABLE that make room for new rows.

        ``how`` is the model's ``on_schema_change``, ``heavy`` says whether a change of type that
        writes files runs as a ``job``, or is a reason to ``fail``.
        """
        if heavy not in ("job", "fail"):
            raise DbtRuntimeError(f"`heavy` must be job or fail, not {heavy!r}")
        columns = map(self._names_and_types, (target, source))
        found = clauses(*columns, follows=how == "sync_all_columns")
        costly = [clause.text for clause in found if clause.is_heavy]
        if costly and heavy == "fail":
            raise DbtRuntimeError(
                f"{target} would have to be converted: {', '.join(costly)}; cast the columns in the"
                " model, or allow it with heavy='job'"
            )
        return [clause.text for clause in found]
