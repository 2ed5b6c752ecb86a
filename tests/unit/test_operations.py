"""Statements, each of which one operation declares."""

from __future__ import annotations

from collections import Counter

import shelduck.doors.lake  # noqa: F401 - knows all statements
from shelduck.doors.sql.parse import OPERATIONS, READERS
from shelduck.text.tokens.parts import Statement


def test_every_statement_has_a_name_of_its_own():
    # A MERGE inside, and to users what they wrote; and a view that is pinned.
    same = {"UPDATE", "DELETE", "CREATE VIEW"}
    kinds = {kind.__name__ for kind in OPERATIONS}
    assert kinds >= {name for name, more in names_below(Statement) if not more}
    titles = Counter(operation.title for operation in OPERATIONS.values())
    assert {title for title, count in titles.items() if count > 1} == same


def test_words_begin_one_statement():
    words = [words for readers in READERS.values() for words, _ in readers]
    assert len(words) == len(set(words)) > 50


def names_below(base):
    """Yield each name of a class that inherits from one, and whether others inherit from it.

    Slots make a class twice.
    """
    found = {}
    for each in base.__subclasses__():
        found[each.__name__] = found.get(each.__name__, False) or bool(each.__subclasses__())
        yield from names_below(each)
    yield from found.items()
