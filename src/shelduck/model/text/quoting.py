"""Names and texts as they are written in SQL, quoted so that they read back the same."""

from __future__ import annotations

import re

# Behind a bracket, these begin a query.
_QUERY_WORDS = frozenset(("select", "with", "from", "values", "table"))


def quote_name(name: str) -> str:
    """Return a name for people, types and Shelduck's statements, in back ticks if necessary."""
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _QUERY_WORDS
    return name if is_plain else backticked(name)


def backticked(name: str) -> str:
    """Return a name for Spark's own parser, for which a bare ``true`` or ``null`` is a value."""
    return "`" + name.replace("`", "``") + "`"


def double_quoted(name: str) -> str:
    """Return a name for databases, always in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
