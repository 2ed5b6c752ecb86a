"""The text that the catalog stores for the work of a job: all field names in one table."""

from __future__ import annotations

from shelduck.model.changes import modify, schema_change
from shelduck.model.changes.definition import Position
from shelduck.model.changes.job import JobIndex, JobWork
from shelduck.model.changes.modify import RewriteOlderFiles
from shelduck.model.tables import partition, properties
from shelduck.model.tables.keys import Aggregation
from shelduck.model.tables.rollup import Measure, MeasureSpec, RollupSpec
from shelduck.model.tables.schema import Default
from shelduck.model.tables.writable import Conversion
from shelduck.model.text.stored import (
    FLAG,
    NUMBER,
    TEXT,
    Form,
    Stored,
    each,
    later,
    maybe,
    one_of,
    pair,
    record,
    without_classes,
    word,
)
from shelduck.model.types import data_types

_PATH = each(TEXT)


def _type() -> Form:
    return _TYPE


_TYPE = one_of(
    primitive=record(data_types.Primitive, name=TEXT),
    text=record(data_types.Text, name=TEXT, length=NUMBER),
    decimal=record(data_types.Decimal, precision=NUMBER, scale=NUMBER),
    struct=record(
        data_types.Struct,
        members=each(
            record(
                data_types.Member,
                name=TEXT,
                type=later(_type),
                nullable=FLAG,
                comment=maybe(TEXT),
            )
        ),
    ),
    list=record(data_types.List, element=later(_type)),
    map=record(data_types.Map, key=later(_type), value=later(_type)),
)
_DEFAULT = record(Default, text=TEXT, literal=FLAG)
_POSITION = record(Position, after=maybe(TEXT))
_DEFINITION = {
    "path": _PATH,
    "type": _TYPE,
    "default": maybe(_DEFAULT),
    "nullable": FLAG,
    "comment": maybe(TEXT),
    "position": maybe(_POSITION),
    "key": FLAG,
    "aggregation": maybe(word(Aggregation)),
}
_PARTITION_KEY = record(
    partition.PartitionBy,
    column=TEXT,
    transform=record(partition.Transform, kind=TEXT, buckets=NUMBER),
)
_SORT_KEY = record(partition.SortKey, expression=TEXT, descending=FLAG, nulls_first=FLAG)
_CLAUSE = one_of(
    add_column=record(
        schema_change.AddColumn, **_DEFINITION, if_not_exists=FLAG, rollup=maybe(TEXT)
    ),
    drop_column=record(schema_change.DropColumn, path=_PATH, if_exists=FLAG, rollup=maybe(TEXT)),
    rename_column=record(schema_change.RenameColumn, path=_PATH, new_name=TEXT),
    change_type=record(
        schema_change.ChangeType,
        path=_PATH,
        type=_TYPE,
        using=maybe(TEXT),
        on_error_null=FLAG,
    ),
    set_default=record(schema_change.SetDefault, path=_PATH, default=maybe(_DEFAULT)),
    set_nullable=record(schema_change.SetNullable, path=_PATH, nullable=FLAG),
    move_column=record(schema_change.MoveColumn, path=_PATH, position=_POSITION),
    set_comment=record(schema_change.SetComment, path=_PATH, comment=maybe(TEXT)),
    modify_column=record(modify.ModifyColumn, **_DEFINITION, rollup=maybe(TEXT)),
    order_columns=record(modify.OrderColumns, names=each(TEXT), rollup=maybe(TEXT)),
    set_partitioning=record(partition.SetPartitioning, keys=each(_PARTITION_KEY)),
    reset_partitioning=record(partition.ResetPartitioning),
    set_sorting=record(partition.SetSorting, keys=each(_SORT_KEY)),
    reset_sorting=record(partition.ResetSorting),
    set_properties=record(properties.SetProperties, values=each(pair(TEXT, TEXT))),
    unset_properties=record(properties.UnsetProperties, keys=each(TEXT), if_exists=FLAG),
    rewrite=record(RewriteOlderFiles),
)
_CONVERSION = record(
    Conversion,
    column_id=NUMBER,
    shadow_id=NUMBER,
    source=TEXT,
    target=TEXT,
    using=maybe(TEXT),
    on_error_null=FLAG,
    clause=NUMBER,
    parts=each(NUMBER),
    named=each(pair(_PATH, NUMBER)),
    may_be_null=FLAG,
)
_MEASURE = record(MeasureSpec, name=TEXT, measure=word(Measure), column=maybe(TEXT))
_ROLLUP = record(
    RollupSpec,
    name=TEXT,
    columns=each(TEXT),
    measures=each(_MEASURE),
    duplicate_keys=maybe(each(TEXT)),
)
_CLASSES = {
    "Primitive": "primitive",
    "Decimal": "decimal",
    "Struct": "struct",
    "List": "list",
    "Map": "map",
    "AddColumn": "add_column",
    "DropColumn": "drop_column",
    "RenameColumn": "rename_column",
    "ChangeType": "change_type",
    "SetDefault": "set_default",
    "SetNullable": "set_nullable",
    "MoveColumn": "move_column",
    "SetComment": "set_comment",
    "ModifyColumn": "modify_column",
    "OrderColumns": "order_columns",
    "SetPartitioning": "set_partitioning",
    "ResetPartitioning": "reset_partitioning",
    "SetSorting": "set_sorting",
    "ResetSorting": "reset_sorting",
    "SetProperties": "set_properties",
    "UnsetProperties": "unset_properties",
    "RewriteOlderFiles": "rewrite",
}

STORED_WORK: Stored[JobWork] = Stored(
    "work",
    record(
        JobWork,
        conversions=each(_CONVERSION),
        clauses=each(_CLAUSE),
        rewrites=FLAG,
        rollups=each(_ROLLUP),
        refolds=FLAG,
        remakes=FLAG,
        indexes=each(record(JobIndex, name=TEXT, table_id=NUMBER)),
    ),
    without_classes(_CLASSES),
)
