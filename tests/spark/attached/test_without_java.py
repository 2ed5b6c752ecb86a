"""Where no Java can start: what needs none works, and what needs it fails before it commits."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

import shelduck
from shelduck.lake import state
from tests.support.lakes import newest, refusal
from tests.support.oracle import DuckDBOracle

STATEMENTS = ["CREATE TABLE t (id INT)"]


class NoJavaError(Exception):
    pass


@pytest.fixture
def bare(base, monkeypatch):
    """A lake without a session, where none can be made; its catalog and its files."""

    def fails(*_):
        raise NoJavaError

    catalog, lake = base.copy()
    lake.close()
    monkeypatch.setattr(state, "session_for", fails)
    with shelduck.connect(f"sqlite:///{catalog}") as lake:
        yield lake, catalog, base.folder / "data"


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD COLUMN c INT",
        "CREATE TABLE u (id INT)",
        "CREATE SCHEMA s",
        "DROP TABLE t",
        "COMMENT ON TABLE t IS 'x'",
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
        "INSERT INTO t VALUES (1)",
        "CALL set_option('target_file_size', '1MB')",
        "CALL flush_inlined_data()",
        "CALL expire_snapshots(older_than => TIMESTAMP '2020-01-01 00:00:00')",
        "BEGIN; DROP TABLE t; COMMIT",
        "CHECKPOINT",
        "SHOW TABLES",
        "CREATE VIEW v AS SCHEMA VERSION 1 OF t",
    ],
)
def test_a_statement_commits_nothing_when_its_answer_cannot_be_made(bare, text):
    lake, _catalog, data = bare
    before = list(data.rglob("*"))

    with pytest.raises(NoJavaError):
        lake.sql(text)

    assert newest(lake) == 1
    assert lake.options() == []
    assert list(data.rglob("*")) == before


def test_the_same_statements_answer_without_spark(bare):
    lake, *_ = bare

    done = lake.execute("ALTER TABLE t ADD COLUMN c INT")

    assert (done.names, list(done.rows)) == (
        ["snapshot", "operation", "rows", "files"],
        [(2, "ALTER TABLE", 0, 0)],
    )
    assert next(iter(lake.execute("INSERT INTO t VALUES (1, 2)").rows))[:3] == (3, "INSERT", 1)
    assert list(lake.execute("SHOW COLUMNS FROM t").rows) == [("id",), ("c",)]
    with pytest.raises(NoJavaError):
        lake.execute("SELECT * FROM t")


def test_a_session_that_was_stopped_is_told_before_anything_commits(base, spark, monkeypatch):
    catalog, lake = base.copy()
    with lake:
        monkeypatch.setattr(state, "is_stopped", lambda _: True)
        told = refusal(
            shelduck.InvalidRequest, lambda: lake.sql("DROP TABLE t"), catalog, base.folder / "data"
        )
        monkeypatch.undo()

    assert told == "the Spark session of this lake was stopped; connect again with a running one"
    assert not state.is_stopped(spark)
    stopped = SparkSession.__new__(SparkSession)
    stopped._sc = type("Stopped", (), {"_jsc": None})()
    assert state.is_stopped(stopped)


@pytest.mark.slow
def test_the_command_line_changes_tables_on_a_machine_without_java(base):
    catalog, lake = base.copy()
    lake.close()

    def run(text):
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "shelduck.cli",
                "sql",
                text,
                "-c",
                f"sqlite:///{catalog}",
                "--json",
            ],
            env={**os.environ, "PATH": "", "JAVA_HOME": "/nonexistent"},
            capture_output=True,
            text=True,
            check=False,
        )

    done = run("ALTER TABLE t ADD COLUMN c INT; SHOW COLUMNS FROM t")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"col_name": "id"},
        {"col_name": "c"},
    ]
    done = run("ALTER TABLE t DROP COLUMN c")
    assert done.stdout == '{"snapshot":3,"operation":"ALTER TABLE","rows":0,"files":0}\n'
    done = run("SELECT * FROM t")
    assert done.returncode == 1
    assert done.stderr == (
        "Unsupported: Spark needs Java 17 or newer, but JAVA_HOME is '/nonexistent', which has no"
        " bin/java; install it, or set JAVA_HOME to where it is\n"
    )


def test_rollups_that_cannot_follow_are_a_warning_behind_the_commit(bare, spark):
    lake, catalog, _ = bare
    with shelduck.connect(f"sqlite:///{catalog}", spark=spark) as whole:
        whole.sql("CREATE TABLE r (k INT, j INT, v INT SUM) AGGREGATE KEY(k, j) ROLLUP (p (j, v))")
        whole.sql("INSERT INTO r VALUES (1, 2, 3)")
    with DuckDBOracle(f"sqlite:///{catalog}") as duckdb:
        duckdb.execute("INSERT INTO r VALUES (1, 2, 4)")

    with pytest.warns(RuntimeWarning, match="is committed, but its rollups are stale"):
        done = lake.table("r").alter(shelduck.rename_column("v", "total"))

    assert done.snapshot == newest(lake)
    assert lake.table("r").columns.names == ["k", "j", "total"]
