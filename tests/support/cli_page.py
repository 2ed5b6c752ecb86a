"""docs/reference/cli.md: what ``--help`` says of each command, with what all of them take once.

python -m tests.support.cli_page
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

from typer.cli import app as typers_own
from typer.testing import CliRunner

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
# Options that many commands take, with the same words.
_SHARED = re.compile(r"^\* `(-c, --catalog|--json|--conf KEY=VALUE)[^`]*`: (.*)\n", re.MULTILINE)
_HELP = re.compile(r"^\* `--help`: .*\n", re.MULTILINE)
# The usage, the words above the arguments and a list of commands repeat what the rest says.
_USAGE = re.compile(r"\*\*Usage\*\*:\n\n```console\n\$ .*\n```\n\n")
# All arguments are, unless they say what they are by default.
_REQUIRED = re.compile(r"(?<=\n)(\* `\w.*)  \[required\]")
_ABOVE = re.compile(r"\n\*\*(?:Arguments|Options)\*\*:\n(?=\n\*)|\*\*Options\*\*:\n\n*")
# Each command has its own example, and the shell's completion its own words.
_OF_ALL = re.compile(r"^(?:Example: .*\n\n|\* `--show-completion`.*\n)", re.MULTILINE)
_COMMANDS = re.compile(r"\*\*Commands\*\*:\n\n(?:\* .*\n)+\n")


def page() -> str:
    """The page."""
    first, *others = re.split(r"(?=^##+ )", _made(), flags=re.MULTILINE)
    shared = {found[0]: found[1] for text in others for found in _SHARED.findall(text)}
    known = "".join(f"* `{name}`: {means}\n" for name, means in shared.items())
    above = _short(_OF_ALL.sub("", first))
    return f"{above}Many commands take these, and all take `--help`:\n\n{known}\n" + "".join(
        map(_short, others)
    )


def _made() -> str:
    with TemporaryDirectory() as folder:
        made = Path(folder) / "cli.md"
        words = ["shelduck.cli.app", "utils", "docs", "--name", "shelduck", "--output", str(made)]
        done = CliRunner().invoke(typers_own, words)
        assert done.exit_code == 0, done.output
        return unescape(made.read_text(encoding="utf-8"))


def _short(section: str) -> str:
    """A section without what is said once for all commands."""
    names = [found.split(" ")[0] for found, _ in _SHARED.findall(section)]
    names = [name.rstrip(",") for name in names]
    text = _HELP.sub("", _SHARED.sub("", section))
    text = _REQUIRED.sub(r"\1", text)
    text = _ABOVE.sub("", _COMMANDS.sub("", _USAGE.sub("", text)))
    also = f"Also {', '.join(f'`{name}`' for name in names)}.\n\n" if names else ""
    before, mark, examples = text.partition("Example: ")
    return f"{before}{also}{mark}{examples}" if mark else f"{text}{also}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
