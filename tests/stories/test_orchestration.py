"""The guide for tools that run jobs: each section, executed with its tool."""

from __future__ import annotations

import importlib
import os
import sys

import duckdb
import pytest

from tests.support.documents import DOCS, ROOT, Reader, outputs
from tests.support.oracle import EXTENSIONS, extension_files

GUIDE = DOCS / "guides" / "orchestration.md"
# Files of the page that its code imports.
MODULES = ("dags.sales_dag", "sales_assets", "to_lake", "config")

pytestmark = [pytest.mark.orchestration, pytest.mark.slow]


@pytest.fixture
def folder(here, monkeypatch):
    """An empty folder to work in, from which Python imports; what it imported is forgotten."""
    monkeypatch.syspath_prepend(here)
    yield here
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def duckdb_has_its_extensions(monkeypatch):
    """Tests have DuckDB's extensions in packages; a user's DuckDB fetches them."""
    plain = duckdb.connect

    def connect(*args, config=None, **more):
        allowed = {"allow_unsigned_extensions": "true", "autoinstall_known_extensions": "false"}
        connection = plain(*args, config={**(config or {}), **allowed}, **more)
        for path in extension_files(EXTENSIONS):
            connection.execute(f"LOAD '{path}'")
        return connection

    monkeypatch.setattr(duckdb, "connect", connect)


@pytest.fixture
def airflow_home(folder, monkeypatch):
    """An Airflow with an empty database, and the commands of .venv."""
    monkeypatch.setenv("AIRFLOW_HOME", str(folder / "airflow"))
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(folder / "dags"))
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    monkeypatch.setenv("PATH", str(ROOT / ".venv" / "bin"), prepend=os.pathsep)
    # Airflow reads its settings when it is imported.
    importlib.import_module("airflow.utils.db").initdb()
    return folder


def read(section, places=None):
    reader = Reader(GUIDE, section, places or {})
    assert reader.read() == outputs(GUIDE, section) > 0


def test_a_dag_of_airflow_loads_a_day_once_and_waits_for_a_job(airflow_home):
    read("Airflow", {"/data/": f"{airflow_home}/", "poke_interval=30": "poke_interval=1"})


def test_assets_of_dagster_are_tables_whose_columns_follow(folder, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", "")
    read("Dagster")


def test_dlt_goes_on_with_columns_that_shelduck_changed(folder, duckdb_has_its_extensions):
    read("dlt")


def test_sqlmesh_changes_a_column_and_keeps_its_values(folder):
    read("SQLMesh")
