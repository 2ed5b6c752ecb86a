"""docs/reference/cli.md says what ``--help`` says."""

from __future__ import annotations

from tests.support import cli_page


def test_the_page_of_the_command_line_is_what_help_says():
    assert cli_page.PAGE.read_text() == cli_page.page(), "run make reference"


def test_options_of_many_commands_are_there_once():
    page = cli_page.page()

    assert page.count("`--conf KEY=VALUE`: ") == page.count("`--json`: ") == 1
    assert "Also `-c`, `--json`, `--conf`." in page
