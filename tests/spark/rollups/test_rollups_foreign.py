"""Writers that know of no rollups: those are stale until the next write of ours, and right then."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest

from shelduck import AlreadyExists, InvalidRequest, NotFound
from tests.support.lakes import newest
from tests.support.rollups import Followed

STATEMENTS = [
    "CREATE TABLE d (k INT, g STRING, v INT) DUPLICATE KEY (k) ROLLUP (p (v, g))",
    "CREATE MATERIALIZED VIEW c AS SELECT g, SUM(v) s, COUNT(v) n FROM d GROUP BY g",
    "INSERT INTO d VALUES (1, 'a', 1), (2, NULL, 2), (3, 'b', NULL), (3, 'b', NULL)",
    "CREATE TABLE u (k INT, g INT, v INT) UNIQUE KEY (k, g) ROLLUP (p (g, k, v))",
    "INSERT INTO u VALUES (1, 1, 1), (2, 1, 2), (NULL, NULL, 3)",
    (
        "CREATE TABLE a (k INT, g INT, s INT SUM, r INT REPLACE) AGGREGATE KEY (k, g)"
        " ROLLUP (few (g, s), every (g, k, r))"
    ),
    "INSERT INTO a VALUES (1, 1, 1, 1), (2, 1, 2, 2), (NULL, NULL, 3, 3)",
]
QUERIES = {
    "d": {"p": "SELECT v, g FROM {t}", "c": "SELECT g, SUM(v), COUNT(v) FROM {t} GROUP BY g"},
    "u": {"p": "SELECT g, k, v FROM {t}"},
    "a": {"few": "SELECT g, SUM(s) FROM {t} GROUP BY g", "every": "SELECT g, k, r FROM {t}"},
}
REFRESH = "CALL refresh_rollups('{}')"


@pytest.fixture
def followed(copied):
    catalog, lake = copied

    def of(table):
        return Followed(lake, f"sqlite:///{catalog}", table, QUERIES[table])

    return of


def stale(found, *names):
    """Make sure that these rollups are stale, and the others are not."""
    assert found.fresh() == {name: name not in names for name in found.queries}


INLINE = pytest.mark.parametrize("inline", [100, pytest.param(0, marks=pytest.mark.slow)])


@pytest.mark.slow
@INLINE
def test_rows_that_duckdb_changes_are_followed_by_the_next_write(followed, inline):
    found = followed("d")
    found.duckdb("INSERT INTO d VALUES (4, 'c', 4), (5, NULL, 5), (1, 'a', 1)", inline=inline)
    stale(found, "p", "c")
    found.write("INSERT INTO d VALUES (6, 'c', 6)")
    found.duckdb("UPDATE d SET g = 'x', v = 7 WHERE k = 1 OR k = 2", inline=inline)
    found.duckdb("DELETE FROM d WHERE k = 3 OR g IS NULL", inline=inline)
    stale(found, "p", "c")
    found.write(REFRESH.format("d"))
    found.duckdb("INSERT INTO d VALUES (8, 'z', 8)", "DELETE FROM d WHERE k = 1", inline=inline)
    found.write("UPDATE d SET v = v + 1 WHERE k = 6 OR k = 8")

    found.check_history()


@pytest.mark.slow
@INLINE
def test_rows_of_a_rollup_that_duckdb_changes_are_made_anew(followed, inline):
    found = followed("d")
    found.duckdb("DELETE FROM \"d$c\" WHERE g = 'a'", inline=inline)
    stale(found, "c")
    found.write("INSERT INTO d VALUES (4, 'c', 4)")
    found.duckdb('INSERT INTO "d$c" VALUES (NULL, 9, 9)', 'UPDATE "d$p" SET v = 0', inline=inline)
    stale(found, "p", "c")
    found.write(REFRESH.format("d"))

    found.check_history()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("u", "INSERT INTO u VALUES (1, 1, 9), (1, 1, 8), (NULL, NULL, 7), (4, NULL, 4)"),
        pytest.param(
            *("a", "INSERT INTO a VALUES (1, 1, 9, 9), (NULL, NULL, 7, 7), (4, NULL, 4, 4)"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_keys_that_duckdb_adds_again_are_folded_and_followed(followed, table, statement):
    found = followed(table)
    found.duckdb(statement)
    found.write(f"CALL fold('{table}')")
    held = found.rows()
    assert sorted(row[0] or 0 for row in held) == [0, 1, 2, 4]
    found.duckdb(statement, inline=100)
    found.write(f"UPDATE {table} SET k = k + 10 WHERE k = 2")

    found.check_history()


@pytest.mark.slow
def test_a_refresh_leaves_rollups_of_keys_that_are_there_twice_like_their_base(followed):
    found = followed("u")
    found.duckdb("INSERT INTO u VALUES (1, 1, 9)")
    found.write(REFRESH.format("u"))
    found.duckdb("INSERT INTO u VALUES (1, 1, 8)", 'DELETE FROM "u$p" WHERE k = 2')

    # Where all of it is made anew, too.
    found.write(REFRESH.format("u"))


def test_deletes_that_duckdb_adds_to_older_ones_are_followed(followed):
    found = followed("d")
    found.lake.sql("CALL flush_inlined_data('d')")
    found.duckdb("DELETE FROM d WHERE k = 1")
    found.write(REFRESH.format("d"))
    # Its next delete file takes the place of the first one, and begins where that began.
    found.duckdb("DELETE FROM d WHERE k = 2")
    stale(found, "p", "c")
    found.write(REFRESH.format("d"))

    found.check_history()


@pytest.mark.slow
def test_what_the_log_does_not_tell_any_more_is_made_anew(followed):
    found = followed("d")
    found.duckdb("INSERT INTO d VALUES (4, 'c', 4)", "DELETE FROM d WHERE k = 1")
    found.duckdb("CREATE TABLE other (i INT)")
    found.lake.expire_snapshots(older_than=timedelta(0))
    stale(found, "p", "c")
    found.write("INSERT INTO d VALUES (5, 'c', 5)")


@pytest.mark.slow
def test_upkeep_by_duckdb_leaves_rollups_fresh(followed):
    found = followed("d")
    found.write("INSERT INTO d VALUES (4, 'c', 4)")
    found.duckdb(
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
        "CALL ducklake_flush_inlined_data('lake')",
    )
    found.check()
    found.write("DELETE FROM d WHERE k = 4 OR k = 2")


def test_files_that_are_added_are_followed_right_after(followed, tmp_path):
    found = followed("d")
    shutil.copy(found.lake.table("d").files().first().file_path, tmp_path / "more.parquet")
    before = newest(found.lake)
    found.lake.table("d").add_files(tmp_path / "more.parquet")

    assert newest(found.lake) == before + 2
    assert found.check()["d"].total() == 8


@pytest.mark.slow
def test_a_column_that_duckdb_adds_stays_out_of_rollups(followed):
    found = followed("d")
    found.duckdb("ALTER TABLE d ADD COLUMN n INT DEFAULT 5")
    found.check()
    found.write("INSERT INTO d VALUES (4, 'c', 4, 4)")


@pytest.mark.slow
def test_rollups_go_on_under_old_names_when_duckdb_renames_columns(followed):
    found = followed("d")
    found.duckdb("ALTER TABLE d RENAME COLUMN v TO w", "ALTER TABLE d RENAME COLUMN g TO h")
    found.queries = {
        "p": "SELECT w, h FROM {t}",
        "c": "SELECT h, SUM(w), COUNT(w) FROM {t} GROUP BY h",
    }
    found.check()
    found.write("INSERT INTO d VALUES (4, 'c', 4), (5, NULL, 5)")
    found.duckdb("DELETE FROM d WHERE h = 'a'")
    stale(found, "p", "c")
    found.write(REFRESH.format("d"))

    assert found.lake.table("d$c").columns.names == ["g", "s", "n"]
    assert found.lake.table("d$p").columns.names == ["v", "g"]


@pytest.mark.slow
def test_a_wider_type_that_duckdb_gave_a_column_comes_with_a_refresh(followed):
    found = followed("d")
    found.duckdb("ALTER TABLE d ALTER v TYPE BIGINT", "INSERT INTO d VALUES (4, 'b', 3000000000)")
    stale(found, "p", "c")
    found.write(REFRESH.format("d"))

    assert [str(f.type) for f in found.lake.table("d$c").columns][1:] == ["decimal(38,0)", "int64"]


def test_a_rollup_of_a_column_that_duckdb_dropped_goes_with_a_refresh(followed):
    found = followed("d")
    found.duckdb("ALTER TABLE d DROP COLUMN g")
    stale(found, "p", "c")
    found.lake.sql("INSERT INTO d VALUES (4, 4)")
    stale(found, "p", "c")
    found.lake.sql(REFRESH.format("d"))

    assert found.fresh() == {}
    assert not {"d$p", "d$c"} & {t.name for t in found.lake.tables()}


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["COUNT(v) AS n", "SUM(v) AS w"])
def test_a_measure_of_a_column_that_duckdb_dropped_does_not_become_another(followed, measure):
    found = followed("d")
    found.lake.sql("ALTER TABLE d ADD COLUMN w INT; ALTER TABLE d DROP ROLLUP p, c")
    found.lake.sql(f"CREATE MATERIALIZED VIEW m AS SELECT g, {measure} FROM d GROUP BY g")
    found.duckdb("ALTER TABLE d DROP COLUMN v")
    found.lake.sql(REFRESH.format("d"))
    assert "d$m" not in {t.name for t in found.lake.tables()}


@pytest.mark.slow
def test_a_rollup_whose_table_duckdb_dropped_is_dropped_and_made_again(followed):
    found = followed("d")
    found.duckdb('DROP TABLE "d$p"', 'CREATE OR REPLACE TABLE "d$c" AS SELECT 1 AS one')
    found.lake.sql("INSERT INTO d VALUES (4, 'c', 4)")
    assert found.fresh() == {}
    with pytest.raises(NotFound, match=r"table 'd\$p' does not exist in schema 'main'"):
        found.lake.sql("SELECT * FROM `d$p`")
    with pytest.raises(AlreadyExists, match=r"Rollup index p of main\.d already exists"):
        found.lake.sql("ALTER TABLE d ADD ROLLUP p (v, g)")
    found.lake.sql("ALTER TABLE d DROP ROLLUP p, c; ALTER TABLE d ADD ROLLUP p (v, g)")
    with pytest.raises(AlreadyExists, match=r"Rollup index c of main\.d already exists"):
        found.lake.sql("ALTER TABLE d ADD ROLLUP c (v)")
    del found.queries["c"]
    found.check()


def test_rollups_of_a_base_that_duckdb_renamed_wait_for_its_name(followed):
    found = followed("d")
    found.duckdb("ALTER TABLE d RENAME TO e")
    found.lake.sql("INSERT INTO e VALUES (4, 'c', 4)")
    with pytest.raises(InvalidRequest, match=r"main.`d\$p`: it is rollup p of d"):
        found.lake.sql("DELETE FROM `d$p`")
    before = newest(found.lake)
    found.lake.sql(REFRESH.format("e"))
    assert newest(found.lake) == before
    found.lake.sql("ALTER TABLE e RENAME TO d")
    stale(found, "p", "c")
    found.write("INSERT INTO d VALUES (5, 'c', 5)")
    # Or they are dropped, and made again under the new name.
    found.duckdb("ALTER TABLE d RENAME TO e")
    found.lake.sql("ALTER TABLE e DROP ROLLUP p, c; DROP TABLE `d$p`; DROP TABLE `d$c`")
    found.lake.sql("ALTER TABLE e ADD ROLLUP p (v, g)")
    found.base, found.queries = "e", {"p": QUERIES["d"]["p"]}
    found.check()


def test_rollups_of_a_base_that_duckdb_dropped_are_tables_to_drop(followed):
    found = followed("d")
    found.duckdb("DROP TABLE d")
    with pytest.raises(InvalidRequest, match=r"main.`d\$p`: it is rollup p of d"):
        found.lake.sql("INSERT INTO `d$p` VALUES (1, 'a')")
    found.lake.sql("DROP TABLE `d$p`; CREATE TABLE d (k INT, g INT) ROLLUP (p (g))")
    found.queries = {"p": "SELECT g FROM {t}"}
    found.write("INSERT INTO d VALUES (1, 2)")

    assert found.lake.table("d$c").read().count() == 3
