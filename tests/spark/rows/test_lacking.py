"""Columns and fields that rows lack, by verb, evolution, position and NULL parent (docs/types.md).

Each source lacks the field b of a struct at every place of a table at once: in a struct, inside an
array, inside a map, and two levels down.
"""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from shelduck import (
    InvalidRequest,
    when_matched_update,
    when_matched_update_all,
    when_not_matched_insert,
    when_not_matched_insert_all,
)
from tests.support.attaching import attached_lake, url_of
from tests.support.lakes import newest, rows
from tests.support.oracle import DuckDBOracle

S = "STRUCT<a: INT, b: INT>"
SHAPE = f"id INT, st {S}, arr ARRAY<{S}>, m MAP<STRING, {S}>, deep STRUCT<i: {S}, x: INT>, top INT"
FULL = "named_struct('a', 5, 'b', 6)"
START = f"{FULL}, array({FULL}), map('k', {FULL}), named_struct('i', {FULL}, 'x', 6), 6"
NOTHING = "NULL, NULL, NULL, NULL, NULL"
STATEMENTS = [
    f"CREATE TABLE t ({SHAPE})",
    f"INSERT INTO t SELECT id, {START} FROM VALUES (1), (2), (3) AS v(id)",
    f"INSERT INTO t VALUES (4, {NOTHING})",
    f"CREATE TABLE k ({SHAPE}) UNIQUE KEY (id)",
    f"INSERT INTO k SELECT id, {START} FROM VALUES (1), (2), (3) AS v(id)",
    "CREATE TABLE d (id INT, st STRUCT<a: INT>, top INT DEFAULT 7)",
    "ALTER TABLE d ADD COLUMN st.b INT DEFAULT 8",
    "INSERT INTO d VALUES (1, named_struct('a', 1, 'b', 2), 3)",
]

ONE = "named_struct('a', 51)"
SOME = f"{ONE}, array({ONE}, NULL), map('k', {ONE}, 'n', NULL), named_struct('i', {ONE})"
SOURCE = (
    f"SELECT 1 AS id, {ONE} AS st, array({ONE}, NULL) AS arr, map('k', {ONE}, 'n', NULL) AS m,"
    f" named_struct('i', {ONE}) AS deep"
    " UNION ALL SELECT 2, NULL, NULL, NULL, NULL"
    " UNION ALL SELECT 3, named_struct('a', CAST(NULL AS INT)), array(), map(),"
    " named_struct('i', NULL)"
    f" UNION ALL SELECT 4, {SOME} UNION ALL SELECT 5, {SOME} UNION ALL SELECT 6, NULL, NULL, NULL,"
    " NULL"
)
LISTS = ([(51, None), None], {"k": (51, None), "n": None})
NEW = {
    1: ((51, None), *LISTS, ((51, None), None), None),
    2: (None, None, None, None, None),
    3: ((None, None), [], {}, (None, None), None),
    4: ((51, None), *LISTS, ((51, None), None), None),
    5: ((51, None), *LISTS, ((51, None), None), None),
    6: (None, None, None, None, None),
}
"""The rows as new ones: what is lacking is NULL, and what is NULL stays NULL."""

KEPT = NEW | {
    1: ((51, 6), *LISTS, ((51, 6), 6), 6),
    2: (None, None, None, None, 6),
    3: ((None, 6), [], {}, (None, 6), 6),
}
"""The rows over {5, 6} everywhere (1 to 3) and over NULL everywhere (4), by SET *."""

WHOLE = NEW | {n: (*NEW[n][:4], 6) for n in (1, 2, 3)}
"""The rows as values of their columns: the column that is not set stays."""

SET = {"st": "s.st", "arr": "s.arr", "m": "s.m", "deep": "s.deep"}
SETS = ", ".join(f"{name} = {value}" for name, value in SET.items())
MERGE = f"INTO t USING ({SOURCE}) s ON t.id = s.id WHEN MATCHED THEN"
INSERT = "WHEN NOT MATCHED THEN INSERT"
VALUES = "(id, st, arr, m, deep) VALUES (s.id, s.st, s.arr, s.m, s.deep)"
NAMED = {"id": "s.id", **SET}
ALL_FIELDS = "st.b, arr.element.b, m.value.b, deep.i.b, deep.x"


def found(lake, table="t"):
    return {row[0]: row[1:] for row in rows(lake.sql(f"SELECT * FROM {table}"))}


def source(spark):
    return spark.sql(SOURCE)


def merges(lake, spark, *clauses, evolves=True):
    return lake.table("t").merge(source(spark), "t.id = s.id", *clauses, schema_evolution=evolves)


NEW_ROWS = {
    "append": lambda lake, spark: lake.table("t").append(source(spark)),
    "BY NAME": lambda lake, spark: lake.sql(f"INSERT INTO t BY NAME {SOURCE}"),
    "column list": lambda lake, spark: lake.sql(f"INSERT INTO t (id, st, arr, m, deep) {SOURCE}"),
    "position": lambda lake, spark: lake.sql(f"INSERT INTO t SELECT *, NULL FROM ({SOURCE})"),
    "evolution": lambda lake, spark: lake.sql(
        f"INSERT WITH SCHEMA EVOLUTION INTO t BY NAME {SOURCE}"
    ),
    "append evolve": lambda lake, spark: lake.table("t").append(source(spark), evolve="all"),
    "append rescue": lambda lake, spark: lake.table("t").append(source(spark), rescue="top_"),
    "sink": lambda lake, spark: lake.table("t").sink("q")(source(spark), 0),
    "overwrite": lambda lake, spark: lake.table("t").overwrite(source(spark)),
    "overwrite where": lambda lake, spark: lake.table("t").overwrite(source(spark), where="id > 0"),
    "INSERT OVERWRITE": lambda lake, spark: lake.sql(f"INSERT OVERWRITE t BY NAME {SOURCE}"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("door", NEW_ROWS)
def test_a_new_row_gets_null_for_what_it_lacks_and_a_null_stays_null(door, lake, spark):
    lake.sql("TRUNCATE TABLE t")
    NEW_ROWS[door](lake, spark)
    assert {n: row[:5] for n, row in found(lake).items()} == NEW


@pytest.mark.sampled(1)
@pytest.mark.parametrize("evolve", [None, "all"])
def test_a_load_replaces_the_whole_row_of_a_key(evolve, lake, spark):
    lake.table("k").append(source(spark), evolve=evolve)
    assert found(lake, "k") == NEW


def test_new_rows_get_the_defaults_of_what_they_lack(lake, spark):
    lake.sql(f"INSERT INTO d BY NAME SELECT 2 AS id, {ONE} AS st")
    lake.table("d").append(spark.sql("SELECT 3 AS id, CAST(NULL AS STRUCT<a: INT>) AS st"))
    lake.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO d USING (SELECT 4 AS id, {ONE} AS st) s ON d.id = s.id"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    want = {1: ((1, 2), 3), 2: ((51, 8), 7), 3: (None, 7), 4: ((51, 8), 7)}
    assert found(lake, "d") == want


STARS = {
    "SQL": lambda lake, spark: lake.sql(
        f"MERGE WITH SCHEMA EVOLUTION {MERGE} UPDATE SET * {INSERT} *"
    ),
    "Python": lambda lake, spark: merges(
        lake, spark, when_matched_update_all(), when_not_matched_insert_all()
    ),
}
WHOLES = {
    "SQL": lambda lake, spark: lake.sql(
        f"MERGE WITH SCHEMA EVOLUTION {MERGE} UPDATE SET {SETS} {INSERT} {VALUES}"
    ),
    "Python": lambda lake, spark: merges(
        lake, spark, when_matched_update(SET), when_not_matched_insert(NAMED)
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("door", STARS)
def test_set_all_keeps_the_fields_that_a_struct_lacks_and_null_replaces_all(door, copied, spark):
    catalog, lake = copied
    assert STARS[door](lake, spark) is not None
    assert found(lake) == KEPT
    with DuckDBOracle(f"sqlite:///{catalog}") as oracle:
        assert oracle.sql(
            "SELECT id, st IS NULL, st.b, deep IS NULL, deep.i.b FROM t ORDER BY id"
        ) == [
            (1, False, 6, False, 6),
            (2, True, None, True, None),
            (3, False, 6, False, None),
            (4, False, None, False, None),
            (5, False, None, False, None),
            (6, True, None, True, None),
        ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("door", WHOLES)
def test_a_value_of_a_whole_column_has_null_for_the_fields_that_it_lacks(door, lake, spark):
    WHOLES[door](lake, spark)
    assert found(lake) == WHOLE


def test_fields_come_and_are_lacking_in_one_merge_and_a_null_stays_null(lake):
    more = "named_struct('a', 51, 'c', 7)"
    lake.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING"
        f" (SELECT 1 AS id, {more} AS st, array({more}) AS arr UNION ALL SELECT 2, NULL, NULL) s"
        " ON t.id = s.id WHEN MATCHED AND s.id = 2 THEN UPDATE SET st = s.st"
        " WHEN MATCHED THEN UPDATE SET *"
    )
    kept = found(lake)
    assert [kept[n][0] for n in (1, 2, 3, 4)] == [(51, 6, 7), None, (5, 6, None), None]
    assert [kept[n][1] for n in (1, 2)] == [[(51, None, 7)], [(5, 6, None)]]


@pytest.mark.slow
@pytest.mark.parametrize("big", [False, True])
def test_merge_into_of_a_session_keeps_null_structs(big, spark, tmp_path):
    limit = 0 if big else 100
    with attached_lake(
        spark, tmp_path, f"CALL set_option('data_inlining_row_limit', '{limit}')", *STATEMENTS[:3]
    ) as lake:
        given = source(spark)
        given.alias("s").mergeInto(
            "lake.main.t", F.expr("t.id = s.id")
        ).withSchemaEvolution().whenMatched().updateAll().whenNotMatched().insertAll().merge()
        assert found(lake) == KEPT
        with DuckDBOracle(url_of(tmp_path)) as oracle:
            assert oracle.sql("SELECT id FROM t WHERE st IS NULL ORDER BY id") == [(2,), (6,)]


REFUSED = {
    "SET *": lambda lake, spark: lake.sql(f"MERGE {MERGE} UPDATE SET *"),
    "UPDATE": lambda lake, spark: lake.sql(
        f"UPDATE t SET st = {ONE}, arr = array({ONE}, NULL), m = map('k', {ONE}, 'n', NULL),"
        f" deep = named_struct('i', {ONE}) WHERE id = 1"
    ),
    "INSERT *": lambda lake, spark: lake.sql(f"MERGE {MERGE} DELETE {INSERT} *"),
    "SET": lambda lake, spark: lake.sql(f"MERGE {MERGE} UPDATE SET {SETS}"),
    "INSERT": lambda lake, spark: lake.sql(f"MERGE {MERGE} DELETE {INSERT} {VALUES}"),
    "Python SET *": lambda lake, spark: merges(
        lake, spark, when_matched_update_all(), evolves=False
    ),
    "Python SET": lambda lake, spark: merges(lake, spark, when_matched_update(SET), evolves=False),
    "Python INSERT": lambda lake, spark: merges(
        lake, spark, when_not_matched_insert(NAMED), evolves=False
    ),
    "update": lambda lake, spark: lake.table("t").update(
        {
            "st": ONE,
            "arr": F.expr(f"array({ONE})"),
            "m": f"map('k', {ONE})",
            "deep": f"named_struct('i', {ONE})",
        }
    ),
    "UPDATE FROM": lambda lake, spark: lake.sql(
        f"UPDATE t SET {SETS} FROM ({SOURCE}) s WHERE t.id = s.id"
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("door", REFUSED)
def test_without_evolution_a_change_of_rows_needs_every_field(door, lake, spark):
    before = newest(lake)
    with pytest.raises(InvalidRequest) as refused:
        REFUSED[door](lake, spark)
    told = f"does not have {'top, ' * ('*' in door)}{ALL_FIELDS}; give every"
    assert told in str(refused.value)
    assert newest(lake) == before


def test_a_field_that_is_set_by_its_path_leaves_the_others(lake):
    lake.sql(f"UPDATE t SET deep.i = {FULL}, st.a = 9 WHERE id = 1")
    assert found(lake)[1][0] == (9, 6)
    with pytest.raises(InvalidRequest, match=r"does not have deep\.i\.b; give every field"):
        lake.sql(f"UPDATE t SET deep.i = {ONE}")


def test_a_type_change_by_an_expression_needs_every_field(lake):
    with pytest.raises(InvalidRequest, match=r"the result of USING does not have st\.b; give"):
        lake.sql(f"ALTER TABLE t ALTER COLUMN st TYPE STRUCT<a: STRING, b: INT> USING {ONE}")
