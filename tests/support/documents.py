"""The code of a document, executed as its reader would, and what it prints compared with the page.

Blocks run in order, in one folder and one namespace for each document:

- ``python`` runs as it is; ``json`` and ``yaml`` must parse.
- ``sql`` runs on the ``lake`` of the Python code before it; with ``title="DuckDB"`` DuckDB runs it,
  with ``title="PostgreSQL"`` the server that the test gives.
- ``sh`` runs its lines of ``shelduck`` (no server), ``export`` and ``mkdir``; the others are for
  people.
- A title such as ``schema/t.sql`` is the name of a file, which gets the text.
- ``text`` behind code is what that code prints; ``…`` stands for anything.

Blocks of other languages, such as ``console``, are for people.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import yaml

from shelduck import Lake
from shelduck.cli import main
from shelduck.doors.sql.parse import pieces
from tests.support.oracle import EXTENSIONS, duckdb_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import duckdb

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
CHANGES = 2
# Commands that go on until somebody stops them.
SERVERS = ("ui",)

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<words>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$",
    flags=re.MULTILINE | re.DOTALL,
)
_TITLE = re.compile(r'title="([^"]*)"')
_OUTPUT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, its text and the line where the text begins."""

    language: str
    title: str
    text: str
    line: int


def blocks(document: Path, section: str = "") -> list[Block]:
    """The fenced blocks of a document, or of its section with this heading."""
    page = document.read_text(encoding="utf-8")
    begin, end = _bounds(page, section) if section else (0, len(page))
    found = []
    for match in _FENCE.finditer(page, begin, end):
        words, indent = match["words"], match["indent"]
        titled = _TITLE.search(words)
        text = re.sub(rf"^{indent}", "", match["text"], flags=re.MULTILINE)
        line = page.count("\n", 0, match.start("text")) + 1
        language = words.split()[0] if words.split() else ""
        found.append(Block(language, titled[1] if titled else "", text, line))
    return found


def outputs(document: Path, section: str = "") -> int:
    """How many outputs a document shows, or a section of it."""
    return sum(b.language == "text" and not b.title for b in blocks(document, section))


def _bounds(page: str, section: str) -> tuple[int, int]:
    begin = page.index(f"\n## {section}\n")
    end = page.find("\n## ", begin + 1)
    return begin, len(page) if end < 0 else end


@dataclass
class Reader:
    """Somebody who does what a document says, in the working directory.

    `places` are texts of the document, such as the address of a server, and what they are here.
    `postgres` runs a statement of PostgreSQL. With `section`, only that part of the page is read.
    """

    document: Path
    section: str = ""
    places: Mapping[str, str] = field(default_factory=dict)
    postgres: Callable[[str], None] | None = None
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "document"})
    printed: str = ""

    def read(self) -> int:
        """Runs all blocks; returns how many outputs it has compared."""
        compared = 0
        with mock.patch.dict(os.environ), contextlib.ExitStack() as opened:
            opened.callback(self._close_lakes)
            for block in blocks(self.document, self.section):
                if block.language == "text" and not block.title:
                    self._compare(block)
                    compared += 1
                    continue
                self.printed = ""
                with _told_where(self.document, block):
                    self._run(block)
        return compared

    def _close_lakes(self) -> None:
        for found in self.names.values():
            if isinstance(found, Lake):
                found.close()

    def _run(self, block: Block) -> None:
        text = block.text
        for told, here in self.places.items():
            text = text.replace(told, here)
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            self._run_text(block, text)
        self.printed = told.getvalue()

    def _run_text(self, block: Block, text: str) -> None:
        kind, title = block.language, block.title
        if title == "DuckDB":
            self._run_duckdb(text)
        elif title == "PostgreSQL":
            assert self.postgres is not None, "the test gives no PostgreSQL"
            self.postgres(text)
        elif "." in title:
            place = Path(title)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
            _parse(kind, text)
        elif kind == "python":
            code = compile("\n" * (block.line - 1) + text, str(self.document), "exec")
            exec(code, self.names)
        elif kind == "sql":
            for statement in pieces(text):
                shown = self.names["lake"].sql(statement)
            shown.show(truncate=False)
        elif kind == "sh":
            for line in re.sub(r"\\\n\s*", " ", text).splitlines():
                _run_line(line)
        else:
            _parse(kind, text)

    def _run_duckdb(self, text: str) -> None:
        with contextlib.closing(duckdb_with(EXTENSIONS)) as connection:
            shown: duckdb.DuckDBPyRelation | None = None
            for statement in pieces(text):
                # Tests have the extensions in packages.
                if statement.split()[0] != "INSTALL":
                    shown = connection.sql(statement)
            sys.stdout.write(str(shown))

    def _compare(self, block: Block) -> None:
        wanted = block.text.replace("…", "...")
        if not doctest.OutputChecker().check_output(wanted, self.printed, _OUTPUT):
            raise AssertionError(
                f"{self.document.name}, line {block.line}: the code before prints"
                f" something else:\n{self.printed}"
            )


def _parse(kind: str, text: str) -> None:
    if kind == "yaml":
        yaml.safe_load(text)
    elif kind == "json":
        json.loads(text)


def _run_line(line: str) -> None:
    """Runs a line of a shell: `shelduck` in this process, `export` and `mkdir`."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["export"]:
        name, _, value = words[1].partition("=")
        os.environ[name] = value
    elif words[:1] == ["mkdir"]:
        Path(words[-1]).mkdir(parents=True, exist_ok=True)
    elif words[:1] == ["shelduck"] and words[1] not in SERVERS:
        words = words[: words.index("||")] if "||" in words else words
        target = None
        if ">" in words:
            target = Path(words[words.index(">") + 1])
            words = words[: words.index(">")]
        _run_shelduck(words, target)


def _run_shelduck(words: list[str], target: Path | None) -> None:
    told = io.StringIO()
    redirected = contextlib.redirect_stdout(told) if target else contextlib.nullcontext()
    with mock.patch.object(sys, "argv", words), redirected:
        status = _status_of(main)
    # `plan` says with its status that something differs.
    fine = (0, CHANGES) if words[1] == "plan" else (0,)
    assert status in fine, f"{shlex.join(words)} ends with status {status}"
    if target:
        target.write_text(told.getvalue(), encoding="utf-8")


def _status_of(program: Callable[[], None]) -> int:
    try:
        program()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@contextlib.contextmanager
def _told_where(document: Path, block: Block) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"in {document.name}, the block of line {block.line}")
        raise
