"""How a table becomes the one that a file declares: the changes of one ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shelduck.doors.schema_files.schema_text import Matched, Matching, TableFile, lost_of, renames
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.changes.change import altered
from shelduck.model.changes.constraining import AddConstraint, DropConstraint
from shelduck.model.changes.definition import Definition, Position
from shelduck.model.changes.modify import OrderColumns, TableChange
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.tables.column_storage import storage_property
from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.constraints import constraints_of
from shelduck.model.tables.keys import table_keys
from shelduck.model.tables.partition import (
    ResetPartitioning,
    ResetSorting,
    SetPartitioning,
    SetSorting,
    SortKey,
    parse_sort_key,
)
from shelduck.model.tables.properties import SetProperties, UnsetProperties, shown_properties
from shelduck.model.tables.rollup import RollupSpec
from shelduck.model.tables.schema import Default, Field, Kind, Path, Schema, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import split_name
from shelduck.model.types.data_types import DataType, List, Map, Member, Struct
from shelduck.model.types.literals import canonical_text

Changes = tuple[TableChange, ...]
_RESETS = (ResetPartitioning, ResetSorting)


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes from a table to its file, in order; ``lost`` are the columns that go with it."""

    changes: tuple[TableChange, ...] = ()
    lost: tuple[str, ...] = ()


def difference(
    table: TableVersion,
    file: TableFile,
    rollups: Sequence[RollupSpec],
    renders: Callable[[Default], bool],
    replaced: Mapping[int, int],
) -> Difference:
    """Return the changes that make a table what a file declares.

    ``rollups`` are those that the table has. ``renders`` says whether a default can be written in a
    file at all; others stay. ``replaced`` are ids of columns that jobs converted, with the ids of
    their replacements. Raises InvalidRequest if it is unclear which column of the file is
    which of the table, and Unsupported for changes of the key model or of rollups, which have
    statements of their own.
    """
    matching = Matching(file, table.full_name, replaced)
    names = [c.name for c in file.table.columns]
    matched = matching.of(table.columns.fields, names, ())
    _require_same_model(table, file, rollups, matched)
    lost = lost_of(table.columns.fields, matched)
    changes: list[TableChange] = []
    partitions = _partitions(table, file, matched)
    if partitions and table.partition:
        changes.append(ResetPartitioning())
    sorting = _sorting(table, file, matched)
    if sorting and table.sort:
        changes.append(ResetSorting())
    constraints = _constraints(table, file, matched)
    changes += [c for c in constraints if isinstance(c, DropConstraint)]
    changes += [DropColumn((f.name,)) for f in lost]
    changes += renames(matched)
    inside = Inside(table, matching, renders)
    for column in file.table.columns:
        field = matched[column.name]
        if field is not None:
            changes += _column(field, column, inside)
    for added in _added(file, matched):
        changes += [added, *inside.details_below(added.path)]
    changes += _order(table, file, matched)
    changes += [c for c in (*partitions, *sorting) if not isinstance(c, _RESETS)]
    if file.table.comment != table.comments.get(None):
        changes.append(SetComment((), file.table.comment))
    changes += _properties(table, file, matched)
    changes += [c for c in constraints if isinstance(c, AddConstraint)]
    names_lost = [path_text((f.name,)) for f in lost] + inside.lost
    return Difference(tuple(changes), tuple(names_lost))


def _column(field: Field, column: Definition, inside: Inside) -> Iterator[TableChange]:
    path = (column.name,)
    if column.nullable and not field.nullable:
        yield SetNullable(path, nullable=True)
    reached = inside.reached(field, column.type, path)
    yield from inside.taken()
    if not _same_type(reached, column.type):
        yield ChangeType(path, column.type)
    if not inside.has_default(field, column.default):
        yield SetDefault(path, column.default)
    if field.nullable and not column.nullable:
        yield SetNullable(path, nullable=False)
    if column.comment != inside.table.comments.get(field.id):
        yield SetComment(path, column.comment)


def _same_type(one: DataType, other: DataType) -> bool:
    """Return whether two types are the same but for the order of members."""
    match one, other:
        case Struct(members=now), Struct(members=wanted):
            types = {m.name: m.type for m in wanted}
            same_names = len(now) == len(wanted) and {m.name for m in now} == types.keys()
            return same_names and all(_same_type(m.type, types[m.name]) for m in now)
        case List(element=now), List(element=wanted):
            return _same_type(now, wanted)
        case Map(key=now_key, value=now_value), Map(key=key, value=value):
            return _same_type(now_key, key) and _same_type(now_value, value)
        case _:
            return one == other


def _added(file: TableFile, matched: Matched) -> Iterator[AddColumn]:
    before: str | None = None
    for column in file.table.columns:
        if matched[column.name] is None:
            yield AddColumn(
                (column.name,),
                column.type,
                column.default,
                column.nullable,
                column.comment,
                Position(before),
                column.key,
                column.aggregation,
            )
        before = column.name


def _order(table: TableVersion, file: TableFile, matched: Matched) -> list[OrderColumns]:
    """Return the order of the kept columns, if it changed."""
    place = {f.id: n for n, f in enumerate(table.columns)}
    kept = [f.id for f in matched.values() if f is not None]
    if sorted(kept, key=place.__getitem__) == kept:
        return []
    return [OrderColumns(tuple(c.name for c in file.table.columns))]


def _partitions(
    table: TableVersion, file: TableFile, matched: Matched
) -> list[SetPartitioning | ResetPartitioning]:
    now = [(k.column_id, k.transform) for k in table.partition]
    wanted = []
    for key in file.table.partitioned_by:
        field = _found(matched, key.column)
        wanted.append((None if field is None else field.id, str(key.transform)))
    if now == wanted:
        return []
    keys = file.table.partitioned_by
    return [SetPartitioning(tuple(keys)) if keys else ResetPartitioning()]


def _sorting(
    table: TableVersion, file: TableFile, matched: Matched
) -> list[SetSorting | ResetSorting]:
    if file.table.keys is not None and not file.table.sorted_by:
        # Tables with keys are sorted by them.
        return []
    names = {f.name.lower(): name for name, f in matched.items() if f is not None}
    now = [_renamed(parse_sort_key(text), names) for text in table.sort]
    wanted = [_renamed(key, {}) for key in file.table.sorted_by]
    if now == wanted:
        return []
    keys = file.table.sorted_by
    return [SetSorting(tuple(keys)) if keys else ResetSorting()]


def _renamed(key: SortKey, names: Mapping[str, str]) -> SortKey:
    """Return a key with the name that its column has in the file, if it is a plain column."""
    try:
        [name] = split_name(key.expression.replace('"', "`"))
    except (InvalidRequest, ValueError):
        return key
    return replace(key, expression=names.get(name.lower(), name).lower())


def _properties(
    table: TableVersion, file: TableFile, matched: Matched
) -> list[SetProperties | UnsetProperties]:
    now = shown_properties(table.properties, _in_file(matched))
    wanted = dict(storage_property(k, v) or (k, v) for k, v in file.table.properties.items())
    changed = tuple((k, v) for k, v in sorted(wanted.items()) if now.get(k) != v)
    gone = tuple(k for k in now if k not in wanted)
    found: list[SetProperties | UnsetProperties] = []
    if changed:
        found.append(SetProperties(changed))
    if gone:
        found.append(UnsetProperties(gone))
    return found


def _constraints(
    table: TableVersion, file: TableFile, matched: Matched
) -> list[DropConstraint | AddConstraint]:
    """Return which constraints go and come; one that changes does both."""
    columns = _in_file(matched)
    left = list(constraints_of(table.properties, table.full_name))
    found: list[DropConstraint | AddConstraint] = []
    for wanted in file.table.constraints:
        same = next((one for one in left if wanted.means(one, columns)), None)
        if same is None:
            found.append(wanted)
        else:
            left.remove(same)
    return [*(DropConstraint(one.name) for one in left), *found]


def _require_same_model(
    table: TableVersion, file: TableFile, rollups: Sequence[RollupSpec], matched: Matched
) -> None:
    now, wanted = table_keys(table), file.table.keys
    if (now is None) != (wanted is None):
        raise Unsupported(
            f"{table.full_name}: a table cannot get or lose a key model; create another table"
        )
    if now is not None and wanted is not None:
        fields = [_found(matched, name) for name in wanted.columns]
        same_keys = tuple(f.id for f in fields if f is not None) == now.columns
        if now.model is not wanted.model or not same_keys:
            raise Unsupported(
                f"{table.full_name}: the key model or its columns changed; use ALTER TABLE … ADD"
                " COLUMN … KEY, DROP COLUMN and ORDER BY"
            )
    _require_same_computed(table, file, matched)
    names = {spec.name.lower() for spec in rollups}
    if names != {spec.name.lower() for spec in file.rollups}:
        raise Unsupported(
            f"{table.full_name}: its rollups changed; use ALTER TABLE … ADD ROLLUP and DROP ROLLUP"
        )


def _require_same_computed(table: TableVersion, file: TableFile, matched: Matched) -> None:
    now = computed_of(table.properties, table.full_name)
    if not now.all and not file.table.computed:
        return
    columns = _in_file(matched)
    wanted = [one.bound(columns, table.full_name) for one in file.table.computed]
    kept = [one for one in now if columns.by_id(one.column) is not None]
    if {one.meaning for one in wanted} != {one.meaning for one in kept}:
        raise Unsupported(
            f"{table.full_name}: what computes a column cannot change; create another table"
        )


def _in_file(matched: Matched) -> Schema:
    """Return the columns that stay, under the names that they have in the file."""
    present = ((name, field) for name, field in matched.items() if field is not None)
    return Schema(tuple(replace(field, name=name) for name, field in present))


def _found(matched: Matched, name: str) -> Field | None:
    lowered = name.lower()
    return next((f for n, f in matched.items() if n.lower() == lowered), None)


def light_and_heavy(table: TableVersion, changes: Sequence[TableChange]) -> tuple[Changes, Changes]:
    """Return the changes that only write metadata, and those of a job that comes after them.

    What depends on a new type goes with it: the new default of the column, and a layout by it.
    Raises what `plan_alter` raises.
    """
    light: list[TableChange] = []
    heavy: list[TableChange] = []
    converted: set[str] = set()
    if any(isinstance(c, SetPartitioning | ResetPartitioning) for c in changes):
        # The keys of the table count at the end of all changes, wherever the clause is.
        table = replace(table, partition=())
    for change in changes:
        if isinstance(change, ChangeType) and plan_alter(_after(table, light), [change]).is_heavy:
            converted.add(change.path[0].lower())
            heavy.append(change)
        elif _depends_on(change, converted):
            heavy.append(change)
        else:
            light.append(change)
    return tuple(light), tuple(heavy)


def _depends_on(change: TableChange, converted: set[str]) -> bool:
    match change:
        case SetDefault(path=path, default=default):
            return default is not None and path[0].lower() in converted
        case SetPartitioning(keys=keys):
            return any(key.column.lower() in converted for key in keys)
        case SetSorting():
            # A key is an expression, which may name any column.
            return bool(converted)
        case _:
            return False


def _after(table: TableVersion, changes: Sequence[TableChange]) -> TableVersion:
    change = plan_alter(table, changes).change if changes else None
    return table if change is None else altered(table, change)


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
