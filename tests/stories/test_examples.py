"""The examples run, and what they say of each other is true."""

from __future__ import annotations

import ast
import json
import re
import runpy
import shlex
import sys

import pytest
import yaml
from typer.testing import CliRunner

import shelduck
from shelduck.cli.app import app
from tests.support.documents import ROOT

EXAMPLES = ROOT / "examples"


def environment():
    lines = (EXAMPLES / "lake.env").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def services():
    return yaml.safe_load((EXAMPLES / "docker-compose.yml").read_text("utf-8"))["services"]


def test_the_load_brings_each_day_once_and_follows_new_columns(here, monkeypatch, capsys):
    monkeypatch.setenv("SHELDUCK_CATALOG", "sqlite:///lake.db")
    monkeypatch.setenv("SHELDUCK_DATA_PATH", "lake-data/")
    days = {
        "2026-01-01": {"id": 1, "customer": "Ada", "amount": 1.5},
        "2026-01-02": {"id": 2, "customer": "Bo", "amount": 2.5, "channel": "web"},
    }
    for day, row in days.items():
        (here / f"{day}.json").write_text(json.dumps(row), "utf-8")
    for day in ("2026-01-01", "2026-01-01", "2026-01-02"):
        arguments = ["nightly_load.py", "--day", day, "--files", f"{here}/{day}.json"]
        monkeypatch.setattr(sys, "argv", arguments)
        runpy.run_path(str(EXAMPLES / "nightly_load.py"), run_name="__main__")

    assert "2026-01-01 is in the lake already" in capsys.readouterr().out
    with shelduck.connect("sqlite:///lake.db") as lake:
        rows = lake.sql("SELECT id, amount, channel, CAST(day AS STRING) FROM orders ORDER BY id")
        assert [tuple(row) for row in rows.collect()] == [
            (1, 1.5, None, "2026-01-01"),
            (2, 2.5, "web", "2026-01-02"),
        ]


@pytest.mark.slow
def test_the_notebook_runs(here, capsys):
    notebook = json.loads((EXAMPLES / "tour.ipynb").read_text("utf-8"))
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)

    told = capsys.readouterr().out
    assert "|Tadorna| 2.20|" in told
    assert "|  1|Tadorna|  1.10|" in told
    assert told.count("update_") == 2


def test_the_services_are_where_the_settings_look_for_them():
    told = environment()
    found = services()
    ports = {port for s in found.values() for port in s.get("ports", ())}
    postgres, s3 = found["postgres"]["environment"], found["s3"]["environment"]

    user, database = postgres["POSTGRES_USER"], postgres["POSTGRES_DB"]
    assert told["SHELDUCK_CATALOG"] == f"postgresql://{user}@localhost:5432/{database}"
    assert told["PGPASSWORD"] == postgres["POSTGRES_PASSWORD"]
    assert told["AWS_ENDPOINT_URL_S3"] == "http://localhost:9000"
    assert told["AWS_ACCESS_KEY_ID"] == s3["MINIO_ROOT_USER"]
    assert told["AWS_SECRET_ACCESS_KEY"] == s3["MINIO_ROOT_PASSWORD"]
    assert {"127.0.0.1:5432:5432", "127.0.0.1:9000:9000"} <= ports
    bucket = told["SHELDUCK_DATA_PATH"].removeprefix("s3a://").split("/")[0]
    secret = told["AWS_SECRET_ACCESS_KEY"]
    made = found["bucket"]["entrypoint"]
    assert f"mc alias set lake http://s3:9000 {told['AWS_ACCESS_KEY_ID']} {secret}" in made
    assert f"mb --ignore-existing lake/{bucket} " in made


def test_the_page_names_the_settings_and_ports():
    page = (EXAMPLES / "README.md").read_text("utf-8")
    told = environment()

    assert f"`{told['SHELDUCK_CATALOG']}`" in page
    assert f"`{told['SHELDUCK_DATA_PATH']}`" in page
    for port in ("5432", "9000", "9001"):
        assert port in page
    assert set(re.findall(r"\]\(([\w.-]+)\)", page)) | {"README.md"} == {
        f.name for f in EXAMPLES.iterdir() if f.is_file()
    }


def test_the_load_reads_the_settings_of_the_server():
    source = (EXAMPLES / "nightly_load.py").read_text("utf-8")
    [table] = [n.value for n in ast.parse(source).body if is_assignment(n, "S3A")]

    assert set(ast.literal_eval(table).values()) == {
        k for k in environment() if k.startswith("AWS")
    }


def is_assignment(node, name):
    return isinstance(node, ast.Assign) and node.targets[0].id == name


@pytest.mark.parametrize(
    "page", [EXAMPLES / "airflow_schema.py", ROOT / "docs" / "guides" / "schema-in-git.md"]
)
def test_the_commands_of_pipelines_exist(page):
    text = page.read_text("utf-8").replace("{PLACE}", "/opt/lake")
    commands = re.findall(r"\bshelduck (?:apply|sql|plan|jobs|schema)\b[^\"\n`|>#]*", text)
    assert commands
    for command in commands:
        words = shlex.split(command)
        told = CliRunner().invoke(app, [*words[1:], "--help"])
        assert told.exit_code == 0, told.output
        for option in [word for word in words if word.startswith("--")]:
            assert option in told.output, f"{command} has no {option}"


def test_the_pipeline_compiles():
    compile((EXAMPLES / "airflow_schema.py").read_text("utf-8"), "airflow_schema.py", "exec")
