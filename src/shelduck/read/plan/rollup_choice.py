"""Which rollup of a table answers a query, by Doris' rule.

A rollup fits if it holds every necessary column, and measures that can be combined further. The
table itself fits too. The winner is the one whose sort order begins with the most columns that the
query filters, and among equals the one with the fewest rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shelduck.model.tables.rollup import Measure, Rollup
from shelduck.model.tables.schema import FieldId

MeasureKey = tuple[Measure, FieldId | None]
"""A measure and the base's column from which it is computed; None for COUNT(*)."""

_ALL_ROWS: MeasureKey = (Measure.COUNT, None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a query needs from a table, all columns by their ids.

    ``columns`` are those that it uses outside of ``measures``. If it ``aggregates``, only the
    groups of rows matter, not how often a group occurs. Columns with a filter are in ``equals`` if
    they are compared with one or several values, and in ``ranges`` if they are compared with a
    range.
    """

    columns: frozenset[FieldId]
    measures: frozenset[MeasureKey] = frozenset()
    aggregates: bool = False
    equals: frozenset[FieldId] = frozenset()
    ranges: frozenset[FieldId] = frozenset()

    @property
    def all_columns(self) -> frozenset[FieldId]:
        """The necessary columns if rows are not combined."""
        return self.columns | {column for _, column in self.measures if column is not None}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rollup that holds the table's rows; ``key_order`` are the base's columns that sort it.

    ``name`` is the name that people use. With ``keeps_rows`` it has one row for each row of the
    base, see `shelduck.model.tables.rollup.keeps_rows`.
    """

    name: str
    rollup: Rollup
    key_order: tuple[FieldId, ...]
    rows: int
    keeps_rows: bool


@dataclass(frozen=True, slots=True)
class RollupChoice:
    """A rollup that answers a query, and which of its columns replace what of the base.

    With ``groups``, one row of it represents many rows, and measures are combined further. If it is
    grouped by a column, a COUNT of this column may come from the column itself and COUNT(*).
    Without ``groups`` its rows are those of the base, and there are no measures. ``reason`` is for
    EXPLAIN.
    """

    name: str
    groups: bool
    columns: Mapping[FieldId, FieldId]
    reason: str = ""
    measures: Mapping[MeasureKey, FieldId] = field(default_factory=dict)


def choose(
    wanted: Wanted,
    base_key_order: Sequence[FieldId],
    base_rows: int,
    candidates: Iterable[Candidate],
) -> RollupChoice | None:
    """Return what to read instead of a base, None to read the base."""
    base = (-_prefix(base_key_order, wanted), base_rows)
    found: list[tuple[tuple[int, int], int, str, RollupChoice]] = []
    for one in candidates:
        choice = _choice(one, wanted)
        if choice is not None:
            rank = (-_prefix(one.key_order, wanted), one.rows)
            found.append((rank, len(one.rollup.columns), one.name, choice))
    if not found:
        return None
    rank, *_, choice = min(found, key=lambda each: each[:3])
    return replace(choice, reason=_reason(choice, rank, base)) if rank < base else None


def _prefix(key_order: Sequence[FieldId], wanted: Wanted) -> int:
    """Return how many leading columns of a sort order narrow down what is read."""
    for number, column in enumerate(key_order):
        if column in wanted.equals:
            continue
        return number + 1 if column in wanted.ranges else number
    return len(key_order)


def _choice(candidate: Candidate, wanted: Wanted) -> RollupChoice | None:
    plain: dict[FieldId, FieldId] = {}
    measures: dict[MeasureKey, FieldId] = {}
    for column in candidate.rollup.columns:
        if column.measure is not None:
            measures.setdefault((column.measure, column.source), column.id)
        elif column.source is not None:
            plain.setdefault(column.source, column.id)
    if wanted.aggregates and (measures or not candidate.keeps_rows):
        return _groups(candidate.name, plain, measures, wanted)
    if not candidate.keeps_rows:
        return None
    # A measure of one row is the value itself.
    values = {
        source: column
        for (measure, source), column in measures.items()
        if source is not None and measure is not Measure.COUNT
    }
    columns, needed = values | plain, wanted.all_columns
    if not columns.keys() >= needed:
        return None
    return RollupChoice(candidate.name, groups=False, columns={c: columns[c] for c in needed})


def _groups(
    name: str,
    plain: Mapping[FieldId, FieldId],
    measures: Mapping[MeasureKey, FieldId],
    wanted: Wanted,
) -> RollupChoice | None:
    if not plain.keys() >= wanted.columns:
        return None
    columns = {c: plain[c] for c in wanted.columns}
    found: dict[MeasureKey, FieldId] = {}
    for measure, source in wanted.measures:
        column = None if measure.aggregation.replaces else measures.get((measure, source))
        if column is not None:
            found[measure, source] = column
            continue
        if source is None or source not in plain:
            return None
        if measure in (Measure.MIN, Measure.MAX):
            # It does not matter how often a value occurs.
            found[measure, source] = plain[source]
        elif measure is Measure.COUNT and _ALL_ROWS in measures:
            # In each group, either all rows or no rows have a value in the column by which it is
            # grouped.
            found[_ALL_ROWS] = measures[_ALL_ROWS]
            columns[source] = plain[source]
        else:
            return None
    return RollupChoice(name, groups=True, columns=columns, measures=found)


def _reason(choice: RollupChoice, rank: tuple[int, int], base: tuple[int, int]) -> str:
    what = "groups of the table's rows" if choice.groups else "the table's rows"
    why = f"{rank[1]} rows instead of {base[1]}"
    if rank[0] < base[0]:
        why = (
            f"its sort order begins with {-rank[0]} filtered column(s), the table's with"
            f" {-base[0]}; {why}"
        )
    return f"rollup {choice.name} has {what}: {why}"
