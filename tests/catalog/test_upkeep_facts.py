"""What the catalog says about maintenance, in each kind of catalog, and who does it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, text, update

from shelduck.catalog.commit.kept_places import write_setting
from shelduck.catalog.running import writers
from shelduck.catalog.schema import own_tables
from shelduck.catalog.upkeep.lake_counts import files_of_layouts, lake_facts, table_facts
from shelduck.ducklake import tables
from shelduck.lake.state import Leases, Maintainer
from shelduck.model.changes.job import LEASE
from shelduck.model.files.lake_facts import LayoutFiles
from shelduck.model.tables.options import OptionSetting, Scope
from tests.support.lake import Lake

NOW = datetime(2026, 3, 1, tzinfo=UTC)
# A quarter, an eighth of it and so on, of 16384 bytes.
BELOW = (1, 8, 64, 512, 4096)


@pytest.fixture
def lake(lake_url, data_path):
    made = Lake(lake_url, data_path)
    made.create("t", a="int")
    with made.store.write() as connection:
        write_setting(connection, OptionSetting("target_file_size", "16384"))
    yield made
    made.store.close()


def add(lake, *files):
    """Rows of data files that nobody reads: number, size, partition, deleted rows of ten."""
    number = lake.table("t").id
    shared = {"table_id": number, "begin_snapshot": 1, "path_is_relative": True}
    with lake.store.write() as connection:
        for file, size, partition, dead in files:
            row = {"data_file_id": file, "path": f"{file}", "file_format": "parquet"}
            row |= {"record_count": 10, "file_size_bytes": size, "row_id_start": 0}
            if partition:
                row["partition_id"] = 5
                for index, value in enumerate(partition):
                    key = {"data_file_id": file, "table_id": number, "partition_key_index": index}
                    key["partition_value"] = value
                    connection.execute(insert(tables.file_partition_value), key)
            connection.execute(insert(tables.data_file), row | shared)
            if dead:
                row = {"delete_file_id": 1000 + file, "data_file_id": file, "delete_count": dead}
                row |= {"path": f"{file}-d", "format": "parquet", "file_size_bytes": 1}
                connection.execute(insert(tables.delete_file), row | shared)


def facts(lake, only=None):
    with lake.store.read() as connection:
        return table_facts(connection, only)


def in_use(tiers):
    return [(t.below, t.full, t.files, t.bytes) for t in tiers if t.files]


@pytest.mark.every_database
def test_small_files_count_by_their_size_and_by_whether_rows_are_deleted(lake):
    add(lake, *((n, 100, None, 0) for n in range(1, 9)), (9, 10, None, 0), (10, 1000, None, 0))
    add(lake, (11, 4096, None, 0), (12, 100, None, 3), (13, 100, None, 9), (14, 9000, None, 10))
    with lake.store.write() as connection:
        # What ended counts no more.
        connection.execute(
            update(tables.data_file).where(text("data_file_id = 8")), {"end_snapshot": 1}
        )

    [found] = facts(lake)

    assert [tier.below for tier in found.small] == [*BELOW]
    assert in_use(found.small) == [(512, 0, 8, 710), (4096, 0, 9, 1710)]
    assert in_use(found.small_with_deletes) == [(512, 0, 2, 200), (4096, 0, 2, 200)]
    assert (found.worn, found.worn_bytes) == (1, 9000)
    add(lake, (8 + 100, 100, None, 0))
    assert in_use(facts(lake)[0].small) == [(512, 1, 9, 810), (4096, 0, 10, 1810)]


@pytest.mark.every_database
def test_files_of_different_partitions_do_not_count_together(lake):
    places = [("a", "x")] * 8 + [("a", None)] * 8 + [("a", "y")] * 7 + [("b", "x")]
    add(lake, *((n, 100, place, 0) for n, place in enumerate(places, 1)))

    [found] = facts(lake)

    assert in_use(found.small) == [(512, 2, 23, 2300), (4096, 0, 23, 2300)]


@pytest.mark.every_database
def test_options_are_those_of_each_table(lake):
    lake.create("u", a="int")
    with lake.store.write() as connection:
        own = OptionSetting("rewrite_delete_threshold", "0.3", Scope.TABLE, lake.table("t").id)
        write_setting(connection, own)
        other = OptionSetting("target_file_size", "400", Scope.TABLE, lake.table("u").id)
        write_setting(connection, other)
    add(lake, (1, 100, None, 3), (2, 100, None, 2), (3, 100, None, 3))

    t, u = facts(lake)

    assert (t.name, t.worn, t.options.target_file_size) == ("t", 2, 16384)
    assert in_use(t.small_with_deletes)[0] == (512, 0, 3, 300)
    assert (u.name, u.options.target_file_size, u.small) == ("u", 400, ())
    assert facts(lake, t.id) == [t]


@pytest.mark.every_database
def test_layouts_are_told_once_there_are_more_than_sixteen(lake):
    add(lake, *((n, n, None, 0) for n in range(1, 19)))
    number = lake.table("t").id
    with lake.store.write() as connection:
        own_tables.ensure_own_tables(lake.store, connection)
        rows = [{"data_file_id": n, "layout_id": min(n, 16)} for n in range(1, 19)]
        connection.execute(insert(own_tables.file_layout), rows)
    assert facts(lake)[0].layouts == ()
    with lake.store.write() as connection:
        last = update(own_tables.file_layout).where(own_tables.file_layout.c.data_file_id == 18)
        connection.execute(last, {"layout_id": 17})

    found = sorted(facts(lake)[0].layouts, key=lambda one: one.id)

    assert len(found) == 17
    assert found[15:] == [LayoutFiles(16, 2, 33, 17), LayoutFiles(17, 1, 18, 18)]
    with lake.store.read() as connection:
        assert files_of_layouts(connection, number, [16, 3]) == [(3, 3), (16, 16), (17, 17)]


@pytest.mark.every_database
def test_old_snapshots_and_files_that_wait_count_by_the_options_of_the_lake(lake):
    later = datetime.now(UTC) + timedelta(days=10)

    def known():
        with lake.store.read() as connection:
            return lake_facts(connection, later, "search")

    waits = {"data_file_id": 1, "path": "main/t/x.parquet", "path_is_relative": True}
    with lake.store.write() as connection:
        young = waits | {"schedule_start": later - timedelta(days=1)}
        foreign = waits | {"schedule_start": NOW, "path_is_relative": False}
        old = waits | {"schedule_start": later - timedelta(days=3)}
        for row in (young, foreign, old):
            connection.execute(insert(tables.files_scheduled_for_deletion), row)
    assert (known().expired, known().scheduled, known().searched) == (0, 1, None)
    with lake.store.write() as connection:
        write_setting(connection, OptionSetting("expire_older_than", "7 days"))
        write_setting(connection, OptionSetting("delete_older_than", "1 hour"))
    # All but the newest.
    assert (known().expired, known().scheduled) == (lake.head().id, 2)


@pytest.mark.every_database
def test_the_number_of_statements_does_not_depend_on_tables_and_files(lake):
    def asked():
        before = lake.store.statements
        with lake.store.read() as connection:
            lake_facts(connection, NOW, "search")
            table_facts(connection)
        return lake.store.statements - before

    add(lake, (1, 100, ("a",), 0))
    few = asked()
    for n in range(20):
        lake.create(f"t{n}", a="int")
    add(lake, *((n, 100, (str(n),), n % 2) for n in range(2, 60)))

    assert asked() == few <= 17


@pytest.fixture
def maintainers(lake):
    return [Maintainer(lake.store, Leases(lake.store)) for _ in range(2)]


@pytest.mark.every_database
def test_what_one_maintainer_works_on_another_one_leaves_alone(lake, maintainers):
    one, other = maintainers
    with one.claim("table 1") as mine, other.claim("table 1") as taken, other.claim("x") as free:
        assert (mine.is_mine, taken.is_mine, free.is_mine) == (True, False, True)
    with other.claim("table 1") as again:
        assert again.is_mine


def test_only_what_is_done_has_a_time(lake, maintainers):
    def finished():
        with lake.store.read() as connection:
            return writers.last_finished(connection, "search")

    with maintainers[0].claim("search"):
        pass
    assert finished() is None
    with maintainers[0].claim("search") as claim:
        claim.is_done = True
    assert finished() > datetime.now(UTC) - timedelta(minutes=5)
    with pytest.raises(KeyError), maintainers[0].claim("search"):
        raise KeyError
    with maintainers[1].claim("search") as claim:
        assert claim.is_mine


def test_a_claim_ends_with_its_lease_or_with_its_process(lake, maintainers, monkeypatch):
    store = lake.store
    assert writers.claim_upkeep(store, "t", "w")
    assert not writers.claim_upkeep(store, "t", "v")
    assert writers.claim_upkeep(store, "t", "v", gone="w")
    monkeypatch.setattr("shelduck.lake.state.is_gone", lambda name: name == "v")
    with maintainers[0].claim("t") as claim:
        assert claim.is_mine
    assert writers.claim_upkeep(store, "t", "w")
    with store.write() as connection:
        old = datetime.now(UTC) - LEASE - timedelta(seconds=1)
        connection.execute(update(own_tables.upkeep), {"heartbeat": old})
    assert writers.claim_upkeep(store, "t", "v")
    with store.write() as connection:
        connection.execute(update(own_tables.upkeep), {"heartbeat": old})
        writers.renew_upkeep(connection, ["v"])
    assert not writers.claim_upkeep(store, "t", "w")


@pytest.mark.every_database
def test_rows_in_the_catalog_count_in_all_their_versions(lake):
    with lake.store.write() as connection:
        name = connection.execute(text("SELECT table_name FROM ducklake_inlined_data_tables"))
        add_row = f"INSERT INTO {name.scalar()} VALUES (:id, 1, :end, 5)"
        for number, end in ((0, None), (1, 2), (2, 2)):
            connection.execute(text(add_row), {"id": number, "end": end})

    [found] = facts(lake)

    assert (found.kept, found.kept_deletes) == (3, 0)
