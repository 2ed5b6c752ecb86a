"""What happened on a branch since its base, as values that print well."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from shelduck.branches.merging import MergeConflict
from shelduck.lake.results import PlainRows
from shelduck.model.text.names import html_table, html_text

_COLUMNS = "table string, change string, added bigint, changed bigint, deleted bigint, sql string"
_COUNTED = ("created", "replaced", "changed")
_TICKS = re.compile("`+")


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows came, changed and went, by their ids; None for what nobody has counted.

    ``net`` is by how many rows there are more.
    """

    added: int | None = None
    changed: int | None = None
    deleted: int | None = None
    net: int | None = None

    @property
    def is_known(self) -> bool:
        """True if they were counted."""
        return None not in (self.added, self.changed, self.deleted)

    def __str__(self) -> str:
        parts = ((self.added, "added"), (self.changed, "changed"), (self.deleted, "deleted"))
        known = [f"{n:,} {word}" for n, word in parts if n]
        if not self.is_known:
            known.append("not counted" if self.net is None else f"{self.net:+,} in all")
        return ", ".join(known)


@dataclass(frozen=True, slots=True)
class TableDiff:
    """What happened to one table, view or macro of a branch.

    ``table`` is its name where the branch came from, ``change`` is ``created``, ``dropped``,
    ``replaced`` by a new one or ``changed``; of a view it is ``view changed``. ``clauses`` are
    those of the ALTER TABLE that does the same, ``rollups`` the statements that do so with rollups.
    ``rows`` are some of the rows, each with ``_change``: ``added``, ``changed`` or ``deleted``.
    """

    table: str
    change: str
    clauses: tuple[str, ...] = ()
    counts: RowCounts = RowCounts()
    rows: tuple[Mapping[str, object], ...] = field(default=(), hash=False)
    rollups: tuple[str, ...] = ()

    @property
    def counted(self) -> str:
        """The counts in words; of a dropped table and of a view nobody counts them."""
        return str(self.counts) if self.change in _COUNTED else ""

    @property
    def sql(self) -> str:
        """The statements that change columns and rollups in the same way; empty if none did."""
        altered = (f"ALTER TABLE {self.table} {', '.join(self.clauses)}",) if self.clauses else ()
        return "; ".join((*altered, *self.rollups))


@dataclass(frozen=True, slots=True, repr=False)
class BranchDiff:
    """What happened on a branch since its base, and what a merge would refuse; print it.

    ``base`` is the snapshot with which it is compared: the beginning, or the last merge.
    ``refusal`` says why there can be no merge at all, whatever people change.
    """

    branch: str
    source: str
    base: int
    tables: tuple[TableDiff, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    refusal: str = ""

    @property
    def is_mergeable(self) -> bool:
        """True if a merge would not be refused."""
        return not (self.conflicts or self.refusal)

    @property
    def is_empty(self) -> bool:
        """True if nothing happened."""
        return not self.tables and self.is_mergeable

    @property
    def told(self) -> PlainRows:
        """Return a row for each table, with ``conflict`` for one that a merge refuses."""
        refused = {one.table for one in self.conflicts}
        words = {t.table: "conflict" if t.table in refused else t.change for t in self.tables}
        known = [
            (t.table, words[t.table], t.counts.added, t.counts.changed, t.counts.deleted, t.sql)
            for t in self.tables
        ]
        others = dict.fromkeys(one.table for one in self.conflicts if one.table not in words)
        rows = [*known, *((name, "conflict", None, None, None, "") for name in others)]
        return PlainRows(_COLUMNS, rows)

    def __str__(self) -> str:
        if self.is_empty:
            return f"nothing happened on {self.branch} since snapshot {self.base}"
        lines = [f"{self.branch}, a branch of {self.source} since snapshot {self.base}"]
        for table in self.tables:
            lines.append(
                table.table if table.change == "changed" else f"{table.table} {table.change}"
            )
            lines += [f"  {text}" for text in (*table.clauses, *table.rollups)]
            lines += [f"  rows: {table.counted}"] if table.counted else []
            lines += [f"  {_line(row)}" for row in table.rows]
        return "\n".join([*lines, *self._refused()])

    def _refused(self) -> list[str]:
        told = [f"no merge: {self.refusal}"] if self.refusal else []
        return [*told, *(f"conflict: {conflict_text(one)}" for one in self.conflicts)]

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        if self.is_empty:
            return html_text(str(self))
        found = html_table(self.told.names, self.told.rows, f"{self.branch} of {self.source}")
        told = self._refused()
        return found + (html_text("\n".join(told)) if told else "")

    def as_json(self) -> dict[str, Any]:
        """Return the diff as plain JSON."""
        return {
            "branch": self.branch,
            "source": self.source,
            "base": self.base,
            "tables": [
                {
                    "table": t.table,
                    "change": t.change,
                    "sql": t.sql,
                    **asdict(t.counts),
                    "rows": [_plain(row) for row in t.rows],
                }
                for t in self.tables
            ],
            "conflicts": [asdict(one) for one in self.conflicts],
            "refusal": self.refusal,
        }

    def markdown(self) -> str:
        """Return the diff as a comment on a pull request."""
        if self.is_empty:
            return f"Nothing happened on {_code(self.branch)}.\n"
        here = f"{_code(self.branch)}, a branch of {_code(self.source)}"
        lines = [f"{here} since snapshot {self.base}", ""]
        if self.tables:
            lines += ["| table | change | rows |", "|---|---|---|"]
            lines += [f"| {_code(t.table)} | {t.change} | {t.counted} |" for t in self.tables]
        if statements := [f"{t.sql};" for t in self.tables if t.sql]:
            lines += ["", *_fenced("sql", statements)]
        if rows := [f"{t.table} {_line(row)}" for t in self.tables for row in t.rows]:
            lines += ["", "<details><summary>Rows</summary>", "", *_fenced("", rows), "</details>"]
        if told := self._refused():
            lines += ["", "**A merge is refused**", "", *_fenced("", told)]
        return "\n".join([*lines, ""])


def conflict_text(one: MergeConflict) -> str:
    """Return a conflict in words."""
    base, ours, theirs = (state or "nothing" for state in (one.base, one.ours, one.theirs))
    return f"{one.kind} {one.item} of {one.table} was {base}, is {ours}, and on the branch {theirs}"


def _line(row: Mapping[str, object]) -> str:
    values = {key: value for key, value in row.items() if key != "_change"}
    return f"{row['_change']} {json.dumps(_plain(values), ensure_ascii=False)}"


def _plain(value: object) -> Any:
    """Return a value as JSON can have it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _code(text: str) -> str:
    """Return a text for a cell, as it is."""
    ticks = _longer(text, 1)
    told = text.replace("|", "\\|").replace("\n", " ")
    return f"{ticks} {told} {ticks}" if "`" in told else f"{ticks}{told}{ticks}"


def _fenced(word: str, lines: Sequence[str]) -> list[str]:
    fence = _longer("\n".join(lines), 3)
    return [f"{fence}{word}", *lines, fence]


def _longer(text: str, least: int) -> str:
    """Return more backticks than a text has side by side."""
    return "`" * max([least, *(len(run) + 1 for run in _TICKS.findall(text))])
