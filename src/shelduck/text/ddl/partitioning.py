"""Partition keys in the words of DuckLake, Spark and Iceberg."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from shelduck.model.tables.partition import BUCKET, CALENDAR, COUNTS, PartitionBy, Transform
from shelduck.text.foreign_words import TRANSFORMS
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import TokenKind, tokenize

# Spark and Iceberg count months, days and hours from 1970, which takes several of DuckLake's keys:
# its ``day`` alone is the day of the month.
_PLURALS = {f"{word.upper()}S": CALENDAR[: n + 1] for n, word in enumerate(CALENDAR)}
_SINGULARS = {word.upper(): word for word in (*CALENDAR, *COUNTS)}


def read_partition_keys(cursor: Cursor) -> tuple[PartitionBy, ...]:
    """Take the keys in brackets: columns, ``bucket(4, id)``, ``year(ts)``, ``days(ts)`` ..."""
    found: list[PartitionBy] = []
    seen: set[PartitionBy] = set()
    for key in chain.from_iterable(cursor.in_brackets(_key)):
        # The keys that ``months(ts), days(ts)`` would give twice.
        if key not in seen or key.transform.kind not in CALENDAR:
            found.append(key)
        seen.add(key)
    return tuple(found)


def read_partition_key(cursor: Cursor) -> tuple[PartitionBy, ...]:
    """Take one key, which ``days(ts)`` and its likes make several of DuckLake's."""
    is_transform = cursor.peek().kind is TokenKind.WORD and cursor.peek(1).key == "("
    return tuple(_transformed(cursor)) if is_transform else (PartitionBy(_column(cursor)),)


def partition_keys(texts: Sequence[str]) -> tuple[PartitionBy, ...]:
    """Return the keys that texts such as ``bucket(4, id)`` mean; each text is one key or more."""
    text = f"({', '.join(texts)})"
    cursor = Cursor(text, tokenize(text))
    found = read_partition_keys(cursor) if texts else ()
    if texts:
        cursor.end()
    return found


def _key(cursor: Cursor) -> tuple[PartitionBy, ...]:
    found = read_partition_key(cursor)
    if cursor.peek().may_name:
        raise cursor.failure("',' or ')' (write the type in the list of columns)")
    return found


def _transformed(cursor: Cursor) -> list[PartitionBy]:
    function = cursor.peek()
    word = function.key
    known = word in _SINGULARS or word in _PLURALS or word in ("BUCKET", "IDENTITY")
    if not known and (foreign := TRANSFORMS.get(word)) is not None:
        raise cursor.refusal(foreign.what, foreign.instead)
    if not known:
        raise cursor.refusal(
            f"partitioning by {function.text.lower()}()",
            "use columns, bucket(N, c), year(c), month(c), day(c) or hour(c), Spark's years(c),"
            " months(c), days(c) or hours(c), or epoch_year(c) to epoch_hour(c)",
        )
    cursor.take()
    cursor.expect("(")
    count = _count(cursor) if word == "BUCKET" else 0
    column = _column(cursor)
    cursor.expect(")")
    if word == "IDENTITY":
        return [PartitionBy(column)]
    if word == "BUCKET":
        return [PartitionBy(column, Transform(BUCKET, count))]
    kinds = _PLURALS.get(word) or (_SINGULARS[word],)
    return [PartitionBy(column, Transform(kind)) for kind in kinds]


def _count(cursor: Cursor) -> int:
    what = "the number of buckets, as in bucket(16, id)"
    if cursor.peek().text == "0":
        raise cursor.failure(what)
    count = cursor.whole(what)
    cursor.expect(",")
    return count


def _column(cursor: Cursor) -> str:
    path = cursor.path()
    if len(path) > 1:
        raise cursor.refusal(
            "partitioning by a nested field",
            "only top-level columns can be keys (quote a name that contains a dot)",
        )
    return path[0]


def read_doris_partitions(cursor: Cursor) -> tuple[PartitionBy, ...]:
    """Take what stands behind Doris' ``PARTITION BY`` and return the keys that mean the same.

    A list of values means the columns themselves, a range with an interval of one day, month, year
    or hour that part of the time. Partitions of a lake are made as rows come, so the list of them
    is left out. Raises Unsupported for other ranges, which no transform of DuckLake has.
    """
    kind = cursor.accept_any("LIST", "RANGE")
    if not kind:
        raise cursor.failure("LIST or RANGE")
    is_function = cursor.peek(2).key == "("
    unit = ""
    if kind == "RANGE" and is_function:
        cursor.expect("(", "DATE_TRUNC", "(")
        columns = [_column(cursor)]
        cursor.expect(",")
        unit = cursor.string("a unit such as 'day'").upper()
        cursor.expect(")", ")")
    else:
        columns = list(cursor.columns())
    listed = cursor.at
    if cursor.sees("("):
        cursor.skip_group()
    if kind == "LIST":
        return tuple(PartitionBy(column) for column in columns)
    unit = unit or _interval(cursor, listed)
    if len(columns) == 1 and f"{unit}S" in _PLURALS:
        return tuple(PartitionBy(columns[0], Transform(k)) for k in _PLURALS[f"{unit}S"])
    cursor.at = listed
    raise cursor.refusal(
        "PARTITION BY RANGE without INTERVAL 1 DAY, MONTH, YEAR or HOUR",
        f"use PARTITIONED BY (days({columns[0]})), months(), years(), hours(), or the column alone",
    )


def _interval(cursor: Cursor, start: int) -> str:
    """Return the unit of the interval of one that all ranges between two tokens have, else ''."""
    units: set[str] = set()
    for n in range(start, cursor.at - 2):
        token, count, unit = cursor.tokens[n : n + 3]
        if token.key == "INTERVAL":
            units.add(unit.key if count.text == "1" else "")
        elif token.key in ("LESS", "["):
            units.add("")
    return units.pop() if len(units) == 1 else ""
