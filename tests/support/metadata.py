"""Two catalogs compared row by row, but for what is listed here with its reason."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Dump = dict[str, list[dict[str, Any]]]

_UUID = "drawn at random"
_BYTES = "two Parquet writers: another encoding, another footer"
# Table and column: why two lakes with the same story differ in it.
VOLATILE = {
    ("ducklake_snapshot", "snapshot_time"): "the clock",
    ("ducklake_schema", "schema_uuid"): _UUID,
    ("ducklake_table", "table_uuid"): _UUID,
    ("ducklake_view", "view_uuid"): _UUID,
    ("ducklake_data_file", "path"): _UUID,
    ("ducklake_data_file", "file_size_bytes"): _BYTES,
    ("ducklake_data_file", "footer_size"): _BYTES,
    ("ducklake_file_column_stats", "column_size_bytes"): _BYTES,
    ("ducklake_table_stats", "file_size_bytes"): _BYTES,
    ("ducklake_snapshot", "next_file_id"): "grows with table statistics too, and we write them for"
    " columns that are added",
}
# The same for rows of nested columns alone.
VOLATILE_WHEN_NESTED = {
    "nulls_allowed": "DuckDB writes true or false by the way a field came in, and reads neither",
    "default_value_type": "DuckDB writes '' or 'literal' by the way a field came in",
}
# The directory of a schema or table whose name is no plain word is its UUID.
_UUID_DIRECTORY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/")


@dataclass(frozen=True)
class Difference:
    """Rows that differ on purpose: what they hold in each of the two catalogs (None: no row)."""

    table: str
    ours: Mapping[str, Any] | None
    theirs: Mapping[str, Any] | None
    reason: str


def unexplained(ours: Dump, theirs: Dump, on_purpose: Sequence[Difference]) -> list[str]:
    """What differs and is not listed, and what is listed and does not differ: one line each.

    Every row of either catalog counts; each listed difference explains any number of rows.
    """
    found: list[str] = []
    sides = {"ours": only_in(ours, theirs), "theirs": only_in(theirs, ours)}
    for side, rows in sides.items():
        seen: set[int] = set()
        for table, row in rows:
            n = _explaining(side, table, row, on_purpose)
            if n is None:
                found.append(f"only {side}: {table} {row}")
            else:
                seen.add(n)
        for n, listed in enumerate(on_purpose):
            wanted = listed.ours if side == "ours" else listed.theirs
            if wanted is not None and n not in seen:
                found.append(f"listed for {side}, but not so: {listed.table} {wanted}")
    return found


def only_in(one: Dump, other: Dump) -> list[tuple[str, dict[str, Any]]]:
    """Rows of `one` that `other` does not have, each as often as it is missing."""
    return [
        (table, dict(row))
        for table in sorted(one.keys() | other.keys())
        for row in (_rows(one, table) - _rows(other, table)).elements()
    ]


def _rows(dump: Dump, table: str) -> Counter[tuple[tuple[str, Any], ...]]:
    files = sorted(row["data_file_id"] for row in dump.get("ducklake_data_file", []))
    return Counter(
        tuple(
            # File ids have gaps where next_file_id grew for another reason.
            (c, f"file {files.index(v)}" if c == "data_file_id" else _stable(v))
            for c, v in row.items()
            if (table, c) not in VOLATILE and not _is_volatile_in(row, c)
        )
        for row in dump.get(table, [])
    )


def _is_volatile_in(row: dict[str, Any], column: str) -> bool:
    return row.get("parent_column") is not None and column in VOLATILE_WHEN_NESTED


def _stable(value: Any) -> Any:
    if isinstance(value, str) and _UUID_DIRECTORY.fullmatch(value):
        return "<uuid>/"
    return value


def _explaining(
    side: str, table: str, row: dict[str, Any], listed: Sequence[Difference]
) -> int | None:
    for n, difference in enumerate(listed):
        wanted = difference.ours if side == "ours" else difference.theirs
        if difference.table == table and wanted is not None and wanted.items() <= row.items():
            return n
    return None
