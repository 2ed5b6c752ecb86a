"""Which tables follow which by a stream, as the tables that follow keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shelduck.model.tables.properties import FOLLOWS
from shelduck.model.tables.schema import Path
from shelduck.model.text.names import split_name
from shelduck.model.text.stored import Stored, each, record


@dataclass(frozen=True, slots=True)
class Following:
    """A stream that carries rows of a source, and what becomes of its columns, into a table.

    ``query`` is the name of the stream; ``sink`` and ``source`` are the UUIDs of both tables, and
    ``table`` is what the source was called in the lake whose files are at ``lake``. ``text`` is
    what the stream computes, and ``names`` are the fields of the source, by id, as that text names
    them. ``pairs`` has a part of the stream's rows and the id of the field that it fills. All up to
    the snapshot ``passed`` of the source has been looked at; the number of the stream's newest
    batch may be higher.
    """

    query: str
    sink: str
    source: str
    lake: str
    table: str
    passed: int
    text: str = ""
    names: tuple[tuple[int, str], ...] = ()
    pairs: tuple[tuple[str, int], ...] = ()

    @property
    def paths(self) -> dict[int, Path]:
        """The paths of ``names``."""
        return {number: split_name(text) for number, text in self.names}


@dataclass(frozen=True, slots=True)
class _Follows:
    streams: tuple[Following, ...] = ()


_STORED: Stored[_Follows] = Stored(
    "streams", record(_Follows, streams=each(record(Following), by="query"))
)


def followings(properties: Mapping[str, str], uuid: str, table: str) -> tuple[Following, ...]:
    """Return the streams into the table of this UUID; CorruptLake for a broken tag.

    Those of a table that another one was made from are not its own.
    """
    text = properties.get(FOLLOWS)
    found = () if text is None else _STORED.read(text, table).streams
    return tuple(one for one in found if one.sink == uuid)


def with_following(properties: Mapping[str, str], one: Following, table: str) -> dict[str, str]:
    """Return the properties of a table with what is known of one of its streams."""
    known = followings(properties, one.sink, table)
    others = [other for other in known if other.query != one.query]
    text = _STORED.write(_Follows((*others, one)), properties.get(FOLLOWS))
    return {**properties, FOLLOWS: text}
