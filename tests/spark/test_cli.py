"""The command line: what it prints, where, and with which exit status."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

import shelduck
from shelduck.cli import main
from shelduck.cli.app import app


@pytest.fixture
def url(sqlite_url, data_path, spark):
    with shelduck.connect(sqlite_url, data_path, spark, author="Ada") as lake:
        lake.sql("CREATE SCHEMA `odd [b]name[/b]`; CREATE TABLE `odd [b]name[/b]`.t (a INT)")
        lake.sql("CREATE TABLE t (id INT NOT NULL, name STRING DEFAULT '??', `a.b` ARRAY<INT>)")
        lake.sql("INSERT INTO t (id) VALUES (1), (2)")
    return sqlite_url


def run(*arguments):
    found = CliRunner().invoke(app, [str(a) for a in arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


def json_lines(*arguments):
    return [json.loads(line) for line in run(*arguments, "--json").splitlines()]


def fail(monkeypatch, capsys, *arguments):
    """What is told on stderr; nothing may be told on stdout."""
    monkeypatch.setattr(sys, "argv", ["shelduck", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    told = capsys.readouterr()
    assert stopped.value.code == 1
    assert told.out == ""
    return told.err


def test_tables_are_listed(url):
    assert json_lines("tables", "-c", url) == [
        {"schema": "main", "table": "t"},
        {"schema": "odd [b]name[/b]", "table": "t"},
    ]
    assert json_lines("tables", "-c", url, "--schema", "MAIN") == [{"schema": "main", "table": "t"}]
    assert "odd [b]name[/b]" in run("tables", "-c", url)


def test_the_catalog_may_come_from_the_environment(url, monkeypatch):
    monkeypatch.setenv("SHELDUCK_CATALOG", url)

    assert len(json_lines("tables")) == 2


@pytest.mark.slow
def test_a_schema_shows_ids_types_and_defaults(url):
    assert json_lines("schema", "t", "-c", url) == [
        _column(1, "id", "int32", None) | {"nullable": False},
        _column(2, "name", "varchar", "??"),
        _column(3, "`a.b`", "array<int32>", None),
    ]
    assert "varchar" in run("schema", "t", "-c", url)


def _column(number, name, kind, default):
    found = {"id": number, "column": name, "type": kind, "nullable": True}
    return found | {"initial_default": default, "default": default}


def test_history_shows_snapshots_of_the_lake_and_of_a_table(url):
    lake = json_lines("history", "-c", url)
    table = json_lines("history", "t", "-c", url)

    assert [line["snapshot"] for line in lake] == [0, 1, 2, 3, 4]
    assert [(line["snapshot"], line["changes"], line["author"]) for line in table] == [
        (4, "inlined_insert:3", "Ada"),
        (3, 'created_table:"main"."t"', "Ada"),
    ]
    assert "Ada" in run("history", "-c", url)


def test_sql_prints_rows_with_their_nulls(url):
    query = "SELECT id, name, `a.b` FROM t ORDER BY id"

    assert json_lines("sql", query, "-c", url) == [
        {"id": 1, "name": "??", "a.b": None},
        {"id": 2, "name": "??", "a.b": None},
    ]
    assert json_lines("sql", query, "-c", url, "--limit", 1) == [
        {"id": 1, "name": "??", "a.b": None}
    ]
    assert "|1  |??  |NULL|" in run("sql", query, "-c", url)


def test_sql_makes_a_lake_where_there_is_none(sqlite_url, data_path, spark):
    [told] = json_lines("sql", "CREATE TABLE t (a INT)", "-c", sqlite_url, "-d", data_path)

    assert told == {"snapshot": 1, "operation": "CREATE TABLE", "rows": 0, "files": 0}
    assert json_lines("tables", "-c", sqlite_url) == [{"schema": "main", "table": "t"}]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("sql", "ALTER TABLE t ADD COLUMN name INT"),
            "AlreadyExists: column 'name' already exists in main.t\n",
        ),
        (
            ("schema", "[/q]"),
            "NotFound: table '[/q]' does not exist in schema 'main'; existing tables: 't'\n",
        ),
        (
            ("history", "q"),
            "NotFound: table 'q' does not exist in schema 'main'; existing tables: 't'\n",
        ),
    ],
)
def test_an_error_is_one_line_on_stderr(url, monkeypatch, capsys, arguments, told):
    assert fail(monkeypatch, capsys, *arguments, "-c", url) == told


def test_an_error_of_spark_is_one_line_on_stderr(url, monkeypatch, capsys):
    told = fail(monkeypatch, capsys, "sql", "SELECT nope FROM t", "-c", url)

    assert told.startswith("ColumnNotFound: [UNRESOLVED_COLUMN.WITH_SUGGESTION]")
    assert told.count("\n") == 1


@pytest.mark.parametrize("command", [("tables",), ("schema", "t"), ("history",)])
def test_looking_at_a_lake_that_does_not_exist_makes_none(tmp_path, monkeypatch, capsys, command):
    for kind in ("sqlite", "duckdb"):
        told = fail(monkeypatch, capsys, *command, "-c", f"{kind}:///{tmp_path}/lake.db")

        assert told.startswith("NotFound: there is no lake in")
        assert list(tmp_path.iterdir()) == []


def test_a_missing_option_is_told_with_the_usage():
    found = CliRunner().invoke(app, ["tables"], env={"SHELDUCK_CATALOG": None})

    assert found.exit_code == 2
    assert "--catalog" in found.stderr


def test_a_worker_does_the_jobs_that_are_queued(url, spark):
    wait = "PROPERTIES ('wait' = 'false')"
    with shelduck.connect(url, spark=spark) as lake:
        lake.sql(f"ALTER TABLE t ALTER COLUMN id TYPE STRING {wait}")
        lake.sql("CREATE TABLE bad AS SELECT 'zz' AS v")
        lake.sql(f"ALTER TABLE bad ALTER COLUMN v TYPE INT {wait}")
        lake.sql("CREATE TABLE no AS SELECT 1 AS v")
        lake.sql(f"ALTER TABLE no ALTER COLUMN v TYPE STRING {wait}")
    assert run("jobs", "cancel", 3, "-c", url) == "job 3 on main.no: CANCELLED: user cancelled\n"
    told = run("jobs", "run", "--once", "-c", url).splitlines()

    assert told[0] == "job 1 on main.t: FINISHED"
    assert told[1].startswith("job 2 on main.bad: CANCELLED: 1 value(s) of column 'v' cannot")
    listed = json_lines("jobs", "list", "-c", url)
    assert [(j["job"], j["state"]) for j in listed] == [
        *[(3, "CANCELLED"), (2, "CANCELLED"), (1, "FINISHED")]
    ]
    assert json_lines("jobs", "list", "--open", "-c", url) == []
    assert json_lines("sql", "SELECT id FROM t ORDER BY id", "-c", url) == [
        *[{"id": "1"}, {"id": "2"}]
    ]


def test_schemas_are_pulled_planned_and_applied(sqlite_url, data_path, tmp_path):
    with shelduck.connect(sqlite_url, data_path) as lake:
        lake.execute("CREATE TABLE t (id INT, n INT)")
    folder = tmp_path / "schema"
    assert "main.t.sql" in run("schema", "pull", "-c", sqlite_url, "-o", folder)
    assert "nothing differs" in run("plan", folder, "-c", sqlite_url)
    place = folder / "main.t.sql"
    place.write_text(place.read_text().replace("  n INT", "  m BIGINT"))

    def planned(*how):
        found = CliRunner().invoke(app, ["plan", str(folder), "-c", sqlite_url, *how])
        assert found.exit_code == 2
        return found.stdout

    assert "RENAME COLUMN n TO m" in planned()
    assert "| main.t | `RENAME COLUMN n TO m` | light |" in planned("--markdown")
    plan = tmp_path / "plan.json"
    plan.write_text(planned("--json"))
    assert json.loads(plan.read_text())["tables"][0]["weight"] == "light"

    asked = CliRunner().invoke(app, ["apply", str(folder), "-c", sqlite_url], input="n\n")
    assert asked.exit_code == 1
    assert "RENAME" in run("apply", folder, "-c", sqlite_url, "--yes", "--plan", plan)
    assert [line["column"] for line in json_lines("schema", "t", "-c", sqlite_url)] == ["id", "m"]
    assert "nothing differs" in run("apply", folder, "-c", sqlite_url, "--yes")


def test_apply_refuses_what_was_not_planned(sqlite_url, data_path, tmp_path, monkeypatch, capsys):
    with shelduck.connect(sqlite_url, data_path) as lake:
        lake.execute("CREATE TABLE t (id INT, n INT)")
        lake.pull_schema(tmp_path)
    plan = tmp_path / "plan.json"
    plan.write_text(run("plan", tmp_path, "-c", sqlite_url, "--json"))
    (tmp_path / "main.t.sql").write_text("CREATE TABLE t (id INT)")
    apply = ("apply", tmp_path, "-c", sqlite_url, "--yes")
    assert "make a new plan" in fail(monkeypatch, capsys, *apply, "--plan", plan)
    missing = tmp_path / "none.json"
    assert "is no plan" in fail(monkeypatch, capsys, *apply, "--plan", missing)
    empty = tmp_path / "empty"
    empty.mkdir()
    told = fail(monkeypatch, capsys, "plan", empty, "-c", sqlite_url)
    assert "has no .sql file" in told
    told = fail(monkeypatch, capsys, "schema", "t", "-c", sqlite_url, "-o", empty)
    assert "--output belongs to schema pull" in told
