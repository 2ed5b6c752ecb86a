"""Options of readers and writers of a lake's table: each is honoured, or refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.evolution import Evolution, evolution_of
from shelduck.model.text.intervals import whole_number
from shelduck.read.scan.expect import expected_members

FOREIGN = frozenset(("delta", "iceberg"))
PROVIDERS = frozenset(("shelduck", "ducklake", "parquet")) | FOREIGN
"""The formats that a statement may name: each means a table of the lake."""
MERGE_SCHEMA = "mergeSchema"
EVOLVE = "evolve"
RESCUE = "rescuedDataColumn"
EXPECT = "expect"
EVOLUTION = (MERGE_SCHEMA, EVOLVE, RESCUE, EXPECT)
OVERWRITE_SCHEMA = "overwriteSchema"
OVERWRITE_MODE = "partitionOverwriteMode"
REPLACE_WHERE = "replaceWhere"
ON_SCHEMA_CHANGE = "onSchemaChange"

_INSTEAD = {
    "compression": "set it for a table with CALL set_option('parquet_compression', …)",
    "compressioncodec": "set it for a table with CALL set_option('parquet_compression', …)",
    "maxrecordsperfile": "set the size of files with CALL set_option('target_file_size', …)",
    "target-file-size-bytes": "set it for a table with CALL set_option('target_file_size', …)",
    "path": "the files of a table are below the lake's data path",
    "usermetadata": "use lake.transaction(message=…) to keep a message with the commit",
    "txnappid": "use lake.transaction(once=(series, number)) to write exactly once",
    "txnversion": "use lake.transaction(once=(series, number)) to write exactly once",
    "replacewhere": "use df.writeTo(name).overwrite(condition), or INSERT INTO … REPLACE WHERE",
    "mergeschema": "use df.writeTo(name).append() or lake.table(name).append",
    "evolve": "use df.writeTo(name).append() or lake.table(name).append",
    "rescueddatacolumn": "use df.writeTo(name).append() or lake.table(name).append",
    "overwriteschema": "use it with df.write.mode('overwrite').saveAsTable(name)",
    "partitionoverwritemode": "use df.writeTo(name).overwritePartitions()",
    "start-snapshot-id": 'use .option("readChangeFeed", "true").option("startingVersion", n)',
    "end-snapshot-id": 'use .option("readChangeFeed", "true").option("endingVersion", n)',
    "branch": "write the name of the table as t.branch_b",
    "tag": "write the name of the table as t.tag_x",
}

_VERSIONS = ("versionAsOf", "snapshot-id")
_BRANCHES = ("branch", "tag")
_TIMES = ("timestampAsOf", "as-of-timestamp")
_FEED = ("readChangeFeed", "readChangeData")
_STARTS = ("startingVersion", "startingTimestamp")
_FROM = "stream-from-timestamp"
_SKIPS = ("skipChangeCommits", "streaming-skip-overwrite-snapshots")
_IGNORES = ("ignoreDeletes", "streaming-skip-delete-snapshots")
_FILES = ("maxFilesPerTrigger", "streaming-max-files-per-micro-batch")
_ENDS = ("endingVersion", "endingTimestamp")


def _wrong(told: str) -> InvalidRequest:
    return InvalidRequest(told, about="option")


def refuse_others(given: Mapping[str, str], known: tuple[str, ...], what: str) -> None:
    """Raise InvalidRequest for an option that is not among the known ones, and name it."""
    for name in without_options(given, known):
        instead = _INSTEAD.get(name.lower())
        listed = f"known options: {', '.join(known)}" if known else "there are no options"
        raise _wrong(
            f"{what} does not support the option {name!r}; {instead or f'leave it out ({listed})'}"
        )


def refuse_format(provider: str | None, table: object) -> None:
    """Raise Unsupported for a format that tables of a lake do not have; None if none is given."""
    if provider is not None and provider.lower() not in PROVIDERS:
        raise Unsupported(
            f"table {table} cannot have the format {provider}: its files are Parquet; leave out"
            " USING or the writer's format"
        )


def is_true(value: object, name: str) -> bool:
    """Return the value of an option that is true or false."""
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise _wrong(f"option {name} must be true or false, not {value!r}")
    return text == "true"


def option_value(given: Mapping[str, str], key: str) -> str | None:
    """Return the value of an option, whose name has no case; None if it is not given."""
    return next((value for name, value in given.items() if name.lower() == key.lower()), None)


def without_options(given: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return all options but those of these names, which have no case."""
    lowered = {name.lower() for name in names}
    return {name: value for name, value in given.items() if name.lower() not in lowered}


def wants_partitions(given: Mapping[str, str]) -> bool:
    """Return whether the options of a writer have it replace only the partitions of its rows."""
    mode = option_value(given, OVERWRITE_MODE)
    return mode is not None and mode.upper() == "DYNAMIC"


def evolution_asked(given: Mapping[str, str]) -> Evolution:
    """Return what the options of a writer let its rows change in the columns of the table.

    ``mergeSchema`` is Spark's option, ``rescuedDataColumn`` Databricks', and ``evolve`` has the
    words of `Table.append`, with commas between several. ``expect`` is its text there.
    """
    words, merged = option_value(given, EVOLVE), option_value(given, MERGE_SCHEMA)
    merges = merged is not None and is_true(merged, MERGE_SCHEMA)
    evolve = None if words is None else words.split(",")
    expects = expected_members(option_value(given, EXPECT))
    return evolution_of(evolve, option_value(given, RESCUE), merges=merges, expects=expects)


def refuse_made(given: Mapping[str, str], what: str) -> None:
    """Raise InvalidRequest for an option of a table that is created or replaced.

    The table gets all columns of its rows anyway.
    """
    refuse_written(without_options(given, (MERGE_SCHEMA, EVOLVE, OVERWRITE_SCHEMA)), what)


def refuse_written(given: Mapping[str, str], what: str) -> None:
    """Raise InvalidRequest for an option that a plain write of rows does not support.

    An option that asks for what happens anyway is accepted.
    """
    harmless = {
        MERGE_SCHEMA.lower(): "false",
        EVOLVE: "none",
        OVERWRITE_SCHEMA.lower(): "false",
        OVERWRITE_MODE.lower(): "static",
    }
    asked = {
        name: value
        for name, value in given.items()
        if harmless.get(name.lower()) != value.strip().lower()
    }
    refuse_others(asked, (), what)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The wish of a reader's options: a snapshot, a branch, a change feed, or the current rows."""

    version: int | str | None = None
    timestamp: str | None = None
    changes: tuple[int | str, int | str | None] | None = None


SPARKS_CHANGES = "sparkChanges"
"""The option with which the bridge asks for changes in the form of Spark's CHANGES."""
_INCLUDES = ("startingBoundInclusive", "endingBoundInclusive")
_MODE, _UPDATES = "deduplicationMode", "computeUpdates"
_RANGES = (*_STARTS, *_ENDS, *_INCLUDES)
_NET = "netChanges"
_MODES = ("none", "dropCarryovers", _NET)


@dataclass(frozen=True, slots=True)
class ChangesWanted:
    """The wish of Spark's CHANGES: the changes from a snapshot or time to another, None the newest.

    ``net`` asks for what the range did to a row in all. ``updates`` asks for the two images of an
    updated row; without it, the row is deleted and inserted.
    """

    start: int | str | datetime
    end: int | str | datetime | None = None
    excludes_start: bool = False
    excludes_end: bool = False
    net: bool = False
    updates: bool = False


def changes_wanted(wanted: ChangesWanted, given: Mapping[str, str], what: str) -> ChangesWanted:
    """Return a range of changes with what the options behind CHANGES ask for, in Spark's words.

    InvalidRequest for others. A feed of a lake has no rows that were only copied, so the modes
    ``none`` and ``dropCarryovers`` are the same.
    """
    refuse_others(given, (_MODE, _UPDATES), what)
    mode = (option_value(given, _MODE) or _MODES[0]).strip()
    if mode.lower() not in [known.lower() for known in _MODES]:
        raise _wrong(f"option {_MODE} must be one of {', '.join(_MODES)}, not {mode!r}")
    updates = is_true(option_value(given, _UPDATES) or "false", _UPDATES)
    return replace(wanted, net=mode.lower() == _NET.lower(), updates=updates)


def changes_asked(given: Mapping[str, str], what: str) -> ChangesWanted:
    """Return what the options of ``spark.read.changes(…)`` ask for; InvalidRequest for others."""
    start, end = _one(given, _STARTS), _one(given, _ENDS)
    if start is None:
        raise _wrong(f"{what} needs {' or '.join(_STARTS)}")
    excludes = [not is_true(option_value(given, name) or "true", name) for name in _INCLUDES]
    wanted = ChangesWanted(_end(*start), None if end is None else _end(*end), *excludes)
    return changes_wanted(wanted, without_options(given, _RANGES), what)


def _streamed(given: Mapping[str, str], what: str) -> tuple[dict[str, str], ChangesWanted]:
    """Return the options of ``spark.readStream.changes(…)`` as those of a stream of all changes."""
    found = without_options(given, (*_RANGES, _MODE, _UPDATES)) | {_FEED[0]: "true"}
    asked = without_options(given, found)
    starts = any(option_value(asked, name) is not None for name in _STARTS)
    wanted = changes_asked(asked if starts else asked | {_STARTS[0]: "0"}, what)
    if wanted.net or wanted.end is not None:
        raise _wrong(
            f"{what} passes on every change, and has no end; leave out"
            f" {f'{_MODE} {_NET}' if wanted.net else ' and '.join(_ENDS)}, or use"
            " spark.read.changes"
        )
    if starts and isinstance(wanted.start, int):
        found[_STARTS[0]] = str(wanted.start + wanted.excludes_start)
    elif starts:
        start = datetime.fromisoformat(str(wanted.start))
        found[_STARTS[1]] = (start + timedelta(microseconds=wanted.excludes_start)).isoformat()
    return found, wanted


def read_options(given: Mapping[str, str], table: str) -> ReadOptions:
    """Return what the options of a reader ask for; InvalidRequest for an unknown request.

    Delta's and Iceberg's words are known for snapshots, Delta's for the change feed.
    """
    what = f"a reader of {table}"
    refuse_others(given, (*_VERSIONS, *_BRANCHES, *_TIMES, *_FEED, *_STARTS, *_ENDS), what)
    version, time = _one(given, (*_VERSIONS, *_BRANCHES)), _one(given, _TIMES)
    start, end = _one(given, _STARTS), _one(given, _ENDS)
    feed = _one(given, _FEED)
    if feed is None or not is_true(feed[1], feed[0]):
        for found in (start, end):
            if found is not None:
                raise _wrong(
                    f"{what}: {found[0]} applies only to a change feed; add"
                    ' .option("readChangeFeed", "true")'
                )
        if version is not None and time is not None:
            raise _wrong(f"{what}: use either {version[0]} or {time[0]}, not both")
        return ReadOptions(
            None if version is None else _version(*version),
            None if time is None else _moment(*time),
        )
    for found in (version, time):
        if found is not None:
            raise _wrong(
                f"{what}: a change feed is read from startingVersion to endingVersion; leave out"
                f" {found[0]}"
            )
    if start is None:
        raise _wrong(f"{what}: a change feed needs startingVersion or startingTimestamp")
    return ReadOptions(changes=(_end(*start), None if end is None else _end(*end)))


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The wish of a streaming reader's options.

    The stream delivers added rows, or all changes if ``changes``. It begins with the rows of the
    table and goes on with later snapshots; with ``version`` or ``timestamp``, it begins with the
    changes of that snapshot, with ``from_newest`` with those of the next one. A snapshot that
    changed or deleted rows stops a stream of added rows, unless ``skips_changes``, which leaves out
    all rows of that snapshot, or ``ignores_deletes``, if it only deleted. If ``follows``, rows keep
    the columns with which the query began. A batch has up to ``max_files``, 0 for any number.
    ``form`` asks for changes in the form of Spark's CHANGES.
    """

    version: int | None = None
    timestamp: str | None = None
    from_newest: bool = False
    changes: bool = False
    skips_changes: bool = False
    ignores_deletes: bool = False
    follows: bool = False
    max_files: int = 0
    form: ChangesWanted | None = None


def stream_options(given: Mapping[str, str], table: str) -> StreamOptions:
    """Return what the options of a streaming reader ask for; InvalidRequest for an unknown one.

    Delta's words are known, and Iceberg's for what it has too.
    """
    what = f"a stream of {table}"
    form = None
    if option_value(given, SPARKS_CHANGES) is not None:
        given, form = _streamed(without_options(given, [SPARKS_CHANGES]), what)
    known = (*_STARTS, _FROM, *_FEED, *_SKIPS, *_IGNORES, *_FILES, ON_SCHEMA_CHANGE)
    refuse_others(given, known, what)
    start = _one(given, (*_STARTS, _FROM))
    version = timestamp = None
    newest = start is not None and start[0] == _STARTS[0] and start[1].strip().lower() == "latest"
    if start is not None and not newest:
        if start[0] == _STARTS[0]:
            version = _whole(*start)
        else:
            timestamp = _moment(*start)
    files = _one(given, _FILES)
    limit = 0 if files is None else _whole(*files)
    if files is not None and not limit:
        raise _wrong(f"option {files[0]} must be at least 1")
    found = StreamOptions(
        version,
        timestamp,
        newest,
        _is_set(given, _FEED),
        _is_set(given, _SKIPS),
        _is_set(given, _IGNORES),
        _follows(option_value(given, ON_SCHEMA_CHANGE)),
        limit,
        form,
    )
    if found.changes and (found.skips_changes or found.ignores_deletes):
        raise _wrong(
            f"{what}: a change feed has all changes; leave out {_SKIPS[0]} and {_IGNORES[0]}"
        )
    return found


def _is_set(given: Mapping[str, str], names: tuple[str, ...]) -> bool:
    found = _one(given, names)
    return found is not None and is_true(found[1], found[0])


def _follows(text: str | None) -> bool:
    word = "fail" if text is None else text.strip().lower()
    if word not in ("fail", "follow"):
        raise _wrong(f"option {ON_SCHEMA_CHANGE} must be 'fail' or 'follow', not {text!r}")
    return word == "follow"


def _one(given: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, str] | None:
    values = ((name, option_value(given, name)) for name in names)
    found = [(name, value) for name, value in values if value is not None]
    if len(found) > 1:
        raise _wrong(f"{found[0][0]} and {found[1][0]} cannot be used together; leave one out")
    return found[0] if found else None


def _end(name: str, text: str) -> int | str:
    return _whole(name, text) if name.endswith("Version") else text


def _version(name: str, text: str) -> int | str:
    """Return the id of a snapshot, or the name of a branch or a tag."""
    is_named = name in _BRANCHES or (name == "versionAsOf" and whole_number(text.strip()) is None)
    return text if is_named else _whole(name, text)


def _whole(name: str, text: str) -> int:
    number = whole_number(text.strip())
    if number is None:
        raise _wrong(f"option {name} must be the id of a snapshot, not {text!r}")
    return number


def _moment(name: str, text: str) -> str:
    """Return the text of a time; Iceberg counts milliseconds."""
    if name not in ("as-of-timestamp", _FROM):
        return text
    when = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=_whole(name, text))
    return when.isoformat()
