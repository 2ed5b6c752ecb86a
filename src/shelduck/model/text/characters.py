"""Characters that not every database, file system and parser takes."""

from __future__ import annotations

import re

from shelduck.errors import InvalidRequest

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character: nobody can write it as UTF-8."""
NUL_OR_SURROGATE = re.compile("[\0\ud800-\udfff]")
"""Characters that PostgreSQL cannot hold and no path can have."""


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
