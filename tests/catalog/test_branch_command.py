"""``shelduck branch``: what it prints, and its exit status, without Spark."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import shelduck
from shelduck.cli.app import app
from tests.support.oracle import DuckDBOracle

pytestmark = pytest.mark.databases("sqlite", "postgres")


@pytest.fixture
def run(lake_url, data_path):
    """Runs ``shelduck branch``; returns its exit status and what it printed."""
    with shelduck.connect(lake_url, data_path) as lake:
        lake.set_option("data_inlining_row_limit", 0)
        lake.execute("CREATE TABLE t (id INT, v INT)")
        lake.execute("CREATE TABLE u (id INT)")

    def told(*words):
        found = CliRunner().invoke(app, ["branch", *words, "-c", lake_url])
        assert found.stderr == ""
        return found.exit_code, found.stdout

    return told


def test_a_branch_is_made_compared_merged_and_dropped(run, lake_url):
    code, told = run("create", "audit", "--table", "t")
    assert (code, told) == (0, "branch audit: Committed(snapshot=3)\n")
    assert run("create", "audit", "--if-not-exists") == (0, "branch audit: Unchanged(snapshot=3)\n")
    code, told = run("list", "--json")
    assert json.loads(told) == {"branch": "audit", "source": "main", "base": 2, "tables": 1}
    assert run("diff", "audit") == (0, "nothing happened on audit since snapshot 2\n")

    with DuckDBOracle(lake_url) as duck:
        duck.execute("ALTER TABLE audit.t ADD COLUMN w VARCHAR")
        duck.execute("INSERT INTO audit.t VALUES (1, 1, 'one')")
    code, told = run("diff", "audit")
    assert code == 2
    assert told.splitlines()[1:] == ["main.t", "  ADD COLUMN w varchar", "  rows: 1 added"]
    code, told = run("diff", "audit", "--format", "markdown")
    assert (code, told.splitlines()[4]) == (2, "| `main.t` | changed | 1 added |")
    code, told = run("diff", "audit", "--format", "json")
    assert code == 2
    assert json.loads(told)["tables"] == [
        {
            "table": "main.t",
            "change": "changed",
            "sql": "ALTER TABLE main.t ADD COLUMN w varchar",
            "added": 1,
            "changed": 0,
            "deleted": 0,
            "net": 1,
            "rows": [],
        }
    ]
    assert run("conflicts", "audit", "--json") == (0, "")
    assert run("merge", "audit") == (0, "branch audit: Committed(snapshot=6)\n")
    with DuckDBOracle(lake_url) as duck:
        assert duck.sql("FROM main.t") == [(1, 1, "one")]
    assert run("drop", "audit") == (0, "branch audit: Committed(snapshot=7)\n")
    assert run("drop", "audit", "--if-exists") == (0, "branch audit: Unchanged(snapshot=7)\n")


def test_conflicts_have_a_status_of_their_own(run, lake_url):
    run("create", "b", "--from", "main", "--version", "1")
    with DuckDBOracle(lake_url) as duck:
        duck.execute("ALTER TABLE t RENAME COLUMN v TO ours")
        duck.execute("ALTER TABLE b.t RENAME COLUMN v TO theirs")
    code, told = run("diff", "b")
    assert code == 3
    assert told.splitlines()[-1] == (
        "conflict: column v.name of main.t was v, is ours, and on the branch theirs"
    )
    code, told = run("conflicts", "b", "--json")
    assert code == 3
    assert json.loads(told)["ours"] == "ours"


def test_conflicts_are_resolved_and_a_merge_is_undone(run, lake_url):
    run("create", "b")
    with DuckDBOracle(lake_url) as duck:
        for schema in ("main", "b"):
            duck.execute(f"ALTER TABLE {schema}.t RENAME COLUMN v TO of_{schema}")
            duck.execute(f"COMMENT ON TABLE {schema}.u IS '{schema}'")
    code, told = run("resolve", "b", "t.v USING THEIRS", "--json")
    assert (code, json.loads(told)["kind"]) == (3, "comment")
    found = run("resolve", "b", "t.v USING THEIRS", "ALL USING OURS")
    assert found == (0, "branch b: Committed(snapshot=8)\n")
    columns = "SELECT column_name FROM (DESCRIBE t)"
    with DuckDBOracle(lake_url) as duck:
        assert duck.sql(columns) == [("id",), ("of_b",)]
    assert run("undo", "b") == (0, "branch b: Committed(snapshot=9)\n")
    with DuckDBOracle(lake_url) as duck:
        assert duck.sql(columns) == [("id",), ("of_main",)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("resolve", "b", "t USING MINE"), "expected OURS or THEIRS"),
        (("resolve", "b", "ALL USING OURS, t"), "expected the end of the statement"),
        (("undo", "b"), "branch 'b' has no merge to undo"),
    ],
)
def test_what_cannot_be_resolved_or_undone_is_an_error(run, lake_url, words, told):
    run("create", "b")
    found = CliRunner().invoke(app, ["branch", *words, "-c", lake_url])
    assert found.exit_code not in (0, 2, 3)
    assert told in str(found.exception)
