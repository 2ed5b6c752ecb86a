"""How a table becomes the one that a file declares: the changes of one ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from shelduck.branches.table_clauses import column_changes, property_changes
from shelduck.doors.schema_files.schema_text import Matching, TableFile, lost_of
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.evolution.plan import plan_alter
from shelduck.model.changes.change import altered
from shelduck.model.changes.constraining import AddConstraint, DropConstraint
from shelduck.model.changes.definition import Definition, is_same_default
from shelduck.model.changes.modify import TableChange
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
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
from shelduck.model.tables.properties import shown_properties
from shelduck.model.tables.rollup import RollupSpec
from shelduck.model.tables.schema import (
    Default,
    Field,
    FieldId,
    Kind,
    Path,
    Schema,
    new_field,
    path_text,
)
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import split_name
from shelduck.model.types.data_types import DataType, Member, Struct, members_of, shared_parts

Changes = tuple[TableChange, ...]


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
    target = _Target(table, Matching(file, table.full_name, replaced), renders)
    after = target.made()
    kept = Schema(tuple(f for f in after.columns if table.columns.by_id(f.id) is not None))
    _require_same_model(table, file, rollups, kept)
    moves, sorts = _has_other_partitions(table, file, kept), _has_other_order(table, file, kept)
    constraints = _constraints(table, file, kept)
    changes: list[TableChange] = []
    changes += [ResetPartitioning()] if moves and table.partition else []
    changes += [ResetSorting()] if sorts and table.sort else []
    changes += [c for c in constraints if isinstance(c, DropConstraint)]
    changes += _of_columns(table, after, file)
    keys, order = file.table.partitioned_by, file.table.sorted_by
    changes += [SetPartitioning(keys)] if moves and keys else []
    changes += [SetSorting(order)] if sorts and order else []
    now, told = shown_properties(table.properties, kept), file.table.properties
    wanted = dict(storage_property(k, v) or (k, v) for k, v in sorted(told.items()))
    changes += property_changes(now, wanted)
    changes += [c for c in constraints if isinstance(c, AddConstraint)]
    return Difference(tuple(changes), tuple(target.lost))


def _of_columns(table: TableVersion, after: TableVersion, file: TableFile) -> list[TableChange]:
    """Return the changes of columns; ``after`` has those of the file with the types of today."""
    wanted = {c.name: c for c in file.table.columns}
    changes: list[TableChange] = []
    for change in column_changes(table, after):
        if isinstance(change, AddColumn) and len(change.path) == 1:
            made = wanted[change.name]
            changes.append(replace(change, key=made.key, aggregation=made.aggregation))
        else:
            changes.append(change)
    types = ((f.type, wanted[f.name].type, f.name) for f in after.columns)
    changes += [ChangeType((name,), to) for now, to, name in types if not _same_type(now, to)]
    # What is said of a column, such as its default, may need its new type.
    return sorted(changes, key=lambda c: isinstance(c, SetDefault | SetNullable | SetComment))


def _same_type(one: DataType, other: DataType) -> bool:
    """Return whether two types are the same but for the order of members."""
    pairs = shared_parts(one, other)
    if pairs is None:
        return one == other
    is_all = len(pairs) == len(members_of(one)) == len(members_of(other))
    return is_all and all(a.name == b.name and _same_type(a.type, b.type) for a, b in pairs)


def _has_other_partitions(table: TableVersion, file: TableFile, kept: Schema) -> bool:
    now = [(k.column_id, k.transform) for k in table.partition]
    wanted = []
    for key in file.table.partitioned_by:
        field = kept.find((key.column,))
        wanted.append((None if field is None else field.id, str(key.transform)))
    return now != wanted


def _has_other_order(table: TableVersion, file: TableFile, kept: Schema) -> bool:
    if file.table.keys is not None and not file.table.sorted_by:
        # Tables with keys are sorted by them.
        return False
    older = ((table.columns.by_id(f.id), f.name) for f in kept)
    names = {f.name.lower(): name for f, name in older if f is not None}
    now = [_renamed(parse_sort_key(text), names) for text in table.sort]
    wanted = [_renamed(key, {}) for key in file.table.sorted_by]
    return now != wanted


def _renamed(key: SortKey, names: Mapping[str, str]) -> SortKey:
    """Return a key with the name that its column has in the file, if it is a plain column."""
    try:
        [name] = split_name(key.expression.replace('"', "`"))
    except (InvalidRequest, ValueError):
        return key
    return replace(key, expression=names.get(name.lower(), name).lower())


def _constraints(
    table: TableVersion, file: TableFile, kept: Schema
) -> list[DropConstraint | AddConstraint]:
    """Return which constraints go and come; one that changes does both."""
    left = list(constraints_of(table.properties, table.full_name))
    found: list[DropConstraint | AddConstraint] = []
    for wanted in file.table.constraints:
        same = next((one for one in left if wanted.means(one, kept)), None)
        if same is None:
            found.append(wanted)
        else:
            left.remove(same)
    return [*(DropConstraint(one.name) for one in left), *found]


def _require_same_model(
    table: TableVersion, file: TableFile, rollups: Sequence[RollupSpec], kept: Schema
) -> None:
    now, wanted = table_keys(table), file.table.keys
    if (now is None) != (wanted is None):
        raise Unsupported(
            f"{table.full_name}: a table cannot get or lose a key model; create another table"
        )
    if now is not None and wanted is not None:
        fields = [kept.find((name,)) for name in wanted.columns]
        same_keys = tuple(f.id for f in fields if f is not None) == now.columns
        if now.model is not wanted.model or not same_keys:
            raise Unsupported(
                f"{table.full_name}: the key model or its columns changed; use ALTER TABLE … ADD"
                " COLUMN … KEY, DROP COLUMN and ORDER BY"
            )
    _require_same_computed(table, file, kept)
    names = {spec.name.lower() for spec in rollups}
    if names != {spec.name.lower() for spec in file.rollups}:
        raise Unsupported(
            f"{table.full_name}: its rollups changed; use ALTER TABLE … ADD ROLLUP and DROP ROLLUP"
        )


def _require_same_computed(table: TableVersion, file: TableFile, kept: Schema) -> None:
    now = computed_of(table.properties, table.full_name)
    if not now.all and not file.table.computed:
        return
    wanted = [one.bound(kept, table.full_name) for one in file.table.computed]
    left = [one for one in now if kept.by_id(one.column) is not None]
    if {one.meaning for one in wanted} != {one.meaning for one in left}:
        raise Unsupported(
            f"{table.full_name}: what computes a column cannot change; create another table"
        )


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
class _Target:
    """Makes a table with the columns of a file, but with the types that they have now.

    What stays keeps its id. ``lost`` are the columns and fields that go. ``renders`` says whether a
    default can be written in a file at all; others stay.
    """

    table: TableVersion
    matching: Matching
    renders: Callable[[Default], bool]
    lost: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._next = self.table.max_column_id + 1
        self._comments: dict[FieldId | None, str | None] = dict(self.table.comments)

    def made(self) -> TableVersion:
        """Return the table; raises what `Matching.of` raises."""
        wanted = self.matching.file.table
        columns = self._fields(self.table.columns.fields, wanted.columns, (), knows_ids=True)
        told = {**self._comments, None: wanted.comment}
        comments = {number: text for number, text in told.items() if text is not None}
        return replace(self.table, columns=Schema(columns), comments=comments)

    def _fields(
        self,
        now: Sequence[Field],
        wanted: Sequence[Definition] | Sequence[Member],
        above: Path,
        *,
        knows_ids: bool,
    ) -> tuple[Field, ...]:
        """Return the columns, or the fields of a struct: these stay in the order that they have."""
        names = [one.name for one in wanted]
        matched = self.matching.of(now, names, above, knows_ids=knows_ids)
        gone = lost_of(now, matched)
        self.lost += [path_text((*above, f.name)) for f in gone]
        if above and len(gone) == len(now):
            # A struct without fields does not exist: one change replaces all of them.
            return tuple(now)
        made = [
            self._field(matched[one.name] or self._new(one), one, above, knows_ids=knows_ids)
            for one in wanted
        ]
        if not above:
            return tuple(made)
        places, place = {f.id: n for n, f in enumerate(now)}, -1
        order = [place := places.get(f.id, place) for f in made]
        return tuple(f for _, f in sorted(zip(order, made, strict=True), key=itemgetter(0)))

    def _new(self, one: Definition | Member) -> Field:
        made = new_field(one.name, one.type, self._next)
        self._next += sum(1 for _ in made.walk())
        return made

    def _field(
        self, now: Field, one: Definition | Member, above: Path, *, knows_ids: bool
    ) -> Field:
        path, file = (*above, one.name), self.matching.file
        self._comments[now.id] = file.comments.get(path, one.comment)
        nullable, wanted = now.nullable, file.defaults.get(path)
        if isinstance(one, Definition):
            nullable, wanted = one.nullable, one.default
        knows_ids = knows_ids and not self.matching.is_replaced(path, now)
        children = self._below(now, one.type, path, knows_ids=knows_ids)
        default = now.default
        shown = default if default is None or self.renders(default) else None
        default = default if is_same_default(now, shown, wanted) else wanted
        return replace(now, name=one.name, children=children, nullable=nullable, default=default)

    def _below(
        self, now: Field, wanted: DataType, path: Path, *, knows_ids: bool
    ) -> tuple[Field, ...]:
        if now.shape is Kind.STRUCT and isinstance(wanted, Struct):
            return self._fields(now.children, wanted.members, path, knows_ids=knows_ids)
        pairs = shared_parts(now.type, wanted)
        if pairs is None:
            return now.children
        found = []
        for part, (held, one) in zip(now.children, pairs, strict=True):
            below = part.children
            self._comments[part.id] = self.matching.file.comments.get((*path, one.name))
            # Fields of keys cannot be dropped or added one by one: keys could become equal.
            if one.name != "key" or held.type == one.type:
                below = self._below(part, one.type, (*path, one.name), knows_ids=knows_ids)
            found.append(replace(part, children=below))
        return tuple(found)
