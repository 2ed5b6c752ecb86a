"""Which column or struct field of a table a file means: by id, by older name, or by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from shelduck.doors.schema_files.schema_text import TableFile
from shelduck.errors import InvalidRequest
from shelduck.model.changes.schema_change import RenameColumn
from shelduck.model.tables.schema import Field, FieldId, Path, path_text

Matched = dict[str, Field | None]
"""The column or field of the table for each name of the file, None for a new one."""


@dataclass(frozen=True, slots=True)
class Matching:
    """How columns of a file are found in the table ``name``.

    ``replaced`` are ids of columns that jobs converted, with the ids of their replacements: files
    may have the older ones.
    """

    file: TableFile
    name: str
    replaced: Mapping[int, int]

    def of(
        self, fields: Sequence[Field], names: Sequence[str], above: Path, *, knows_ids: bool = True
    ) -> Matched:
        """Return which of sibling ``fields`` each of ``names`` below ``above`` is.

        Without ``knows_ids`` the ids of the file are those of a column before its conversion, and
        names decide. Raises InvalidRequest for an unknown id, for one that stands twice, and if it
        is unclear what is new and what is renamed.
        """
        there = {f.id: f for f in fields}
        by_name = {f.name.lower(): f for f in fields}
        found: Matched = {}
        for name in names:
            path = (*above, name)
            told = self._current(path, there) if knows_ids else None
            older = self.file.older_names.get(path)
            if told is not None:
                found[name] = there[told]
            elif older is not None and older.lower() in by_name:
                found[name] = by_name[older.lower()]
            else:
                # Once it is renamed, the comment about the older name means nothing.
                found[name] = by_name.get(name.lower())
        for name in (name for name, field in found.items() if field is None):
            self._require_no_ids((*above, name))
        self._require_clear(fields, found, above)
        return found

    def is_replaced(self, path: Path, field: Field) -> bool:
        """Return whether the file has the id that a column had before a job converted it."""
        return self.file.ids.get(path, field.id) != field.id

    def _current(self, path: Path, there: Mapping[FieldId, Field]) -> FieldId | None:
        told = self.file.ids.get(path)
        while told is not None and told in self.replaced and FieldId(told) not in there:
            told = self.replaced[told]
        if told is not None and FieldId(told) not in there:
            above = f"{path_text(path[:-1])} of {self.name}" if path[:-1] else self.name
            what = "field" if path[:-1] else "column"
            raise InvalidRequest(
                f"{what} {path[-1]!r} has the id {told}, which no {what} of {above} has; leave the"
                f" comment out of a new {what}"
            )
        return None if told is None else FieldId(told)

    def _require_no_ids(self, path: Path) -> None:
        """Refuse ids of fields in a column or a field that is new."""
        below = next((p for p in self.file.ids if p[: len(path)] == path), None)
        if below is not None:
            raise InvalidRequest(
                f"field {path_text(below)!r} has the id {self.file.ids[below]}, but"
                f" {path_text(path)!r} is new in {self.name}; leave the comment out"
            )

    def _require_clear(self, fields: Sequence[Field], found: Matched, above: Path) -> None:
        what = "fields" if above else "columns"
        taken = [f.id for f in found.values() if f is not None]
        doubled = next((f for f in fields if taken.count(f.id) > 1), None)
        if doubled is not None:
            raise InvalidRequest(
                f"two {what} of the file are {what[:-1]} {path_text((*above, doubled.name))!r} (id"
                f" {doubled.id}) of {self.name}"
            )
        new = [name for name, field in found.items() if field is None]
        lost = [f.name for f in lost_of(fields, found)]
        if new and lost and not self.file.ids:
            raise InvalidRequest(
                f"{self.name}: is {path_text((*above, new[0]))!r} a new {what[:-1]}, or"
                f" {lost[0]!r} with a new name? Write `-- renamed from: {lost[0]}` or `-- id: N`"
                f" behind the {what}, as `schema pull` does"
            )


def lost_of(fields: Sequence[Field], matched: Matched) -> list[Field]:
    """Return the fields that no name of the file is."""
    kept = {f.id for f in matched.values() if f is not None}
    return [f for f in fields if f.id not in kept]


def renames(matched: Matched, above: Path = ()) -> Iterator[RenameColumn]:
    """Yield renames in an order in which no name is taken twice, through others if need be."""
    wanted = {f.name: name for name, f in matched.items() if f is not None and f.name != name}
    known = {n.lower() for name, f in matched.items() for n in (name, f.name if f else name)}
    while wanted:
        free = next((old for old, new in wanted.items() if not _is_taken(new, old, wanted)), None)
        if free is None:
            # A circle: one of them steps aside.
            old, new = next(iter(wanted.items()))
            aside = next(n for n in map("renamed_{}".format, count()) if n not in known)
            yield RenameColumn((*above, old), aside)
            del wanted[old]
            wanted[aside] = new
            continue
        yield RenameColumn((*above, free), wanted.pop(free))


def _is_taken(new: str, old: str, wanted: dict[str, str]) -> bool:
    return any(other.lower() == new.lower() and other != old for other in wanted)
