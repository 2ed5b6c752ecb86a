"""Schema as code: tables as files of SQL, what differs from the lake, and how it is applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from shelduck.catalog.running import jobs as catalog_jobs
from shelduck.errors import Conflict, InvalidRequest
from shelduck.evolution.alter_plan import AlterPlan
from shelduck.evolution.rollups import spec_of
from shelduck.evolution.schema_diff import Difference, difference
from shelduck.jobs.jobs import SchemaChangeJob
from shelduck.model.changes.schema_change import (
    ChangeType,
    DropColumn,
    RenameColumn,
    SetNullable,
)
from shelduck.model.changes.table_change import TableChange
from shelduck.model.tables.table import DEFAULT_SCHEMA, TableVersion
from shelduck.model.text.shown import html_table, html_text
from shelduck.sql.ddl.render import has_text
from shelduck.sql.schema_files import TableFile, read_table_file
from shelduck.statements.describe import create_statement
from shelduck.statements.session import SqlSession
from shelduck.statements.statements import run_plain
from shelduck.verbs.lake.catalog_verbs import CatalogVerbs
from shelduck.work.results import TableName, table_name
from shelduck.work.rollup_tables import rollups_of
from shelduck.work.state import LakeState
from shelduck.work.unit import UnitOfWork, view_of

CREATE, ALTER, DROP = "create", "alter", "drop"


@dataclass(frozen=True)
class TablePlan:
    """What happens to one table: ``action`` is create, alter or drop.

    ``plan`` has the steps of an alter with their weight. ``felt`` says what other clients notice,
    ``lost`` names what is gone afterwards.
    """

    table: TableName
    action: str
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
            "table": str(self.table),
            "action": self.action,
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
                }
                for s in steps
            ],
            "estimated_seconds": 0.0 if self.plan is None else self.plan.estimated_seconds,
            "felt": list(self.felt),
            "lost": list(self.lost),
        }


@dataclass(frozen=True, repr=False)
class SchemaPlan:
    """What leads from a lake to files of SQL; print it, then `apply` it.

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
        """What is gone afterwards: tables, and columns as ``table.column``."""
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
            (t.table, t.action, "heavy" if t.is_heavy else "light", t.text, "; ".join(t.felt))
            for t in self.tables
        ]
        return html_table(names, rows)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON."""
        return {
            "schema_version": self.schema_version,
            "tables": [t.as_json() for t in self.tables],
        }

    def markdown(self) -> str:
        """Return the plan as text for a pull request."""
        if self.is_empty:
            return "Nothing differs from the lake.\n"
        lines = [
            "| table | change | weight | files | rows | other clients |",
            "|---|---|---|--:|--:|---|",
        ]
        for table in self.tables:
            felt = "; ".join(table.felt)
            if table.plan is None:
                lines.append(f"| {table.table} | {table.action} | light | | | {felt} |")
                continue
            for number, step in enumerate(table.plan.steps):
                name = str(table.table) if number == 0 else ""
                told = felt if number == 0 else ""
                change = step.change.replace("|", "\\|")
                lines.append(
                    f"| {name} | `{change}` | {step.weight} | {step.files_to_rewrite} |"
                    f" {step.rows_to_rewrite} | {told} |"
                )
        statements = "\n".join(f"{t.text};" for t in self.tables)
        return "\n".join([*lines, "", "```sql", statements, "```", ""])

    def apply(self, *, allow_drop: bool = False, only_light: bool = False) -> list[SchemaChangeJob]:
        """Apply the plan: all light changes in one snapshot; return a job for each heavy table.

        The jobs are submitted and not run: `SchemaChangeJob.wait` or a worker does that. With
        ``only_light``, tables that need a job stay as they are.

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
        try:
            for table in self.tables:
                if not table.is_heavy:
                    _apply(self.state, unit, table)
            unit.commit()
        except BaseException:
            unit.rollback()
            raise
        jobs = []
        for table in self.tables if not only_light else ():
            if table.is_heavy:
                done = CatalogVerbs(self.state, None).table(str(table.table)).alter(*table.changes)
                assert isinstance(done, SchemaChangeJob)
                jobs.append(done)
        return jobs


def pull(state: LakeState, folder: Path) -> list[Path]:
    """Write one file for each table of a lake; return the files. Other ``.sql`` files stay."""
    unit = view_of(state, None)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in CatalogVerbs(state, None).tables():
        table = unit.workspace.table(name)
        text = create_statement(table, list(rollups_of(unit, table)), with_ids=True)
        place = folder / f"{quote(name.schema, safe='')}.{quote(name.name, safe='')}.sql"
        place.write_text(f"{text};\n", encoding="utf-8")
        written.append(place)
    return written


def read_folder(folder: Path) -> dict[str, str]:
    """Return the text of each ``.sql`` file of a folder, by path; InvalidRequest without any."""
    found = {
        str(place): place.read_text(encoding="utf-8") for place in sorted(folder.glob("*.sql"))
    }
    if not found:
        raise InvalidRequest(f"{folder} has no .sql file; write them with shelduck schema pull")
    return found


def plan_schema(state: LakeState, texts: Mapping[str, str]) -> SchemaPlan:
    """Return what leads from a lake to texts of SQL, each of which declares a table.

    ``texts`` are by what errors call them. Raises InvalidRequest for a text that declares no table,
    and what `difference` raises.
    """
    unit = view_of(state, None)
    files = _files(texts)
    there = {_key(name): name for name in CatalogVerbs(state, None).tables()}
    plans = []
    for key, (name, file) in files.items():
        if key not in there:
            plans.append(TablePlan(name, CREATE, file.text.strip().rstrip(";")))
            continue
        altered = _altered(state, unit, there[key], file)
        if altered is not None:
            plans.append(altered)
    for key, name in there.items():
        if key not in files:
            felt = (f"queries of {name} fail",)
            plans.append(TablePlan(name, DROP, f"DROP TABLE {name}", None, felt, (str(name),)))
    return SchemaPlan(unit.workspace.base.schema_version, tuple(plans), state)


def _files(texts: Mapping[str, str]) -> dict[tuple[str, str], tuple[TableName, TableFile]]:
    files: dict[tuple[str, str], tuple[TableName, TableFile]] = {}
    for where, text in texts.items():
        file = read_table_file(text, where)
        name = table_name(file.table.name.parts, DEFAULT_SCHEMA)
        if _key(name) in files:
            raise InvalidRequest(f"{where}: another file declares table {name} too")
        files[_key(name)] = name, file
    return files


def _key(name: TableName) -> tuple[str, str]:
    return name.schema.lower(), name.name.lower()


def _altered(
    state: LakeState, unit: UnitOfWork, name: TableName, file: TableFile
) -> TablePlan | None:
    table = unit.workspace.table(name)
    specs = [s for r in rollups_of(unit, table) if (s := spec_of(table, r)) is not None]
    found = difference(table, file, specs, has_text, _replaced(state, table))
    if not found.changes:
        return None
    plan = CatalogVerbs(state, None).table(str(name)).plan_alter(*found.changes)
    text = f"ALTER TABLE {name} {', '.join(map(str, found.changes))}"
    lost = tuple(f"{name}.{column}" for column in found.lost)
    felt = tuple(_felt(found))
    return TablePlan(name, ALTER, text, plan, felt, lost, found.changes)


def _replaced(state: LakeState, table: TableVersion) -> dict[int, int]:
    """Return the columns that jobs converted, with their replacements: files may have older ids."""
    with state.store.read() as connection:
        done = [j for j in catalog_jobs.jobs(connection) if j.published is not None]
    mine = [c for j in done if j.table_id == table.id for c in j.work.conversions]
    return {int(c.column_id): int(c.shadow_id) for c in mine}


def _felt(found: Difference) -> Iterator[str]:
    for change in found.changes:
        match change:
            case DropColumn(path=(name, *_)):
                yield f"queries that name {name} fail"
            case RenameColumn(path=(name, *_)):
                yield f"queries that name {name} fail; the column keeps its values"
            case ChangeType(path=(name, *_), type=kind):
                yield f"{name} is read as {kind}"
            case SetNullable(path=(name, *_), nullable=False):
                yield f"writes of NULL into {name} fail"
            case _:
                continue


def _apply(state: LakeState, unit: UnitOfWork, table: TablePlan) -> None:
    verbs = CatalogVerbs(state, unit)
    match table.action:
        case "create":
            verbs.create_schema(table.table.schema, if_not_exists=True)
            run_plain(SqlSession(state, unit), table.text)
        case "drop":
            verbs.drop_table(str(table.table))
        case _:
            verbs.table(str(table.table)).alter(*table.changes)


def _told(table: TablePlan) -> str:
    lines = [str(table.plan) if table.plan is not None else table.text]
    lines += [f"  others: {felt}" for felt in table.felt]
    return "\n".join(lines)
