"""What rewritten files and expired snapshots leave in each kind of catalog."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shelduck.catalog.commit import schedule
from shelduck.catalog.upkeep.expire import ExpiryRequest
from shelduck.catalog.upkeep.known_files import KnownFiles
from shelduck.errors import Conflict, CorruptLake
from shelduck.model.changes.change import (
    AppendFiles,
    DeleteRows,
    DropTable,
    FileDeletes,
    PostponedRewrites,
    RewriteFiles,
    RewrittenFile,
    alteration,
)
from shelduck.model.changes.schema_change import AddColumn, DropColumn, RenameColumn
from shelduck.model.files.data_file import DeletesSeen, NewDeleteFile, deletes_seen
from shelduck.model.tables.schema import Default
from shelduck.model.types.data_types import Primitive
from shelduck.upkeep.lake_upkeep import expire_snapshots
from tests.support.files import write_file
from tests.support.lake import Lake, altered, statements


@pytest.fixture
def lake(lake_url, data_path):
    made = Lake(lake_url, data_path)
    made.create(a="int")
    for value in (1, 2, 3):
        made.append("t", [{"a": value}], {1: (str(value), str(value), 0)})
    yield made
    made.store.close()


def rewriting(lake, *, keeps_history, chosen=slice(2)):
    """A change that puts one file with the rows 1, 2 … in the place of files of one row each."""
    table = lake.table("t")
    sources = lake.files("t")[chosen]
    rows = [{"a": n + 1} for n in range(len(sources))]
    result = write_file(table, rows, {1: ("1", str(len(rows)), 0)})
    if keeps_history:
        begins = [f.begin_snapshot for f in sources]
        result = replace(result, begin_snapshot=min(begins), partial_max=max(begins))
    seen = tuple(RewrittenFile(f.id, deletes_seen(f)) for f in sources)
    return RewriteFiles(table, seen, (result,), keeps_history)


def test_merged_sources_leave_the_catalog_and_wait_for_deletion(lake):
    paths = [f.path for f in lake.files("t")]

    done = lake.commit(rewriting(lake, keeps_history=True))

    assert done.snapshot.changes_made == "inline_flush:1,merge_adjacent:1"
    assert done.snapshot.next_file_id == 4
    assert [(f.id, f.begin_snapshot, f.partial_max) for f in lake.files("t")] == [
        (2, 4, None),
        (3, 2, 3),
    ]
    assert [
        (r["data_file_id"], r["max_value"]) for r in lake.metadata("ducklake_file_column_stats")
    ]
    with lake.store.read() as connection:
        waiting = schedule.scheduled_files(connection, lake.info, None)
    assert [(f.id, f.path, f.is_adopted) for f in waiting] == [
        (0, paths[0], False),
        (1, paths[1], False),
    ]
    assert named(lake, paths, waiting=False) == {paths[2]}
    assert named(lake, paths, waiting=True) == {*paths}
    [total] = lake.metadata("ducklake_table_stats")
    assert (total["record_count"], total["next_row_id"]) == (3, 3)


def named(lake, paths, *, waiting):
    known = KnownFiles(lake.info, waiting=waiting)
    known.read_all(lake.store)
    with lake.store.read() as connection:
        known.read_newer(connection)
    return known.among(paths)


@pytest.mark.every_database
def test_named_files_are_found_in_every_database(lake):
    paths = [f.path for f in lake.files("t")]
    assert named(lake, [*paths, "/other"], waiting=False) == {*paths}


@pytest.mark.slow
def test_ended_sources_stay_for_older_snapshots_and_expire_with_them(lake):
    done = lake.commit(rewriting(lake, keeps_history=False))
    assert done.snapshot.changes_made == "inline_flush:1,rewrite_delete:1"
    ends = {r["data_file_id"]: r["end_snapshot"] for r in lake.metadata("ducklake_data_file")}
    assert ends == {0: 5, 1: 5, 2: None, 3: None}
    assert lake.metadata("ducklake_files_scheduled_for_deletion") == []

    dry = expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=1), dry_run=True)
    assert (dry.snapshots, dry.files) == ((0, 1, 2, 3, 4), 2)
    assert len(lake.metadata("ducklake_snapshot")) == 6
    kept = expire_snapshots(lake.store, lake.info, ExpiryRequest(versions=(0, 1, 2)))
    assert kept.files == 0
    gone = expire_snapshots(lake.store, lake.info, ExpiryRequest(older_than=done.snapshot.time))
    assert (gone.snapshots, gone.files) == ((3, 4), 2)
    assert {r["data_file_id"] for r in lake.metadata("ducklake_data_file")} == {2, 3}
    assert {r["data_file_id"] for r in lake.metadata("ducklake_file_column_stats")} == {2, 3}
    assert len(lake.metadata("ducklake_files_scheduled_for_deletion")) == 2
    assert lake.ask("SELECT a FROM t ORDER BY a") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("keeps_history", [True, False])
def test_a_rewrite_conflicts_with_what_touched_its_files_alone(lake, keeps_history):
    mine = rewriting(lake, keeps_history=keeps_history)
    table = lake.table("t")
    third = lake.files("t")[2]
    lake.append("t", [{"a": 4}])
    # Another data file of the table ends.
    lake.commit(DeleteRows(lake.table("t"), (FileDeletes(third.id, deletes_seen(third)),)))
    base = table.snapshot.id
    lake.commit(mine, base=base)
    with pytest.raises(Conflict, match="data file 0"):
        lake.commit(mine, base=base)


def test_deletes_since_the_rows_were_read_are_a_conflict(lake):
    mine = rewriting(lake, keeps_history=True)
    first = lake.files("t")[0]
    deleted = NewDeleteFile("d.parquet", 1, 100, None)
    lake.commit(DeleteRows(lake.table("t"), (FileDeletes(first.id, DeletesSeen(), deleted),)))
    with pytest.raises(Conflict, match="data file 0"):
        lake.commit(mine, base=mine.table.snapshot.id)


def test_a_dropped_table_is_a_conflict(lake):
    mine = rewriting(lake, keeps_history=True)
    lake.commit(DropTable(lake.table("t")))
    with pytest.raises(Conflict, match="dropped_table:1"):
        lake.commit(mine, base=mine.table.snapshot.id)


def test_the_number_of_statements_does_not_grow_with_the_files(lake):
    for value in range(20):
        lake.append("t", [{"a": value}])
    few = rewriting(lake, keeps_history=True)
    taken = statements(lake, few)
    many = rewriting(lake, keeps_history=True, chosen=slice(0, 15))
    assert statements(lake, many) <= taken


def test_a_dropped_table_is_purged_when_nobody_sees_it(lake):
    lake.commit(DropTable(lake.table("t")))
    done = expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=1))
    assert done.files == 3
    for name in ("table", "column", "data_file", "table_stats", "schema_versions"):
        assert lake.metadata(f"ducklake_{name}") == []
    assert len(lake.metadata("ducklake_files_scheduled_for_deletion")) == 3


def test_files_wait_until_they_are_old_enough(lake):
    lake.commit(rewriting(lake, keeps_history=True))
    now = datetime.now(UTC)
    with lake.store.write() as connection:
        assert schedule.scheduled_files(connection, lake.info, now - timedelta(days=1)) == []
        later = now + timedelta(seconds=5)
        waiting = schedule.scheduled_files(connection, lake.info, later)
        assert len(waiting) == 2
        schedule.forget_scheduled(connection, waiting[:1])
        assert len(schedule.scheduled_files(connection, lake.info, None)) == 1


def test_an_append_goes_on_beside_a_rewrite(lake):
    base = lake.head().id
    table = lake.table("t")
    lake.commit(rewriting(lake, keeps_history=False))
    file = write_file(table, [{"a": 9}])
    lake.commit(AppendFiles(table.id, (file,)), base=base)
    assert sorted(lake.ask("SELECT rowid, a FROM t WHERE a > 2")) == [(2, 3), (3, 9)]


def postponing(lake, snapshot, sources, results):
    """A change of columns that lets the rewrite of a snapshot happen with it."""
    moved = PostponedRewrites(frozenset({snapshot}), sources, frozenset(results))
    return replace(altered(lake.table("t"), AddColumn(("b",), Primitive("int32"))), postponed=moved)


def test_a_rewrite_that_is_postponed_seems_to_happen_later(lake):
    first = lake.files("t")[0]
    few = NewDeleteFile("d.parquet", 0, 100, None)
    lake.commit(DeleteRows(lake.table("t"), (FileDeletes(first.id, DeletesSeen(), few),)))
    rewritten = lake.commit(rewriting(lake, keeps_history=False)).snapshot.id
    lake.append("t", [{"a": 4}])
    between = lake.head().id

    done = lake.commit(postponing(lake, rewritten, 2, {4}))

    at = done.snapshot.id
    assert done.snapshot.changes_made == "altered_table:1,inline_flush:1,rewrite_delete:1"
    extents = {
        r["data_file_id"]: (r["begin_snapshot"], r["end_snapshot"])
        for r in lake.metadata("ducklake_data_file")
    }
    assert extents == {0: (2, at), 1: (3, at), 2: (4, None), 4: (at, None), 5: (between, None)}
    [dead] = lake.metadata("ducklake_delete_file")
    assert (dead["begin_snapshot"], dead["end_snapshot"]) == (5, at)
    assert lake.ask("SELECT a FROM t ORDER BY a") == [(1,), (2,), (3,), (4,)]


def test_files_that_were_postponed_are_not_merged_by_when_they_began(lake):
    lake.commit(rewriting(lake, keeps_history=False))
    written = lake.head().id
    table, found = lake.table("t"), lake.files("t")[1:]
    merged = replace(write_file(table, [{"a": 1}, {"a": 2}]), begin_snapshot=written)
    seen = tuple(RewrittenFile(f.id, deletes_seen(f)) for f in found)
    mine = RewriteFiles(table, seen, (merged,), True)
    moved = PostponedRewrites(frozenset({written}), 2, frozenset(f.id for f in found))
    shown = altered(table, AddColumn(("w",), Primitive("int32")))
    lake.commit(replace(shown, postponed=moved))

    with pytest.raises(Conflict, match=r"files of main\.t begin at a later snapshot now"):
        lake.commit(mine, base=table.snapshot.id)
    assert lake.ask("SELECT count(*) FROM t AT (VERSION => 5)") == [(3,)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("keeps_history", [True, False])
def test_no_rewrite_without_a_column_lands_beside_the_restore_of_it(lake, keeps_history):
    lake.alter("t", AddColumn(("v",), Primitive("int32"), Default("7")))
    with_it = lake.table("t")
    lake.alter("t", DropColumn(("v",)))
    table = lake.table("t")
    mine = rewriting(lake, keeps_history=keeps_history)
    restored = alteration(table, replace(table, columns=with_it.columns))

    lake.commit(restored)
    with pytest.raises(Conflict, match=r"column 'v' of main\.t was restored or converted after"):
        lake.commit(mine, base=table.snapshot.id)
    lake.alter("t", DropColumn(("v",)))
    table = lake.table("t")
    lake.commit(mine)
    with pytest.raises(Conflict, match="inline_flush:1"):
        lake.commit(replace(restored, table=table), base=table.snapshot.id)
    lake.commit(altered(table, RenameColumn(("a",), "b")), base=table.snapshot.id)


def test_a_rewrite_whose_files_were_deleted_from_is_not_postponed(lake):
    rewritten = lake.commit(rewriting(lake, keeps_history=False)).snapshot.id
    mine = postponing(lake, rewritten, 2, {3})
    result = next(f for f in lake.files("t") if f.id == 3)
    few = NewDeleteFile("d.parquet", 0, 100, None)
    lake.commit(DeleteRows(lake.table("t"), (FileDeletes(result.id, DeletesSeen(), few),)))
    with pytest.raises(Conflict, match="data file 3"):
        lake.commit(mine, base=rewritten)


def test_a_rewrite_whose_sources_expired_is_not_postponed(lake):
    rewritten = lake.commit(rewriting(lake, keeps_history=False)).snapshot.id
    mine = postponing(lake, rewritten, 2, {3})
    expire_snapshots(lake.store, lake.info, ExpiryRequest(retain_last=1))
    before = lake.metadata("ducklake_data_file")
    with pytest.raises(Conflict, match="expired"):
        lake.commit(mine, base=rewritten)
    assert lake.metadata("ducklake_data_file") == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize("keeps_history", [True, False])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_rewrite_that_loses_or_makes_rows_is_refused(lake, keeps_history, rows):
    change = rewriting(lake, keeps_history=keeps_history)
    change = replace(change, results=(replace(change.results[0], record_count=rows),))
    before = lake.metadata("ducklake_data_file")

    with pytest.raises(CorruptLake) as refused:
        lake.commit(change)

    said = f"2 data file(s) with 2 rows, 0 of them deleted, became 1 file(s) with {rows} rows"
    assert said in str(refused.value)
    assert "instead of 2" in str(refused.value)
    assert lake.metadata("ducklake_data_file") == before
    assert lake.head().id == change.table.snapshot.id
