"""Dotted names as people write them: ``schema.table``, ``column.field``, quoted at need."""

from __future__ import annotations

import re

from shelduck.errors import InvalidRequest

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
            raise InvalidRequest(f"cannot read the name {text!r}; quote odd names with back ticks")
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
            raise InvalidRequest(f"cannot read the name {text!r}; quote odd names with back ticks")
        at += 1


def directory(name: str, uuid: str) -> str:
    """Return the directory, ending in '/', of a schema or table with that name and uuid.

    Names of letters, digits, '_' and '-' are used as they are as DuckDB does, others would
    clash with path syntax.
    """
    return f"{name if re.fullmatch('[A-Za-z0-9_-]+', name) else uuid}/"
