"""Tables as files of SQL: the CREATE TABLE of each, with the ids of its columns as comments.

A comment ``-- id: 3`` behind a column says which column of the table it is, so a changed name is a
rename. ``-- renamed from: x`` says it by the older name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.rollup import AddRollup, RollupSpec
from shelduck.model.text.names import split_name
from shelduck.sql.parse import parse
from shelduck.sql.statements.statements import AlterRollups, CreateTable
from shelduck.sql.tokens.lexer import Token, tokenize

_ID = re.compile(r"--\s*id:\s*(\d+)\s*$", re.MULTILINE)
_WAS = re.compile(r"--\s*renamed from:\s*(`(?:[^`]|``)*`|\w+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TableFile:
    """What one file declares: ``text`` makes the table where there is none.

    ``ids`` and ``older_names`` are by the name of a column, as its comments tell them.
    """

    text: str
    table: CreateTable
    rollups: tuple[RollupSpec, ...] = ()
    ids: dict[str, int] = field(default_factory=dict)
    older_names: dict[str, str] = field(default_factory=dict)


def read_table_file(text: str, where: str) -> TableFile:
    """Return what a file declares; InvalidRequest, naming the file, if it is no table."""
    try:
        return _read(text)
    except (InvalidRequest, Unsupported) as error:
        raise InvalidRequest(f"{where}: {error}") from error


def _read(text: str) -> TableFile:
    statements = parse(text)
    created, others = (statements[0] if statements else None), statements[1:]
    if not isinstance(created, CreateTable) or created.as_query is not None:
        raise InvalidRequest("the first statement must be CREATE TABLE with columns")
    rollups = list(created.rollups)
    for statement in others:
        # CREATE MATERIALIZED VIEW makes a rollup.
        added = statement.changes if isinstance(statement, AlterRollups) else ()
        rollups += [change.spec for change in added if isinstance(change, AddRollup)]
    names = {c.name.lower() for c in created.columns}
    ids = {name: int(value) for name, value in _told(text, _ID)}
    older = {name: split_name(value)[0] for name, value in _told(text, _WAS)}
    for name in (*ids, *older):
        if name.lower() not in names:
            raise InvalidRequest(f"a comment stands behind {name!r}, which is not a column")
    return TableFile(text, created, tuple(rollups), ids, older)


def _told(text: str, comment: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield what comments say, each with the name of the column before it."""
    tokens = tokenize(text)[:-1]
    starts = _definitions(tokens)
    for match in comment.finditer(text):
        if any(t.start <= match.start() < t.end for t in tokens):
            continue
        before = [t for t in starts if t.start < match.start()]
        if before:
            yield split_name(before[-1].text)[0], match[1]


def _definitions(tokens: list[Token]) -> list[Token]:
    """Return the first token of each column in the first brackets of a statement."""
    found: list[Token] = []
    depth = 0
    begins = False
    for token in tokens:
        if begins:
            found.append(token)
            begins = False
        if token.key in ("(", "<"):
            depth += 1
            begins = depth == 1 and not found
        elif token.key in (")", ">"):
            depth -= 1
            if depth == 0:
                break
        elif token.key == "," and depth == 1:
            begins = True
    return found
