"""Names as people, Spark and DuckDB write them: dotted, quoted if necessary, and as directories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from html import escape
from typing import Any
from uuid import UUID

from shelduck.errors import InvalidRequest

LONGEST = 1000
"""How many characters a name may have."""

WRITE_DIGITS = 12
"""How many digits of a table's UUID end the names of the directories of its writes."""
_WRITE = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_BETWEEN_COMMAS = re.compile(r'((?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|[^,`"])*),')
_PART = re.compile(r'`((?:[^`]|``)*)`|"((?:[^"]|"")*)"|([^.`"\s][^.`"]*)')


def split_name(text: str) -> tuple[str, ...]:
    """Return the parts of a dotted name; back ticks or double quotes protect dots and blanks.

    >>> split_name('main."my.table"')
    ('main', 'my.table')
    """
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(text, at)
        if match is None or not match[0].strip() or match[0] in ("``", '""'):
            raise _unparsable(text)
        ticked, quoted, plain = match.groups()
        if ticked is not None:
            parts.append(ticked.replace("``", "`"))
        elif quoted is not None:
            parts.append(quoted.replace('""', '"'))
        else:
            parts.append(plain.rstrip())
        at = match.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            raise _unparsable(text)
        at += 1


def split_paths(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the parts of each dotted name between commas, as `split_name` does."""
    if not text.strip():
        return ()
    return tuple(split_name(part.strip()) for part in _BETWEEN_COMMAS.findall(text + ","))


def split_list(text: str) -> tuple[str, ...]:
    """Return the names between commas; back ticks or double quotes protect commas, dots and blanks.

    >>> split_list('id, `a,b`')
    ('id', 'a,b')
    """
    found = split_paths(text)
    if not all(len(parts) == 1 for parts in found):
        raise _unparsable(text)
    return tuple(parts[0] for parts in found)


def inside(parts: tuple[str, ...], lake: str) -> tuple[str, ...]:
    """Return the parts of a name as the lake itself understands it."""
    return parts[1:] if len(parts) > 1 and parts[0].lower() == lake else parts


def shown_schema(word: str) -> str:
    """Return a schema's word for listings: bare if it is one name and reads back as it is."""
    try:
        is_bare = INSIDE not in word and split_name(word) == (word,)
    except InvalidRequest:
        is_bare = False
    return word if is_bare else schema_text(word)


def _unparsable(text: str) -> InvalidRequest:
    return InvalidRequest(
        f"cannot parse the name {text!r}; put special names in backticks", about="text"
    )


def write_directory(table_uuid: str, milliseconds: int, random: int) -> str:
    """Return the directory name of one write: a UUID of version 7 that ends like the table's.

    Names sort by time, as those of DuckLake's files do. They say to which table they belong, even
    if another lake has files beside them. The last 26 bits of ``random`` are used.
    """
    value = (
        milliseconds << 80
        | 0x7 << 76
        | (random & 0xFFF) << 64
        | 0b10 << 62
        | (random >> 12 & 0x3FFF) << 48
        | int(_last_digits(table_uuid), 16)
    )
    return str(UUID(int=value))


def is_write_directory(name: str, table_uuid: str) -> bool:
    """Return whether a write to the table with that uuid made a directory."""
    return bool(_WRITE.fullmatch(name)) and name.endswith(_last_digits(table_uuid))


def write_time(name: str) -> datetime:
    """Return when a write began, according to the name of its directory and its machine's clock."""
    milliseconds = UUID(name).int >> 80
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _last_digits(uuid: str) -> str:
    return uuid.lower().replace("-", "")[-WRITE_DIGITS:]


def directory(name: str, uuid: str) -> str:
    """Return the directory, ending in '/', of a schema or table with that name and uuid.

    Names of letters, digits, '_' and '-' are used as they are, as in DuckDB; other names would
    clash with path syntax, and longer ones with the limits of file systems.
    """
    return f"{name if re.fullmatch('[A-Za-z0-9_-]{1,200}', name) else uuid}/"


def require_storable(kind: str, name: str) -> None:
    """Raise InvalidRequest for a name that not every catalog, reader and statement can hold."""
    require_characters(name, "the name")
    if "${" in name:
        raise InvalidRequest(
            f"the name {name!r} of a {kind} contains ${{, and Spark puts a setting in the place of"
            " ${...} in statements; leave it out"
        )
    if len(name) > LONGEST:
        raise InvalidRequest(
            f"the name {name[:60]!r}... of a {kind} is longer than {LONGEST} characters; use a"
            " shorter one"
        )


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


def html_table(names: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return rows as a table in HTML; None is an empty cell, and every text is escaped."""
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows
    )
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """Return a text as it is, in HTML."""
    return f"<pre>{escape(text)}</pre>"


def _cell(value: object) -> str:
    return "" if value is None else escape(str(value))


class Shown:
    """A dataclass that shows only what is not as by default; declare it with ``repr=False``."""

    __slots__ = ()

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self._told())
        return f"{type(self).__name__}({told})"

    def _repr_html_(self) -> str:
        told = self._told()
        names, values = [name for name, _ in told], [value for _, value in told]
        return html_table(names, [values], type(self).__name__)

    def _told(self) -> list[tuple[str, Any]]:
        every = [(f, getattr(self, f.name)) for f in fields(self)]  # type: ignore[arg-type]
        return [(f.name, value) for f, value in every if f.default is MISSING or value != f.default]
