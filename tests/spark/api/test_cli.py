"""The command line: what it prints, where, and with which exit status."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

import shelduck
from shelduck.cli import main, maintain_command
from shelduck.cli.app import app
from tests.support.loaded import loaded_by_commands


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


def test_commands_that_look_at_a_catalog_load_no_spark(url):
    looks = (["tables"], ["schema", "t"], ["history", "t"], ["jobs", "list"])

    assert loaded_by_commands(*([*words, "-c", url] for words in looks)) == ["sqlalchemy"]


def test_the_catalog_may_come_from_the_environment(url, monkeypatch):
    monkeypatch.setenv("SHELDUCK_CATALOG", url)

    assert len(json_lines("tables")) == 2


def test_a_schema_shows_ids_types_and_defaults(url):
    assert json_lines("schema", "t", "-c", url) == [
        _column(1, "id", "INT", None) | {"nullable": False},
        _column(2, "name", "STRING", "??"),
        _column(3, "`a.b`", "ARRAY<INT>", None),
    ]
    ducklake = json_lines("schema", "t", "-c", url, "--ducklake")
    assert [line["type"] for line in ducklake] == ["int32", "varchar", "array<int32>"]
    assert "STRING" in run("schema", "t", "-c", url)


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
    assert run("jobs", "run", "--once", "-c", url) == "no open job\n"
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
    assert "is not a plan" in fail(monkeypatch, capsys, *apply, "--plan", missing)
    empty = tmp_path / "empty"
    empty.mkdir()
    told = fail(monkeypatch, capsys, "plan", empty, "-c", sqlite_url)
    assert "has no .sql file" in told
    told = fail(monkeypatch, capsys, "schema", "t", "-c", sqlite_url, "-o", empty)
    assert "--output belongs to schema pull" in told


def test_the_version_is_told():
    assert run("--version") == f"shelduck {shelduck.__version__}\n"


def test_every_command_has_an_example():
    for words in commands():
        told = run(*words, "--help")
        assert f"Example: {' '.join(['shelduck', *words])} " in told


def commands():
    """The words of each command."""
    groups = {"": app.registered_commands, "jobs": maintain_command.jobs.registered_commands}
    for group, listed in groups.items():
        for command in listed:
            yield [
                *filter(None, [group]),
                command.name or command.callback.__name__.replace("_", "-"),
            ]


def test_a_lake_has_a_name_in_a_file(url, tmp_path, monkeypatch):
    place = tmp_path / "lakes.toml"
    place.write_text(f'[lakes.prod]\ncatalog = "{url}"\nconf = {{ "spark.a" = "1" }}\n')

    assert len(json_lines("--config", place, "tables", "-c", "prod")) == 2
    monkeypatch.setenv("SHELDUCK_CONFIG", str(place))
    monkeypatch.setenv("SHELDUCK_CATALOG", "prod")
    assert len(json_lines("tables")) == 2
    assert json_lines("sql", "SELECT count(*) AS n FROM t") == [{"n": 2}]


def test_a_wrong_name_is_told_with_the_known_ones(url, tmp_path, monkeypatch, capsys):
    place = tmp_path / "lakes.toml"
    place.write_text(f'[lakes.prod]\ncatalog = "{url}"\n[lakes.test]\ncatalog = "{url}"\n')

    assert fail(monkeypatch, capsys, "--config", place, "tables", "-c", "prd") == (
        "NotFound: lake 'prd' does not exist; named lakes: 'prod', 'test', or use an address such"
        " as sqlite:////data/lake.db\n"
    )


def test_settings_of_spark_reach_the_session_that_a_command_starts(url, spark, monkeypatch, capsys):
    seen = {}
    monkeypatch.setattr(
        "shelduck.lake.state.session_for", lambda config: seen.update(config) or spark
    )
    run("sql", "SELECT 1", "-c", url, "--conf", "spark.a = 1=2", "--conf", "spark.b=")
    assert seen == {"spark.log.level": "OFF", "spark.a": "1=2", "spark.b": ""}

    told = fail(monkeypatch, capsys, "sql", "SELECT 1", "-c", url, "--conf", "spark.a")
    assert told == (
        "InvalidRequest: --conf 'spark.a' is not a setting; write key=value, such as"
        " spark.driver.memory=4g\n"
    )


def test_statements_come_from_a_file_or_from_stdin(url, tmp_path, monkeypatch, capsys):
    place = tmp_path / "all.sql"
    place.write_text("ALTER TABLE t ADD COLUMN n INT;\nSHOW CREATE TABLE t;\n")
    found = CliRunner().invoke(app, ["sql", "-", "-c", url, "--json"], input="SHOW TABLES;\n")

    assert [json.loads(line)["tableName"] for line in found.stdout.splitlines()] == ["t"]
    assert "n INT" in run("sql", "-f", place, "-c", url)
    told = fail(monkeypatch, capsys, "sql", "-f", tmp_path / "none.sql", "-c", url)
    assert told.startswith(f"InvalidRequest: cannot read {tmp_path}/none.sql: ")
    for wrong in ([], ["SELECT 1", "-f", str(place)]):
        found = CliRunner().invoke(app, ["sql", *wrong, "-c", url])
        assert found.exit_code == 2
        assert "only one of them" in found.stderr


def test_the_shell_completes_names_of_lakes_and_tables(url, tmp_path):
    place = tmp_path / "lakes.toml"
    place.write_text(f'[lakes.prod]\ncatalog = "{url}"\n')

    assert completed(f"shelduck --config {place} tables -c ") == ["prod"]
    assert completed(f"shelduck --config {place} schema -c prod ") == ["t", "`odd [b]name[/b]`.t"]
    assert completed("shelduck schema -c sqlite:///none.db ") == [""]
    assert completed("shelduck jo") == ["jobs"]


def completed(line):
    """What bash offers for the last word."""
    words = line.split(" ")
    asked = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_SHELDUCK_COMPLETE": "complete_bash",
    }
    found = CliRunner().invoke(app, [], env=asked, prog_name="shelduck")
    return found.stdout.split("\n")[:-1]
