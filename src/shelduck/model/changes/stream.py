"""How far a streaming query has read a table, where its next batch ends, and who follows it.

A position is a snapshot and a row id, not a number of files: compaction may merge the files of a
snapshot, but rows keep their snapshots and their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shelduck.model.changes.change import DELETES, INSERTS, Entry, Verb
from shelduck.model.files.data_file import ROW_ID_FIELD, DataFile, text_digest
from shelduck.model.tables.properties import FOLLOWS
from shelduck.model.tables.schema import Field, Path, TableId
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import split_name
from shelduck.model.text.stored import Stored, each, record


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Everything before it was delivered.

    That is what the snapshots before ``snapshot`` added, and rows of ``snapshot`` with an id below
    ``row_id``. If ``whole``, rows of ``snapshot`` are all that the table holds then, whoever added
    them. The stream began at ``start``, with the rows that the table held if ``start_whole``.
    """

    table: str
    snapshot: int
    row_id: int = 0
    whole: bool = False
    start: int = 0
    start_whole: bool = False

    @property
    def beginning(self) -> StreamPosition:
        """Return the position with which the stream began."""
        whole = self.start_whole
        return replace(self, snapshot=self.start, row_id=0, whole=whole)

    def at(self, snapshot: int, row_id: int = 0) -> StreamPosition:
        """Return a position in the changes of a snapshot."""
        return replace(self, snapshot=snapshot, row_id=row_id, whole=False)


POSITION: Stored[StreamPosition] = Stored("offset", record(StreamPosition))


@dataclass(frozen=True, slots=True)
class StreamPart:
    """Rows that the snapshots ``first`` to ``last`` added, without ids below ``low`` in the first.

    Of the last one, only ids below ``high`` count, if it is not None. ``whole``: all rows that the
    table holds in ``first``, which is also ``last``.
    """

    first: int
    last: int
    low: int = 0
    high: int | None = None
    whole: bool = False


def parts_between(start: StreamPosition, end: StreamPosition) -> list[StreamPart]:
    """Return what lies between two positions of a stream, at most two parts."""
    found: list[StreamPart] = []
    first, low = start.snapshot, start.row_id
    if start.whole:
        high = end.row_id if end.whole else None
        found.append(StreamPart(first, first, low, high, whole=True))
        if end.whole:
            return found
        first, low = first + 1, 0
    last = end.snapshot if end.row_id else end.snapshot - 1
    if first <= last:
        found.append(StreamPart(first, last, low, end.row_id or None))
    return found


def cut(
    files: Iterable[DataFile], start: StreamPosition, limit: int | None
) -> StreamPosition | None:
    """Return the position after the next ``limit`` files of new rows, None after all of them."""
    if limit is None:
        return None
    first = (start.snapshot, start.row_id)
    begins = sorted(
        (start.snapshot if start.whole else f.begin_snapshot, f.row_id_start or 0) for f in files
    )
    ahead = [begin for begin in begins if begin >= first]
    later = [begin for begin in ahead[limit:] if begin > first]
    if not later:
        return None
    snapshot, row_id = later[0]
    return replace(start, snapshot=snapshot, row_id=row_id)


def may_hold(file: DataFile, part: StreamPart) -> bool:
    """Return whether a file may have rows of a part, by their ids."""
    assert file.layout is not None
    start, count = file.row_id_start, file.record_count
    if start is None or file.layout.has_field(ROW_ID_FIELD):
        return True
    if part.high is not None and start >= part.high:
        return not (part.whole or file.begin_snapshot == part.last)
    if count is not None and start + count <= part.low:
        return not (part.whole or file.begin_snapshot == part.first)
    return True


def with_deletes(snapshots: Iterable[tuple[int, Sequence[Entry]]], table: TableId) -> set[int]:
    """Return the snapshots that deleted or changed rows of a table, or may have."""
    found = set()
    for number, entries in snapshots:
        verbs = {e.verb for e in entries if e.id == table}
        flushed = Verb.INLINE_FLUSH in verbs
        gone = verbs & DELETES - ({Verb.DELETED_FROM_TABLE} if flushed else set())
        if gone or not entries:
            found.add(number)
    return found


def with_both(snapshots: Mapping[int, Sequence[Entry]], table: TableId) -> set[int]:
    """Return the snapshots that deleted rows of a table and added others."""
    gone = with_deletes(snapshots.items(), table)
    return {
        number
        for number in gone
        if not snapshots[number]
        or any(e.verb in INSERTS for e in snapshots[number] if e.id == table)
    }


def shape_of(table: TableVersion) -> str:
    """Return a text that two versions of a table have in common if their rows look the same."""
    fields = [([n.id for n in f.walk()], f.name, str(f.type)) for f in table.columns]
    return text_digest(f"{table.uuid} {fields}")


def misfit(then: TableVersion, now: TableVersion) -> Field | None:
    """Return the first column of ``then`` that has another type in ``now``, None if none has."""
    for field in now.columns:
        known = then.columns.by_id(field.id)
        if known is not None and known.type != field.type:
            return field
    return None


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
