"""COUNT, MIN and MAX of whole files, by what the catalog says about them.

An answer is the one that the rows give, or there is none: deleted rows may be the lowest, bounds
may be missing or cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shelduck.model.files.data_files import ColumnStats, DataFile
from shelduck.model.tables.schema import FieldId
from shelduck.planning.prune import facts_of_files
from shelduck.planning.resolve import Node
from shelduck.planning.scan import ScanGroup

COUNT, MIN, MAX, WHERE = "COUNT", "MIN", "MAX", "WHERE"
_WHOLE = ("number", "date")

Measure = tuple[str, str | None]
"""A word with the name of a column of the read schema; COUNT without one counts rows."""


def measured_columns(group: ScanGroup, measures: Sequence[Measure]) -> set[FieldId] | None:
    """Return the columns whose statistics `measured` needs; None if there can be no answer."""
    if group.snapshot_column is not None:
        return None
    nodes = _nodes(group)
    names = {name for _, name in measures if name is not None}
    if not names <= nodes.keys() or names & set(group.untrusted):
        return None
    return {nodes[name].field.id for name in names}


def measured(
    group: ScanGroup,
    measures: Sequence[Measure],
    stats: Mapping[int, Mapping[int, ColumnStats]],
) -> list[int | None] | None:
    """Return the answers for all files of a group, NULL for the MIN of no value.

    None if one is not certain. ``stats`` are by field id and by data file id.
    """
    nodes = _nodes(group)
    answers: list[int | None] = []
    for word, name in measures:
        field = None if name is None else nodes[name].field.id
        known = {} if field is None else stats.get(field, {})
        parts: list[int | None] = []
        for file in group.files:
            if file.record_count is None:
                return None
            if name is None:
                parts.append(file.record_count - file.dead_rows)
                continue
            part = _of_column(group, word, name, file, known.get(file.id))
            if part is None:
                return None
            parts += part
        answers.append(_total(word, [part for part in parts if part is not None]))
    return answers


def combined(
    measures: Sequence[Measure], parts: Sequence[Sequence[int | None]]
) -> list[int | None]:
    """Return the answers for all files of a group, given those for each part of it."""
    columns = zip(*parts, strict=True) if parts else [()] * len(measures)
    return [
        _total(word, [value for value in column if value is not None])
        for (word, _), column in zip(measures, columns, strict=True)
    ]


def _of_column(
    group: ScanGroup, word: str, name: str, file: DataFile, stats: ColumnStats | None
) -> list[int | None] | None:
    """Return the answer of one file, an empty list if it has no value; None if it is unknown."""
    assert file.record_count is not None
    if file.record_count == file.dead_rows:
        return []
    facts = facts_of_files(group, file, stats)((name,))
    if file.dead_rows or facts is None:
        return None
    if word == COUNT:
        if not facts.may_be_null:
            return [file.record_count]
        return None if stats is None else [file.record_count - stats.null_count]
    if not facts.may_have_value:
        return []
    end = facts.low if word == MIN else facts.high
    if facts.domain not in _WHOLE or facts.may_be_nan or not isinstance(end, int):
        return None
    return [end]


def _total(word: str, parts: Sequence[int]) -> int | None:
    if word == COUNT:
        return sum(parts)
    if not parts:
        return None
    return min(parts) if word == MIN else max(parts)


def _nodes(group: ScanGroup) -> dict[str, Node]:
    return {node.name: node for node in group.nodes if node.is_read and node.name is not None}
