"""The steps from a lake to its files of SQL, as values that print well, and their application."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rich.filesize import decimal

from shelduck.doors.sql.execution import run_plain
from shelduck.errors import Conflict, InvalidRequest
from shelduck.jobs.jobs import SchemaChangeJob
from shelduck.lake.evolution.alter_plan import AlterPlan
from shelduck.lake.operation import SqlSession
from shelduck.lake.results import TableName
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork
from shelduck.model.changes.modify import TableChange
from shelduck.model.text.names import html_table, html_text, schema_word
from shelduck.objects.catalog_verbs import CatalogVerbs


class Action(Enum):
    """The kinds of steps for a table, a view or an option."""

    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"
    CREATE_VIEW = "create view"
    REPLACE_VIEW = "replace view"
    DROP_VIEW = "drop view"
    SET_OPTION = "set option"


@dataclass(frozen=True)
class TablePlan:
    """The steps for one table, or for a view or an option.

    ``name`` is the table, the view, or what the option is for. ``plan`` has the steps of an alter
    with their weight. ``felt`` says what other clients notice, ``lost`` names what is gone
    afterwards.
    """

    name: TableName | str
    action: Action
    text: str
    plan: AlterPlan | None = None
    felt: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    changes: tuple[TableChange, ...] = field(default=(), repr=False)

    @property
    def is_heavy(self) -> bool:
        """True if a job is needed."""
        return self.plan is not None and self.plan.is_heavy

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON."""
        steps = () if self.plan is None else self.plan.steps
        return {
            "table": str(self.name),
            "action": self.action.value,
            "sql": self.text,
            "weight": "heavy" if self.is_heavy else "light",
            "steps": [
                {
                    "change": s.change,
                    "weight": s.weight,
                    "reason": s.reason,
                    "files": s.files_to_rewrite,
                    "rows": s.rows_to_rewrite,
                    "bytes": s.bytes_to_rewrite,
                    "rows_in_catalog": s.rows_in_catalog,
                }
                for s in steps
            ],
            "estimated_seconds": 0.0 if self.plan is None else self.plan.estimated_seconds,
            "estimated_from_jobs": 0 if self.plan is None else self.plan.speed.jobs,
            "felt": list(self.felt),
            "lost": list(self.lost),
        }


@dataclass(frozen=True, repr=False)
class SchemaPlan:
    """The way from a lake to files of SQL; print it, then `apply` it.

    ``schema_version`` is the lake's when the plan was made.
    """

    schema_version: int
    tables: tuple[TablePlan, ...]
    state: LakeState = field(repr=False)

    @property
    def is_empty(self) -> bool:
        """True if nothing differs."""
        return not self.tables

    @property
    def is_heavy(self) -> bool:
        """True if a job is needed."""
        return any(t.is_heavy for t in self.tables)

    @property
    def lost(self) -> list[str]:
        """The losses: tables, and columns as ``table.column``."""
        return [name for t in self.tables for name in t.lost]

    def __str__(self) -> str:
        if self.is_empty:
            return "nothing differs"
        return "\n\n".join(_told(t) for t in self.tables)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        if self.is_empty:
            return html_text(str(self))
        names = ("table", "action", "weight", "statement", "other clients")
        rows = [
            (t.name, t.action.value, "heavy" if t.is_heavy else "light", t.text, "; ".join(t.felt))
            for t in self.tables
        ]
        return html_table(names, rows)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON."""
        return {"schema_version": self.schema_version, "tables": [t.as_json() for t in self.tables]}

    def markdown(self) -> str:
        """Return the plan as text for a pull request."""
        if self.is_empty:
            return "Nothing differs from the lake.\n"
        lines = [
            "| table | change | weight | files | rows | size | other clients |",
            "|---|---|---|--:|--:|--:|---|",
        ]
        for table in self.tables:
            felt = "; ".join(table.felt)
            if table.plan is None:
                lines.append(f"| {table.name} | {table.action.value} | light | | | | {felt} |")
                continue
            for number, step in enumerate(table.plan.steps):
                name = str(table.name) if number == 0 else ""
                told = felt if number == 0 else ""
                change = step.change.replace("|", "\\|")
                lines.append(
                    f"| {name} | `{change}` | {step.weight} | {step.files_to_rewrite} |"
                    f" {step.rows_text} | {decimal(step.bytes_to_rewrite)} | {told} |"
                )
        lines += [
            f"\n{t.name}: about {t.plan.estimated_seconds:.0f} s on {t.plan.cores} core(s),"
            f" {t.plan.speed}."
            for t in self.tables
            if t.plan is not None and t.is_heavy
        ]
        statements = "\n".join(f"{t.text};" for t in self.tables)
        return "\n".join([*lines, "", "```sql", statements, "```", ""])

    def apply(self, *, allow_drop: bool = False, only_light: bool = False) -> list[SchemaChangeJob]:
        """Apply the plan: all light changes in one snapshot; return a job for each heavy table.

        Options belong to no snapshot; they are set after it. The jobs are submitted and not run:
        `SchemaChangeJob.wait` or a worker does that. With ``only_light``, no job is
        submitted.

        Raises:
            Conflict: the schema of the lake changed since the plan was made; nothing is changed.
            InvalidRequest: something would be lost and ``allow_drop`` is not set.
        """
        if self.lost and not allow_drop:
            raise InvalidRequest(
                f"this drops {', '.join(self.lost)}; allow it with --allow-drop, or"
                " plan.apply(allow_drop=True)"
            )
        unit = UnitOfWork(self.state, self.state.commit_info("schema apply"))
        found = unit.workspace.base.schema_version
        if found != self.schema_version:
            raise Conflict(
                f"the schema of the lake changed since the plan was made (version"
                f" {self.schema_version}, now {found}); make a new plan"
            )
        with unit:
            for table in self.tables:
                if not table.is_heavy and table.action is not Action.SET_OPTION:
                    _apply(self.state, unit, table)
            unit.commit()
        for table in self.tables:
            if table.action is Action.SET_OPTION:
                run_plain(SqlSession(self.state), table.text)
        jobs = []
        for table in self.tables if not only_light else ():
            if table.is_heavy:
                done = CatalogVerbs(self.state, None).table(str(table.name)).alter(*table.changes)
                # Values may have been proven to fit since the plan was made.
                jobs += [done] if isinstance(done, SchemaChangeJob) else []
        return jobs


def _apply(state: LakeState, unit: UnitOfWork, table: TablePlan) -> None:
    verbs = CatalogVerbs(state, unit)
    match table.action:
        case Action.ALTER:
            verbs.table(str(table.name)).alter(*table.changes)
        case Action.DROP:
            verbs.drop_table(str(table.name))
        case _:
            if isinstance(table.name, TableName):
                around = table.name.parts[:-1]
                for depth in range(1, len(around) + 1):
                    word = schema_word(around[:depth])
                    unit.workspace.create_schema(word, if_not_exists=True)
            run_plain(SqlSession(state, unit), table.text)


def _told(table: TablePlan) -> str:
    lines = [str(table.plan) if table.plan is not None else table.text]
    lines += [f"  others: {felt}" for felt in table.felt]
    return "\n".join(lines)
