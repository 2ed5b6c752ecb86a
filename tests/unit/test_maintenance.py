"""Maintenance that is worth it: facts of the catalog become steps; nothing else is looked at."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shelduck.model.files.lake_facts import LakeFacts, LayoutFiles, TableFacts, Tier
from shelduck.model.tables.options import TableOptions
from shelduck.model.tables.schema import TableId
from shelduck.upkeep.maintain import DueWork, by_worth, steps_of_lake, steps_of_table

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TABLE = TableFacts(TableId(7), "main", "t")


def steps(**known):
    return [(s.work, s.files, s.bytes, s.below) for s in steps_of_table(replace(TABLE, **known))]


def test_a_table_without_anything_to_do_has_no_steps():
    assert steps() == []
    assert steps(kept=99, small=(Tier(1000, 0, 7, 70), Tier(8000, 0, 9, 900))) == []


@pytest.mark.parametrize(
    ("limit", "kept", "deletes", "is_flushed"),
    [
        (10, 99, 0, False),
        (10, 60, 40, True),
        (10, 0, 100, True),
        (1000, 9_999, 0, False),
        (1000, 10_000, 0, True),
        (0, 0, 0, False),
        (0, 1, 0, True),
    ],
)
def test_rows_leave_the_catalog_when_ten_statements_may_have_put_them_there(
    limit, kept, deletes, is_flushed
):
    options = TableOptions(data_inlining_row_limit=limit)
    found = steps(options=options, kept=kept, kept_deletes=deletes)
    assert found == ([(DueWork.FLUSH, 0, 0, None)] if is_flushed else [])


def test_the_largest_full_tier_is_combined_together_with_smaller_files():
    tiers = (Tier(100, 1, 8, 80), Tier(800, 2, 20, 9000), Tier(6400, 0, 23, 20_000))
    assert steps(small=tiers) == [(DueWork.COMPACT, 20, 9000, 800)]
    assert steps(small_with_deletes=tiers) == [(DueWork.REWRITE_DELETES, 20, 9000, 800)]


def test_worn_files_are_rewritten_whatever_their_size_and_before_small_ones():
    full = (Tier(100, 1, 8, 80),)
    assert steps(worn=1, worn_bytes=5000, small=full, small_with_deletes=full) == [
        (DueWork.REWRITE_DELETES, 1, 5000, None),
        (DueWork.REWRITE_DELETES, 8, 80, 100),
        (DueWork.COMPACT, 8, 80, 100),
    ]


def test_deletes_in_the_catalog_are_flushed_before_files_are_combined():
    full = (Tier(100, 1, 8, 80),)
    assert steps(kept_deletes=1) == []
    assert [work for work, *_ in steps(kept_deletes=1, small=full)] == [
        DueWork.FLUSH,
        DueWork.COMPACT,
    ]
    assert [work for work, *_ in steps(kept=1, small=full)] == [DueWork.COMPACT]


def test_files_of_a_table_that_is_not_compacted_by_itself_are_left_alone():
    full = (Tier(100, 1, 8, 80),)
    options = TableOptions(auto_compact=False)
    layouts = tuple(LayoutFiles(n, 1, 10, n) for n in range(40))
    more = {"small": full, "small_with_deletes": full, "worn": 1, "layouts": layouts}
    assert steps(options=options, kept=100, **more) == [(DueWork.FLUSH, 0, 0, None)]


def test_a_table_is_left_alone_while_a_job_rewrites_it():
    assert steps(kept=100, small=(Tier(100, 1, 8, 80),), is_changing=True) == []


def test_the_layouts_with_the_fewest_bytes_are_rewritten_and_never_the_newest():
    few = tuple(LayoutFiles(n, 1, 10, n) for n in range(16))
    assert steps(layouts=few) == []
    many = (*(LayoutFiles(n, 2, 1000 - n, n) for n in range(16)), LayoutFiles(99, 1, 1, 500))

    [step] = steps_of_table(replace(TABLE, layouts=many))

    assert (step.work, step.files) == (DueWork.REWRITE, 18)
    assert step.layouts == (15, 14, 13, 12, 11, 10, 9, 8, 7)


def test_tables_with_the_most_files_for_their_bytes_come_first():
    def table(name, **more):
        return replace(TABLE, name=name, **more)

    found = by_worth(
        [
            table("nothing"),
            table("large", small=(Tier(10**9, 1, 8, 10**9),)),
            table("small", small=(Tier(1000, 1, 8, 1000),)),
            table("kept", kept=1000),
        ]
    )
    assert [facts.name for facts, _ in found] == ["kept", "small", "large"]


@pytest.mark.parametrize(
    ("known", "works"),
    [
        (LakeFacts(searched=NOW), []),
        (LakeFacts(expired=1, searched=NOW), [DueWork.EXPIRE]),
        (LakeFacts(scheduled=3, searched=NOW), [DueWork.CLEAN_UP]),
        (LakeFacts(), [DueWork.REMOVE_ORPHANS]),
        (LakeFacts(searched=NOW - timedelta(hours=23)), []),
        (LakeFacts(searched=NOW - timedelta(hours=24)), [DueWork.REMOVE_ORPHANS]),
        (LakeFacts(1, 1), [DueWork.EXPIRE, DueWork.CLEAN_UP, DueWork.REMOVE_ORPHANS]),
    ],
)
def test_a_lake_expires_and_cleans_up_what_is_due_and_looks_for_orphans_once_a_day(known, works):
    assert [step.work for step in steps_of_lake(known, NOW)] == works
