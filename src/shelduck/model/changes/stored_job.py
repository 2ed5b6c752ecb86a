"""The text that the catalog stores for the work of a job: all field names in one table."""

from __future__ import annotations

from dataclasses import replace

from shelduck.model.changes.definition import PATH_FORM
from shelduck.model.changes.job import FULL_PACE, JobIndex, JobPace, JobWork, Undone
from shelduck.model.changes.modify import CLAUSES
from shelduck.model.tables.rollup import Measure, MeasureSpec, RollupSpec
from shelduck.model.tables.writable import Conversion
from shelduck.model.text.stored import (
    FLAG,
    NUMBER,
    TEXT,
    Stored,
    each,
    maybe,
    one_of,
    pair,
    record,
    without_classes,
    word,
)

_CLAUSE = one_of(**{clause.stored: clause.form for clause in CLAUSES.values()})
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
    named=each(pair(PATH_FORM, NUMBER)),
    may_be_null=FLAG,
    shadow_parts=each(NUMBER),
    recalls=FLAG,
)
_MEASURE = record(MeasureSpec, name=TEXT, measure=word(Measure), column=maybe(TEXT))
_TEXTS = each(TEXT)
_ROLLUP = record(
    RollupSpec, name=TEXT, columns=_TEXTS, measures=each(_MEASURE), duplicate_keys=maybe(_TEXTS)
)
_PACE = record(JobPace, tasks=maybe(NUMBER), bytes_per_second=maybe(NUMBER))
_EARLIER = (
    *("primitive", "decimal", "struct", "list", "map", "add_column", "drop_column"),
    *("rename_column", "change_type", "set_default", "set_nullable", "move_column", "set_comment"),
    *("modify_column", "order_columns", "set_partitioning", "reset_partitioning", "set_sorting"),
    *("reset_sorting", "set_properties", "unset_properties"),
)
_CLASSES = {name.title().replace("_", ""): name for name in _EARLIER}

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
        pace=replace(_PACE, absent=FULL_PACE),
        undoes=maybe(record(Undone, job=NUMBER, published=NUMBER, told=TEXT)),
    ),
    without_classes(_CLASSES | {"RewriteOlderFiles": "rewrite"}),
)
