"""DuckLake's options: their names, how values are written, and which one applies to a table.

An option of a table overrides one of its schema, which overrides one of the whole lake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from shelduck.errors import CorruptLake, InvalidRequest, NotFound, Unsupported
from shelduck.model.text.intervals import Interval, parse_interval, whole_number
from shelduck.model.text.names import quote_name, split_list

_TWO_DAYS = parse_interval("2 days")

OptionValue = str | int | float | bool | Sequence[str]
SKIPPED = "skip_stats_columns"
ENCRYPTED = "encrypted"
_TABLE_ONLY = frozenset({SKIPPED})
_LAKE_ONLY = frozenset({"require_commit_message", "delete_older_than", "expire_older_than"})
# What DuckDB's writers can do and Spark's cannot, with the only value that is true for Spark.
_NOT_DONE = {
    "write_deletion_vectors": ("false", "Shelduck writes the positions of deleted rows as Parquet")
}
_CODECS = ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw")
_GREATEST = 2**64 - 1
_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([kmgt]i?b|b|bytes?)?", re.IGNORECASE)
_TRUE, _FALSE = ("true", "t", "1", "yes", "on"), ("false", "f", "0", "no", "off")
_Kind = tuple[Callable[[OptionValue], str | None], Callable[[str], Any], str]


class Scope(Enum):
    """The scope of an option; the value is the catalog's word, None for the whole lake."""

    LAKE = None
    SCHEMA = "schema"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class OptionSetting:
    """One stored option: its text, and the id of the schema or table for which it is set."""

    name: str
    value: str
    scope: Scope = Scope.LAKE
    scope_id: int | None = None


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of one table; the defaults are those of DuckDB's extension."""

    data_inlining_row_limit: int = 10
    """Most rows of one statement that go into the catalog instead of a file; 0 is none."""
    target_file_size: int = 1 << 29
    """Bytes."""
    parquet_compression: str = "snappy"
    parquet_version: int = 1
    parquet_compression_level: int | None = None
    parquet_row_group_size: int | None = None
    """Rows."""
    parquet_row_group_size_bytes: int | None = None
    require_commit_message: bool = False
    hive_file_pattern: bool = True
    auto_compact: bool = True
    per_thread_output: bool = False
    write_deletion_vectors: bool = False
    sort_on_insert: bool = True
    rewrite_delete_threshold: float = 0.95
    """The part of a file's rows, 0 to 1, that must be deleted before a rewrite pays."""
    delete_older_than: Interval | None = _TWO_DAYS
    expire_older_than: Interval | None = None
    skip_stats_columns: tuple[int, ...] = ()
    """Columns, by id, of which files get counts and no bounds."""
    alter_table_timeout_second: int = 86_400
    """Seconds until a job of a schema change gives up; Doris' name, and one of ours alone."""
    alter_tablet_worker_count: int | None = None
    """Most tasks of a job at the same time; Doris' name. Without it, all cores of the session."""
    encrypted: bool = False
    """Whether files of the lake are encrypted, which whoever makes the lake decides."""


OPTION_NAMES = tuple(f.name for f in fields(TableOptions) if f.name != ENCRYPTED)


def option_text(name: str, value: OptionValue, scope: Scope = Scope.LAKE) -> tuple[str, str]:
    """Return an option's name and the text by which the catalog stores ``value``.

    The text of columns is a list of their names, of which the catalog stores the ids.

    Raises NotFound, naming similar ones, for an unknown option, InvalidRequest for a value or scope
    that it does not accept, and Unsupported for something that no write would do.
    """
    known = name.lower()
    if known not in OPTION_NAMES:
        raise NotFound.named("option", name, OPTION_NAMES)
    if scope is not Scope.LAKE and known in _LAKE_ONLY:
        raise InvalidRequest(
            f"option {known} applies to the whole lake; leave out schema and table"
        )
    if scope is not Scope.TABLE and known in _TABLE_ONLY:
        raise InvalidRequest(f"option {known} applies to one table; give its name")
    text = _ENCODERS[known](value)
    if text is None:
        raise InvalidRequest(f"option {known} does not accept {value!r}; {_EXPECTED[known]}")
    if known in _NOT_DONE and text != _NOT_DONE[known][0]:
        raise Unsupported(f"option {known} cannot be {value!r} here: {_NOT_DONE[known][1]}")
    return known, text


def table_options(
    settings: Iterable[OptionSetting], *, schema_id: int | None = None, table_id: int | None = None
) -> TableOptions:
    """Return what applies to a table; settings for other schemas and tables do not count.

    Raises CorruptLake if a stored text is not a value of its option.
    """
    owners = {Scope.LAKE: None, Scope.SCHEMA: schema_id, Scope.TABLE: table_id}
    found: dict[str, Any] = {}
    ranks = list(Scope)
    for setting in sorted(settings, key=lambda s: ranks.index(s.scope)):
        if setting.name in _DECODERS and setting.scope_id == owners[setting.scope]:
            found[setting.name] = _decoded(setting)
    if found.get(ENCRYPTED):
        # As in DuckDB: directories would show values.
        found.setdefault("hive_file_pattern", False)
    return TableOptions(**found)


def _decoded(setting: OptionSetting) -> Any:
    try:
        return _DECODERS[setting.name](setting.value)
    except ValueError as error:
        raise CorruptLake(
            f"option {setting.name} has the invalid value {setting.value!r} in the catalog;"
            f" {_EXPECTED[setting.name]}"
        ) from error


def _whole(value: OptionValue, least: int = 0) -> str | None:
    text = str(value)
    is_whole = not isinstance(value, bool) and re.fullmatch(r"0*[0-9]{1,20}", text) is not None
    return str(int(text)) if is_whole and least <= int(text) <= _GREATEST else None


def _positive(value: OptionValue) -> str | None:
    return _whole(value, 1)


def _size(value: OptionValue) -> str | None:
    match = _SIZE.fullmatch(str(value).strip())
    if match is None or isinstance(value, bool):
        return None
    unit = (match[2] or "b").lower()
    base = 1024 if "i" in unit else 1000
    power = "bkmgt".index(unit[0])
    size = round(float(match[1]) * base**power) if "." in match[1] else int(match[1]) * base**power
    return str(size) if 0 < size <= _GREATEST else None


def _flag(value: OptionValue) -> str | None:
    word = str(value).lower()
    return "true" if word in _TRUE else "false" if word in _FALSE else None


def _codec(value: OptionValue) -> str | None:
    return str(value).lower() if str(value).lower() in _CODECS else None


def _version(value: OptionValue) -> str | None:
    return {"1": "V1", "2": "V2", "v1": "V1", "v2": "V2"}.get(str(value).lower())


def _threshold(value: OptionValue) -> str | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return f"{number:f}" if 0 <= number <= 1 and not isinstance(value, bool) else None


def _age(value: OptionValue) -> str | None:
    text = str(value)
    return text if text == "" or parse_interval(text) is not None else None


def _columns(value: OptionValue) -> str | None:
    if isinstance(value, str):
        names = split_list(value)
    elif isinstance(value, Sequence) and all(value):
        names = tuple(map(str, value))
    else:
        return None
    return ", ".join(map(quote_name, dict.fromkeys(names)))


def column_ids(text: str) -> tuple[int, ...]:
    """Return the ids in a stored list of columns; what is not a number is ignored."""
    found = (whole_number(part.strip()) for part in text.split(","))
    return tuple(dict.fromkeys(n for n in found if n is not None))


def _read_age(text: str) -> Interval | None:
    found = parse_interval(text)
    if text and found is None:
        raise ValueError(text)
    return found


def _read_flag(text: str) -> bool:
    word = _flag(text)
    if word is None:
        raise ValueError(text)
    return word == "true"


_SIZES: _Kind = (_size, int, "give bytes as a whole number, or a text such as '512MB'")
_FLAGS: _Kind = (_flag, _read_flag, "give true or false")
_AGES: _Kind = (_age, _read_age, "give a text such as '7 days', or '' for never")
_KINDS: dict[str, _Kind] = {
    "data_inlining_row_limit": (_whole, int, "give a number of rows, 0 for none"),
    "target_file_size": _SIZES,
    "parquet_compression": (_codec, str, f"use one of {', '.join(_CODECS)}"),
    "parquet_version": (_version, lambda text: int(text.lstrip("vV")), "use 1 or 2"),
    "parquet_compression_level": (_whole, int, "give a whole number"),
    "parquet_row_group_size": (_positive, int, "give a number of rows, at least 1"),
    "parquet_row_group_size_bytes": _SIZES,
    "require_commit_message": _FLAGS,
    "hive_file_pattern": _FLAGS,
    "auto_compact": _FLAGS,
    "per_thread_output": _FLAGS,
    "write_deletion_vectors": _FLAGS,
    "sort_on_insert": _FLAGS,
    "rewrite_delete_threshold": (_threshold, float, "give a number from 0 to 1"),
    "delete_older_than": _AGES,
    "expire_older_than": _AGES,
    SKIPPED: (_columns, column_ids, "give names of columns, such as 'a, b', or '' for none"),
    "alter_table_timeout_second": (_positive, int, "give a number of seconds, at least 1"),
    "alter_tablet_worker_count": (_positive, int, "give a number of tasks, at least 1"),
    ENCRYPTED: _FLAGS,
}
_ENCODERS = {name: kind[0] for name, kind in _KINDS.items()}
_DECODERS = {name: kind[1] for name, kind in _KINDS.items()}
_EXPECTED = {name: kind[2] for name, kind in _KINDS.items()}
