"""How the struct fields of a column become those that a file declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from shelduck.errors import InvalidRequest
from shelduck.evolution.field_match import Matching, lost_of, renames
from shelduck.model.changes.definition import Position
from shelduck.model.changes.schema_change import AddColumn, DropColumn, SetComment, SetDefault
from shelduck.model.changes.table_change import TableChange
from shelduck.model.tables.schema import Default, Field, Kind, Path, path_text
from shelduck.model.tables.table import TableVersion
from shelduck.model.types.data_types import DataType, List, Map, Member, Struct
from shelduck.model.types.literals import canonical_text


@dataclass
class Inside:
    """Collects what changes below columns; ``lost`` are the fields that go.

    ``renders`` says whether a default can be written in a file at all; others stay.
    """

    table: TableVersion
    matching: Matching
    renders: Callable[[Default], bool]
    lost: list[str] = field(default_factory=list)
    _changes: list[TableChange] = field(default_factory=list)

    def reached(self, column: Field, wanted: DataType, path: Path) -> DataType:
        """Return the type that a column has after the changes, which `taken` then returns.

        Fields are dropped, renamed and added by statements of their own, so that a renamed field
        keeps its id. What still differs from ``wanted`` is a change of types.
        """
        knows_ids = not self.matching.is_replaced(path, column)
        return self._below(column, wanted, path, knows_ids=knows_ids)

    def taken(self) -> Iterator[TableChange]:
        """Yield the changes that were collected since the last call."""
        changes, self._changes = self._changes, []
        yield from changes

    def has_default(self, field: Field, wanted: Default | None) -> bool:
        """Return whether a default is the wanted one; one that no file can show counts as none."""
        default = field.default
        shown = default if default is None or self.renders(default) else None
        return _same_default(field, shown, wanted)

    def details_below(self, path: Path) -> Iterator[TableChange]:
        """Yield the defaults and comments that the file has for fields below a new one."""
        file = self.matching.file
        for below, default in file.defaults.items():
            if below[: len(path)] == path and below != path and default is not None:
                yield SetDefault(below, default)
        for below, comment in file.comments.items():
            if below[: len(path)] == path and below != path and comment is not None:
                yield SetComment(below, comment)

    def _below(self, now: Field, wanted: DataType, path: Path, *, knows_ids: bool) -> DataType:
        match now.shape, wanted:
            case Kind.STRUCT, Struct():
                return self._struct(now, wanted, path, knows_ids=knows_ids)
            case Kind.LIST, List(element):
                below = (*path, "element")
                return List(self._below(now.children[0], element, below, knows_ids=knows_ids))
            case Kind.MAP, Map(value=value):
                # Fields of keys cannot be dropped or added one by one: keys could become equal.
                key, child = now.children
                below = (*path, "value")
                return Map(key.type, self._below(child, value, below, knows_ids=knows_ids))
            case _:
                return now.type

    def _struct(self, now: Field, wanted: Struct, path: Path, *, knows_ids: bool) -> DataType:
        names = [m.name for m in wanted.members]
        matched = self.matching.of(now.children, names, path, knows_ids=knows_ids)
        lost = lost_of(now.children, matched)
        self.lost += [path_text((*path, f.name)) for f in lost]
        if len(lost) == len(now.children):
            # A struct without fields does not exist: one change replaces all of them.
            return now.type
        self._changes += [DropColumn((*path, f.name)) for f in lost]
        self._changes += renames(matched, path)
        members: list[Member] = []
        for member in wanted.members:
            child = matched[member.name]
            place = (*path, member.name)
            if child is not None:
                reached = self._below(child, member.type, place, knows_ids=knows_ids)
                self._details(child, place)
            else:
                reached = member.type
                self._add(member, place, members[-1].name if members else None)
            members.append(Member(member.name, reached))
        return Struct(tuple(members))

    def _add(self, member: Member, place: Path, before: str | None) -> None:
        file = self.matching.file
        default, comment = file.defaults.get(place), file.comments.get(place)
        added = AddColumn(place, member.type, default, True, comment, Position(before))
        self._changes += [added, *self.details_below(place)]

    def _details(self, child: Field, place: Path) -> None:
        """Collect the changes of a field's own default and comment."""
        file = self.matching.file
        default, comment = file.defaults.get(place), file.comments.get(place)
        if not self.has_default(child, default):
            self._changes.append(SetDefault(place, default))
        if comment != self.table.comments.get(child.id):
            self._changes.append(SetComment(place, comment))


def _same_default(field: Field, now: Default | None, wanted: Default | None) -> bool:
    """Return whether two defaults of a field are the same value or the same expression."""
    if now is None or wanted is None or isinstance(field.shape, Kind):
        return now == wanted
    if not (now.literal and wanted.literal):
        return now == wanted
    try:
        return canonical_text(field.shape, now.text) == canonical_text(field.shape, wanted.text)
    except InvalidRequest:
        return now == wanted
