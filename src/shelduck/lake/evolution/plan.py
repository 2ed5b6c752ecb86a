"""ALTER TABLE: what the changes mean, whether they are light or heavy, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from shelduck.errors import AlreadyExists, InvalidRequest, Unsupported
from shelduck.lake.evolution.alter_plan import (
    REFOLDING,
    AlterPlan,
    AlterStep,
    Simple,
    converting,
    sorting_again,
    weight_of,
    weight_of_conversion,
    weight_of_promotion,
)
from shelduck.lake.evolution.arrangement import (
    NO_ARRANGEMENT,
    SHAPE_RULES,
    Arrangement,
    ShapeRules,
    apply_arrangement,
    arrangement_of,
    follow,
    keys_in_new_order,
    refuse_lost_keys,
)
from shelduck.model.changes.change import AlterTable, DependentViews, alteration
from shelduck.model.changes.constraining import ConstraintChange, apply_constraint
from shelduck.model.changes.definition import Definition, Weight, with_default
from shelduck.model.changes.modify import (
    ArrangementChange,
    ModifyColumn,
    OrderColumns,
    RewriteOlderFiles,
    TableChange,
    expanded,
)
from shelduck.model.changes.schema_change import (
    ChangeType,
    DropColumn,
    RenameColumn,
    SchemaChange,
    SchemaDraft,
    apply_change,
    refuse_empty,
)
from shelduck.model.changes.storing import StorageChange, apply_storage
from shelduck.model.shadows.shadows import Shadow, kept_parts, known_shadow, plan_shadow
from shelduck.model.tables.column_storage import (
    COLUMN_STORAGE,
    kept_storage,
    moved_storage,
    refuse_filters,
)
from shelduck.model.tables.computed import COMPUTED, follow_columns
from shelduck.model.tables.constraints import CONSTRAINTS, require_kept
from shelduck.model.tables.lengths import LENGTHS, is_longer, with_lengths
from shelduck.model.tables.partition import ResetPartitioning, SetPartitioning
from shelduck.model.tables.properties import (
    PropertyChange,
    allows_promotion,
    apply_properties,
    require_known,
)
from shelduck.model.tables.rollup import ROLLUP
from shelduck.model.tables.schema import (
    Default,
    Field,
    FieldId,
    Kind,
    Schema,
    comments_below,
    new_field,
    path_text,
    with_paths,
)
from shelduck.model.tables.table_version import Conversion, Feature, TableVersion, require_writable
from shelduck.model.types.data_types import Primitive, type_text
from shelduck.model.types.promotions import promotion


def plan_alter(
    table: TableVersion,
    changes: Sequence[TableChange],
    known: Sequence[Conversion] | None = None,
    narrows: Mapping[FieldId, str] = MappingProxyType({}),
) -> AlterPlan:
    """Return the plan of these changes, in order, for that table version; no I/O.

    Heavy changes of types are planned as shadows: new ones, or, if a job publishes them, those of
    the conversions that it ``known`` has made. Columns that ``narrows`` names are known to have
    only values that fit, and why: they get their type by metadata.

    Raises what `apply_change`, `apply_arrangement` and `plan_shadow` raise, Unsupported for a
    change that would leave the table partitioned or sorted by a column that is gone, before
    anything happens, and NewerFormat if only a newer Shelduck understands the table.
    """
    name = table.full_name
    if not changes:
        raise InvalidRequest(f"ALTER TABLE {name} contains no change")
    if table.properties:
        require_known(table)
    fold = _Fold(table, known, changes, narrows)
    steps = tuple(fold.take(change, clause) for clause, change in enumerate(changes))
    fold.finish()
    after, arrangement = fold.after, fold.arrangement
    has_keys = bool(fold.shadows) and Feature.KEYS in table.features
    meeting = fold.rules.meeting(fold.shadows) if has_keys else ()
    # What a job publishes was refused when it was submitted.
    views = DependentViews.RESTRICT if known is None else DependentViews.LEAVE
    if any(isinstance(change, DropColumn) and change.cascade for change in changes):
        views = DependentViews.CASCADE
    return AlterPlan(
        name,
        steps,
        _change(
            *(table, after, arrangement),
            checks_rows=bool(narrows or fold.checks),
            views=views,
            converted=[(o.id, n.id) for s in fold.shadows for o, n in kept_parts(s.old, s.field)],
        ),
        after.must_hold_no_null,
        tuple(fold.shadows),
        fold.rewrites,
        refolds=fold.rules.rows_fold,
        proven=tuple(narrows.values()),
        checks_rows=tuple(dict.fromkeys(fold.checks)),
        renews=fold.renews,
        meeting=meeting,
        folds=bool(meeting) and fold.rules.folds,
    )


class _Fold:
    """The table while changes are applied to it, one clause after another."""

    def __init__(
        self,
        table: TableVersion,
        known: Sequence[Conversion] | None,
        clauses: Sequence[TableChange],
        narrows: Mapping[FieldId, str],
    ) -> None:
        self.table = table
        self.after = SchemaDraft(
            table.columns, table.max_column_id + 1, dict(table.comments), table.properties
        )
        self.arrangement = arrangement_of(table)
        self.shadows: list[Shadow] = []
        self.rewrites = False
        self._stored_anew = frozenset[FieldId]()
        self.checks: list[str] = []
        # Keys that the statement itself sets or resets are judged when it ends.
        is_open = any(isinstance(c, SetPartitioning | ResetPartitioning) for c in clauses)
        self._partition = () if is_open else table.partition
        self.rules = ShapeRules()
        given = [clause for clause in clauses if isinstance(clause, Definition)]
        if Feature.KEYS in table.features or any(one.key or one.aggregation for one in given):
            self.rules = SHAPE_RULES[Feature.KEYS](table, self._partition)
        self._waiting = WaitingNames(table.full_name)
        self._known = None if known is None else {c.clause: c for c in known}
        self._clauses = clauses
        self._narrows = narrows

    def take(self, change: TableChange, clause: int) -> AlterStep:
        """Apply one clause and return its weight."""
        asked = change
        change = self.rules.allowed(change, self.after.columns)
        parts: Sequence[Simple]
        if isinstance(change, ModifyColumn | OrderColumns):
            parts = expanded(change, self.after.columns, self.after.comments, self.table.full_name)
        else:
            parts = [change]
        weights = [self._apply(part, clause, by=change) for part in parts]
        while self._waiting.names and (freed := self._waiting.freed(self.after.columns)):
            self._follow(freed)
        reason = "; ".join(dict.fromkeys(w.reason for w in weights)) or "nothing changes"
        whole = Weight(any(w.is_heavy for w in weights), reason)
        return AlterStep(str(asked), str(whole), whole.reason, note=self.rules.note)

    @property
    def renews(self) -> tuple[FieldId, ...]:
        """The columns that a job writes again beside the others, none if it writes whole files."""
        others = (c for c in self._clauses if not isinstance(c, StorageChange | RewriteOlderFiles))
        return () if any(True for _ in others) else tuple(sorted(self._stored_anew))

    def finish(self) -> None:
        """Raise errors that only all changes together show."""
        name = self.table.full_name
        if self._waiting.names:
            self._waiting.finish()
        self.after, self.arrangement = self.rules.finish(self.after, self.arrangement)
        refuse_empty(self.after, name)
        columns, properties = self.after.columns, self.after.properties
        if CONSTRAINTS in properties:
            require_kept(properties, columns, self.table.columns, self.table.properties, name)
        if COMPUTED in properties:
            converted = {s.old.id for s in self.shadows}
            properties = follow_columns(properties, columns, self.table.columns, converted, name)
        if columns.index.limited or LENGTHS in properties:
            properties = with_lengths(properties, columns)
        if COLUMN_STORAGE in properties:
            properties = kept_storage(properties, columns, name)
            if self.table.options.encrypted:
                refuse_filters(properties, self.table.properties, name)
        self.after = replace(self.after, properties=properties)
        if self.arrangement is not NO_ARRANGEMENT:
            types = {s.old.id: s.conversion.target for s in self.shadows}
            refuse_lost_keys(self.table, self.arrangement, self.after.columns, types)
        of_files = ArrangementChange | StorageChange | RewriteOlderFiles
        if self.rewrites and not all(isinstance(c, of_files) for c in self._clauses):
            raise Unsupported(
                f"ALTER TABLE {name}: REWRITE can be combined only with SET PARTITIONED BY, SET"
                " SORTED BY, SET ENCODING and indexes; write two statements"
            )
        checks = bool(self.after.must_hold_no_null or self.checks)
        self.rules.refuse_beside(self._clauses, reads_rows=bool(self.shadows) or checks)
        if self.shadows and checks:
            what = "a constraint" if self.checks else "SET NOT NULL"
            raise Unsupported(
                f"ALTER TABLE {name}: {what} checks the rows that other changes in the"
                " statement rewrite; write two statements"
            )
        if self.shadows or self.rewrites or self.rules.rows_fold:
            require_writable(self.table.columns, name, "the change needs a job")
        if self._known is not None and len(self.shadows) != len(self._known):
            raise InvalidRequest(f"the columns of {name} do not match those that the job converts")
        self._look_for_null()

    def _look_for_null(self) -> None:
        """Find the existing columns whose rows must be checked for NULL."""
        found = map(self.after.columns.by_id, sorted(self.after.must_hold_no_null))
        checked = [f for f in found if f is not None]
        for column in checked:
            if column.id > self.table.max_column_id and column.initial_default is None:
                raise InvalidRequest(
                    f"new column {column.name!r} of {self.table.full_name} cannot be NOT NULL:"
                    " existing rows would hold NULL; give it a DEFAULT"
                )
        left = frozenset(f.id for f in checked if f.id <= self.table.max_column_id)
        self.after = replace(self.after, must_hold_no_null=left)

    def _apply(self, change: Simple, clause: int, by: TableChange) -> Weight:
        name = self.table.full_name
        known = self.after
        if isinstance(change, RewriteOlderFiles):
            self.rewrites = True
            return weight_of(change)
        if isinstance(change, ArrangementChange):
            self.arrangement = apply_arrangement(self.arrangement, change, known.columns, name)
            return weight_of(change)
        if isinstance(change, PropertyChange):
            properties = apply_properties(known.properties, change, known.columns, name)
            self.after = replace(known, properties=properties)
            return weight_of(change)
        if isinstance(change, StorageChange):
            properties, lacking = apply_storage(known.properties, change, known.columns, name)
            self.after = replace(known, properties=properties)
            self._stored_anew |= lacking
            return weight_of(change)
        if isinstance(change, ConstraintChange):
            properties, checked = apply_constraint(known.properties, change, known.columns, name)
            self.after = replace(known, properties=properties)
            self.checks += [] if checked is None else [checked]
            return weight_of(change)
        if isinstance(change, ChangeType):
            weight = self._retype(change, clause, is_restated=isinstance(by, ModifyColumn))
            self._comment_fields(change, clause)
            return weight
        if isinstance(change, DropColumn):
            _refuse_shorter_keys(known.columns, change, name)
        folded = self.rules.rows_fold
        if isinstance(change, RenameColumn):
            change = self._waiting.unless_taken(change, known.columns)
        self._follow(change)
        return weight_of(change) if folded is self.rules.rows_fold else REFOLDING

    def _follow(self, change: SchemaChange) -> None:
        """Apply a change of columns, and have the arrangement and the rules follow it."""
        before = self.after.columns
        self.after = apply_change(self.after, change, self.table.full_name)
        if self.arrangement.sort:
            self.arrangement = follow(self.arrangement, change, before)
        self.rules.follow(change, self.after.columns, before)

    def _retype(self, change: ChangeType, clause: int, *, is_restated: bool) -> Weight:
        name = self.table.full_name
        if is_restated:
            self.rules.allowed(change, self.after.columns)
        if self._known is not None and clause in self._known:
            self._place(self._known_shadow(self._known[clause]))
            return Weight(True, "the values are converted")
        old = self.after.columns.get(change.path, name)
        top = self.after.columns.get(change.path[:1], name)
        if change.on_duplicate_keys is not None and not self.rules.folds_by(top):
            raise InvalidRequest(
                f"{path_text(change.path)} of {name} is not a key by which rows are folded; leave"
                " ON DUPLICATE KEYS out"
            )
        if any(top.id == s.field.id for s in self.shadows):
            raise InvalidRequest(f"the type of {path_text(change.path)} of {name} changes twice")
        if old.id > self.table.max_column_id and len(change.path) == 1:
            return self._retype_new(old, change)
        # No job converts the values of a struct that has none.
        refuse_empty(self.after, name)
        self._require_length(old, change)
        heavy = weight_of_conversion(change, top)
        if heavy is None and is_restated:
            heavy = self._not_allowed(old, change)
        if heavy is not None:
            columns, number = self.after.columns, self.after.next_id
            shadow = plan_shadow(self.table, columns, change, number, clause)
            if old.id in self._narrows:
                return self._narrow(shadow)
            self._place(shadow)
            again = keys_in_new_order(self.arrangement.sort, [shadow])
            return sorting_again(heavy, again) if again else heavy
        self.after = apply_change(self.after, change, name)
        return weight_of_promotion(top, self.after.columns.get(change.path[:1], name))

    def _narrow(self, shadow: Shadow) -> Weight:
        """Give a column the type of its shadow; it stays the same column."""
        old, made = shadow.old, shadow.field
        new = replace(old, shape=made.shape, default=made.default)
        self.after = replace(self.after, columns=self.after.columns.replace((old.name,), new))
        return Weight(False, self._narrows[old.id])

    def _comment_fields(self, change: ChangeType, clause: int) -> None:
        """Take over the comments that a type has for its fields; fields without one keep theirs."""
        shadow = next((s for s in self.shadows if s.conversion.clause == clause), None)
        # A column that a job converts may have got another name since.
        made = self.after.columns.find(change.path[:1]) if shadow is None else shadow.field
        for name in change.path[1:]:
            made = None if made is None else made.child(name)
        told = {} if made is None else comments_below(made, change.type)
        if told:
            self.after = replace(self.after, comments=self.after.comments | told)

    def _require_length(self, old: Field, change: ChangeType) -> None:
        """Refuse a length that older texts may exceed; a job checks those that it computes."""
        is_computed = len(change.path) == 1 and old.is_leaf and old.type != Primitive("varchar")
        if change.using is not None or is_computed or ROLLUP in self.table.properties:
            return
        why = is_longer(old.type, change.type)
        if why is not None:
            raise InvalidRequest(
                f"cannot change {path_text(change.path)} of {self.table.full_name} to"
                f" {type_text(change.type)}: {why}; use a longer type, or USING, with which a job"
                " checks every value"
            )

    def _not_allowed(self, old: Field, change: ChangeType) -> Weight | None:
        """Return the weight of a promotion that the table does not allow, None if it is allowed.

        Nested promotions are checked when they are applied.
        """
        found = promotion(old.type, change.type)
        if not found.is_light or allows_promotion(self.after.properties, found):
            return None
        if any(key.column_id == old.id for key in self._partition):
            # No job changes a partition key, but type widening does.
            return None
        return converting(f"{found.reason}, but type widening is not enabled")

    def _retype_new(self, old: Field, change: ChangeType) -> Weight:
        """Change the type of a column that the statement itself adds: it has no values yet."""
        made = new_field(old.name, change.type, self.after.next_id, nullable=old.nullable)
        placed, name = replace(made, order=old.order), self.table.full_name
        # The column may have been added with another default.
        first = None if old.initial_default is None else Default(old.initial_default)
        initial = with_default(placed, first, name).initial_default
        default = with_default(placed, old.default, name).default
        self._put(old, replace(placed, initial_default=initial, default=default))
        return Weight(False, "the column is new")

    def _known_shadow(self, conversion: Conversion) -> Shadow:
        old = self.after.columns.by_id(conversion.column_id)
        if old is None:
            raise InvalidRequest(f"column {conversion.column_id} was dropped")
        return known_shadow(old, conversion, self.table.full_name)

    def _place(self, shadow: Shadow) -> None:
        self.shadows.append(shadow)
        self._put(shadow.old, shadow.field)

    def _put(self, old: Field, new: Field) -> None:
        self.rules.replaced(old.id, new.id)
        if self.arrangement.is_set:
            self.arrangement = self.arrangement.replaced(old.id, new.id)
        ids: dict[FieldId | None, FieldId] = {o.id: n.id for o, n in kept_parts(old, new)}
        comments = {ids.get(k, k): text for k, text in self.after.comments.items()}
        properties = self.after.properties
        if COLUMN_STORAGE in properties:
            properties = moved_storage(properties, ids, self.table.full_name)
        last = max(f.id for f in new.walk())
        self.after = replace(
            self.after,
            columns=self.after.columns.replace((old.name,), new),
            comments=comments,
            properties=properties,
            next_id=max(self.after.next_id, last + 1),
        )


def _refuse_shorter_keys(columns: Schema, change: DropColumn, table: str) -> None:
    """Raise Unsupported if map keys that differ only in this field would become the same key."""
    for length in range(1, len(change.path) - 1):
        above = columns.find(change.path[:length])
        if above is not None and above.shape is Kind.MAP and change.path[length].lower() == "key":
            raise Unsupported(
                f"cannot drop {path_text(change.path)} of {table}: map keys that differ only in"
                " this field would become equal; change the type of the column, which checks the"
                " values"
            )


def _change(
    table: TableVersion,
    after: SchemaDraft,
    arrangement: Arrangement,
    *,
    checks_rows: bool,
    views: DependentViews,
    converted: Iterable[tuple[FieldId, FieldId]],
) -> AlterTable | None:
    then = replace(
        table,
        columns=after.columns,
        comments=after.comments,
        properties=dict(after.properties),
        partition=arrangement.partition,
        partition_id=None,
        sort=arrangement.sort_texts if arrangement.sort else (),
        max_column_id=after.next_id - 1,
    )
    excludes_inserts = checks_rows or bool(after.must_hold_no_null)
    made = alteration(table, then, after.unsafe_bounds, excludes_inserts=excludes_inserts)
    return None if made.is_empty else replace(made, views=views, converted=tuple(converted))


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
            path = next((path for path, f in with_paths(columns) if f.id == number), None)
            if path is None or columns.find((*path[:-1], name)) is None:
                del self.names[number]
                return None if path is None else RenameColumn(path, name)
        return None

    def finish(self) -> None:
        """Raise AlreadyExists for a name that is still taken."""
        for name in self.names.values():
            raise AlreadyExists.named("column", name, self.table)


def names_rollup(changes: Iterable[object]) -> bool:
    """Return whether one of the changes is for a rollup."""
    return any(getattr(change, "rollup", None) is not None for change in changes)
