"""The clauses of ALTER TABLE that say how one version of a table differs from an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shelduck.model.changes.change import changed_texts
from shelduck.model.changes.constraining import DropConstraint
from shelduck.model.changes.definition import Position
from shelduck.model.changes.modify import OrderColumns, TableChange
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.tables.constraints import constraints_of
from shelduck.model.tables.partition import ResetPartitioning, ResetSorting
from shelduck.model.tables.properties import SetProperties, UnsetProperties, shown_properties
from shelduck.model.tables.schema import Field, FieldId, Kind, Path, with_paths
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import quote_name
from shelduck.model.types.data_types import type_text
from shelduck.text.ddl.render import partition_texts, sort_texts


def clauses_between(
    old: TableVersion, new: TableVersion, converted: Mapping[FieldId, FieldId]
) -> tuple[str, ...]:
    """Return what differs, in the words of ALTER TABLE; columns are found by id.

    ``converted`` are columns with those into which jobs converted them.
    """
    found = _Clauses(old, new, converted)
    renamed = () if old.name == new.name else (f"RENAME TO {quote_name(new.name)}",)
    told = (*found.all_columns(), *found.layout(), *found.rules())
    return (*renamed, *map(str, told))


def column_changes(old: TableVersion, new: TableVersion) -> Iterator[TableChange]:
    """Yield what makes the columns of one version, and their comments, those of another one."""
    return _Clauses(old, new, {}).all_columns()


def property_changes(
    old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[SetProperties | UnsetProperties]:
    """Yield what makes the shown properties of a table those of another one."""
    changed = changed_texts(old, new)
    if kept := tuple((key, text) for key, text in changed.items() if text is not None):
        yield SetProperties(kept)
    if gone := tuple(key for key, text in changed.items() if text is None):
        yield UnsetProperties(gone)


@dataclass(frozen=True, slots=True)
class _Clauses:
    old: TableVersion
    new: TableVersion
    converted: Mapping[FieldId, FieldId]

    def _now(self, number: FieldId) -> FieldId:
        """Return the id under which an older column is found in the newer version."""
        return self.converted.get(number, number)

    def all_columns(self) -> Iterator[TableChange]:
        """Yield what became of the columns, and of comments."""
        yield from self.columns((), self.old.columns.fields, self.new.columns.fields)
        yield from self.comments()

    def columns(
        self, above: Path, old: Sequence[Field], new: Sequence[Field]
    ) -> Iterator[TableChange]:
        """Yield what became of sibling fields."""
        known = self.new.comments
        was, now = {self._now(f.id): f for f in old}, {f.id: f for f in new}
        yield from (DropColumn((*above, f.name)) for n, f in was.items() if n not in now)
        stay = [n for n in now if n in was]
        # Later clauses name a column as it is then, also where two exchange their names.
        told = ((was[n].name, now[n].name) for n in stay)
        yield from (RenameColumn((*above, name), other) for name, other in told if name != other)
        place: Position | None = Position()
        for number, made in now.items():
            path = (*above, made.name)
            if number in was:
                yield from self._column(path, was[number], made)
            else:
                is_last = not stay or list(now).index(number) > list(now).index(stay[-1])
                yield AddColumn(
                    *(path, made.commented(known), made.default, made.nullable),
                    known.get(made.id),
                    None if is_last else place,
                )
                below = list(with_paths(made.children, path))
                yield from (SetDefault(p, f.default) for p, f in below if f.default is not None)
                # A type says the comments of its fields, but not of its elements, keys and values.
                inside = (f for f in made.walk() if f.shape is not Kind.STRUCT)
                parts = {child.id for f in inside for child in f.children} & known.keys()
                yield from (SetComment(p, known[f.id]) for p, f in below if f.id in parts)
            place = Position(made.name)
        if [n for n in was if n in now] != stay:
            names = tuple(f.name for f in new)
            befores = [None, *names]
            moves = (
                MoveColumn((*above, n), Position(b)) for b, n in zip(befores, names, strict=False)
            )
            yield from moves if above else (OrderColumns(names),)

    def _column(self, path: Path, old: Field, new: Field) -> Iterator[TableChange]:
        kinds = (type_text(f.type) for f in (old, new)) if new.is_leaf else (old.shape, new.shape)
        if len({*kinds}) > 1 or old.id != new.id:
            yield ChangeType(path, new.type)
        else:
            yield from self.columns(path, old.children, new.children)
        if old.default != new.default:
            yield SetDefault(path, new.default)
        if old.nullable != new.nullable:
            yield SetNullable(path, nullable=new.nullable)

    def comments(self) -> Iterator[SetComment]:
        """Yield the comments of the table, and of columns that stay."""
        paths = {f.id: path for path, f in with_paths(self.new.columns)}
        stay = {self._now(f.id) for f in self.old.columns.walk()} & paths.keys()
        before = {n and self._now(n): text for n, text in self.old.comments.items()}
        for number, text in changed_texts(before, self.new.comments).items():
            if number is None or number in stay:
                yield SetComment(() if number is None else paths[number], text)

    def layout(self) -> Iterator[object]:
        """Yield the partition keys and the sort order, if they changed."""
        keys = [(self._now(key.column_id), key.transform) for key in self.old.partition]
        if keys != [(key.column_id, key.transform) for key in self.new.partition]:
            keys_now = ", ".join(partition_texts(self.new))
            yield f"SET PARTITIONED BY ({keys_now})" if keys_now else ResetPartitioning()
        if self.old.sort != self.new.sort:
            order = ", ".join(sort_texts(self.new))
            yield f"SET SORTED BY ({order})" if order else ResetSorting()

    def rules(self) -> Iterator[object]:
        """Yield the constraints and the properties that changed."""
        known = [constraints_of(t.properties, t.full_name) for t in (self.old, self.new)]
        texts = [
            {one.name: one.text(t.columns) for one in found}
            for found, t in zip(known, (self.old, self.new), strict=True)
        ]
        means = [{one.name: one.meaning for one in found} for found in known]
        for name in {**texts[0], **texts[1]}:
            if texts[0].get(name) == texts[1].get(name):
                continue
            if means[0].get(name) == means[1].get(name):
                continue
            if name in texts[0]:
                yield DropConstraint(name)
            if name in texts[1]:
                yield f"ADD {texts[1][name]}"
        shown = [shown_properties(t.properties, t.columns) for t in (self.old, self.new)]
        yield from property_changes(*shown)
