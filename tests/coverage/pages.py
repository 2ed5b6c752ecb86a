"""Pages of docs/coverage: rows that tests declare, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import pytest

NAMES = ("ducklake", "delta", "rules", "doris", "kudu", "queries")
FOLDER = Path(__file__).parents[2] / "docs" / "coverage"
README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- coverage -->", "<!-- /coverage -->"
_SHORT = 100
SAME, BEYOND, DIFFERS = "same", "beyond", "differs"

Test = TypeVar("Test", bound=Callable[..., None])


@dataclass(frozen=True)
class Row:
    """One claim, statement form, example, limit or question of a document.

    ``says`` paraphrases the document, ``statement`` is as the document has it, ``does`` is what
    Shelduck does. A row that differs says why in ``does``.
    """

    id: str
    section: str
    says: str
    statement: str
    verdict: str
    does: str


@dataclass
class Page:
    """The rows of one document, in the order of their tests."""

    name: str
    title: str
    rows: list[Row] = field(default_factory=list)

    def row(
        self,
        number: str,
        section: str,
        says: str,
        *,
        statement: str = "",
        does: str = "",
        beyond: str = "",
        differs: str = "",
    ) -> Callable[[Test], Test]:
        """Declare the row that a test shows.

        ``beyond`` says what Shelduck does more, ``differs`` what it does else and why; without them
        it does the same, to which ``does`` may add a word.
        """
        assert not (beyond and differs), number
        assert number not in [row.id for row in self.rows], number
        verdict = BEYOND if beyond else DIFFERS if differs else SAME
        self.rows.append(Row(number, section, says, statement, verdict, beyond or differs or does))
        return pytest.mark.coverage_row(f"{self.name}.{number}")

    def statement(self, number: str) -> str:
        """The statement of a row, as the document has it."""
        return next(row.statement for row in self.rows if row.id == number)

    def markdown(self) -> str:
        """The page."""
        lines = [
            f"# {self.title}",
            "",
            f"Each row is a test in `tests/coverage/test_{self.name}.py`, which also has the",
            "statements that work as documented. If all pass, `make coverage` writes this",
            f"page. Rows: {self.summary()}.",
            "",
            "| | The document | Shelduck |",
            "|---|---|---|",
            *(_line(row) for row in self.rows if row.does),
            "",
            "## The same",
        ]
        plain = [row for row in self.rows if not row.does]
        for section in dict.fromkeys(row.section for row in plain):
            lines += ["", f"{section}:", ""]
            lines += [f"- {row.id}: {_says(row)}" for row in plain if row.section == section]
        return "\n".join(lines) + "\n"

    def summary(self) -> str:
        """How many rows have which verdict."""
        counts = Counter(row.verdict for row in self.rows)
        return ", ".join(f"{counts[kind]} {kind}" for kind in (SAME, BEYOND, DIFFERS))


def all_pages() -> list[Page]:
    """The pages of all modules with rows."""
    return [import_module(f"tests.coverage.test_{name}").PAGE for name in NAMES]


def table(pages: list[Page]) -> str:
    """The summary table of the README."""
    lines = ["| Document | same | beyond | differs |", "|---|---|---|---|"]
    for page in pages:
        counts = Counter(row.verdict for row in page.rows)
        cells = " | ".join(str(counts[kind]) for kind in (SAME, BEYOND, DIFFERS))
        lines.append(f"| [{page.title}](docs/coverage/{page.name}.md) | {cells} |")
    return "\n".join(lines)


def with_table(readme: str, pages: list[Page]) -> str:
    """The README with this table between its marks."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(pages)}\n\n{END}{after}"


def _line(row: Row) -> str:
    verdict = row.verdict if row.verdict == SAME else f"**{row.verdict}**"
    return f"| {row.id} | {_says(row)} | {verdict}: {_cell(row.does)} |"


def _says(row: Row) -> str:
    # Where nothing differs, the statement is the document's own; a long one is in the test.
    is_shown = 0 < len(row.statement) <= _SHORT and row.verdict != SAME
    return _cell(row.says) + (f"<br>{_code(row.statement)}" if is_shown else "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(text)}`"
