"""sqlglot's trees of a text."""

from __future__ import annotations

import sqlglot
from sqlglot import expressions as exp
from sqlglot.errors import ParseError


def parse_trees(text: str, dialect: str) -> list[exp.Expr | None]:
    """Return the trees of the statements of a text.

    Raises sqlglot's SqlglotError for a text that it cannot read, for one that is nested deeper than
    Python can follow, and for one with ``${…}``, which Spark replaces wherever it stands.
    """
    if "${" in text:
        raise ParseError("Spark would put a setting in the place of ${...}")
    try:
        return list(sqlglot.parse(text, read=dialect))
    except RecursionError:
        # The traceback of this one is long and says nothing.
        raise ParseError("the text is nested too deep") from None
