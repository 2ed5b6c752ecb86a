"""Names that a statement gives to a column before it takes them from another one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shelduck.errors import AlreadyExists
from shelduck.model.changes.schema_change import RenameColumn
from shelduck.model.tables.schema import Field, FieldId, Path, Schema


@dataclass
class WaitingNames:
    """Renames whose new name is taken: ``RENAME a TO b, RENAME b TO a``.

    The column has a name of its own until a later clause renames or drops the other column, to
    which the name refers until then.
    """

    table: str
    names: dict[FieldId, str] = field(default_factory=dict)

    def unless_taken(self, change: RenameColumn, columns: Schema) -> RenameColumn:
        """Return a rename, to another name for now if its own is taken."""
        found, above = columns.find(change.path), change.path[:-1]
        other = columns.find((*above, change.new_name))
        if found is None or other is None or other.id == found.id:
            return change
        self.names[found.id] = change.new_name
        now = f"{change.new_name}_"
        while columns.find((*above, now)) is not None:
            now += "_"
        return RenameColumn(change.path, now)

    def freed(self, columns: Schema) -> RenameColumn | None:
        """Return the rename of a column whose new name has become free, None if there is none."""
        for number, name in self.names.items():
            path = _path_of(number, columns.fields)
            if path is None or columns.find((*path[:-1], name)) is None:
                del self.names[number]
                return None if path is None else RenameColumn(path, name)
        return None

    def finish(self) -> None:
        """Raise AlreadyExists for a name that is still taken."""
        for name in self.names.values():
            raise AlreadyExists.named("column", name, self.table)


def _path_of(number: FieldId, fields: Iterable[Field]) -> Path | None:
    for one in fields:
        if one.id == number:
            return (one.name,)
        below = _path_of(number, one.children)
        if below is not None:
            return (one.name, *below)
    return None
