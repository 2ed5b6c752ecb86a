"""All public calls, derived from the package, and one entry for each that a walk carries out."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

import typer
from typer.testing import CliRunner

import shelduck
from shelduck.cli.app import app
from shelduck.doors.sql.calls.procedures import PROCEDURES
from shelduck.web.application import _PAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


BY_OPTION = "-by-option"
"""Where a secret stands that the user gives to Spark."""


def public_calls() -> set[str]:
    """The functions and methods of `shelduck`, commands, pages of the page, and procedures."""
    found = {f"page {path}" for path in _PAGES} | {f"CALL {name}" for name in PROCEDURES}
    for name in shelduck.__all__:
        public = getattr(shelduck, name)
        if not inspect.isclass(public):
            found.add(name)
        elif not issubclass(public, Exception):
            found |= {f"{name}.{method}" for method in _methods(public)}
    return found | set(_commands(typer.main.get_command(app), "shelduck"))


def _methods(public: type) -> Iterator[str]:
    for name in dir(public):
        found = inspect.getattr_static(public, name)
        # `shown` reads the properties of values.
        is_call = isinstance(found, property) and not is_dataclass(public)
        if not name.startswith("_") and (inspect.isroutine(found) or is_call):
            yield name


def _commands(command: Any, path: str) -> Iterator[str]:
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(below, f"{path} {name}")
    if not getattr(command, "commands", {}):
        yield path


@dataclass
class World:
    """What the walk has at hand: a lake whose address and storage have secrets, and tables."""

    spark: SparkSession
    lake: shelduck.Lake
    folder: Path
    address: str
    storage: dict[str, object]
    delta: Path
    page: Any = None
    number: int = 0

    def table(self, *, rows: int = 3) -> shelduck.Table:
        """A new table; few rows are in the catalog, many in files."""
        name = self.new_name()
        values = ", ".join(f"({n}, 'x', {n})" for n in range(rows))
        # Without a job of Spark.
        self.lake.execute(f"CREATE TABLE {name} (id INT, v STRING, w INT DEFAULT 1)")
        self.lake.execute(f"INSERT INTO {name} VALUES {values}")
        return self.lake.table(name)

    def rows(self, first: int = 10) -> DataFrame:
        return self.spark.sql(f"SELECT {first} AS id, 'y' AS v, 2 AS w")

    def new_name(self) -> str:
        self.number += 1
        return f"t{self.number}"

    def altered(self, *changes: Any) -> object:
        return self.table().alter(*changes)

    def merged(self, *clauses: Any) -> object:
        return self.table().merge(self.rows(1), ["id"], *clauses)

    def followed(self) -> str:
        name = self.new_name()
        self.lake.stream("t").to(name)
        return name

    def materialized(self) -> str:
        name, source = self.new_name(), self.new_name()
        self.lake.create_table(source, {"id": "int"})
        self.lake.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT id + 1 AS n FROM {source}")
        self.lake.execute(f"INSERT INTO {source} VALUES (1)")
        return name

    def begun(self) -> shelduck.Transaction:
        return self.lake.transaction("a message", "extra")

    def keyed(self, keys: Any, **more: Any) -> object:
        return self.lake.create_table(self.new_name(), {"id": "int", "v": "int"}, keys=keys, **more)

    def job(self, *, runs: bool = False) -> shelduck.SchemaChangeJob:
        """A heavy change: of a table with a value that cannot be converted, unless it runs."""
        table = self.table()
        text = 'PROPERTIES ("wait" = "false")'
        column = "w TYPE STRING" if runs else "v TYPE INT"
        self.lake.sql(f"ALTER TABLE {table.name} ALTER COLUMN {column} {text}")
        return self.lake.jobs()[0]

    def paused(self) -> shelduck.SchemaChangeJob:
        """A job that is paused."""
        found = self.job()
        found.pause()
        return found

    def published(self) -> shelduck.SchemaChangeJob:
        """A heavy change that is published."""
        job = self.job(runs=True)
        job.wait()
        return job

    def command(self, *words: str) -> object:
        """Run the command line in this process."""
        found = CliRunner().invoke(app, [*words])
        return found.output, found.exception

    def get(self, path: str) -> object:
        table = self.table()
        self.lake.sql(f"ALTER TABLE {table.name} ADD COLUMN n INT")
        number = self.page.id_of(table.name.name)
        if "{view:int}" in path:
            [path, *_] = re.findall(r"/views/\d+", self.page.text("/"))
        return self.page.text(path.replace("{table:int}", str(number)))


def _stream(world: World) -> object:
    table, into = world.table(), world.table()
    rows = world.spark.readStream.table(f"lake.{table.name}")
    query = rows.writeStream.foreachBatch(into.sink("q")).option(
        "checkpointLocation", f"{world.folder}/checkpoints/{into.name}"
    )
    query = query.trigger(availableNow=True).start()
    query.awaitTermination()
    return query.lastProgress, query.status, query.explain()


def _undropped(world: World) -> object:
    table = world.table()
    table.alter(shelduck.drop_column("w"))
    return table.undrop_column("w")


def _served(world: World) -> object:
    """The page as a process of its own, asked once, then stopped."""
    command = [sys.executable, "-m", "shelduck.cli", "ui", "-c", world.address, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        assert run.stdout is not None
        line = run.stdout.readline().decode()
        try:
            with urllib.request.urlopen(line.split(" ", 1)[0].strip(), timeout=30) as answer:
                seen = answer.read().decode()
        finally:
            os.kill(run.pid, signal.SIGINT)
        return line + seen + run.stdout.read().decode()


def _planned(world: World) -> object:
    folder = world.folder / "pulled"
    world.lake.pull_schema(folder)
    (folder / "main.t1.sql").write_text("CREATE TABLE t1 (id BIGINT, v STRING, w INT DEFAULT 1);\n")
    plan = world.lake.plan(folder)
    return plan, str(plan)


def _session(world: World) -> object:
    url = f"sqlite:///{world.folder}/own.db"
    found = shelduck.session(url, f"{world.folder}/own", name="own")
    world.spark.sql("USE spark_catalog.default")
    shelduck.detach(found, "own")
    return found


def _attached(world: World) -> object:
    lake = shelduck.attach(world.spark, "again", world.address, storage=world.storage)
    seen = [
        world.spark.sql(text).collect()
        for text in (
            *("SHOW CATALOGS", "SHOW TABLES IN again.main", "DESCRIBE EXTENDED again.main.t"),
            *(
                "EXPLAIN EXTENDED SELECT * FROM again.main.t",
                "EXPLAIN FORMATTED TABLE again.main.t",
            ),
        )
    ]
    shelduck.detach(world.spark, "again")
    return lake, seen


def _by_format(world: World) -> object:
    """Read with the address in an option, which py4j logs, and stream with the lake's name."""
    shelduck.register(world.spark)
    address = world.address.replace("-password", BY_OPTION).replace("-sslpassword", BY_OPTION)
    rows = world.spark.read.format("shelduck").option("catalog", address).load("main.t")
    rows.explain(mode="extended")
    stream = world.spark.readStream.format("shelduck").option("catalog", "lake").load("main.t")
    writer = stream.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{world.folder}/checkpoints/format").start()
    query.awaitTermination()
    # The reader reaches the files as the environment says.
    shelduck.connect(world.address, storage=world.storage).close()
    return rows._jdf.queryExecution().toString(), query.lastProgress


def _branched(world: World) -> str:
    name = world.new_name()
    world.lake.create_branch(name, tables=["t"])
    return name


def _merged(world: World) -> str:
    name = _branched(world)
    world.lake.execute(f"INSERT INTO {name}.t SELECT * FROM {name}.t")
    world.lake.merge_branch(name)
    return name


def _tagged(world: World) -> str:
    name = world.new_name()
    world.lake.create_tag(name, tables=["t"], retain="7 days")
    return name


L: dict[str, Callable[[World], object]] = {
    "Lake.branch": lambda w: w.lake.branch(_branched(w)),
    "Lake.branch_diff": lambda w: w.lake.branch_diff(_branched(w)),
    "Lake.branches": lambda w: w.lake.branches(),
    "Lake.create_branch": _branched,
    "Lake.create_tag": _tagged,
    "Lake.drop_branch": lambda w: w.lake.drop_branch(_branched(w)),
    "Lake.drop_tag": lambda w: w.lake.drop_tag(_tagged(w)),
    "Lake.merge_branch": lambda w: w.lake.merge_branch(_branched(w)),
    "Lake.tags": lambda w: (_tagged(w), w.lake.tags()),
    "Lake.undo_merge": lambda w: w.lake.undo_merge(_merged(w)),
    "Lake.merge_conflicts": lambda w: w.lake.merge_conflicts(_branched(w)),
    "Lake.check": lambda w: w.lake.check("t"),
    "Lake.checkpoint": lambda w: w.lake.checkpoint(dry_run=True),
    "Lake.maintain": lambda w: w.lake.maintain(),
    "Lake.migrate": lambda w: w.lake.migrate("1.1", plan=True),
    "Lake.cleanup_old_files": lambda w: w.lake.cleanup_old_files(cleanup_all=True),
    "Lake.close": lambda w: shelduck.connect(w.address, spark=w.spark, storage=w.storage).close(),
    "Lake.compact": lambda w: w.lake.compact(dry_run=True),
    "Lake.create_schema": lambda w: w.lake.create_schema("s"),
    "Lake.create_table": lambda w: w.lake.create_table("made", {"id": "int"}),
    "Lake.data_path": lambda w: w.lake.data_path,
    "Lake.drop_schema": lambda w: w.lake.drop_schema("s"),
    "Lake.drop_table": lambda w: w.lake.drop_table("made"),
    "Lake.execute": lambda w: w.lake.execute("SHOW TABLES"),
    "Lake.expire_snapshots": lambda w: w.lake.expire_snapshots(retain_last=1000),
    "Lake.flush_inlined_data": lambda w: w.lake.flush_inlined_data(),
    "Lake.import_delta": lambda w: w.lake.import_delta(w.delta, w.new_name()),
    "Lake.job": lambda w: w.lake.job(w.job().look().id),
    "Lake.jobs": lambda w: w.lake.jobs(),
    "Lake.lineage": lambda w: w.followed() and w.lake.lineage(),
    "Lake.options": lambda w: w.lake.options(),
    "Lake.pin": lambda w: w.lake.pin("t", 1, "pinned"),
    "Lake.plan": _planned,
    "Lake.pull_schema": lambda w: w.lake.pull_schema(w.folder / "texts"),
    "Lake.refresh": lambda w: w.lake.refresh(w.materialized()),
    "Lake.remove_orphans": lambda w: w.lake.remove_orphans(dry_run=True),
    "Lake.rewrite_deletes": lambda w: w.lake.rewrite_deletes(),
    "Lake.undo": lambda w: w.lake.undo(w.published().id),
    "Lake.run_jobs": lambda w: (w.job(runs=True), w.lake.run_jobs()),
    "Lake.schemas": lambda w: w.lake.schemas(),
    "Lake.set_option": lambda w: w.lake.set_option("target_file_size", "64MB"),
    "Lake.snapshots": lambda w: w.lake.snapshots(),
    "Lake.spark": lambda w: w.lake.spark,
    "Lake.sql": lambda w: w.lake.sql("EXPLAIN EXTENDED SELECT * FROM t WHERE id > 1").collect(),
    "Lake.stream": lambda w: w.lake.stream("t"),
    "Lake.table": lambda w: w.lake.table("t"),
    "Lake.tables": lambda w: w.lake.tables(),
    "Lake.transaction": lambda w: w.begun(),
}
TRANSACTION: dict[str, Callable[[World], object]] = {
    "Transaction.commit": lambda w: w.begun().commit(),
    "Transaction.create_schema": lambda w: w.begun().create_schema("s"),
    "Transaction.create_table": lambda w: w.begun().create_table("made", {"id": "int"}),
    "Transaction.drop_schema": lambda w: w.begun().drop_schema("s", if_exists=True),
    "Transaction.drop_table": lambda w: w.begun().drop_table("made", if_exists=True),
    "Transaction.pin": lambda w: w.begun().pin("t", 1, "pinned2"),
    "Transaction.rollback": lambda w: w.begun().rollback(),
    "Transaction.schemas": lambda w: w.begun().schemas(),
    "Transaction.sql": lambda w: w.begun().sql("SELECT * FROM t").collect(),
    "Transaction.table": lambda w: w.begun().table(str(w.table().name)).append(w.rows()),
    "Transaction.tables": lambda w: w.begun().tables(),
    "SchemaChangeJob.cancel": lambda w: w.job().cancel(),
    "SchemaChangeJob.look": lambda w: w.job().look(),
    "SchemaChangeJob.pause": lambda w: w.job().pause(),
    "SchemaChangeJob.progress": lambda w: w.job().progress,
    "SchemaChangeJob.resume": lambda w: w.paused().resume(),
    "SchemaChangeJob.set_pace": lambda w: w.job().set_pace(tasks=1),
    "SchemaChangeJob.state": lambda w: w.job().state,
    "SchemaChangeJob.undo": lambda w: w.published().undo(),
    "SchemaChangeJob.wait": lambda w: w.job(runs=True).wait(),
    "Stream.plan": lambda w: w.lake.stream("t").plan(w.followed()),
    "Stream.select": lambda w: w.lake.stream("t").select("id"),
    "Stream.to": lambda w: w.followed(),
    "Stream.where": lambda w: w.lake.stream("t").where("id > 1"),
    "ExportReport.require_ready": lambda w: w.table(rows=200).plan_export("delta").require_ready(),
}
TABLE: dict[str, Callable[[World], object]] = {
    "Table.add_files": lambda w: w.table().add_files(w.folder / "adopted", allow_missing=True),
    "Table.add_rollup": lambda w: w.table().add_rollup("r", ["v"], {"total": ("sum", "w")}).wait(),
    "Table.alter": lambda w: w.altered(shelduck.change_type("w", "string")),
    "Table.append": lambda w: w.table().append(w.rows()),
    "Table.changes": lambda w: w.table().changes(0).collect(),
    "Table.column_stats": lambda w: w.table().column_stats().collect(),
    "Table.columns": lambda w: w.table().columns,
    "Table.compact": lambda w: w.table().compact(),
    "Table.delete": lambda w: w.table().delete("id = 1"),
    "Table.drop": lambda w: w.table().drop(),
    "Table.drop_feature": lambda w: w.table().drop_feature("typeWidening"),
    "Table.drop_rollup": lambda w: w.lake.table("rolled").drop_rollup("r"),
    "Table.export_delta": lambda w: w.table().export_delta(w.folder / "delta-out", rewrite=True),
    "Table.export_iceberg": lambda w: w.table().export_iceberg(
        w.folder / "iceberg-out", rewrite=True
    ),
    "Table.files": lambda w: w.table().files().collect(),
    "Table.flush_inlined_data": lambda w: w.table().flush_inlined_data(),
    "Table.fold": lambda w: w.lake.table("keyed").fold(),
    "Table.follow": _stream,
    "Table.history": lambda w: w.table().history(),
    "Table.merge": lambda w: w.merged(shelduck.when_matched_update_all()),
    "Table.overwrite": lambda w: w.table().overwrite(w.rows()),
    "Table.overwrite_partitions": lambda w: w.lake.table("parted").overwrite_partitions(w.rows()),
    "Table.partitions": lambda w: w.lake.table("parted").partitions().collect(),
    "Table.pending_type_rewrites": lambda w: w.table().pending_type_rewrites(),
    "Table.plan_alter": lambda w: w.table().plan_alter(shelduck.change_type("w", "string")),
    "Table.plan_export": lambda w: w.table().plan_export("iceberg"),
    "Table.plan_restore": lambda w: w.table().plan_restore(version=w.lake.snapshots()[-1].id),
    "Table.read": lambda w: w.table().read()._jdf.queryExecution().toString(),
    "Table.refresh_rollups": lambda w: w.lake.table("rolled").refresh_rollups(),
    "Table.rename": lambda w: w.table().rename("renamed"),
    "Table.restore": lambda w: w.lake.table("t").restore(version=w.lake.snapshots()[-1].id),
    "Table.rewrite": lambda w: w.table().rewrite(),
    "Table.rewrite_deletes": lambda w: w.table().rewrite_deletes(),
    "Table.schema": lambda w: w.table().schema,
    "Table.sink": _stream,
    "Table.snapshots": lambda w: w.table().snapshots().collect(),
    "Table.truncate": lambda w: w.table().truncate(),
    "Table.type_changes": lambda w: w.table().type_changes(),
    "Table.undrop_column": _undropped,
    "Table.update": lambda w: w.table().update({"v": "'z'"}, where="id = 1"),
}
S = shelduck
FUNCTIONS: dict[str, Callable[[World], object]] = {
    "connect": lambda w: S.connect(w.address, spark=w.spark, storage=w.storage),
    "attach": _attached,
    "detach": _attached,
    "register": _by_format,
    "session": _session,
    "add_column": lambda w: w.altered(S.add_column("n", "int")),
    "add_constraint": lambda w: w.altered(S.add_constraint("c", "id >= 0")),
    "add_index": lambda w: w.altered(S.add_index("i", "w")),
    "drop_index": lambda w: w.altered(S.add_index("i", "w"), S.drop_index("i")),
    "set_encoding": lambda w: w.altered(S.set_encoding("w", "PLAIN")),
    "validate_constraint": lambda w: w.altered(
        S.add_constraint("c", "id >= 0", validate=False), S.validate_constraint("c")
    ),
    "drop_constraint": lambda w: w.altered(
        S.add_constraint("c", "id >= 0"), S.drop_constraint("c")
    ),
    "change_type": lambda w: w.altered(S.change_type("w", "bigint")),
    "drop_column": lambda w: w.altered(S.drop_column("w")),
    "drop_default": lambda w: w.altered(S.drop_default("w")),
    "drop_not_null": lambda w: w.altered(S.drop_not_null("w")),
    "modify_column": lambda w: w.altered(S.modify_column("v", "string")),
    "move_column": lambda w: w.altered(S.move_column("w", first=True)),
    "order_columns": lambda w: w.altered(S.order_columns("w", "v", "id")),
    "rename_column": lambda w: w.altered(S.rename_column("w", "u")),
    "reset_partitioning": lambda w: w.altered(S.reset_partitioning()),
    "reset_sorting": lambda w: w.altered(S.reset_sorting()),
    "rewrite_files": lambda w: w.altered(S.rewrite_files()),
    "set_comment": lambda w: w.altered(S.set_comment("w", "a comment")),
    "set_default": lambda w: w.altered(S.set_default("w", 4)),
    "set_not_null": lambda w: w.altered(S.set_not_null("id")),
    "set_partitioning": lambda w: w.altered(S.set_partitioning("v")),
    "set_properties": lambda w: w.altered(S.set_properties({"a": "b"})),
    "set_sorting": lambda w: w.altered(S.set_sorting("v")),
    "unset_properties": lambda w: w.altered(S.unset_properties("a", if_exists=True)),
    "aggregate": lambda w: w.keyed(S.aggregate("id"), aggregates={"v": "sum"}),
    "duplicate": lambda w: w.keyed(S.duplicate("id")),
    "unique": lambda w: w.keyed(S.unique("id")),
    "when_matched_delete": lambda w: w.merged(S.when_matched_delete()),
    "when_matched_update": lambda w: w.merged(S.when_matched_update({"v": "'m'"})),
    "when_matched_update_all": lambda w: w.merged(S.when_matched_update_all()),
    "when_not_matched_by_source_delete": lambda w: w.merged(S.when_not_matched_by_source_delete()),
    "when_not_matched_by_source_update": lambda w: w.merged(
        S.when_not_matched_by_source_update({"v": "'m'"})
    ),
    "when_not_matched_insert": lambda w: w.merged(S.when_not_matched_insert({"id": "99"})),
    "when_not_matched_insert_all": lambda w: w.merged(S.when_not_matched_insert_all()),
    "AlterPlan.rewriting": lambda w: w.table().plan_alter(S.change_type("w", "string")),
    "AlterPlan.telling": lambda w: w.table().plan_alter(S.change_type("w", "string")).telling("w"),
    "BranchDiff.as_json": lambda w: w.lake.branch_diff(_branched(w)).as_json(),
    "BranchDiff.markdown": lambda w: w.lake.branch_diff(_branched(w)).markdown(),
    "Resolution.is_about": lambda _: S.Resolution("ours", "t").is_about("t"),
    "TableName.of": lambda w: S.TableName("main", "t"),
}
COMMANDS: dict[str, Callable[[World], object]] = {
    "shelduck sql": lambda w: w.command("sql", "SELECT * FROM t", "-c", "prod"),
    "shelduck tables": lambda w: w.command("tables", "-c", w.address),
    "shelduck schema": lambda w: w.command("schema", "t", "-c", w.address),
    "shelduck history": lambda w: w.command("history", "--json", "-c", "prod"),
    "shelduck plan": lambda w: w.command("plan", f"{w.folder}/pulled", "-c", "prod"),
    "shelduck apply": lambda w: w.command("apply", f"{w.folder}/pulled", "-c", "prod"),
    "shelduck check": lambda w: w.command("check", "-c", "prod"),
    "shelduck maintain": lambda w: w.command("maintain", "-c", "prod"),
    "shelduck migrate": lambda w: w.command("migrate", "--to", "1.1", "--plan", "-c", "prod"),
    "shelduck jar": lambda w: w.command("jar"),
    "shelduck spark-conf": lambda w: w.command("spark-conf", "-c", w.address),
    "shelduck ui": _served,
    "shelduck demo": lambda w: None,  # it has a lake of its own, in SQLite
    "shelduck jobs run": lambda w: w.command("jobs", "run", "--once", "-c", "prod"),
    "shelduck jobs list": lambda w: w.command("jobs", "list", "-c", w.address),
    "shelduck jobs cancel": lambda w: w.command("jobs", "cancel", "12345", "-c", "prod"),
    "shelduck jobs pause": lambda w: w.command("jobs", "pause", "12345", "-c", "prod"),
    "shelduck jobs resume": lambda w: w.command("jobs", "resume", "12345", "-c", "prod"),
    "shelduck jobs undo": lambda w: w.command("jobs", "undo", "12345", "-c", "prod"),
    "shelduck branch create": lambda w: w.command("branch", "create", w.new_name(), "-c", "prod"),
    "shelduck branch list": lambda w: w.command("branch", "list", "-c", w.address),
    "shelduck branch diff": lambda w: w.command("branch", "diff", _branched(w), "-c", "prod"),
    "shelduck branch conflicts": lambda w: w.command("branch", "conflicts", "none", "-c", "prod"),
    "shelduck branch merge": lambda w: w.command("branch", "merge", _branched(w), "-c", "prod"),
    "shelduck branch resolve": lambda w: w.command(
        "branch", "resolve", _branched(w), "ALL USING OURS", "-c", "prod"
    ),
    "shelduck branch undo": lambda w: w.command("branch", "undo", "none", "-c", "prod"),
    "shelduck branch drop": lambda w: w.command("branch", "drop", _branched(w), "-c", "prod"),
}

_ARGUMENTS = {
    "add_files": "'rolled', 'ADOPTED', allow_missing => true",
    "add_data_files": "'rolled', 'MORE', allow_missing => true",
    "set_option": "'target_file_size', '32MB'",
    "expire_snapshots": "retain_last => 1000",
    "fold": "'keyed'",
    "carry": "'t', 'carried_by_call'",
    "migrate": "version => '1.1', plan => true",
    "refresh_rollups": "'rolled'",
    "import_delta": "'DELTA', 'by_call'",
    "plan_export": "'t', 'delta'",
    "export_delta": "'t', 'FOLDER/delta-by-call', rewrite => true",
    "export_iceberg": "'t', 'FOLDER/iceberg-by-call', rewrite => true",
    "set_commit_message": "'me', 'a message'",
    "list_files": "'t'",
    "table_changes": "'t', 0",
    "table_insertions": "'t', 0, 2",
    "table_deletions": "'t', 0, 2",
    "ancestors_of": "'t'",
    "rewrite_manifests": "'t'",
    "rewrite_position_delete_files": "'t'",
    "rollback_to_snapshot": "'t', 2",
    "rollback_to_timestamp": "'t', TIMESTAMP '2100-01-01 00:00:00'",
    "set_current_snapshot": "'t', 2",
}


def _procedure(name: str) -> Callable[[World], object]:
    def called(world: World) -> object:
        places = {
            "ADOPTED": f"{world.folder}/adopted-by-call",
            "MORE": f"{world.folder}/more-by-call",
            "DELTA": str(world.delta),
            "FOLDER": str(world.folder),
        }
        given = _ARGUMENTS.get(name, "")
        if name == "fast_forward":
            given = f"'t', 'main', '{_branched(world)}'"
        for word, place in places.items():
            given = given.replace(word, place)
        if name == "set_commit_message":
            return world.lake.sql(f"BEGIN; CALL {name}({given}); ROLLBACK").collect()
        return world.spark.sql(f"CALL lake.{name}({given})").collect()

    return called


PAGES: dict[str, Callable[[World], object]] = {
    "page /": lambda w: w.get("/"),
    "page /tables/{table:int}": lambda w: w.get("/tables/{table:int}"),
    "page /tables/{table:int}/moult": lambda w: w.get("/tables/{table:int}/moult"),
    "page /tables/{table:int}/files": lambda w: w.get("/tables/{table:int}/files"),
    "page /tables/{table:int}/definition": lambda w: w.get("/tables/{table:int}/definition"),
    "page /tables/{table:int}/rows": lambda w: w.get("/tables/{table:int}/rows"),
    "page /views/{view:int}": lambda w: w.get("/views/{view:int}"),
    "page /snapshots": lambda w: w.get("/snapshots"),
    "page /snapshots/compare": lambda w: w.get("/snapshots/compare?first=1&second=2"),
    "page /jobs": lambda w: w.get("/jobs"),
    "page /plan": lambda w: w.get("/plan"),
    "page /branches": lambda w: w.get("/branches"),
    "page /branches/diff": lambda w: w.get(f"/branches/diff?branch={_branched(w)}"),
}
CALLED = (
    *("snapshots", "table_info", "current_snapshot", "last_committed_snapshot", "settings"),
    *("options", "list_files", "table_changes", "table_insertions", "table_deletions"),
    *("add_files", "add_data_files", "set_option", "flush_inlined_data", "fold"),
    *("refresh_rollups", "import_delta", "plan_export", "export_delta", "export_iceberg"),
    *("set_commit_message", "compact", "merge_adjacent_files", "rewrite_data_files"),
    *("expire_snapshots", "cleanup_old_files", "delete_orphaned_files", "remove_orphans"),
    *("checkpoint", "check", "maintain", "migrate", "ancestors_of", "remove_orphan_files"),
    *("rewrite_manifests", "rewrite_position_delete_files", "rollback_to_snapshot"),
    *("rollback_to_timestamp", "set_current_snapshot", "fast_forward"),
    *("carry", "lineage"),
)
ENTRIES = (
    FUNCTIONS
    | L
    | TRANSACTION
    | TABLE
    | COMMANDS
    | PAGES
    | {f"CALL {name}": _procedure(name) for name in CALLED}
)
