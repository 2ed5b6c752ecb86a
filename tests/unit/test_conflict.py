"""The conflict matrix: total, and DuckLake's own rules written out as facts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import pytest

from shelduck.model.changes.change import (
    AlterTable,
    AppendFiles,
    Change,
    CreateSchema,
    CreateTable,
    DeleteRows,
    DropSchema,
    DropTable,
    RenameTable,
    RewriteFiles,
    Verb,
    parse_entries,
)
from shelduck.model.changes.conflict import (
    MATRIX,
    ConflictRule,
    describe,
    find_conflict,
    is_compared_inside,
)
from shelduck.model.tables.schema import SchemaId, SnapshotId, TableId, new_schema
from shelduck.model.tables.table_version import SchemaInfo, Snapshot, TableVersion
from shelduck.model.types.data_types import Member, Primitive

MAIN = SchemaInfo(SchemaId(0), "main", "/lake/main/")
COLUMNS = new_schema([Member("id", Primitive("int64"))])
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = TableVersion(
    id=TableId(7),
    uuid="018f",
    schema=MAIN,
    name="events",
    path="/lake/main/events/",
    columns=COLUMNS,
    snapshot=Snapshot(SnapshotId(3), NOW, 2, 8, 0),
    begin_snapshot=SnapshotId(1),
    max_column_id=1,
    first_names={},
    comments={},
)

CREATE_SCHEMA = CreateSchema(SchemaInfo(SchemaId(-1), "Sales", "/lake/Sales/"), "018f")
DROP_SCHEMA = DropSchema(MAIN)
CREATE = CreateTable(TableId(-1), MAIN, "Orders", "018f", "Orders/", COLUMNS)
DROP = DropTable(EVENTS)
RENAME = RenameTable(EVENTS, "Orders")
ALTER = AlterTable(EVENTS, COLUMNS)
CHECKED_ALTER = AlterTable(EVENTS, COLUMNS, excludes_inserts=True)
APPEND = AppendFiles(TableId(7), ())


def conflict(mine: Change, other: str) -> str | None:
    return find_conflict([mine], [(SnapshotId(4), entry) for entry in parse_entries(other)])


def test_every_ordered_pair_has_a_cell():
    pairs = {(mine, other) for mine in get_args(Change) for other in Verb}

    assert set(MATRIX) == pairs


def test_every_rule_is_used():
    assert set(MATRIX.values()) == set(ConflictRule)


# DuckLake's rules: what I do, what the other did, whether the extension calls it a conflict.
@pytest.mark.parametrize(
    ("mine", "other", "excluded"),
    [
        (APPEND, "inserted_into_table:7", False),
        (APPEND, "inlined_insert:7", False),
        (APPEND, "deleted_from_table:7", True),
        (APPEND, "inlined_delete:7", True),
        (APPEND, "altered_table:7", True),
        (APPEND, 'created_table:"main"."renamed"', False),
        (APPEND, "dropped_table:7", True),
        (APPEND, "merge_adjacent:7", False),
        (APPEND, "rewrite_delete:7", False),
        (APPEND, "inline_flush:7", False),
        (ALTER, "inserted_into_table:7", False),
        (ALTER, "inlined_insert:7", False),
        (ALTER, "deleted_from_table:7", False),
        (ALTER, "inlined_delete:7", False),
        (ALTER, "altered_table:7", True),
        (ALTER, 'created_table:"main"."renamed"', False),
        (ALTER, "dropped_table:7", True),
        (ALTER, "merge_adjacent:7", False),
        (ALTER, "rewrite_delete:7", False),
        (ALTER, "inline_flush:7", False),
        (RENAME, "inserted_into_table:7", False),
        (RENAME, "deleted_from_table:7", False),
        (RENAME, "altered_table:7", False),
        (RENAME, 'created_table:"main"."else"', False),
        (RENAME, 'created_table:"main"."orders"', True),
        (RENAME, "merge_adjacent:7", False),
        (RENAME, "inline_flush:7", False),
        (DROP, "inserted_into_table:7", False),
        (DROP, "deleted_from_table:7", False),
        (DROP, "altered_table:7", False),
        (DROP, 'created_table:"main"."renamed"', False),
        (DROP, "dropped_table:7", True),
        (DROP, "merge_adjacent:7", False),
        (DROP, "inline_flush:7", False),
        (CREATE, 'created_table:"MAIN"."ORDERS"', True),
        (CREATE, 'created_view:"main"."orders"', True),
        (CREATE, 'created_table:"main"."events"', False),
        (CREATE, 'created_table:"other"."orders"', False),
        (CREATE, 'created_scalar_macro:"main"."orders"', False),
        (CREATE, "dropped_schema:0", True),
        (CREATE, "dropped_schema:5", False),
        (CREATE_SCHEMA, 'created_schema:"sales"', True),
        (CREATE_SCHEMA, 'created_schema:"sale"', False),
        (DROP_SCHEMA, 'created_table:"Main"."new"', True),
        (DROP_SCHEMA, 'created_view:"main"."new"', True),
        (DROP_SCHEMA, 'created_scalar_macro:"main"."new"', True),
        (DROP_SCHEMA, 'created_table_macro:"main"."new"', True),
        (DROP_SCHEMA, 'created_table:"other"."new"', False),
        (DROP_SCHEMA, "dropped_schema:0", True),
    ],
    ids=str,
)
def test_ducklakes_rules_hold(mine, other, excluded):
    assert (conflict(mine, other) is not None) == excluded


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        (RENAME, "dropped_table:7"),
        (RENAME, "dropped_schema:0,dropped_table:7"),
        (RENAME, 'created_view:"main"."orders"'),
        (CHECKED_ALTER, "inserted_into_table:7"),
        (CHECKED_ALTER, "inlined_insert:7"),
    ],
    ids=str,
)
def test_holes_of_the_stock_rules_are_closed(mine, other):
    assert conflict(mine, other) is not None


@pytest.mark.parametrize("mine", [APPEND, ALTER, CHECKED_ALTER, RENAME, DROP], ids=describe)
@pytest.mark.parametrize("verb", [v for v in Verb if not v.value.startswith("created")])
def test_what_happens_to_another_table_is_no_conflict(mine, verb):
    assert conflict(mine, f"{verb.value}:8") is None


def test_the_message_names_both_changes():
    message = find_conflict(
        [CREATE, ALTER],
        [
            (SnapshotId(4), parse_entries("inserted_into_table:7")[0]),
            (SnapshotId(5), parse_entries("altered_table:7")[0]),
        ],
    )

    assert message == (
        "cannot alter table main.events (id 7): another writer committed altered_table:7 in"
        " snapshot 5"
    )


def test_a_new_table_meets_nobody_under_its_provisional_id():
    assert conflict(AppendFiles(TableId(-1), ()), "dropped_table:1,altered_table:2") is None


def test_only_rewrites_and_drops_of_tables_need_no_log():
    rewrite = RewriteFiles(EVENTS, (), (), keeps_history=True)
    deletes = DeleteRows(EVENTS)
    every = (CREATE_SCHEMA, DROP_SCHEMA, CREATE, DROP, RENAME, ALTER, APPEND, deletes, rewrite)
    assert [type(c) for c in every if is_compared_inside(c)] == [DropTable, RewriteFiles]
