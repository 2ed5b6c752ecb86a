"""Dotted names as people write them: ``schema.table``, ``column.field``, quoted at need."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import UUID

from shelduck.errors import InvalidRequest

_WRITE = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
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


def _unparsable(text: str) -> InvalidRequest:
    return InvalidRequest(
        f"cannot parse the name {text!r}; put special names in backticks", about="text"
    )


def write_directory(table_uuid: str, milliseconds: int, random: int) -> str:
    """Return the name of the directory of one write: a UUID of version 7, its end the table's.

    Names sort by time, as those of DuckLake's files do, and tell whose they are even where another
    lake keeps its files beside them. ``random`` counts with its last 26 bits.
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
    """Tell whether a directory was made by a write to the table of that uuid."""
    return bool(_WRITE.fullmatch(name)) and name.endswith(_last_digits(table_uuid))


def write_time(name: str) -> datetime:
    """Return when a write began, by the name of its directory and the clock of its machine."""
    milliseconds = UUID(name).int >> 80
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _last_digits(uuid: str) -> str:
    return uuid.lower().replace("-", "")[-12:]


def directory(name: str, uuid: str) -> str:
    """Return the directory, ending in '/', of a schema or table with that name and uuid.

    Names of letters, digits, '_' and '-' are used as they are as DuckDB does, others would
    clash with path syntax.
    """
    return f"{name if re.fullmatch('[A-Za-z0-9_-]+', name) else uuid}/"
