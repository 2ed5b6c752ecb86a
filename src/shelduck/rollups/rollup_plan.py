"""The table of a rollup: its columns, keys and sort order, by the rules of Apache Doris."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shelduck.errors import InvalidRequest
from shelduck.keys.key_draft import keyed_table
from shelduck.lake.evolution.arrangement import NO_ARRANGEMENT, Arrangement
from shelduck.model.tables.keys import (
    KeyModel,
    KeySpec,
    TableKeys,
    may_be_key,
    names_of,
    refuse_as_key,
    table_keys,
)
from shelduck.model.tables.rollup import (
    Measure,
    MeasureSpec,
    Rollup,
    RollupColumn,
    RollupSpec,
    definition_of,
    rollup_of,
    with_rollup,
)
from shelduck.model.tables.schema import Field, Schema, new_schema
from shelduck.model.tables.table_version import Conversion, TableVersion
from shelduck.model.text.names import quote_name
from shelduck.model.types.data_types import SIGNED, UNSIGNED, DataType, Decimal, Member, Primitive

Part = tuple[Member, Field | None, Measure | None]
"""A column of a rollup, the base's column from which it is computed, and how."""

_SHORT_KEY = 3
_BIGINT = Primitive("int64")


@dataclass(frozen=True, slots=True)
class RollupTable:
    """Everything that a new table needs to be a rollup."""

    rollup: Rollup
    columns: Schema
    arrangement: Arrangement
    properties: dict[str, str]


def plan_rollup(base: TableVersion, spec: RollupSpec, *, for_use: bool = True) -> RollupTable:
    """Return the table for a rollup of ``base``; ``for_use`` refuses a rollup that is useless.

    Raises NotFound for a column that the base does not have, and InvalidRequest for a rollup that
    could not be kept correct, or would be useless.
    """
    keys = table_keys(base)
    fields = [base.columns.get((name,), base.full_name) for name in spec.columns]
    _refuse_twice([f.name for f in fields] + [m.name for m in spec.measures], spec)
    what = "all keys in base table {} with same order"
    parts: list[Part]
    if keys is None or keys.model is KeyModel.DUPLICATE:
        parts, model = _of_duplicate(base, spec, fields)
        what = "the columns of the base table {} in prefix order"
        is_useless = not spec.measures and _is_prefix(fields, base)
    elif spec.measures:
        raise InvalidRequest(
            f"rollup {spec.name} of {base.full_name} cannot have aggregates: only rollups of"
            " DUPLICATE tables can; write CREATE MATERIALIZED VIEW … REFRESH ON DEMAND AS …"
        )
    elif keys.model is KeyModel.UNIQUE:
        parts, model = _of_unique(base, spec, keys, fields)
        is_useless = _has_same_order(keys, fields)
    else:
        parts, model = _of_aggregate(base, spec, keys, fields)
        is_useless = _has_same_order(keys, fields)
    if is_useless and for_use:
        raise InvalidRequest(
            f"rollup {spec.name} contains {what.format(base.full_name)}, so it is useless; put"
            " another column first, or leave keys out"
        )
    columns = new_schema([member for member, _, _ in parts])
    made = [
        RollupColumn(f.id, None if source is None else source.id, measure)
        for f, (_, source, measure) in zip(columns, parts, strict=True)
    ]
    name = f"rollup {spec.name} of {base.full_name}"
    properties, arrangement = keyed_table(columns, model, {}, NO_ARRANGEMENT, name)
    rollup = Rollup(base.uuid, spec.name, tuple(made))
    return RollupTable(rollup, columns, arrangement, with_rollup(properties, rollup))


def spec_of(base: TableVersion, table: TableVersion) -> RollupSpec | None:
    """Return the current definition of a rollup, None if the base lost a column of it.

    A column that was replaced by a column of another type is found by its name.
    """
    rollup, keys = definition_of(table), table_keys(table)
    columns: list[str] = []
    measures: list[MeasureSpec] = []
    is_own = (table_keys(base) or _NO_KEYS).model is KeyModel.DUPLICATE
    for column in rollup.columns:
        field = table.columns.by_id(column.id)
        source = _source(base, column, field)
        if field is not None and source is None and not is_own:
            # A key or value that the base lost when its rows were combined.
            continue
        if field is None or (source is None and column.source is not None):
            return None
        if column.measure is None or not is_own:
            assert source is not None
            columns.append(source.name)
        else:
            measures.append(
                MeasureSpec(field.name, column.measure, None if source is None else source.name)
            )
    sorted_by = None
    if keys is not None and keys.model is KeyModel.DUPLICATE:
        sorted_by = tuple(columns[: len(keys.columns)])
    return RollupSpec(rollup.name, tuple(columns), tuple(measures), sorted_by)


def plan_again(base: TableVersion, table: TableVersion) -> RollupTable | None:
    """Return what a rollup would be if it were made now, None if it is no longer possible."""
    spec = spec_of(base, table)
    try:
        return None if spec is None else plan_rollup(base, spec, for_use=False)
    except InvalidRequest:
        return None


def is_current(base: TableVersion, table: TableVersion) -> bool:
    """Return whether a rollup has the columns that it would get if it were made now."""
    wanted = plan_again(base, table)
    if wanted is None:
        return False
    rollup = definition_of(table)
    held = {c.id: c for c in rollup.columns}
    if any(f.id not in held for f in table.columns):
        return False
    now = [(f.type, held[f.id].source, held[f.id].measure) for f in table.columns]
    made = zip(wanted.columns, wanted.rollup.columns, strict=True)
    return now == [(f.type, c.source, c.measure) for f, c in made]


def renumbered(table: TableVersion, conversions: Sequence[Conversion]) -> TableVersion:
    """Return a rollup whose columns refer to the columns that replaced those of the base."""
    rollup = definition_of(table)
    ids = {c.column_id: c.shadow_id for c in conversions}
    columns = tuple(
        c if c.source is None else replace(c, source=ids.get(c.source, c.source))
        for c in rollup.columns
    )
    properties = with_rollup(table.properties, replace(rollup, columns=columns))
    return replace(table, properties=properties)


def has_other_values(table: TableVersion, conversions: Sequence[Conversion]) -> bool:
    """Return whether a rollup holds a column whose values conversions change."""
    rollup = rollup_of(table)
    others = {
        c.column_id for c in conversions if c.using is not None or c.on_error_null or c.shadow_parts
    }
    return rollup is not None and any(c.source in others for c in rollup.columns)


_NO_KEYS = TableKeys(KeyModel.DUPLICATE, ())


def _source(base: TableVersion, column: RollupColumn, field: Field | None) -> Field | None:
    if column.source is None or field is None:
        return None
    found = base.columns.by_id(column.source)
    if found is not None or column.measure is not None:
        return found
    return base.columns.find((field.name,))


def _of_duplicate(
    base: TableVersion, spec: RollupSpec, fields: Sequence[Field]
) -> tuple[list[Part], KeySpec]:
    plain: list[Part] = [(_member(f), f, None) for f in fields]
    if not fields:
        raise _no_key(base, spec)
    if spec.measures:
        made = [_measured(base, m) for m in spec.measures]
        how = tuple((member.name, m.aggregation) for member, _, m in made)
        return [*plain, *made], KeySpec(KeyModel.AGGREGATE, tuple(f.name for f in fields), how)
    refuse_as_key(fields[0], f"rollup {spec.name} of {base.full_name}")
    wanted = spec.duplicate_keys
    if wanted is None:
        wanted = _short_key(fields)
    lowered = [f.name.lower() for f in fields]
    if [n.lower() for n in wanted] != lowered[: len(wanted)]:
        raise InvalidRequest(
            f"duplicate keys should be the prefix of rollup columns: rollup {spec.name} of"
            f" {base.full_name} begins with {', '.join(map(quote_name, spec.columns))}"
        )
    return plain, KeySpec(KeyModel.DUPLICATE, tuple(wanted))


def _short_key(fields: Sequence[Field]) -> tuple[str, ...]:
    """Return the leading columns that sort a rollup by default: three, and none after text."""
    found: list[str] = []
    for field in fields[:_SHORT_KEY]:
        if not may_be_key(field):
            break
        found.append(field.name)
        if str(field.shape) == "varchar":
            break
    return tuple(found)


def _of_unique(
    base: TableVersion, spec: RollupSpec, keys: TableKeys, fields: Sequence[Field]
) -> tuple[list[Part], KeySpec]:
    ordered = _keys_first(base, spec, keys, fields)
    if {f.id for f in ordered} != set(keys.columns):
        raise InvalidRequest(
            f"rollup {spec.name} should contain all unique keys of its base table"
            f" {base.full_name}: {', '.join(names_of(base.columns, keys.columns))}"
        )
    sequence = base.columns.by_id(keys.sequence or 0)
    every = list(fields)
    if sequence is not None and sequence not in every:
        # The rollup needs the sequence column too, for rows that come late.
        every.append(sequence)
    name = None if sequence is None else sequence.name
    model = KeySpec(KeyModel.UNIQUE, tuple(f.name for f in ordered), sequence=name)
    return [(_member(f), f, None) for f in every], model


def _of_aggregate(
    base: TableVersion, spec: RollupSpec, keys: TableKeys, fields: Sequence[Field]
) -> tuple[list[Part], KeySpec]:
    ordered = _keys_first(base, spec, keys, fields)
    has_all = len(ordered) == len(keys.columns)
    parts: list[Part] = []
    how = []
    for field in fields:
        found = keys.aggregation(field.id)
        if found is None:
            parts.append((_member(field), field, None))
            continue
        if found.replaces and not has_all:
            raise InvalidRequest(
                f"rollup {spec.name} of {base.full_name} should contain all keys if there is a"
                f" REPLACE value, as {quote_name(field.name)} is"
            )
        measure = Measure(found.value)
        parts.append((Member(field.name, measured_type(field.type, measure)), field, measure))
        how.append((field.name, found))
    return parts, KeySpec(KeyModel.AGGREGATE, tuple(f.name for f in ordered), tuple(how))


def _keys_first(
    base: TableVersion, spec: RollupSpec, keys: TableKeys, fields: Sequence[Field]
) -> list[Field]:
    """Return the key columns of a rollup, which come before the others."""
    found = [f for f in fields if f.id in keys.columns]
    if not found:
        raise _no_key(base, spec)
    if list(fields[: len(found)]) != found:
        raise InvalidRequest(
            f"invalid column order of rollup {spec.name} of {base.full_name}: value should be after"
            " key"
        )
    return found


def _no_key(base: TableVersion, spec: RollupSpec) -> InvalidRequest:
    return InvalidRequest(f"no key column is found in rollup {spec.name} of {base.full_name}")


def _is_prefix(fields: Sequence[Field], base: TableVersion) -> bool:
    return [f.id for f in fields] == [f.id for f in base.columns][: len(fields)]


def _has_same_order(keys: TableKeys, fields: Sequence[Field]) -> bool:
    return tuple(f.id for f in fields if f.id in keys.columns) == keys.columns


def _measured(base: TableVersion, spec: MeasureSpec) -> tuple[Member, Field | None, Measure]:
    if spec.column is None:
        if spec.measure is not Measure.COUNT:
            raise InvalidRequest(f"{spec.measure.value} of {base.full_name} needs a column")
        return Member(spec.name, _BIGINT), None, Measure.COUNT
    field = base.columns.get((spec.column,), base.full_name)
    kind = _BIGINT if spec.measure is Measure.COUNT else measured_type(field.type, spec.measure)
    return Member(spec.name, kind), field, spec.measure


def measured_type(kind: DataType, measure: Measure) -> DataType:
    """Return the type of a measure: sums of many rows need more digits than each of them."""
    name = str(kind)
    if measure is not Measure.SUM:
        return kind
    if isinstance(kind, Decimal):
        return Decimal(38, kind.scale)
    if name == "float32":
        return Primitive("float64")
    if name in (*SIGNED, *UNSIGNED):
        bits = SIGNED.get(name) or UNSIGNED[name]
        return _BIGINT if bits <= 32 else Decimal(38, 0)
    return kind


def _member(field: Field) -> Member:
    # A rollup does not repeat the checks of its base.
    return replace(Member(field.name, field.type), nullable=True)


def _refuse_twice(names: Sequence[str], spec: RollupSpec) -> None:
    lowered = [n.lower() for n in names]
    twice = next((n for n in names if lowered.count(n.lower()) > 1), None)
    if twice is not None:
        raise InvalidRequest(f"rollup {spec.name} lists column {quote_name(twice)} twice")
