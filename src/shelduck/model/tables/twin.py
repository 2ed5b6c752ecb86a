"""Twins, tables that begin with the rows of another one, and branches, schemas of twins.

A twin has the files, column ids and row ids of its source. Both go on from there, so ids that they
give from then on are apart: each twin has a *block* of column ids and a block of row ids. Blocks
are numbered among all twins of one root, and no number is given twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shelduck.errors import Unsupported
from shelduck.model.tables.schema import SchemaId, SnapshotId, TableId
from shelduck.model.tables.table_version import SchemaInfo, TableVersion
from shelduck.model.text.names import schema_text
from shelduck.model.text.stored import LEFT_OUT, Stored, record

TWIN = "shelduck.hint.twin"
"""The tag of a twin."""
BRANCH = "shelduck.branch"
"""The tag of a schema that is a branch."""
# Parquet's field ids have 31 bits, and the catalog's row ids 63.
COLUMNS_OF_BLOCK = 1 << 16
ROWS_OF_BLOCK = 1 << 40
LAST_BLOCK = (1 << 15) - 1


@dataclass(frozen=True, slots=True)
class Twin:
    """What a twin comes from: ``source`` as of the snapshot ``base``.

    A merge compares both with the twin as it was at the snapshot ``since``, at first the one that
    made it. ``root`` is the table from which all of its family come. ``apart``: at the base, the
    source had rows that the twin does not have. ``counter`` is the UUID of the table whose identity
    numbers it takes, empty for its own.
    """

    root: TableId
    source: TableId
    base: SnapshotId
    since: SnapshotId
    block: int
    apart: bool = False
    counter: str = field(default="", metadata=LEFT_OUT)
    is_tagged: bool = field(default=False, metadata=LEFT_OUT)
    """Whether it is a table of a tag: no commit of Shelduck changes it."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A schema that is a branch of another one, ``source``, since the snapshot ``base``.

    ``tables`` are the ids of the tables of which it began with a twin. ``is_tag``: nobody changes
    them. ``until`` is the time, in ISO 8601, after which an expiry drops it, empty for never.
    A merge compares its views and macros with those that it had at the snapshot ``since``, the one
    that made it, or its last merge; and those of its source with the ones at the base.
    """

    source: SchemaId
    base: SnapshotId
    tables: tuple[TableId, ...] = ()
    is_tag: bool = field(default=False, metadata=LEFT_OUT)
    until: str = field(default="", metadata=LEFT_OUT)
    since: SnapshotId = field(default=SnapshotId(0), metadata=LEFT_OUT)


STORED_TWIN: Stored[Twin] = Stored("twin", record(Twin))
STORED_BRANCH: Stored[Branch] = Stored("branch", record(Branch))


def twin_of(properties: Mapping[str, str], table: str) -> Twin | None:
    """Return the origin of a twin, None for another table; CorruptLake for a broken tag."""
    text = properties.get(TWIN)
    return None if text is None else STORED_TWIN.read(text, table)


def branched_from(table: TableVersion) -> Twin | None:
    """Return what a table of a branch comes from, None for a clone, which merges with nothing.

    A clone counts its identity numbers alone.
    """
    twin = twin_of(table.properties, table.full_name)
    return twin if twin is not None and twin.counter else None


def refuse_tagged(table: TableVersion) -> None:
    """Raise Unsupported for a change of a table of a tag."""
    twin = twin_of(table.properties, table.full_name)
    if twin is not None and twin.is_tagged:
        raise Unsupported(
            f"{table.full_name} is in a tag, which nobody changes; make a branch of it with CREATE"
            f" BRANCH b FROM {schema_text(table.schema.name)}"
        )


def counter_of(table: TableVersion) -> str:
    """Return the UUID of the table whose identity numbers a table takes: its own, or another."""
    twin = twin_of(table.properties, table.full_name)
    return table.uuid if twin is None else twin.counter or table.uuid


def read_twin(text: str) -> Twin:
    """Return what a stored text says."""
    return STORED_TWIN.read(text, "a table")


@dataclass(frozen=True, slots=True)
class ShareFiles:
    """Give a new table the rows of ``source``: the same files, under ids of its own.

    ``table`` is the provisional id of a CreateTable with the directory of ``source``, whose twin it
    is. With ``is_source``, ``source`` becomes a twin of the new table: it was made on a branch.
    ``counter`` and ``is_tagged`` are as in `Twin`. With ``undrops``, it is the source that comes
    back: twins of that go on with it, if nothing happened to it after they began, and it goes on
    with its own source in the same way, if that is there.
    """

    table: TableId
    source: TableVersion
    is_source: bool = False
    undrops: bool = False
    counter: str = ""
    is_tagged: bool = False


@dataclass(frozen=True, slots=True)
class MarkBranch:
    """Say that a schema is a branch of ``source`` with twins of some ``tables``.

    One that this commit makes is so since ``base``, and one that exists since the commit, together
    with the tables that were made on it; if it ``stays``, since ``base`` as before. Tables come to
    those that it had, but for those ``gone``. ``is_tag`` and ``until`` are as in `Branch`, and so
    is ``since``, by default the commit.
    """

    schema: SchemaInfo
    source: SchemaInfo
    base: SnapshotId
    tables: tuple[TableId, ...]
    gone: tuple[TableId, ...] = ()
    stays: bool = False
    is_tag: bool = False
    until: str = ""
    since: SnapshotId | None = None


@dataclass(frozen=True, slots=True)
class TakeFiles:
    """Give a table what its ``twin`` did to rows; the catalog names files by id. No byte is copied.

    ``known`` is what the twin comes from so far.
    ``ended`` data files of the table end, with their delete files, and it gets the twin's ``taken``
    ones with their delete files, the ids of which are ``deletes``. ``replaced`` are files that
    stay, and get another delete file of the twin, None for none. ``rows`` and ``size`` are the rows
    and bytes of the taken. ``is_whole``: afterwards the table has exactly the files of the twin;
    ``apart``: it also has other rows.
    """

    table: TableVersion
    twin: TableVersion
    known: Twin
    ended: tuple[int, ...] = ()
    taken: tuple[int, ...] = ()
    deletes: tuple[int, ...] = ()
    replaced: tuple[tuple[int, int | None], ...] = ()
    is_whole: bool = False
    apart: bool = False
    rows: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class FollowSource:
    """Say that a twin has got what happened to its source: ``known`` is where it comes from now."""

    table: TableVersion
    known: Twin
