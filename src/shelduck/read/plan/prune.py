"""Which files may hold a row that a filter asks for, by the statistics in the catalog.

A file is skipped only if its statistics prove that no row matches. If they are missing, cut, of
another type or unreliable, the file may match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shelduck.model.files.data_file import ColumnStats, DataFile, Layout, PhysicalField
from shelduck.model.files.predicate import (
    And,
    ComparedValue,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    Predicate,
    StartsWith,
)
from shelduck.model.files.readable import How
from shelduck.model.files.resolve import Node, is_trusted
from shelduck.model.tables.schema import Kind, Path
from shelduck.model.types.data_types import FLOATS, SIGNED, UNSIGNED, Decimal, Leaf
from shelduck.model.types.literals import Comparable, bound
from shelduck.model.types.temporal import DAY_MICROS, INFINITE_DATE, NANOSECONDS, ZONELESS
from shelduck.read.plan.scan import ScanGroup

# Their statistics count no values although there are some.
_UNCOUNTED = ("timetz", "interval")
_PLAIN_INTEGERS = frozenset({*SIGNED, *UNSIGNED})
_INTEGER = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about one column in one file.

    ``domain`` says with what its values compare; ``low`` and ``high`` bound the values that are
    neither NULL nor NaN (None: unknown). The flags are True unless the contrary is proven.
    """

    domain: str
    low: Comparable | None = None
    high: Comparable | None = None
    may_be_null: bool = True
    may_have_value: bool = True
    may_be_nan: bool = True


Lookup = Callable[[Path], Facts | None]


def may_match(predicate: Predicate, lookup: Lookup) -> bool:
    """Return whether a file with these facts may hold a row for which ``predicate`` is true.

    ``lookup`` returns the facts of a column by its path, or None if nothing is known about it.
    """
    if isinstance(predicate, And):
        return all(may_match(p, lookup) for p in predicate.parts)
    if isinstance(predicate, Or):
        return any(may_match(p, lookup) for p in predicate.parts)
    if not isinstance(predicate, Comparison | In | IsNull | IsNotNull | StartsWith):
        return True
    facts = lookup(predicate.path)
    if facts is None:
        return True
    if isinstance(predicate, IsNull):
        return facts.may_be_null
    if not facts.may_have_value:
        return False
    if isinstance(predicate, IsNotNull):
        return True
    if isinstance(predicate, In):
        return any(_compares(Operator.EQ, facts, value) for value in predicate.literals)
    if isinstance(predicate, StartsWith):
        return _starts(facts, predicate.prefix)
    return _compares(predicate.operator, facts, predicate.literal)


def matching_files(
    predicate: Predicate,
    group: ScanGroup,
    stats: Mapping[int, Mapping[int, ColumnStats]],
    files: Iterable[DataFile] | None = None,
) -> set[int]:
    """Return the ids of the files of a group that may hold a row for which ``predicate`` is true.

    Paths are those of the group's read schema. ``stats`` has the statistics of each leaf that the
    predicate names by field id, then by data file id; if statistics are missing, the file may hold
    any value. ``files`` are the files of the group to check, None for all of them.
    """
    places = _Places(group)
    return {
        file.id
        for file in (group.files if files is None else files)
        if may_match(predicate, _FileFacts(places, file, _of_file(stats, file.id)))
    }


def certain_files(
    negated: Sequence[Predicate],
    group: ScanGroup,
    stats: Mapping[int, Mapping[int, ColumnStats]],
    files: Iterable[DataFile],
) -> set[int]:
    """Return the ids of files of which every row passes some filters, given their negations.

    A filter that is neither true nor false of a NULL passes no such row, so columns that may be
    NULL prove nothing. Statistics are as in `matching_files`.
    """
    places = _Places(group)
    return {
        file.id
        for file in files
        if _none_fails(negated, _FileFacts(places, file, _of_file(stats, file.id)))
    }


def _none_fails(negated: Sequence[Predicate], lookup: Lookup) -> bool:
    for predicate in negated:
        if may_match(predicate, lookup):
            return False
        for path in compared(predicate):
            facts = lookup(path)
            if facts is None or facts.may_be_null:
                return False
    return True


def compared(predicate: Predicate) -> Iterator[Path]:
    """Yield the columns whose values a predicate compares."""
    if isinstance(predicate, And | Or):
        for part in predicate.parts:
            yield from compared(part)
    elif isinstance(predicate, Comparison | In | StartsWith):
        yield predicate.path


def facts_of_files(group: ScanGroup, file: DataFile, stats: ColumnStats | None) -> Lookup:
    """Return what is known about columns of one file of a group.

    ``stats`` are those of the column that is looked up.
    """
    return _FileFacts(_Places(group), file, lambda _: stats)


def _of_file(
    stats: Mapping[int, Mapping[int, ColumnStats]], file_id: int
) -> Callable[[int], ColumnStats | None]:
    nothing: Mapping[int, ColumnStats] = {}
    return lambda field_id: stats.get(field_id, nothing).get(file_id)


class _Places:
    """The target of a path of the read schema: the table's field, and the node in each layout."""

    def __init__(self, group: ScanGroup) -> None:
        self.table = group.table
        self._nodes = {n.name: n for n in group.nodes if n.is_read}
        self._known: dict[tuple[int, Path], tuple[Node, PhysicalField | None] | None] = {}

    def find(self, layout: Layout, path: Path) -> tuple[Node, PhysicalField | None] | None:
        """Return field and node; the node is None if the file lacks a column. None if unknown."""
        key = (id(layout), path)
        if key not in self._known:
            self._known[key] = self._search(layout, path)
        return self._known[key]

    def _search(self, layout: Layout, path: Path) -> tuple[Node, PhysicalField | None] | None:
        node = self._nodes.get(path[0])
        found = next((f for f in layout.fields if f.name == path[0]), None)
        if node is not None and found is None and len(path) == 1:
            return node, None
        for name in path[1:]:
            if node is None or found is None or node.field.shape is not Kind.STRUCT:
                return None
            node = next((c for c in node.children if c.is_read and c.name == name), None)
            found = next((f for f in found.children if f.name == name), None)
        return None if node is None or found is None else (node, found)


class _FileFacts:
    """The lookup for one file; facts are computed on first use."""

    def __init__(
        self, places: _Places, file: DataFile, stats: Callable[[int], ColumnStats | None]
    ) -> None:
        assert file.layout is not None
        self._places = places
        self._layout = file.layout
        self._path = file.path
        self._stats = stats
        self._known: dict[Path, Facts | None] = {}

    def __call__(self, path: Path) -> Facts | None:
        if path not in self._known:
            self._known[path] = self._find(path)
        return self._known[path]

    def _find(self, path: Path) -> Facts | None:
        found = self._places.find(self._layout, path)
        if found is None:
            return None
        node, stored = found
        if stored is None:
            return _facts_of_default(node)
        if node.read is None:
            return None
        stats = self._stats(node.field.id)
        if stats is None or isinstance(stored.shape, Kind):
            return None
        trusted = is_trusted(self._places.table, self._path, stored.shape)
        return _facts_of_stats(node.read, stored.shape, stats, top=len(path) == 1, trusted=trusted)


def is_checked(node: Node) -> bool:
    """Return whether a column is the number that was read, or an error; it is never rounded."""
    read, target = node.read, node.field.shape
    if node.how is not How.CHECKED_CAST or read is None or isinstance(target, Kind):
        return False
    if isinstance(read, Decimal):
        return isinstance(target, Decimal) and read.scale <= target.scale
    return read.name in _PLAIN_INTEGERS


def domain(read: Leaf) -> str | None:
    """Return the domain in which values of a read type compare; None if they are not compared."""
    if isinstance(read, Decimal):
        return "number"
    name = read.name
    if name in SIGNED or name in UNSIGNED or name in (*FLOATS, *NANOSECONDS):
        return "number"
    if name in ZONELESS:
        return "timestamp"
    if name in ("varchar", "json", "uuid"):
        return "varchar"
    return name if name in ("boolean", "date", "timestamptz", "blob") else None


def _facts_of_default(node: Node) -> Facts | None:
    """Return the facts of a column that the file lacks: every row has the initial default."""
    read, text = node.read, node.field.initial_default
    kind = domain(read) if read is not None else None
    if read is None or kind is None:
        return None
    if text is None:
        return Facts(kind, may_have_value=False, may_be_nan=False)
    value = bound(read, text)
    return Facts(kind, value, value, may_be_null=False, may_be_nan=value is None)


def _facts_of_stats(
    read: Leaf, leaf: Leaf, stats: ColumnStats, *, top: bool, trusted: bool
) -> Facts | None:
    kind, is_float = domain(read), str(leaf) in FLOATS
    if kind is None or str(leaf) in _UNCOUNTED:
        return None
    ends = (stats.min_value, stats.max_value) if trusted or is_float else (None, None)
    low, high = (_value(read, leaf, text) for text in ends)
    # Counters of nested columns are unreliable, so only bounds count.
    bounded = stats.min_value is not None or stats.max_value is not None
    is_empty = top and stats.value_count == 0 and not bounded and not stats.contains_nan
    return Facts(
        kind,
        low,
        high,
        may_be_null=not top or stats.null_count > 0 or stats.value_count == 0,
        may_have_value=not (is_empty and stats.null_count > 0),
        may_be_nan=is_float and not (trusted and stats.contains_nan is False),
    )


def _value(read: Leaf, written: Leaf, text: str | None) -> Comparable | None:
    """Return a bound, parsed in the type in which it was written, as a value of the read type."""
    if text is not None and written == read and str(written) in _PLAIN_INTEGERS:
        return _whole(text)
    value = bound(written, text)
    source, target = domain(written) or str(written), domain(read)
    if value is None or source == target:
        # Nanoseconds are read as plain numbers and compare with nothing else.
        return value if (str(written) in NANOSECONDS) == (str(read) in NANOSECONDS) else None
    if source == "date" and target == "timestamp":
        days = int(value)
        return None if abs(days) >= INFINITE_DATE else days * DAY_MICROS
    if {source, target} == {"timestamp", "timestamptz"}:
        return value
    return None


def _whole(text: str) -> int | None:
    """Return the same as `bound` for integers, in a fraction of the time."""
    return int(text) if _INTEGER.fullmatch(text) else None


def _compares(operator: Operator, facts: Facts, literal: ComparedValue) -> bool:
    if domain(literal.type) != facts.domain:
        return True
    value = literal.value
    if value != value:  # noqa: PLR0124 - NaN
        return _compares_nan(operator, facts)
    # NaN is greater than every number.
    if facts.may_be_nan and operator in (Operator.GT, Operator.GE, Operator.NE):
        return True
    low, high = facts.low, facts.high
    if operator is Operator.NE:
        return low is None or high is None or not low == high == value
    may_be_low = low is None or _less(low, value) or (low == value and operator is not Operator.LT)
    may_be_high = (
        high is None or _less(value, high) or (high == value and operator is not Operator.GT)
    )
    if operator in (Operator.LT, Operator.LE):
        return may_be_low
    if operator in (Operator.GT, Operator.GE):
        return may_be_high
    return may_be_low and may_be_high


def _compares_nan(operator: Operator, facts: Facts) -> bool:
    if operator in (Operator.EQ, Operator.GE):
        return facts.may_be_nan
    return operator is not Operator.GT


def _starts(facts: Facts, prefix: str) -> bool:
    if facts.domain != "varchar":
        return True
    low, high = facts.low, facts.high
    below = isinstance(high, str) and high < prefix
    above = isinstance(low, str) and low[: len(prefix)] > prefix
    return not (below or above)


def _less(one: Comparable, other: Comparable) -> bool:
    return one < other  # type: ignore[operator]
