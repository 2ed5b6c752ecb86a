r"""The messages between Python and the bridge's Java, as rows of text: of files read and written.

Every row ends with a newline, tabs separate fields, a backslash escapes, and a lone ``\N`` is null.
``java/python/TextRows.java`` has the same rules.
"""

from __future__ import annotations

import base64
import re
import sys
import uuid
from array import array
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pyspark.sql import DataFrameWriter, SparkSession

from shelduck.engine.bridge.classes import class_name
from shelduck.engine.bridge.jvm import current_thread, java_session
from shelduck.engine.bridge.relation import Constant, Deletes, FileEntry, FileRelation
from shelduck.engine.named_errors import told_to_java
from shelduck.engine.stores.homes import listed_path, spark_options, spark_path
from shelduck.errors import Unsupported
from shelduck.model.files.place import key_of, same_file

NULL = "\\N"
_OK = "ok\n"
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_SPECIAL = re.compile(r"[\\\t\n\r]")
_ESCAPED = re.compile(r"\\(.)")
_PLAIN = {"t": "\t", "n": "\n", "r": "\r"}

# The first row of a request for measures; a filter is never null.
_MEASURES = "\\N\n"
_STATISTICS = "\\N\tstatistics\n"
# An option of a write: the name under which Java keeps its reports.
_REPORTS = "shelduck.reports"
_PARTITION_NAMES = "shelduck.partition.names"
CHANGES = {"shelduck.changes": "true"}
"""The option of a write of changed rows; see `shelduck.write.parquet.kept`."""
_WANTS_DELETED = "shelduck.wants.deleted"
_TABLE = "shelduck.table"
_COLUMNS = "shelduck.columns"
_UNTRUSTED = "shelduck.untrusted"
_DICTIONARY = "shelduck.dictionary"
ENCRYPTED = {"shelduck.encrypted": "true"}
"""The option of a scan or a write of encrypted files."""


def file_rows(entries: Iterable[FileEntry], *, with_deletes: bool, encrypted: bool = False) -> str:
    """Return one row per file for ``LakeFileIndex``: path, size, numbers, constants, deletes, keys.

    Only rows of ``encrypted`` files have keys: that of the file, and that of its delete file.
    """
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
        if encrypted:
            deleted = None if entry.deletes is None else entry.deletes.file
            fields += [NULL if p is None else _text(key_of(p)) for p in (entry.path, deleted)]
        rows.append("\t".join(fields))
    rows.append("")
    return "\n".join(rows)


def relation_options(asked: FileRelation) -> dict[str, str]:
    """Return a relation's own options for the reader."""
    found = {} if asked.table is None else {_TABLE: asked.table}
    if asked.columns:
        found[_COLUMNS] = rows_of(asked.columns)
    if asked.untrusted:
        found[_UNTRUSTED] = rows_of([name] for name in asked.untrusted)
    if asked.dictionary is not None:
        found[_DICTIONARY] = str(asked.dictionary)
    if asked.encrypted:
        found |= ENCRYPTED
    return found | ({_WANTS_DELETED: "true"} if asked.wants_deleted else {})


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


class Listing:
    """A lister as the Java function that ``LakeFileIndex`` calls.

    py4j keeps this object in its pool of Python proxies as long as its Java proxy is alive. Only
    the index refers to the Java proxy, and only the plans that read it refer to the index. When the
    last of these plans is collected, the proxy's finalizer notifies py4j, which releases this
    object and its lister.
    """

    def __init__(self, asked: FileRelation) -> None:
        self._lister = asked.lister
        self._measurer = asked.measurer
        self._statistics = asked.statistics
        self._constants = len(asked.constants)
        self._how = {"with_deletes": asked.with_deletes, "encrypted": asked.encrypted}

    def apply(self, filters: str) -> str:
        """Return the files for filters, or what else Java asks; no error may leave it."""
        try:
            if filters.startswith(_MEASURES):
                measures = field_rows(filters.removeprefix(_MEASURES))
                found = None if self._measurer is None else self._measurer(measures)
                return _OK + ("" if found is None else rows_of([found]))
            if filters == _STATISTICS:
                return _OK + rows_of([] if self._statistics is None else self._statistics())
            entries = self._checked(self._lister(texts(filters)))
            return _OK + file_rows(entries, **self._how)
        except Exception as error:  # noqa: BLE001 - it goes on in Java, which fails the query
            return f"failed\n{_text(told_to_java(error))}\n"

    def _checked(self, entries: Iterable[FileEntry]) -> Iterable[FileEntry]:
        for entry in entries:
            if len(entry.constants) != self._constants:
                message = f"{entry.path} has {len(entry.constants)} constants"
                raise ValueError(f"{message}, the relation has {self._constants}")
            yield _for_spark(entry)

    class Java:
        """Declares to py4j which Java interfaces this object implements."""

        implements: ClassVar[list[str]] = ["java.util.function.Function"]


def _for_spark(entry: FileEntry) -> FileEntry:
    """Return a file under the paths that Spark has for it and its deletes."""
    path, deletes = listed_path(entry.path), entry.deletes
    if deletes is not None and deletes.file is not None:
        file = listed_path(deletes.file)
        if file != deletes.file:
            deletes = replace(deletes, file=same_file(deletes.file, file))
    if path == entry.path and deletes is entry.deletes:
        return entry
    return replace(entry, path=same_file(entry.path, path), deletes=deletes)


@dataclass(frozen=True, slots=True)
class Report:
    """A file of a task that succeeded.

    If the file is in its last place, ``working`` are the directories in which Spark would have put
    it. ``is_repeated``: an earlier attempt of the task may have left files. ``footer`` is None if
    this Spark does not show it. ``key`` is that of an encrypted file, in base64.
    """

    working: str
    is_repeated: bool
    size: int
    footer: bytes | None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class FileWriter:
    """One write by Shelduck's own writer; its reports arrive while tasks end, and Java keeps them.

    Take them even if it fails.
    """

    spark: SparkSession
    loader: Any
    plans: Any
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def write_format(self) -> str:
        """Return the format for ``df.write.format(...).options(**writer.id_options(ids))``.

        It writes timestamps in microseconds, dates in the Gregorian calendar and no ``_SUCCESS``
        file, whatever the session's settings are. Call it in the thread that writes.
        """
        # Spark looks formats up in the class loader of the thread.
        current_thread(self.spark).setContextClassLoader(self.loader)
        return class_name("LakeParquet")

    def id_options(self, ids: Mapping[tuple[str, ...], int]) -> dict[str, str]:
        """Return the option with the id of each field, by its path of names in the Parquet schema.

        The list ``tags`` has the paths ``("tags",)`` and ``("tags", "list", "element")``, the map
        ``m`` has ``("m",)``, ``("m", "key_value", "key")`` and ``("m", "key_value", "value")``. The
        write fails if a field is left without an id or an id without a field, and for a value of
        `shelduck.model.tables.held`, which it tells by the id of its field. Raises Unsupported
        for a name in whose place Spark would put a setting.
        """
        # One row per field for ``FieldIds``: its id, then the names on the path to it.
        option = rows_of([str(number), *path] for path, number in ids.items())
        check_settings(self.spark, option)
        return {"shelduck.field.ids": option}

    def copied_options(self, sources: Iterable[Sequence[str]]) -> dict[str, str]:
        """Return the option of a write of new columns beside copied ones of older files.

        For each task, ``sources`` have the path of an older file, its id, and the names of its
        top-level columns to copy. Rows have the new columns, the id and the position in the file.
        """
        return {"shelduck.copied": rows_of([spark_path(path), *names] for path, *names in sources)}

    def moved_options(self, ids: Iterable[int]) -> dict[str, str]:
        """Return the option of a write with columns whose values are not checked again."""
        return {"shelduck.moved.ids": rows_of([str(number)] for number in ids)}

    def save(
        self,
        writer: DataFrameWriter,
        place: str,
        *,
        keys: Sequence[str] | None = None,
        encrypted: bool = False,
    ) -> None:
        """Write by `write_format`, once, into the directory of a write, ``place``.

        With ``keys``, the names of the partition keys as paths have them, tasks write into the
        directories that DuckDB would choose, beside ``place``, under names that begin with that of
        the write. A key with an empty name has no directory. With ``encrypted``, each file gets a
        key of its own. Only files that `taken` tells are results: others may come from tasks that
        failed.
        """
        options = {
            _REPORTS: self.name,
            **spark_options([place]),
            **(ENCRYPTED if encrypted else {}),
        }
        if keys is not None:
            options[_PARTITION_NAMES] = rows_of([keys])
        writer.options(**options).save(spark_path(place))

    def taken(self) -> dict[str, Report]:
        """Return the reports by the names of their files, and forget them.

        A file in its last place has a path below the directory of the table for a name.
        """
        rows = field_rows(str(self.plans.reports(self.name)))
        return {name: _report(*told) for name, *told in rows}


def _report(working: str, again: str, size: str, footer: str, key: str) -> Report:
    known = b64decode(footer) if footer else None
    return Report(working, bool(again), int(size), known, key or None)


def check_settings(spark: SparkSession, schema: str) -> None:
    """Refuse names that Spark would read as others: schemas pass through a Hadoop configuration."""
    if "${" not in schema:
        return
    hadoop = java_session(spark).sessionState().newHadoopConf()
    hadoop.set("shelduck.schema", schema)
    if hadoop.get("shelduck.schema") != schema:
        raise Unsupported(
            "a name or default contains ${...}, in whose place Spark would put a setting; rename"
            " the column, or change the default"
        )
