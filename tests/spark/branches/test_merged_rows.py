"""Merges of rows that both sides may have changed: by ids, by keys, under rules, and resolved."""

from __future__ import annotations

import pytest

import shelduck
from shelduck import Conflict, InvalidRequest, NotFound, Resolution
from tests.support.oracle import DuckDBOracle


@pytest.fixture
def lake(spark, tmp_path):
    with shelduck.connect(f"sqlite:///{tmp_path}/lake.db", f"{tmp_path}/data", spark) as found:
        found.set_option("data_inlining_row_limit", 0)
        yield found


def run(lake, *statements):
    for each in statements:
        lake.sql(each)


def merged(lake, name="t"):
    """What DuckDB and Spark read after a merge; both sides are as they should be."""
    assert not lake.check(rows=True).problems
    found = sorted(map(tuple, lake.sql(f"SELECT * FROM {name}").collect()), key=str)
    with DuckDBOracle(lake._state.store.where) as duck:
        assert sorted(duck.sql(f"FROM {name}"), key=str) == found
    return found


def told(lake, **more):
    return [(c.kind, c.item, c.base, c.ours, c.theirs) for c in lake.merge_conflicts("b", **more)]


PLAIN = ("CREATE TABLE t (k INT, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
UNIQUE = ("CREATE TABLE t (k INT, v INT) UNIQUE KEY (k)", *PLAIN[1:])
_VALUES = "n BIGINT SUM, low INT MIN, high INT MAX, last STRING REPLACE, seen STRING"
SUMS = (
    f"CREATE TABLE t (k INT, {_VALUES} REPLACE_IF_NOT_NULL) AGGREGATE KEY (k)",
    "INSERT INTO t VALUES (1, 1, 5, 5, 'a', 'a'), (NULL, 2, 5, 5, 'a', 'a')",
)


@pytest.mark.parametrize("inlined", [0, 100], ids=["files", "inlined"])
def test_keys_that_both_sides_load_are_folded(lake, inlined):
    lake.set_option("data_inlining_row_limit", inlined)
    run(lake, *UNIQUE, "CREATE BRANCH b", "INSERT INTO t VALUES (2, 20), (4, 40)")
    run(lake, "INSERT INTO b.t VALUES (4, 44), (5, 5)", "DELETE FROM b.t WHERE k = 3")
    lake.merge_branch("b")
    assert merged(lake) == [(1, 1), (2, 20), (4, 44), (5, 5)]
    run(lake, "INSERT INTO b.t VALUES (5, 55)", "INSERT INTO t VALUES (6, 6)", "MERGE BRANCH b")
    assert merged(lake) == [(1, 1), (2, 20), (4, 44), (5, 55), (6, 6)]


def test_aggregates_of_both_sides_are_combined(lake):
    run(lake, *SUMS, "CREATE BRANCH b")
    run(lake, "INSERT INTO t VALUES (1, 10, 4, 6, 'main', 'main'), (2, 1, 1, 1, 'x', 'x')")
    run(lake, "INSERT INTO b.t VALUES (1, 100, 9, 9, 'b', NULL), (2, 2, 2, 2, 'y', NULL)")
    run(lake, "INSERT INTO b.t VALUES (NULL, 3, 3, 7, 'b', 'b')")
    lake.merge_branch("b")
    first = [(1, 111, 4, 9, "b", "main"), (2, 3, 1, 2, "y", "x"), (None, 5, 3, 7, "b", "b")]
    assert merged(lake) == first
    run(lake, "INSERT INTO b.t VALUES (1, 1000, 9, 9, 'c', 'c')", "MERGE BRANCH b")
    assert merged(lake) == [(1, 1111, 4, 9, "c", "c"), *first[1:]]


@pytest.mark.slow
def test_a_column_that_only_the_source_has_keeps_its_values(lake):
    run(lake, *UNIQUE, "CREATE BRANCH b", "ALTER TABLE t ADD COLUMN more INT DEFAULT 7")
    run(lake, "INSERT INTO t VALUES (2, 2, 22)", "INSERT INTO b.t VALUES (2, 200), (9, 9)")
    lake.merge_branch("b")
    assert merged(lake) == [(1, 1, 7), (2, 200, 22), (3, 3, 7), (9, 9, 7)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("using", "rows"), [("OURS", [(2, 20), (4, 4)]), ("THEIRS", [(3, 30), (4, 4)])]
)
def test_a_key_that_one_side_deleted_and_the_other_changed(lake, using, rows):
    run(
        lake,
        *UNIQUE,
        "CREATE BRANCH b",
        "INSERT INTO t VALUES (2, 20)",
        "DELETE FROM t WHERE k IN (1, 3)",
    )
    run(lake, "DELETE FROM b.t WHERE k IN (1, 2)", "INSERT INTO b.t VALUES (3, 30), (4, 4)")
    assert told(lake) == [
        ("key", "(2)", "as it was", "changed", "deleted"),
        ("key", "(3)", "as it was", "deleted", "changed"),
    ]
    run(lake, f"MERGE BRANCH b RESOLVE t USING {using}")
    assert merged(lake) == rows


RULES = {
    "ALTER TABLE {} ALTER COLUMN v SET NOT NULL": (2, None, "v is NOT NULL, and NULL in 1 row"),
    "ALTER TABLE {} ADD CONSTRAINT c CHECK (v > 0)": (2, -1, "1 row(s) do not satisfy CHECK"),
}


@pytest.mark.parametrize("ruled", ["t", "b.t"])
@pytest.mark.parametrize("rule", RULES)
def test_rows_of_one_side_must_keep_the_rules_of_the_other(lake, rule, ruled):
    key, value, why = RULES[rule]
    other = "b.t" if ruled == "t" else "t"
    bad = "NULL" if value is None else value
    # The side with the rule has deleted its own bad row, so only the new one counts.
    run(lake, PLAIN[0], f"INSERT INTO t VALUES (1, 1), (9, {bad})", "CREATE BRANCH b")
    run(lake, f"DELETE FROM {ruled} WHERE k = 9", rule.format(ruled))
    run(lake, f"INSERT INTO {other} VALUES ({key}, {bad})")
    [(kind, item, _, *wrong)] = told(lake)
    assert (kind, item) == ("rule", f"rows {'here' if other == 't' else 'on the branch'}")
    assert any(text.startswith(why) for text in wrong)
    with pytest.raises(Conflict, match="rule rows"):
        lake.merge_branch("b")
    run(lake, f"UPDATE {other} SET v = 5 WHERE k = {key}", "MERGE BRANCH b")
    assert merged(lake) == [(1, 1), (2, 5)]


@pytest.mark.slow
def test_rules_of_both_sides_are_merged_one_by_one(lake):
    run(lake, *PLAIN, "CREATE BRANCH b")
    run(lake, "ALTER TABLE t ADD CONSTRAINT ours CHECK (v > 0)")
    run(lake, "ALTER TABLE b.t ADD CONSTRAINT theirs CHECK (k > 0)", "MERGE BRANCH b")
    for bad in ("(5, -1)", "(-1, 5)"):
        with pytest.raises(InvalidRequest, match="CHECK constraint"):
            lake.sql(f"INSERT INTO t VALUES {bad}")


def test_a_column_that_a_rule_of_the_other_side_uses_cannot_go(lake):
    run(lake, *PLAIN, "CREATE BRANCH b", "ALTER TABLE t ADD CONSTRAINT c CHECK (v > 0)")
    run(lake, "ALTER TABLE b.t DROP COLUMN v")
    assert told(lake) == [("rule", "constraint c", "", "uses column 2", "without it")]


def test_rows_that_both_sides_changed_alike_are_no_conflict(lake):
    run(lake, "CREATE TABLE t (k INT, v MAP<STRING, INT>)")
    run(lake, "INSERT INTO t VALUES (1, map('a', 1)), (2, map('b', 2))", "CREATE BRANCH b")
    for name in ("t", "b.t"):
        run(
            lake,
            f"UPDATE {name} SET v = map('c', 3) WHERE k = 1",
            f"DELETE FROM {name} WHERE k = 2",
        )
    lake.merge_branch("b")
    assert merged(lake) == [(1, {"c": 3})]


RESOLVED = {
    "t USING OURS": [(1, 10), (3, 30)],
    "ALL USING THEIRS": [(1, 11), (2, 22)],
    "t WHERE (k = 1) USING THEIRS, t USING OURS": [(1, 11), (3, 30)],
    "t WHERE (v = 10) USING OURS, ALL USING THEIRS": [(1, 10), (2, 22)],
}


@pytest.mark.parametrize("how", RESOLVED)
def test_resolutions_say_which_side_decides(lake, how):
    run(lake, *PLAIN, "CREATE BRANCH b")
    run(lake, "UPDATE t SET v = 10 * k WHERE k IN (1, 3)", "DELETE FROM t WHERE k = 2")
    run(lake, "UPDATE b.t SET v = 11 * k WHERE k IN (1, 2)", "DELETE FROM b.t WHERE k = 3")
    run(lake, "INSERT INTO b.t VALUES (4, 4)")
    assert [(item, *states) for _, item, *states in told(lake)] == [
        ("rowid 0", '{"k":1,"v":1}', '{"k":1,"v":10}', '{"k":1,"v":11}'),
        ("rowid 1", '{"k":2,"v":2}', "deleted", '{"k":2,"v":22}'),
        ("rowid 2", '{"k":3,"v":3}', '{"k":3,"v":30}', "deleted"),
    ]
    run(lake, f"MERGE BRANCH b RESOLVE {how}")
    assert merged(lake) == [*RESOLVED[how], (4, 4)]
    # Rows keep their ids, so that the next merge finds them.
    run(lake, "UPDATE b.t SET v = 400 WHERE k = 4", "DELETE FROM t WHERE k = 1", "MERGE BRANCH b")
    assert merged(lake)[-1] == (4, 400)


@pytest.mark.slow
def test_columns_are_resolved_by_name(lake):
    run(lake, *PLAIN, "CREATE BRANCH b")
    for name, side in (("t", "ours"), ("b.t", "theirs")):
        run(lake, f"ALTER TABLE {name} RENAME COLUMN v TO v_{side}")
        run(lake, f"ALTER TABLE {name} RENAME COLUMN k TO k_{side}")
    with pytest.raises(Conflict, match=r"1 change\(s\) conflict, such as column k"):
        lake.sql("MERGE BRANCH b RESOLVE t.v USING THEIRS")
    run(lake, "MERGE BRANCH b RESOLVE t.v USING THEIRS, t.k USING OURS")
    assert lake.sql("SELECT * FROM t").columns == ["k_ours", "v_theirs"]


@pytest.mark.parametrize(("using", "there"), [("ours", False), ("theirs", True)])
def test_a_table_that_one_side_dropped(lake, using, there):
    run(lake, *PLAIN, "CREATE BRANCH b", "DROP TABLE t", "INSERT INTO b.t VALUES (4, 4)")
    assert [c.kind for c in lake.merge_conflicts("b")] == ["table"]
    lake.merge_branch("b", [Resolution(using, "t")])
    assert ("t" in [name.name for name in lake.tables("main")]) == there


@pytest.mark.parametrize(
    ("how", "error", "why"),
    [
        ("nothing USING OURS", NotFound, "table 'nothing' does not exist in branch 'b'"),
        ("t.nothing USING OURS", NotFound, "column 'nothing' does not exist in main.t"),
        ("t USING MINE", InvalidRequest, "expected OURS or THEIRS"),
    ],
)
def test_a_resolution_of_nothing_is_refused(lake, how, error, why):
    run(lake, *PLAIN, "CREATE BRANCH b")
    with pytest.raises(error, match=why):
        lake.sql(f"MERGE BRANCH b RESOLVE {how}")


def test_a_resolution_says_what_it_is_about():
    for wrong in (
        {"using": "mine"},
        {"using": "ours", "column": "c"},
        {"using": "ours", "where": "x"},
    ):
        with pytest.raises(InvalidRequest):
            Resolution(**wrong)


def test_rows_of_files_that_were_compacted_merge_by_their_ids(lake):
    run(lake, *PLAIN, "INSERT INTO t VALUES (4, 4)", "CREATE BRANCH b")
    run(lake, "UPDATE t SET v = 10 WHERE k = 1", "DELETE FROM t WHERE k = 4")
    run(lake, "UPDATE b.t SET v = 20 WHERE k = 2", "INSERT INTO b.t VALUES (5, 5)")
    lake.table("b.t").compact(min_files=2)
    lake.table("t").compact(min_files=2)
    lake.merge_branch("b")
    assert merged(lake) == [(1, 10), (2, 20), (3, 3), (5, 5)]


CONVERTED = {"on the branch": ("b.t", "t"), "in the source": ("t", "b.t")}


@pytest.mark.parametrize("where", CONVERTED)
def test_a_column_is_converted_for_rows_of_the_other_side(lake, where):
    there, other = CONVERTED[where]
    run(lake, "CREATE TABLE t (k INT, v STRING)")
    run(lake, "INSERT INTO t VALUES (1, '1'), (2, '2'), (3, '3')", "CREATE BRANCH b")
    run(lake, f"INSERT INTO {there} VALUES (4, '4')", f"DELETE FROM {there} WHERE k = 3")
    run(lake, f"ALTER TABLE {there} ALTER COLUMN v TYPE INT USING v * 10")
    run(lake, f"UPDATE {there} SET v = 11 WHERE k = 1")
    run(lake, f"INSERT INTO {other} VALUES (5, '5')", f"UPDATE {other} SET v = '7' WHERE k = 2")
    run(lake, f"ALTER TABLE {other} ADD COLUMN more INT DEFAULT 3")
    lake.merge_branch("b")
    assert merged(lake) == [(1, 11, 3), (2, 70, 3), (4, 40, 3), (5, 50, 3)]
    run(lake, "INSERT INTO b.t VALUES (6, 6, 6)", "INSERT INTO t VALUES (7, 7, 7)") if (
        where == "on the branch"
    ) else run(lake, "INSERT INTO t VALUES (7, 7, 7)")
    lake.merge_branch("b")
    assert merged(lake)[4][0] in (6, 7)


@pytest.mark.slow
def test_a_value_that_cannot_be_converted_merges_nothing(lake):
    run(lake, "CREATE TABLE t (k INT, v STRING)", "INSERT INTO t VALUES (1, '1')")
    run(lake, "CREATE BRANCH b", "ALTER TABLE b.t ALTER COLUMN v TYPE INT")
    run(lake, "INSERT INTO t VALUES (2, 'two')")
    before = lake.snapshots()[-1]
    with pytest.raises(shelduck.ShelduckError, match="two"):
        lake.merge_branch("b")
    assert lake.snapshots()[-1] == before


@pytest.mark.slow
def test_a_row_that_both_changed_stays_a_conflict_where_one_side_converts(lake):
    run(lake, "CREATE TABLE t (k INT, v STRING)", "INSERT INTO t VALUES (1, '1'), (2, '2')")
    run(lake, "CREATE BRANCH b", "ALTER TABLE b.t ALTER COLUMN v TYPE INT")
    run(lake, "UPDATE b.t SET v = 20 WHERE k = 2", "UPDATE t SET v = '30' WHERE k = 2")
    [found] = told(lake)
    assert found == ("row", "rowid 1", '{"k":2,"v":2}', '{"k":2,"v":30}', '{"k":2,"v":20}')
    run(lake, "MERGE BRANCH b RESOLVE ALL USING THEIRS")
    assert merged(lake) == [(1, 1), (2, 20)]


def test_rollups_follow_rows_that_both_sides_changed(lake):
    run(lake, *PLAIN, "CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) FROM t GROUP BY k")
    run(lake, "CREATE BRANCH b", "UPDATE t SET v = 10 WHERE k = 1", "DELETE FROM b.t WHERE k = 2")
    run(
        lake, "UPDATE b.t SET v = 30 WHERE k = 3", "INSERT INTO b.t VALUES (3, 3)", "MERGE BRANCH b"
    )
    assert merged(lake) == [(1, 10), (3, 3), (3, 30)]
    totals = lake.sql("SELECT k, sum(v) FROM t GROUP BY k ORDER BY k").collect()
    assert totals == [(1, 10), (3, 33)]


@pytest.mark.slow
def test_a_column_that_was_converted_twice_and_one_that_was_undone(lake):
    run(lake, "CREATE TABLE t (k INT, v STRING, w STRING)", "INSERT INTO t VALUES (1, '1', '1')")
    run(lake, "CREATE BRANCH b", "ALTER TABLE b.t ALTER COLUMN v TYPE INT USING k + v")
    run(lake, "ALTER TABLE b.t ALTER COLUMN v TYPE STRING USING concat('v', v)")
    run(lake, "ALTER TABLE b.t ALTER COLUMN w TYPE INT", "ALTER TABLE t RENAME COLUMN k TO key")
    lake.undo(lake.jobs()[0].id).wait()
    run(lake, "INSERT INTO t VALUES (2, '2', '2')")
    with pytest.raises(shelduck.ShelduckError, match=r"USING k \+ v of v of main\.t is not valid"):
        lake.merge_branch("b")
    run(lake, "ALTER TABLE t RENAME COLUMN key TO k", "MERGE BRANCH b")
    assert merged(lake) == [(1, "v2", "1"), (2, "v4", "2")]


@pytest.mark.parametrize("there", ["b.t", "t"])
def test_a_column_that_one_side_converted_and_the_other_dropped(lake, there):
    other = "t" if there == "b.t" else "b.t"
    run(
        lake, "CREATE TABLE t (k INT, v STRING)", "INSERT INTO t VALUES (1, '1')", "CREATE BRANCH b"
    )
    run(lake, f"ALTER TABLE {there} ALTER COLUMN v TYPE INT", f"ALTER TABLE {other} DROP COLUMN v")
    [(kind, item, was, *now)] = told(lake)
    assert (kind, item, was, sorted(now)) == ("column", "v", "v varchar", ["", "v int32"])


def test_a_merge_is_undone_and_newer_rows_stay(lake):
    run(lake, *PLAIN, "CREATE TABLE other (k INT)", "CREATE BRANCH b")
    with pytest.raises(InvalidRequest, match="branch 'b' has no merge to undo"):
        lake.undo_merge("b")
    run(lake, "INSERT INTO b.t VALUES (4, 4)", "DELETE FROM b.t WHERE k = 1")
    run(lake, "UPDATE b.t SET v = 20 WHERE k = 2", "ALTER TABLE b.t ADD COLUMN more INT DEFAULT 7")
    run(lake, "CREATE TABLE b.made (k INT)", "INSERT INTO t VALUES (0, 0)", "MERGE BRANCH b")
    run(lake, "INSERT INTO t VALUES (5, 5, 5)", "UPDATE t SET v = 33 WHERE k = 3")
    run(lake, "UNDO MERGE BRANCH b")
    assert merged(lake) == [(0, 0), (1, 1), (2, 2), (3, 33), (5, 5)]
    assert [name.name for name in lake.tables("main")] == ["other", "t"]
    with pytest.raises(InvalidRequest, match="has no merge to undo"):
        lake.undo_merge("b")
    run(lake, "INSERT INTO b.t VALUES (6, 6, 6)", "MERGE BRANCH b")
    assert merged(lake) == [(0, 0), (1, 1), (2, 2), (3, 33), (5, 5), (6, 6)]


UNDONE = {
    "UPDATE t SET w = 200 WHERE k = 2": "row rowid 1",
    "ALTER TABLE t RENAME COLUMN w TO mine": r"column w\.name",
}


@pytest.mark.slow
@pytest.mark.parametrize("newer", UNDONE)
def test_a_merge_stays_if_somebody_changed_what_it_brought(lake, newer):
    run(lake, *PLAIN, "CREATE BRANCH b", "ALTER TABLE b.t RENAME COLUMN v TO w")
    run(lake, "UPDATE b.t SET w = 20 WHERE k = 2", "MERGE BRANCH b", newer)
    with pytest.raises(Conflict, match=f"cannot undo the merge of branch 'b': .*{UNDONE[newer]}"):
        lake.undo_merge("b")


@pytest.mark.slow
def test_a_converted_column_is_undone_while_nobody_has_written(lake):
    run(
        lake, "CREATE TABLE t (k INT, v STRING)", "INSERT INTO t VALUES (1, '1')", "CREATE BRANCH b"
    )
    run(lake, "ALTER TABLE b.t ALTER COLUMN v TYPE INT", "INSERT INTO b.t VALUES (2, 2)")
    run(lake, "MERGE BRANCH b", "UNDO MERGE BRANCH b")
    assert merged(lake) == [(1, "1")]
    run(lake, "INSERT INTO b.t VALUES (3, 3)", "INSERT INTO t VALUES (4, 'four')")
    assert told(lake) == [("column", "v", "v int32", "v varchar", "v int32")]


SUMMED = [
    "CREATE TABLE t (k INT, n INT SUM) AGGREGATE KEY (k)",
    "INSERT INTO t VALUES (1, 1), (2, 2)",
]


def test_both_sides_add_values_to_a_table_with_keys(lake):
    run(lake, *SUMMED, "CREATE BRANCH b", "ALTER TABLE t ADD COLUMN x INT MAX DEFAULT '0'")
    run(lake, "ALTER TABLE b.t ADD COLUMN y INT SUM DEFAULT '0'", "INSERT INTO t VALUES (1, 1, 7)")
    run(lake, "INSERT INTO b.t VALUES (1, 1, 5), (3, 3, 3)", "MERGE BRANCH b")
    assert merged(lake) == [(1, 3, 5, 7), (2, 2, 0, 0), (3, 3, 3, 0)]
    run(lake, "INSERT INTO t (k, n, x, y) VALUES (1, 1, 9, 1), (3, 0, -1, 1)")
    assert merged(lake) == [(1, 4, 6, 9), (2, 2, 0, 0), (3, 3, 4, 0)]
    run(lake, "ALTER TABLE t DROP COLUMN x", "ALTER TABLE b.t ADD COLUMN z INT MIN DEFAULT '1'")
    run(lake, "MERGE BRANCH b")
    assert merged(lake) == [(1, 4, 6, 1), (2, 2, 0, 1), (3, 3, 4, 1)]


def test_both_sides_add_keys_or_one_does_and_the_other_has_new_rows(lake):
    run(
        lake, *SUMMED, "CREATE BRANCH b", "ALTER TABLE b.t ADD COLUMN y INT KEY DEFAULT '0' AFTER k"
    )
    run(lake, "INSERT INTO b.t VALUES (1, 7, 1)")
    run(lake, "CREATE BRANCH c FROM b", "ALTER TABLE t ADD COLUMN x INT KEY DEFAULT '0' AFTER k")
    assert told(lake)[0] == (
        *("key", "model", "AGGREGATE KEY (k)"),
        *("AGGREGATE KEY (k, x)", "AGGREGATE KEY (k, y)"),
    )
    run(lake, "ALTER TABLE b.t ADD COLUMN x INT KEY DEFAULT '0' AFTER k")
    run(lake, "INSERT INTO b.t VALUES (1, 1, 1, 1)", "INSERT INTO c.t VALUES (2, 2, 2)")
    [found] = [(one.kind, one.item, one.ours, one.theirs) for one in lake.merge_conflicts("c")]
    assert found == ("key", "x", "a new key", "new rows")
