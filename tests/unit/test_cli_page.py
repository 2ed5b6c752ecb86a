"""docs/reference/cli.md says what ``--help`` says."""

from __future__ import annotations

from pathlib import Path

from typer.cli import app as typers_own
from typer.testing import CliRunner

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_the_page_of_the_command_line_is_what_help_says(tmp_path):
    made = tmp_path / "cli.md"
    words = ["shelduck.cli.app", "utils", "docs", "--name", "shelduck", "--output", str(made)]
    found = CliRunner().invoke(typers_own, words)

    assert found.exit_code == 0, found.output
    assert PAGE.read_text() == made.read_text(), "run make reference"
