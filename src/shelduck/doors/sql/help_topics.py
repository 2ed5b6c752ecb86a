"""HELP: the grammar of statements that Doris has too, with examples, from ``help.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from shelduck.errors import NotFound
from shelduck.lake.operation import Operation, Runner
from shelduck.lake.results import PlainRows
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind
from shelduck.text.tokens.parts import Statement


@dataclass(frozen=True, slots=True)
class Help(Statement):
    """HELP and the words of a statement."""

    topic: str


class Topic(NamedTuple):
    """A statement: its words, its grammar and examples that run."""

    name: str
    description: str
    example: str


@cache
def _topics() -> list[Topic]:
    text = files(__package__).joinpath("help.toml").read_text()
    return [Topic(**each) for each in tomllib.loads(text)["topic"]]


def topics(words: str) -> list[Topic]:
    """Return the topics that contain these words; all of them for none.

    Raises NotFound, naming the topics that there are.
    """
    wanted = " ".join(words.upper().split())
    found = [t for t in _topics() if wanted in t.name]
    if not found:
        known = ", ".join(t.name for t in _topics())
        raise NotFound(f"HELP has no topic {words!r}; its topics are {known}", about="topic")
    return found


def read_help(cursor: Cursor) -> Help:
    """Read the topic behind ``HELP``: words, or a text of them."""
    if cursor.peek().kind is TokenKind.STRING:
        return Help(cursor.string("a topic"))
    words = []
    while cursor.peek().kind is not TokenKind.END:
        words.append(cursor.take().text)
    return Help(" ".join(words))


def help_(_: Runner, statement: Help) -> PlainRows:
    """HELP, with the columns that MySQL's clients show."""
    rows = [(t.name, t.description, t.example) for t in topics(statement.topic)]
    return PlainRows("name string, description string, example string", rows)


OPERATIONS = (Operation("HELP", Help, help_, read_help),)
