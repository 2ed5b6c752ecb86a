"""What a merge does, given a table at the base, as it is now, and its twin on the branch; no I/O.

Columns are found by id and files by path. If one side left something as it was at the base, the
other side decides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from shelduck.catalog.read.twins import TwinFile
from shelduck.errors import Conflict, InvalidRequest
from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.constraints import (
    CONSTRAINTS,
    Constraints,
    constraints_of,
    with_constraints,
)
from shelduck.model.tables.keys import KEYS, TableKeys, table_keys, with_keys
from shelduck.model.tables.properties import copied_properties
from shelduck.model.tables.schema import Field, FieldId, Schema, in_places
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import quote_name

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """Something that both sides changed, each in its own way; texts of the three states.

    ``kind`` is ``column``, ``comment``, ``file``, ``key``, ``macro``, ``partition``, ``property``,
    ``row``, ``rule``, ``sort``, ``table``, ``table macro`` or ``view``.
    """

    table: str
    kind: str
    item: str
    base: str
    ours: str
    theirs: str


def refused(what: str, conflicts: Sequence[MergeConflict]) -> Conflict:
    """Return the error for a merge, or its undo, that has conflicts."""
    one = conflicts[0]
    return Conflict(
        f"cannot {what}: {len(conflicts)} change(s) conflict, such as {one.kind}"
        f" {one.item} of {one.table}: it was {one.base or 'nothing'}, is now"
        f" {one.ours or 'nothing'}, and {one.theirs or 'nothing'} on the branch; see"
        " merge_conflicts, and change one side"
    )


OURS, THEIRS = "ours", "theirs"


@dataclass(frozen=True, slots=True)
class Resolution:
    """Which side decides what both changed: ``using`` is ``ours``, the source, or ``theirs``.

    It is about a ``table`` of the source, or all; about one ``column`` of it, also below; or about
    its rows for which ``where`` is true, as SQL over the row of the source, or over that of the
    branch if the source has none.
    """

    using: str
    table: str | None = None
    column: str | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        if self.using not in (OURS, THEIRS):
            raise InvalidRequest(
                f"a conflict is resolved by 'ours' or 'theirs', not {self.using!r}"
            )
        if self.table is None and (self.column or self.where) is not None:
            raise InvalidRequest("a resolution of a column or of rows must name their table")
        if self.column is not None and self.where is not None:
            raise InvalidRequest("a resolution is about a column or about rows, not both")

    def is_about(self, table: str) -> bool:
        """Return whether it is about a table of this name, or about all."""
        return self.table is None or self.table.lower() == table.lower()


@dataclass
class Merging:
    """The merge of one table: its ``resolutions``, and the conflicts that were found so far."""

    table: str
    resolutions: Sequence[Resolution] = ()
    conflicts: list[MergeConflict] = field(default_factory=list)

    def chosen(
        self, kind: str, item: str, base: V, ours: V, theirs: V, *, column: str | None = None
    ) -> V:
        """Return the state that a side changed; if both did, that of a resolution, or ours."""
        if base in (ours, theirs):
            return theirs if ours == base else ours
        if ours == theirs:
            return ours
        side = self.decided(column)
        if side is None:
            self.refuse(kind, item, base, ours, theirs)
        return theirs if side == THEIRS else ours

    def decided(self, column: str | None = None) -> str | None:
        """Return the side of the first resolution of the table, or of a column; None for none."""
        for each in self.resolutions:
            named = each.column is None or (column or "").lower() == each.column.lower()
            if each.where is None and named:
                return each.using
        return None

    def refuse(self, kind: str, item: str, base: object, ours: object, theirs: object) -> None:
        """Note a conflict."""
        told = map(_shown, (base, ours, theirs))
        self.conflicts.append(MergeConflict(self.table, kind, item, *told))

    def mapping(
        self,
        kind: str,
        of: Callable[[K], str],
        sides: tuple[Mapping[K, V], Mapping[K, V], Mapping[K, V]],
    ) -> dict[K, V]:
        """Return the merge of three mappings, entry by entry."""
        found = {}
        for key in dict.fromkeys(key for side in sides for key in side):
            value = self.chosen(kind, of(key), *(side.get(key) for side in sides))
            if value is not None:
                found[key] = value
        return found


def _shown(state: object) -> str:
    if isinstance(state, Field):
        return f"{quote_name(state.name)} {state.type}"
    return "" if state is None else str(state)


def merged_columns(merging: Merging, base: Schema, ours: Schema, theirs: Schema) -> Schema:
    """Return the columns after a merge, in the order of the side that moved some."""
    found = _siblings(merging, base.fields, ours.fields, theirs.fields)
    names: dict[str, Field] = {}
    for each in found:
        other = names.setdefault(each.name.lower(), each)
        if other is not each:
            merging.refuse("column", each.name, None, f"id {other.id}", f"id {each.id}")
    return ours.with_fields(in_places(found))


def _siblings(
    merging: Merging,
    base: Sequence[Field],
    ours: Sequence[Field],
    theirs: Sequence[Field],
    top: str | None = None,
) -> tuple[Field, ...]:
    """Return the merge of columns, or of fields below the column ``top``."""
    known = [{f.id: f for f in side} for side in (base, ours, theirs)]
    found = {}
    for number in _ordered(*(list(side) for side in known)):
        states = [side.get(number) for side in known]
        made = _field(merging, *states, top=top)
        if made is not None:
            found[number] = made
    return tuple(found.values())


def _ordered(base: list[FieldId], ours: list[FieldId], theirs: list[FieldId]) -> list[FieldId]:
    """Return all ids in the order of the side that has moved some.

    A new one of the other side stands behind what it stands behind there, and behind other new
    ones, unless it has taken the place of one that went.
    """
    stay = [n for n in ours if n in base] == [n for n in base if n in ours]
    first, second = (theirs, ours) if stay else (ours, theirs)
    found = _with_gone(base, first)
    whole = _with_gone(base, second)
    for at, number in enumerate(whole):
        if number in found:
            continue
        place = found.index(whole[at - 1]) + 1 if at else 0
        while (
            place < len(found) and found[place] not in base and (not at or whole[at - 1] in second)
        ):
            place += 1
        found.insert(place, number)
    return found


def _with_gone(base: list[FieldId], side: list[FieldId]) -> list[FieldId]:
    """Return the ids of a side with those that it dropped, where they stood."""
    found = list(side)
    for at, number in enumerate(base):
        if number not in side:
            found.insert(found.index(base[at - 1]) + 1 if at else 0, number)
    return found


def _field(
    merging: Merging,
    base: Field | None,
    ours: Field | None,
    theirs: Field | None,
    *,
    top: str | None,
) -> Field | None:
    states = [None if f is None else replace(f, order=0) for f in (base, ours, theirs)]
    if base is None or ours is None or theirs is None or base in (ours, theirs):
        one = next(f for f in (base, ours, theirs) if f is not None)
        kept = merging.chosen("column", one.name, *states, column=top or one.name)
        return next((f for f, s in zip((ours, theirs), states[1:], strict=True) if s == kept), None)
    parts: dict[str, Any] = {}
    for part in (each.name for each in fields(Field)):
        values = [getattr(f, part) for f in (base, ours, theirs)]
        if part == "children":
            parts[part] = _siblings(merging, values[0], values[1], values[2], top or base.name)
        elif part in ("id", "order"):
            parts[part] = values[1]
        else:
            told = f"{base.name}.{part}"
            parts[part] = merging.chosen("column", told, *values, column=top or base.name)
    return Field(**parts)


def merged_table(
    merging: Merging, base: TableVersion, ours: TableVersion, theirs: TableVersion
) -> TableVersion:
    """Return a table with the columns, comments, keys, sort order and properties of a merge.

    The properties that no copy of a table has are those of ours.
    """
    sides = (base, ours, theirs)
    columns = merged_columns(merging, *(t.columns for t in sides))
    comments = merging.mapping(
        "comment",
        lambda number: "the table" if number is None else f"column {number}",
        (base.comments, ours.comments, theirs.comments),
    )
    known = {f.id for f in columns.walk()}
    rules = [{one.name: one for one in constraints_of(t.properties, t.full_name)} for t in sides]
    checks = merging.mapping("rule", str, (rules[0], rules[1], rules[2]))
    copied = (copied_properties(t.properties) for t in sides)
    plain = [{k: v for k, v in found.items() if k != CONSTRAINTS} for found in copied]
    if len({found.get(KEYS, "") for found in plain}) == len(plain):
        _merge_keys(merging, plain, sides, columns)
    properties = merging.mapping("property", str, (plain[0], plain[1], plain[2]))
    made = replace(
        ours,
        columns=columns,
        comments={n: text for n, text in comments.items() if n is None or n in known},
        partition=merging.chosen("partition", "keys", *(t.partition for t in sides)),
        sort=merging.chosen("sort", "order", *(t.sort for t in sides)),
        properties=with_constraints(properties, Constraints(tuple(checks.values()))),
    )
    for what, used in _uses(made):
        if not used <= known:
            merging.refuse("rule", what, None, f"uses column {min(used - known)}", "without it")
    return with_own(made, ours)


def _merge_keys(
    merging: Merging,
    properties: Sequence[dict[str, str]],
    sides: Sequence[TableVersion],
    columns: Schema,
) -> None:
    """Give all sides the key model of the merge, after both changed theirs."""
    names = {f.id: f.name for f in columns}
    known = [table_keys(table) for table in sides]
    told = [_told_keys(keys, names) for keys in known]
    found = known[told.index(merging.chosen("key", "model", told[0], told[1], told[2]))]
    how = [dict(keys.aggregations) if keys else {} for keys in known]
    values = merging.mapping("key", lambda n: names.get(n, str(n)), (how[0], how[1], how[2]))
    if found is not None:
        found = replace(found, aggregations=tuple(values.items()))
    for each in properties:
        each.pop(KEYS, None)
        each.update(with_keys({}, found))


def _told_keys(keys: TableKeys | None, names: Mapping[FieldId, str]) -> str:
    """Return a key model but for its aggregations as a text."""
    if keys is None:
        return ""
    more = keys.sequence, keys.distributed_by, keys.buckets
    columns = ", ".join(names.get(n, str(n)) for n in keys.columns)
    return f"{keys.model.value} KEY ({columns}) {more if any(more) else ''}".rstrip()


def with_own(made: TableVersion, table: TableVersion) -> TableVersion:
    """Return what a table becomes, with the properties that no copy of it has."""
    own = table.properties.keys() - copied_properties(table.properties).keys()
    kept = {key: table.properties[key] for key in own}
    return replace(made, properties=copied_properties(made.properties) | kept)


def _uses(table: TableVersion) -> Iterator[tuple[str, set[FieldId]]]:
    """Yield what needs columns of a table, with their ids: a side may have dropped some."""
    for rule in constraints_of(table.properties, table.full_name):
        yield f"constraint {rule.name}", rule.uses
    for one in computed_of(table.properties, table.full_name):
        if table.columns.by_id(one.column) is not None and one.expression is not None:
            yield f"column {one.column}", one.expression.fields
    keys = table_keys(table)
    if keys is not None:
        yield f"the {keys.model.value} KEY", {*keys.columns}
    yield "the partition keys", {part.column_id for part in table.partition}


Files = Mapping[str, TwinFile]


@dataclass
class FilesTaken:
    """What the files of a table get of its twin, as in `TakeFiles`."""

    ended: list[int] = field(default_factory=list)
    taken: list[TwinFile] = field(default_factory=list)
    replaced: list[tuple[int, int | None]] = field(default_factory=list)
    is_whole: bool = False

    @property
    def is_empty(self) -> bool:
        """True if the table has these rows already."""
        return not (self.ended or self.taken or self.replaced)


def whole_files(ours: Files, theirs: Files) -> FilesTaken:
    """Return what makes the files of a table those of its twin: its own rows did not change."""
    found = FilesTaken(is_whole=True)
    found.ended = [file.id for path, file in ours.items() if path not in theirs]
    found.taken = [file for path, file in theirs.items() if path not in ours]
    for path, file in ours.items():
        other = theirs.get(path)
        if other is not None and other.delete_path != file.delete_path:
            found.replaced.append((file.id, other.delete_id))
    return found


def merged_files(
    merging: Merging, ours: tuple[Files, Files], theirs: tuple[Files, Files]
) -> FilesTaken:
    """Return what a table gets if both sides changed rows; a file that both changed is refused.

    Each side is its files at the base, and now.
    """
    found = FilesTaken()
    for path in theirs[0]:
        mine, other = ([_state(files.get(path)) for files in side] for side in (ours, theirs))
        if other[0] == other[1]:
            continue
        known, now = ours[1].get(path), theirs[1].get(path)
        # What stood still since the base may have been another one then, too.
        if known is None or mine[1] != other[0]:
            if known is None or now is None or mine[1] != other[1]:
                merging.refuse("file", path, other[0], mine[1], other[1])
        elif now is None:
            found.ended.append(known.id)
        else:
            found.replaced.append((known.id, now.delete_id))
    found.taken = [file for path, file in theirs[1].items() if path not in theirs[0]]
    return found


def _state(file: TwinFile | None) -> str:
    """Return the text of what is left of a file."""
    if file is None:
        return "no rows"
    left = "all rows" if file.delete_path is None else f"without {file.delete_path}"
    return f"{left}, in part" if file.in_part else left
