"""The demo: its numbers are those of the lake that it leaves."""

from __future__ import annotations

import re
import sys

import pytest
from typer.testing import CliRunner

import shelduck
from shelduck.cli import main
from shelduck.cli.app import app
from shelduck.cli.demo import ask_duckdb
from tests.support.oracle import DuckDBOracle


def test_the_demo_changes_a_type_while_others_write_and_read(spark, tmp_path):
    found = CliRunner().invoke(app, ["demo", "--rows", "2000", "--keep", str(tmp_path / "kept")])

    assert found.exit_code == 0, found.output
    told = {k.strip(): v for k, v in re.findall(r"│ (.+?) +│ (\S+)", found.output)}
    assert told["writes lost"] == "0"
    assert told["sum of all amounts, less what was written"] == "0.00"
    written = int(told["rows that the writer committed meanwhile"].replace(",", ""))
    assert written >= 1000
    looks = dict(re.findall(r"DuckDB (during the job|now|again): +(.+amount.+)", found.output))
    # A job of so few rows may end before DuckDB has started.
    assert re.fullmatch(r"\d+ rows, amount is (VARCHAR|DECIMAL\(10,2\))", looks["during the job"])
    assert re.fullmatch(r"\d+ rows, amount is DECIMAL\(10,2\)", looks["now"])
    assert re.fullmatch(r"\d+ rows, amount is VARCHAR", looks["again"])
    assert "Files changed: none" in found.output
    assert "prove that every value fits: metadata only." in found.output
    assert "Refused: values of column 'visitor' of main.events cannot be" in found.output
    assert "after the load: 2,000 rows" in found.output
    assert "ALTER COLUMN visitor TYPE int64\n  rows: 1,000 added\n" in found.output
    assert "DuckDB now: 1000 rows from NZ, visitor is BIGINT" in found.output
    url = f"sqlite:///{tmp_path}/kept/lake.db"
    with DuckDBOracle(url) as oracle:
        assert oracle.sql("SELECT count(*), count(DISTINCT id) FROM events") == [
            (3000 + written, 3000 + written)
        ]
    with shelduck.connect(url, spark=spark) as lake:
        assert [job.state.value for job in lake.jobs()] == ["FINISHED"] * 2


def test_duckdb_prints_no_progress_among_its_rows(sqlite_url, tmp_path):
    shelduck.connect(sqlite_url, f"{tmp_path}/files").close()
    assert ask_duckdb(sqlite_url, "SELECT current_setting('enable_progress_bar')") == "False"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--keep", "."], "InvalidRequest: . already exists; choose a new folder for the lake\n"),
        (["--rows", "3"], "InvalidRequest: --rows 3 is too few; choose at least 1000\n"),
    ],
)
def test_the_demo_begins_nothing_that_it_cannot_end(
    monkeypatch, capsys, tmp_path, options, message
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["shelduck", "demo", *options])
    with pytest.raises(SystemExit) as stopped:
        main()
    told = capsys.readouterr()
    assert (stopped.value.code, told.out, told.err) == (1, "", message)
    assert list(tmp_path.iterdir()) == []
