"""What an engine is asked for: columns by names and texts, and relations over files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

Constant = int | str | bytes | bool | None


class Sql(str):
    """An expression as SQL that Shelduck has made: no text of a user, whose quotes may be open.

    ``what`` names it in Spark's errors, see `Engine.select_bound`.
    """

    __slots__ = ("what",)
    what: str

    def __new__(cls, text: object, what: str = "sql") -> Self:
        """Return a text with its name."""
        made = super().__new__(cls, text)
        made.what = what
        return made


class Wildcard(str):
    """``*`` or ``alias.*``, which stands for many columns; a column may have such a name itself."""

    __slots__ = ()
    what = "star"


class Named(NamedTuple):
    """A column to select under a name.

    ``source`` is an expression, `Sql`, or the name of a column as in `F.col`. ``kind`` is the type
    of a cast; None does not cast. If ``metadata`` is None, the source's metadata stays. If the
    source is a `Wildcard`, columns keep their names; see `ALL`.
    """

    name: str
    source: str | Column
    kind: T.DataType | None = None
    metadata: Mapping[str, Any] | None = None

    @property
    def column(self) -> Column:
        """Return the column, built one call at a time."""
        found = column_of(self.source)
        if isinstance(self.source, Wildcard):
            return found
        found = found if self.kind is None else found.cast(self.kind)
        if self.metadata is None:
            return found.alias(self.name)
        return found.alias(self.name, metadata=dict(self.metadata))


ALL = Named("", Wildcard("*"))
"""All columns."""


def column_of(source: str | Column) -> Column:
    """Return the source of a `Named` column as a column."""
    if isinstance(source, Sql):
        return F.expr(source)
    return F.col(source) if isinstance(source, str) else source


@dataclass(frozen=True, slots=True)
class Deletes:
    """The deleted rows of one data file: those of ``file`` and those at ``positions``.

    ``file`` is a Parquet delete file, or a ``.puffin`` file with deletion vectors. If it says in
    which snapshot each row was deleted, rows deleted after ``up_to_snapshot`` stay; with None, all
    of it counts. ``positions`` count from 0 in the data file, in any order. ``count`` is the number
    of positions that ``file`` must have; None checks no number.
    """

    file: str | None = None
    up_to_snapshot: int | None = None
    positions: Sequence[int] = ()
    count: int | None = None


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One data file of a scan, its size in bytes and its value for each constant of the relation.

    The path is used as it is written: no character is decoded and no pattern is expanded. A path
    without a scheme belongs to Spark's default file system. The size only decides how the file is
    split into tasks. A query that reads the whole file fails if it does not have ``rows`` rows,
    unless ``rows`` is None. It also fails if the names of the file's columns are not those that the
    relation has under the number ``columns``, unless that is None.
    """

    path: str
    size: int
    constants: tuple[Constant, ...] = ()
    deletes: Deletes | None = None
    rows: int | None = None
    columns: int | None = None


Lister = Callable[[list[str]], Iterable[FileEntry]]
Measurer = Callable[[list[list[str]]], list[str | None] | None]
Statistics = Callable[[], list[list[str | None]]]


@dataclass(frozen=True, slots=True)
class FileRelation:
    """Files that Spark reads as columns of ``read_schema``, followed by ``constants`` of each file.

    Spark calls the lister when it plans a query, from any thread, with the filters that it pushes
    down as SQL texts: column names are bare, struct fields follow their column after a dot,
    instants are in UTC, and all filters must be true. The lister returns the files that may have
    matching rows. Its error fails the query. Constants are integers, dates (days since 1970),
    strings, binary or boolean; filters on them are applied here too. ``with_deletes`` drops the
    rows that the entries name as deleted; without it no entry may have any. ``wants_deleted`` reads
    only the deleted rows. Messages call the table ``table``. Footers of the columns ``untrusted``
    skip no row group. Entries refer to ``columns``, names in files, by number. ``size_in_bytes`` is
    the planner's estimate; with ``files``, it is their size, and Spark shows how many a query
    leaves out. Spark gets what it needs to reach ``places``; ``explain`` shows ``root``. With a
    column's id as ``dictionary``, rows are what `shelduck.read.scan.column_values` says.
    ``chooser`` is what `ClassicEngine.add_rule` calls. ``measurer`` gets rows of COUNT, MIN or MAX
    and a column, or COUNT alone; it answers for all files or None. ``statistics`` returns what
    Spark's cost-based optimizer wants to know, as rows of ``LakeFileIndex.statistics``.
    With ``encrypted``, files may be `SealedPath`.
    """

    read_schema: T.StructType
    constants: T.StructType
    lister: Lister
    with_deletes: bool = False
    size_in_bytes: int = 1
    files: int | None = None
    places: Iterable[str] = ()
    root: str | None = None
    table: str | None = None
    untrusted: Sequence[str] = ()
    columns: Sequence[Sequence[str]] = ()
    wants_deleted: bool = False
    dictionary: int | None = None
    chooser: object | None = None
    measurer: Measurer | None = None
    statistics: Statistics | None = None
    encrypted: bool = False
