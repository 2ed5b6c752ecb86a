r"""The messages between Python and the bridge's Java, as rows of text.

Every row ends with a newline, tabs separate fields, a backslash escapes, and a lone ``\N`` is null.
``java/TextRows.java`` has the same rules.
"""

from __future__ import annotations

import base64
import re
import sys
import uuid
from array import array
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shelduck.engine.named_errors import told_to_java

NULL = "\\N"
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_SPECIAL = re.compile(r"[\\\t\n\r]")
_ESCAPED = re.compile(r"\\(.)")
_PLAIN = {"t": "\t", "n": "\n", "r": "\r"}

Constant = int | str | bytes | bool | None
OPTION = "shelduck.reports"
"""An option of a write: the name under which Java keeps its reports."""


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


def file_rows(entries: Iterable[FileEntry], *, with_deletes: bool) -> str:
    """Return one row per file for ``LakeFileIndex``: path, size, numbers, constants, deletes."""
    rows = []
    for entry in entries:
        dead = None if entry.deletes is None else entry.deletes.count
        numbers = (entry.rows, dead, entry.columns)
        fields = [_text(entry.path), str(entry.size), *map(_text, numbers)]
        fields += map(_text, entry.constants)
        if with_deletes:
            fields += _delete_fields(entry.deletes)
        elif entry.deletes is not None:
            # Without this error, the scan would show rows that are deleted.
            message = f"{entry.path} has deletes, but the relation was made without"
            raise ValueError(message)
        rows.append("\t".join(fields))
    rows.append("")
    return "\n".join(rows)


def id_rows(ids: Mapping[tuple[str, ...], int]) -> str:
    """Return one row per field for ``FieldIds``: its id, then the names on the path to it."""
    return "".join(
        "\t".join((str(field_id), *map(_text, path))) + "\n" for path, field_id in ids.items()
    )


def texts(rows: str) -> list[str]:
    """Return the texts that Java sent, one in each row."""
    return [row for (row,) in field_rows(rows)]


def field_rows(rows: str) -> list[list[str]]:
    """Return the rows that Java sent, split into fields; none of them is null."""
    return [
        [_ESCAPED.sub(lambda found: _PLAIN.get(found[1], found[1]), f) for f in row.split("\t")]
        for row in rows.split("\n")[:-1]
    ]


def rows_of(fields: Iterable[Iterable[str | None]]) -> str:
    """Return rows of texts for Java."""
    return "".join("\t".join(map(_text, row)) + "\n" for row in fields)


def success(rows: str) -> str:
    """Return the answer of a successful listing."""
    return "ok\n" + rows


def failure(error: Exception) -> str:
    """Return the answer of a listing that ended in ``error``; Java throws its message."""
    return f"failed\n{_text(told_to_java(error))}\n"


def _text(value: Constant) -> str:
    match value:
        case None:
            return NULL
        case str():
            return value.translate(_ESCAPES) if _SPECIAL.search(value) else value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()


def _delete_fields(deletes: Deletes | None) -> tuple[str, str, str]:
    if deletes is None:
        return NULL, NULL, NULL
    positions: bytes | None = None
    if len(deletes.positions):
        words = array("q", deletes.positions)
        if sys.byteorder == "big":
            words.byteswap()
        positions = words.tobytes()
    return _text(deletes.file), _text(deletes.up_to_snapshot), _text(positions)


@dataclass(frozen=True, slots=True)
class Report:
    """A file of a task that succeeded.

    If the file is in its last place, ``working`` are the directories in which Spark would have put
    it. ``is_repeated``: an earlier attempt of the task may have left files. ``footer`` is None if
    this Spark does not show it.
    """

    working: str
    is_repeated: bool
    size: int
    footer: bytes | None


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of one write, which arrive while its tasks end."""

    plans: Any
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    def taken(self) -> dict[str, Report]:
        """Return the reports by the names of their files, and forget them.

        A file in its last place has a path below the directory of the table for a name.
        """
        rows = field_rows(str(self.plans.reports(self.name)))
        return {name: _report(*told) for name, *told in rows}


def _report(working: str, again: str, size: str, footer: str) -> Report:
    return Report(working, bool(again), int(size), b64decode(footer) if footer else None)
