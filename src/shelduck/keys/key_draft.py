"""Key models as values, and ALTER TABLE of tables with one; the rules are those of Apache Doris."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.lake.evolution.arrangement import Arrangement, Partition, ShapeRules, arrangement_of
from shelduck.model.changes.definition import Definition, Position
from shelduck.model.changes.modify import ModifyColumn, Restatement, TableChange
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    ChangeTypeBack,
    DropColumn,
    DuplicateKeys,
    SchemaChange,
    SchemaDraft,
)
from shelduck.model.shadows.shadows import Shadow, keeps_apart
from shelduck.model.tables.keys import (
    Aggregation,
    KeyModel,
    KeySpec,
    TableKeys,
    check_keys,
    require_zero,
    resolve_keys,
    table_keys,
    with_keys,
)
from shelduck.model.tables.partition import ResetSorting, SetSorting, SortKey
from shelduck.model.tables.schema import Field, FieldId, Schema, path_text
from shelduck.model.tables.table_version import PartitionColumn, TableVersion
from shelduck.model.text.names import quote_name
from shelduck.text.ddl.sorting import duckdb_name


def duplicate(*columns: str) -> KeySpec:
    """Keep all rows, sorted by these columns."""
    return KeySpec(KeyModel.DUPLICATE, _names(columns))


def unique(*columns: str, sequence: str | None = None) -> KeySpec:
    """Keep the last row of each key.

    By default that is the row loaded last; with ``sequence``, the one with the greatest value in
    that column, whatever the order of loads.
    """
    return KeySpec(KeyModel.UNIQUE, _names(columns), sequence=sequence)


def aggregate(*columns: str) -> KeySpec:
    """Keep one row of each key; its other columns are combined as ``aggregates`` says."""
    return KeySpec(KeyModel.AGGREGATE, _names(columns))


def with_aggregates(keys: KeySpec | None, aggregates: Mapping[str, str], table: str) -> KeySpec:
    """Return a key model with the aggregations of its other columns."""
    if keys is None:
        raise InvalidRequest(f"aggregates of {table} need keys=shelduck.aggregate(…)")
    return replace(
        keys, aggregations=tuple((name, aggregation(how)) for name, how in aggregates.items())
    )


def aggregation(text: str) -> Aggregation:
    """Return the aggregation of this name."""
    found = next((a for a in Aggregation if a.value == str(text).upper()), None)
    if found is None:
        known = ", ".join(a.value.lower() for a in Aggregation)
        raise InvalidRequest(f"unknown aggregation {text!r}; use one of {known}")
    return found


def _names(columns: tuple[str, ...]) -> tuple[str, ...]:
    if not columns or not all(isinstance(name, str) for name in columns):
        raise InvalidRequest(f"a key must be one or more column names, not {columns!r}")
    return columns


def keyed_table(
    columns: Schema,
    spec: KeySpec,
    properties: Mapping[str, str],
    arrangement: Arrangement,
    table: str,
) -> tuple[dict[str, str], Arrangement]:
    """Return the properties and the arrangement of a new table, by default sorted by its keys.

    Raises what `resolve_keys` raises, and InvalidRequest for partitions by anything but keys,
    because all rows of one key must be in one partition.
    """
    keys = resolve_keys(spec, columns, table)
    for field in columns:
        require_zero(keys.aggregation(field.id), field, table)
    _refuse_partitions(keys, arrangement.partition, columns, table)
    arrangement = replace(arrangement, sort=arrangement.sort or _sorting(keys, columns))
    return with_keys(properties, keys), arrangement


@dataclass
class KeyDraft(ShapeRules):
    """The key model of a table while clauses of one ALTER are applied, None if it has none.

    ``rows_fold``: a key of an AGGREGATE table is dropped, so that rows become equal. ``is_sorted``:
    the table is sorted by its keys, and stays so. ``partition`` are keys that stay in any case.
    ``dropped`` are the columns that are gone, with whether they were keys: `finish` judges them.
    ``was`` is the model before. ``asked`` is what statements say of keys that become equal.
    """

    table: str
    keys: TableKeys | None
    partition: Partition = ()
    was: TableKeys | None = None
    rows_fold: bool = False
    is_sorted: bool = False
    dropped: tuple[tuple[Field, bool], ...] = ()
    asked: frozenset[DuplicateKeys | None] = frozenset()

    @classmethod
    def of(cls, table: TableVersion, partition: Partition) -> KeyDraft:
        """Return the model of a table; columns that another writer added are REPLACE."""
        was = keys = table_keys(table)
        if keys is not None and keys.model is KeyModel.AGGREGATE:
            known = {*keys.columns, *(i for i, _ in keys.aggregations)}
            more = [(f.id, Aggregation.REPLACE) for f in table.columns if f.id not in known]
            keys = replace(keys, aggregations=(*keys.aggregations, *more))
        is_sorted = keys is not None and arrangement_of(table).sort == _sorting(keys, table.columns)
        return cls(table.full_name, keys, partition, was, is_sorted=is_sorted)

    def allowed(self, change: Any, columns: Schema) -> Any:
        """Return a change in the model's form, after a check that the model allows it."""
        self.note = ""
        if isinstance(change, Definition) and (change.key or change.aggregation):
            self._require_model(change)
        keys = self.keys
        if keys is None:
            return change
        match change:
            case AddColumn(path=(_,)):
                return self._add(keys, change, columns)
            case DropColumn(path=(_,)) if field := columns.find(change.path):
                self._drop(keys, field)
            case ModifyColumn(path=(_,)) if field := columns.find(change.path):
                self._modify(keys, field, change)
            case ChangeType() if field := columns.find(change.path[:1]):
                self._retype(keys, field, change)
            case SetSorting(keys=sort):
                self.is_sorted = sort == _sorting(keys, columns)
            case ResetSorting():
                self.is_sorted = not _sorting(keys, columns)
        return change

    def follow(self, change: Any, columns: Schema, before: Schema) -> None:
        """Follow a change of the columns, which were ``before``."""
        keys = self.keys
        if keys is None:
            return
        if isinstance(change, AddColumn) and before.find(change.path) is None:
            self._added(change, columns)
        elif isinstance(change, DropColumn) and len(change.path) == 1:
            gone = {f.id for f in before} - {f.id for f in columns}
            self.rows_fold |= bool(gone & {*keys.columns}) and keys.model is KeyModel.AGGREGATE
            self.keys = replace(
                keys,
                columns=tuple(i for i in keys.columns if i not in gone),
                aggregations=tuple(pair for pair in keys.aggregations if pair[0] not in gone),
            )

    def replaced(self, old: FieldId, new: FieldId) -> None:
        """Follow a column that gets another id."""
        if self.keys is not None:
            self.keys = self.keys.renumbered(old, new)

    def finish(
        self, after: SchemaDraft, arrangement: Arrangement
    ) -> tuple[SchemaDraft, Arrangement]:
        """Return the table with its model, and the arrangement if it follows the keys.

        Raises InvalidRequest if the columns no longer fit the model.
        """
        keys, columns = self.keys, after.columns
        if keys is None:
            return after, arrangement
        self._refuse_dropped(keys, arrangement)
        ordered = [f.id for f in columns if f.id in keys.columns]
        # The model keeps a key that another writer dropped, so that loads refuse the table.
        lost = [i for i in keys.columns if i not in ordered]
        self.keys = keys = replace(keys, columns=(*ordered, *lost))
        check_keys(keys, columns, self.table)
        for field in columns:
            require_zero(keys.aggregation(field.id), field, self.table)
        _refuse_partitions(keys, arrangement.partition, columns, self.table)
        if self.is_sorted:
            arrangement = replace(arrangement, sort=_sorting(keys, columns))
        if keys != self.was:
            after = replace(after, properties=with_keys(after.properties, keys))
        return after, arrangement

    def refuse_beside(self, clauses: Sequence[TableChange], *, reads_rows: bool) -> None:
        """Raise Unsupported if a key is dropped beside what needs the rows as they are."""
        if self.rows_fold and reads_rows:
            raise Unsupported(
                f"ALTER TABLE {self.table}: dropping a key combines rows, but other changes in the"
                " statement need the rows as they are; write two statements"
            )
        # Combined rows would have to be fitted to them; dropped columns are left out of the rows.
        others = (c for c in clauses if not isinstance(c, DropColumn))
        if self.rows_fold and any(isinstance(c, SchemaChange | Restatement) for c in others):
            raise Unsupported(
                f"ALTER TABLE {self.table}: a key cannot be dropped together with other changes of"
                " columns; write two statements"
            )

    def _require_model(self, change: Definition) -> None:
        keys, name = self.keys, quote_name(change.path[-1])
        if len(change.path) > 1:
            raise InvalidRequest(
                f"{name} is a field of a column of {self.table}: only columns can be keys or have"
                " an aggregation type"
            )
        if keys is None or not (keys.columns or self._lost_keys):
            raise InvalidRequest(
                f"{self.table} has no key model, so {name} cannot be a key or have an aggregation"
                " type: duplicate tables without keys do not support key columns"
            )
        if change.aggregation is None:
            return
        if change.key:
            raise InvalidRequest(f"cannot give key column {name} of {self.table} an aggregation")
        if keys.model is not KeyModel.AGGREGATE:
            raise InvalidRequest(
                f"cannot give column {name} an aggregation: {self.table} is"
                f" a {keys.model.value} KEY table"
            )

    def _is_key(self, change: Definition) -> bool:
        assert self.keys is not None
        is_aggregate = self.keys.model is KeyModel.AGGREGATE
        return change.key or (is_aggregate and change.aggregation is None)

    def _add(self, keys: TableKeys, change: AddColumn, columns: Schema) -> AddColumn:
        """Return the change with a position that the order of keys and values allows.

        A key without a position comes after the last key. So does a value column with a position
        before it. Doris' documentation places value columns like this, though Doris refuses the
        statement.
        """
        there = [f for f in columns if f.id in keys.columns]
        if not there:
            is_first = self._lost_keys and self._is_key(change) and change.position is None
            return replace(change, position=Position()) if is_first else change
        last = there[-1]
        at = change.position
        if self._is_key(change):
            moves = at is None
        else:
            after = None if at is None or at.after is None else columns.find((at.after,))
            between = after is not None and after.id in keys.columns and after.id != last.id
            moves = at is not None and (at.after is None or between)
        placed = replace(change, position=Position(after=last.name)) if moves else change
        if at is not None and placed != change:
            self.note = (
                f"column {path_text(change.path)} of {self.table} is placed {placed.position},"
                f" not {at}: values come after the keys"
            )
        return placed

    def _added(self, change: AddColumn, columns: Schema) -> None:
        keys, field = self.keys, columns.find(change.path)
        if keys is None or field is None or len(change.path) > 1:
            return
        if self._is_key(change):
            self.keys = replace(keys, columns=(*keys.columns, field.id))
        elif change.aggregation is not None:
            pair = (field.id, change.aggregation)
            self.keys = replace(keys, aggregations=(*keys.aggregations, pair))

    def _drop(self, keys: TableKeys, field: Field) -> None:
        here = f"column {quote_name(field.name)} of {self.table}"
        if field.id in keys.distributed_by:
            raise InvalidRequest(f"Distribution {here} cannot be dropped")
        if field.id == keys.sequence:
            raise InvalidRequest(
                f"cannot drop sequence {here}: it determines the last row of each key"
            )
        self.dropped += ((field, field.id in keys.columns),)
        if all(p.column_id != field.id for p in self.partition):
            self._refuse_lost_unique(keys)

    @property
    def _lost_keys(self) -> list[Field]:
        return [field for field, is_key in self.dropped if is_key]

    def _refuse_dropped(self, keys: TableKeys, arrangement: Arrangement) -> None:
        """Raise InvalidRequest for a dropped column that the table still needs after all."""
        parts = {p.column_id for p in arrangement.partition}
        for field, _ in self.dropped:
            if field.id in parts:
                raise InvalidRequest(
                    f"Partition column {quote_name(field.name)} of {self.table} cannot be dropped"
                )
        self._refuse_lost_unique(keys)
        for field in self._lost_keys[-1:]:
            here = f"column {quote_name(field.name)} of {self.table}"
            if not keys.columns:
                raise InvalidRequest(f"no key column left: {here} is the last one")
            replaces = any(how.replaces for _, how in keys.aggregations)
            if keys.model is KeyModel.AGGREGATE and replaces:
                raise InvalidRequest(
                    f"cannot drop key {here}: the table has value column with REPLACE aggregation"
                    " method, and the last of the combined rows is unknown"
                )

    def _refuse_lost_unique(self, keys: TableKeys) -> None:
        for field in self._lost_keys if keys.model is KeyModel.UNIQUE else ():
            raise InvalidRequest(
                f"cannot drop key column {quote_name(field.name)} of {self.table}, which is a"
                " UNIQUE KEY table: several rows could get the same key"
            )

    def _modify(self, keys: TableKeys, field: Field, change: ModifyColumn) -> None:
        here = f"column {quote_name(field.name)} of {self.table}"
        if change.key and field.id not in keys.columns:
            raise InvalidRequest(f"cannot change {here} to a key: it is a value column")
        if change.aggregation is not keys.aggregation(field.id):
            now = keys.aggregation(field.id)
            raise InvalidRequest(
                f"cannot change aggregation type of {here}: it is"
                f" {'a key' if now is None else now.value}; repeat that"
            )
        if field.id in keys.distributed_by or any(p.column_id == field.id for p in self.partition):
            raise InvalidRequest(f"cannot modify partition or distribution {here}")
        if field.id in keys.columns and not change.key and keys.model is not KeyModel.AGGREGATE:
            # Without KEY it would be a value; only AGGREGATE tables identify keys by their
            # aggregation.
            raise InvalidRequest(f"key {here} must stay one: repeat KEY")

    def _retype(self, keys: TableKeys, field: Field, change: ChangeType) -> None:
        if change.type == field.type and change.using is None:
            return
        here = f"column {quote_name(field.name)} of {self.table}"
        if field.id == keys.sequence:
            raise InvalidRequest(
                f"cannot alter sequence {here}: its order determines the last row of each key"
            )
        if field.id in keys.columns:
            # An undo brings all rows back, or none.
            is_back = isinstance(change, ChangeTypeBack)
            self.asked |= {DuplicateKeys.REFUSE if is_back else change.on_duplicate_keys}

    @property
    def folds(self) -> bool:
        """Return whether rows whose keys become equal are folded: as asked, or if that says all."""
        if self.asked - {None}:
            return DuplicateKeys.REFUSE not in self.asked
        keys = self.keys
        if keys is None or keys.model is not KeyModel.AGGREGATE:
            return False
        return not any(how.replaces for _, how in keys.aggregations)

    def folds_by(self, column: Field) -> bool:
        """Return whether a column is a key by which rows are folded."""
        return self.keys is not None and self.keys.folds and column.id in self.keys.columns

    def meeting(self, shadows: Sequence[Shadow]) -> tuple[Shadow, ...]:
        """Return the shadows of keys that may become equal."""
        return meeting_keys(self.was, shadows)


def meeting_keys(keys: TableKeys | None, shadows: Sequence[Shadow]) -> tuple[Shadow, ...]:
    """Return the shadows by which different keys of a table may become equal, with their rows."""
    if keys is None or not keys.folds:
        return ()
    return tuple(s for s in shadows if s.old.id in keys.columns and not keeps_apart(s))


def _sorting(keys: TableKeys, columns: Schema) -> tuple[SortKey, ...]:
    return tuple(SortKey(duckdb_name(f.name)) for f in keys.key_fields(columns))


def _refuse_partitions(
    keys: TableKeys, partition: tuple[PartitionColumn, ...], columns: Schema, table: str
) -> None:
    for part in partition if keys.folds else ():
        field = columns.by_id(part.column_id)
        if field is not None and field.id not in keys.columns:
            raise InvalidRequest(
                f"{table} cannot be partitioned by {quote_name(field.name)}: rows with the same"
                f" {keys.model.value} KEY would be in several partitions; partition by key columns"
            )
