"""Names and texts as they are written in SQL, quoted so that they read back the same."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shelduck.errors import InvalidRequest

INSIDE = "\x01"
"""The mark between the names of a schema and of the schemas around it in `schema_word`."""
# Behind a bracket, these begin a query.
_QUERY_WORDS = frozenset(("select", "with", "from", "values", "table"))
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character: nobody can write it as UTF-8."""
NUL_OR_SURROGATE = re.compile("[\0\ud800-\udfff]")
"""What PostgreSQL cannot hold and no path can have."""


def quote_name(name: str) -> str:
    """Return a name for people, types and Shelduck's statements, in back ticks if necessary."""
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _QUERY_WORDS
    return name if is_plain else backticked(name)


def backticked(name: str) -> str:
    """Return a name for Spark's own parser, for which a bare ``true`` or ``null`` is a value."""
    return "`" + name.replace("`", "``") + "`"


def schema_word(names: Iterable[str]) -> str:
    """Return the whole name of a schema as one word, from the outermost schema to its own name.

    The word of a schema in no other is its name. Raises InvalidRequest for a name that has what
    stands between names.
    """
    parts = list(names)
    for name in parts:
        require_characters(name, "the name", re.compile(INSIDE), "no name of a schema")
    return INSIDE.join(parts)


def schema_names(word: str) -> tuple[str, ...]:
    """Return the names in a word of `schema_word`."""
    return tuple(word.split(INSIDE))


def schema_text(word: str) -> str:
    """Return a schema's word as people write it: ``a.b``, each name quoted if necessary."""
    return ".".join(map(quote_name, schema_names(word)))


def double_quoted(name: str) -> str:
    """Return a name for databases, always in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def unquoted_text(literal: str) -> str:
    """Return the text of a string literal in single or double quotes, as Spark reads it.

    Raises InvalidRequest for the escape of a character that does not exist.
    """
    quote = literal[0]
    return _ESCAPE.sub(lambda m: _unescape(m, quote), literal[1:-1])


_ESCAPE = re.compile(
    r"""\\u(?P<u4>[0-9A-Fa-f]{4})|\\U(?P<u8>[0-9A-Fa-f]{8})|\\(?P<octal>[01][0-7]{2})
    |\\(?P<like>[%_])|\\(?P<char>.)|(?P<twice>''|"")""",
    re.VERBOSE | re.DOTALL,
)
_CONTROL = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def _unescape(match: re.Match[str], quote: str) -> str:
    if match["twice"]:
        return quote if match["twice"] == quote * 2 else match["twice"]
    if match["u4"] or match["u8"]:
        code = int(match["u4"] or match["u8"], 16)
        if code > 0x10FFFF:
            raise InvalidRequest(f"{match[0]} is not a valid character", about="text")
        return chr(code)
    if match["octal"]:
        return chr(int(match["octal"], 8))
    if match["like"]:
        return match[0]
    return _CONTROL.get(match["char"], match["char"])


def require_characters(
    text: str, what: str, refused: re.Pattern[str] = NUL_OR_SURROGATE, by: str = "no catalog"
) -> None:
    """Raise InvalidRequest for a text with a character that ``by`` cannot hold; ``what`` it is."""
    found = refused.search(text)
    if found is not None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise InvalidRequest(
            f"{what} {shown!r} has the character U+{ord(found[0]):04X}, which {by} can hold; leave"
            " it out",
            about="text",
        )


_SHOWN = 60
