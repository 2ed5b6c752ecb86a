"""Rollups: however they were made, every write leaves them as their query over the base.

Both engines read base and rollups after each statement, and at every snapshot in the end.
"""

from __future__ import annotations

import json

import pytest

import shelduck
from shelduck import InvalidRequest, Unchanged
from tests.support.lakes import newest, rows
from tests.support.rollups import Followed

# Keys and values that are NULL are everywhere: NULL is a group like any other.
STATEMENTS = [
    (
        "CREATE TABLE d (k1 INT, k2 STRING, v INT, w DECIMAL(10,2), day DATE)"
        " DUPLICATE KEY (k1, k2) ROLLUP (p (k2, day, v))"
    ),
    (
        "CREATE MATERIALIZED VIEW g AS SELECT k2, SUM(v) s, MIN(w) lo, MAX(day) hi, COUNT(*) n,"
        " COUNT(v) c FROM d GROUP BY k2"
    ),
    (
        "INSERT INTO d VALUES (1, 'a', 1, 1.50, DATE'2024-01-01'), (1, 'a', 1, 1.50, NULL),"
        " (2, NULL, 2, NULL, NULL), (3, 'b', NULL, 2.25, DATE'2024-01-02'), (4, 'b', 4, -3, NULL),"
        " (NULL, NULL, NULL, NULL, NULL)"
    ),
    "CREATE TABLE u (k1 INT, k2 STRING, v INT, w INT) UNIQUE KEY (k1, k2) ROLLUP (p (k2, k1, v))",
    "INSERT INTO u VALUES (1, 'a', 1, 1), (1, NULL, 2, 2), (NULL, NULL, 3, 3), (2, 'b', 4, NULL)",
    (
        "CREATE TABLE q (k1 INT, k2 INT, v STRING, o INT) UNIQUE KEY (k1, k2)"
        " ROLLUP (p (k2, k1, v)) PROPERTIES ('function_column.sequence_col' = 'o')"
    ),
    "INSERT INTO q VALUES (1, 1, 'a', 5), (2, 1, 'b', 5), (3, NULL, 'c', NULL)",
    (
        "CREATE TABLE a (k1 INT, k2 STRING, day DATE, s INT SUM, lo INT MIN, hi DECIMAL(9,2) MAX,"
        " r INT REPLACE, nn INT REPLACE_IF_NOT_NULL) AGGREGATE KEY (k1, k2, day)"
        " ROLLUP (few (k2, s, lo, hi), every (day, k1, k2, r, nn, s))"
    ),
    (
        "INSERT INTO a VALUES (1, 'a', NULL, 1, 1, 1, 1, 1), (1, 'b', NULL, 2, 2, NULL, 2, NULL),"
        " (2, 'a', DATE'2024-01-01', NULL, 3, 3, 3, 3), (NULL, NULL, NULL, 4, NULL, 4, NULL, 4)"
    ),
    "CREATE TABLE n (k INT, g INT, v INT) PARTITIONED BY (g)",
    "CREATE MATERIALIZED VIEW c AS SELECT g, COUNT(v) c, MAX(k) hi FROM n GROUP BY g",
    "INSERT INTO n VALUES (1, 1, 1), (2, 1, NULL), (3, 2, 3), (4, NULL, 4)",
]
G = "SELECT k2, SUM(v), MIN(w), MAX(day), COUNT(*), COUNT(v) FROM {t} GROUP BY k2"
QUERIES = {
    "d": {"p": "SELECT k2, day, v FROM {t}", "g": G},
    "u": {"p": "SELECT k2, k1, v FROM {t}"},
    "q": {"p": "SELECT k2, k1, v, o FROM {t}"},
    "a": {
        "few": "SELECT k2, SUM(s), MIN(lo), MAX(hi) FROM {t} GROUP BY k2",
        "every": "SELECT day, k1, k2, r, nn, s FROM {t}",
    },
    "n": {"c": "SELECT g, COUNT(v), MAX(k) FROM {t} GROUP BY g"},
}
WRITES = {
    "d": [
        "INSERT INTO d VALUES (5, 'c', 5, 5, NULL), (2, NULL, 7, 1, NULL), (1, 'a', 1, 1.5, NULL)",
        "UPDATE d SET v = 9, k2 = CASE WHEN k2 IS NULL THEN 'a' END WHERE k1 < 3",
        "DELETE FROM d WHERE k1 IS NULL OR k1 = 3",
        (
            "MERGE INTO d USING (SELECT 2 AS k, 'b' AS g UNION ALL SELECT 4, NULL UNION ALL"
            " SELECT 9, 'x') AS s ON d.k1 = s.k WHEN MATCHED AND s.g IS NULL THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET k2 = s.g, v = v + 1"
            " WHEN NOT MATCHED THEN INSERT (k1, k2) VALUES (s.k, s.g)"
        ),
        "INSERT INTO d REPLACE WHERE k2 = 'b' SELECT 8, 'b', 8, 8, NULL",
        "INSERT OVERWRITE d SELECT k1 + 1, k2, v, w, day FROM d WHERE v > 4",
        "TRUNCATE TABLE d",
    ],
    "u": [
        (
            "INSERT INTO u (k1, k2, v, __DORIS_DELETE_SIGN__) VALUES (1, NULL, 0, 1),"
            " (9, 'x', 0, 1), (4, 'd', 1, 0), (1, 'a', 5, 0), (NULL, NULL, 6, 0), (4, 'd', 2, 0)"
        ),
        "UPDATE u SET v = v + 1, k2 = coalesce(k2, 'y') WHERE k1 IS NULL OR k1 = 2",
        (
            "MERGE INTO u USING (SELECT 4 AS k, 'y' AS g UNION ALL SELECT 8, NULL) s ON u.k1 = s.k"
            " WHEN MATCHED THEN UPDATE SET v = 0"
            " WHEN NOT MATCHED THEN INSERT (k1, k2) VALUES (k, g)"
        ),
        "INSERT OVERWRITE u SELECT 1, 'a', 1, 1 UNION ALL SELECT 1, NULL, 2, 2",
        "DELETE FROM u",
    ],
    "q": [
        # The first is late, the second is not, the third has no order and takes the place.
        "INSERT INTO q VALUES (1, 1, 'late', 4), (2, 1, 'new', 6), (3, NULL, 'third', NULL)",
        (
            "INSERT INTO q (k1, k2, o, __DORIS_DELETE_SIGN__) VALUES (1, 1, 4, 1), (2, 1, 7, 1),"
            " (4, 4, 1, 0)"
        ),
        "UPDATE q SET o = 9, v = 'late no more' WHERE k1 = 1",
    ],
    "a": [
        (
            "INSERT INTO a VALUES (1, 'a', NULL, 5, 0, 7, 9, NULL), (NULL, NULL, NULL, 1, 1, 1,"
            " 1, 1), (1, 'a', NULL, 1, 5, 8, NULL, 6), (3, 'b', DATE'2024-02-29', NULL, NULL,"
            " NULL, 1, 1)"
        ),
        "UPDATE a SET s = 100, lo = 50, r = -1, k2 = 'c' WHERE k1 < 3 AND k2 = 'a'",
        "DELETE FROM a WHERE k1 IS NULL OR k2 = 'b'",
        (
            "MERGE INTO a USING (SELECT 2 AS k UNION ALL SELECT 7) s ON a.k1 = s.k"
            " WHEN MATCHED THEN UPDATE SET s = 3, nn = 8"
            " WHEN NOT MATCHED THEN INSERT (k1, s) VALUES (k, k)"
        ),
    ],
}


SLOW = pytest.mark.slow


@pytest.fixture
def followed(copied):
    catalog, lake = copied

    def of(table, queries=None):
        queries = QUERIES[table] if queries is None else queries
        return Followed(lake, f"sqlite:///{catalog}", table, queries)

    return of


@pytest.mark.slow
@pytest.mark.parametrize("table", ["d", "a", *(pytest.param(t, marks=SLOW) for t in ("u", "q"))])
def test_every_statement_is_followed_in_its_own_snapshot(followed, table):
    found = followed(table)
    first, before = newest(found.lake), found.check()
    for statement in WRITES[table]:
        found.write(statement)

    assert found.write(f"RESTORE TABLE {table} TO VERSION AS OF {first}") == before
    found.check_history()


@SLOW
def test_every_verb_is_followed_in_its_own_snapshot(followed, spark):
    found = followed("n")
    table = found.lake.table("n")
    some = spark.sql("SELECT 5 AS k, 1 AS g, 5 AS v UNION ALL SELECT 6, NULL, NULL")
    found.check()
    found.write(lambda: table.append(some.selectExpr("*", "'x' AS new"), merge_schema=True))
    found.write(lambda: table.update({"v": "v + 1", "g": "coalesce(g, 2)"}, where="k > 3"))
    found.write(lambda: table.merge(some, ["g"], shelduck.when_matched_delete()))
    found.write(lambda: table.overwrite(some.where("k = 5"), where="g = 1"))
    found.write(lambda: table.overwrite_partitions(some.selectExpr("k", "2 AS g", "v")))
    found.write(lambda: table.delete("k = 5 AND g = 1"))
    found.write(lambda: table.sink("query")(some, 0))
    table.sink("query")(some, 0)
    found.check()
    found.write(table.truncate)

    found.check_history()


@SLOW
def test_a_stream_is_followed_batch_by_batch(followed, spark, tmp_path):
    found = followed("n")
    source = tmp_path / "source"
    source.mkdir()
    for n, (k, g) in enumerate([(7, 1), (8, None)]):
        lines = [json.dumps({"k": k, "g": g, "v": 1}), json.dumps({"k": 9})]
        (source / f"{n}.json").write_text("\n".join(lines))
    before = newest(found.lake)
    stream = (
        spark.readStream.schema("k INT, g INT, v INT")
        .option("maxFilesPerTrigger", 1)
        .json(str(source))
    )
    writer = stream.writeStream.foreachBatch(found.lake.table("n").sink())
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()

    assert newest(found.lake) == before + 2
    found.check()


@pytest.mark.slow
def test_a_transaction_is_followed_statement_by_statement_in_one_snapshot(followed):
    found = followed("d", {"g": G.replace("v", "x")})
    found.lake.sql("ALTER TABLE d DROP ROLLUP p")

    def act():
        lake = found.lake
        lake.sql("BEGIN; INSERT INTO d VALUES (7, 'q', 7, 7, NULL), (7, NULL, 1, 1, NULL)")
        lake.sql("UPDATE d SET k2 = 'r' WHERE k1 = 7 OR k1 = 2")
        assert rows(lake.sql("SELECT n, s FROM `d$g` WHERE k2 = 'r'")) == [(3, 10)]
        lake.sql("ALTER TABLE d RENAME COLUMN v TO x; INSERT INTO d (k2, x) VALUES ('r', 2)")
        lake.sql("DELETE FROM d WHERE k1 = 2; COMMIT")

    held = found.write(act)
    assert held["d$g"]["r", 10, 1, None, 3, 3] == 1
    found.lake.sql("BEGIN; DELETE FROM d; ROLLBACK")
    assert found.check() == held


@pytest.mark.slow
def test_rollups_of_a_table_that_a_transaction_makes_are_followed(followed):
    found = followed("t", {"p": "SELECT v, k FROM {t}"})
    text = (
        "BEGIN; CREATE TABLE t (k INT, v INT) DUPLICATE KEY (k) ROLLUP (p (v, k));"
        " INSERT INTO t VALUES (1, 1), (2, NULL); UPDATE t SET v = 3 WHERE k = 2;"
        " INSERT INTO t SELECT 4, 4; DELETE FROM t WHERE k = 1; COMMIT"
    )

    assert found.write(text)["t"] == {(2, 3): 1, (4, 4): 1}


@pytest.mark.slow
def test_a_statement_that_fails_leaves_nothing_behind(followed):
    found = followed("o", {"s": "SELECT g, SUM(v) FROM {t} GROUP BY g"})
    found.lake.sql("CREATE TABLE o (k INT, g INT, v DECIMAL(38,0)) DUPLICATE KEY (k)")
    found.lake.sql("CREATE MATERIALIZED VIEW s AS SELECT g, SUM(v) FROM o GROUP BY g")
    found.write("INSERT INTO o VALUES (1, 1, 1)")
    too_much = f"INSERT INTO o VALUES (2, 1, {'9' * 38})"
    told = r"`o\$s` \(its sum\) has more than 38 digits"
    with pytest.raises(InvalidRequest, match=told):
        found.lake.sql(too_much)
    found.check()
    found.lake.sql("BEGIN; INSERT INTO o VALUES (3, 2, 5)")
    with pytest.raises(InvalidRequest, match=told):
        found.lake.sql(too_much)

    found.lake.sql("COMMIT")
    found.check()


@pytest.mark.slow
def test_nothing_happens_to_rollups_where_nothing_happens_to_the_base(followed):
    found = followed("d")
    for statement in (
        "DELETE FROM d WHERE k1 = 99",
        "UPDATE d SET v = 1 WHERE k1 = 99",
        "INSERT INTO d SELECT * FROM d WHERE k1 = 99",
        f"RESTORE TABLE d TO VERSION AS OF {newest(found.lake)}",
    ):
        before = newest(found.lake)
        found.lake.sql(statement)
        assert newest(found.lake) == before
    assert isinstance(found.lake.table("d").refresh_rollups(), Unchanged)
    found.check()


@pytest.mark.slow
def test_several_rollups_are_added_at_once(followed):
    found = followed("a", {})
    found.lake.sql("ALTER TABLE a DROP ROLLUP few, every")
    found.lake.sql(
        "ALTER TABLE a ADD ROLLUP r1 (day, k1, s) FROM A, `odd name` (k2, hi)"
        " PROPERTIES ('timeout' = '60')"
    )
    found.queries["r1"] = "SELECT day, k1, SUM(s) FROM {t} GROUP BY day, k1"
    found.queries["odd name"] = "SELECT k2, MAX(hi) FROM {t} GROUP BY k2"
    found.check()
    found.write(WRITES["a"][0])

    job = found.lake.jobs()[0].look()
    assert (job.state, job.timeout) == (shelduck.JobState.FINISHED, 60)
    assert [tuple(r)[4:6] for r in found.lake.sql("SHOW ALTER TABLE ROLLUP").collect()][:2] == [
        *[("a", "r1"), ("a", "odd name")]
    ]


@pytest.mark.slow
def test_a_rollup_may_have_keys_alone(followed):
    found = followed("a", {"keys": "SELECT DISTINCT k2, k1 FROM {t}"})
    found.lake.sql("ALTER TABLE a DROP ROLLUP few, every")
    found.lake.sql("ALTER TABLE a ADD ROLLUP keys (k2, k1)")
    found.check()
    found.write("INSERT INTO a (k1, k2, day) VALUES (1, 'a', DATE'2024-02-02'), (1, 'c', NULL)")
    # Two rows of the base are left that are one of the rollup.
    found.write("UPDATE a SET s = 9 WHERE k1 = 1 AND k2 = 'a'")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("values", ["", ", v INT SUM"])
def test_a_rollup_of_some_keys_does_not_tell_how_many_rows_there_are(lake, values):
    lake.sql(
        f"CREATE TABLE one (k1 INT, k2 INT, k3 INT{values}) AGGREGATE KEY (k1, k2, k3)"
        " ROLLUP (rollup1 (k1, k2), rollup2 (k2))"
    )
    lake.sql("INSERT INTO one (k1, k2, k3) VALUES (1, 2, 3), (1, 2, 4), (5, 6, 7)")
    text = "SELECT {} FROM one {}"

    assert rows(lake.sql(text.format("count(*)", ""))) == [(3,)]
    assert sorted(rows(lake.sql(text.format("k2, count(*)", "GROUP BY k2")))) == [(2, 2), (6, 1)]
    assert sorted(rows(lake.sql(text.format("k1, k2", "")))) == [(1, 2), (1, 2), (5, 6)]
    distinct = "EXPLAIN " + text.format("DISTINCT k2", "")
    [[plan]] = rows(lake.sql(distinct))
    assert "rollup2 has groups of the table's rows: 2 rows instead of 3" in plan


@pytest.mark.slow
def test_a_rollup_is_left_to_a_worker(followed):
    found = followed("u")
    before = newest(found.lake)
    found.lake.sql("ALTER TABLE u ADD ROLLUP w (k2, k1, w) PROPERTIES ('wait' = 'false')")
    assert newest(found.lake) == before
    found.write("INSERT INTO u VALUES (5, 'e', 5, 5), (1, 'a', 6, 6)")
    [job] = found.lake.run_jobs()

    assert job.state is shelduck.JobState.FINISHED
    found.queries["w"] = "SELECT k2, k1, w FROM {t}"
    found.check()
    found.write("DELETE FROM u WHERE k1 = 1")


@SLOW
def test_rollups_are_made_by_python_and_as_materialized_views(followed):
    found = followed("d", {})
    found.lake.sql("ALTER TABLE d DROP ROLLUP p; DROP MATERIALIZED VIEW g ON d")
    made = {"n": "count", "c": ("COUNT", "w"), "hi": ("max", "k1")}
    job = found.lake.table("d").add_rollup("py", ["day"], made)
    assert job.state is shelduck.JobState.PENDING
    job.wait()
    found.queries["py"] = "SELECT day, COUNT(*), COUNT(w), MAX(k1) FROM {t} GROUP BY day"
    found.lake.sql(
        "CREATE MATERIALIZED VIEW sorted AS SELECT w, k1, day FROM d ORDER BY w, k1"
        " PROPERTIES ('timeout' = '60')"
    )
    found.queries["sorted"] = "SELECT w, k1, day FROM {t}"
    found.check()
    found.write(WRITES["d"][1])
    del found.queries["py"]
    found.write(lambda: found.lake.table("d").drop_rollup("PY"))

    assert "d$py" not in {t.name for t in found.lake.tables()}


def test_a_table_of_a_query_is_made_with_rollups(followed):
    found = followed("t", {"p": "SELECT g, k, v FROM {t}"})
    source = "SELECT CAST(id % 7 AS INT) AS k, CAST(id % 2 AS INT) AS g, id AS v FROM range(30)"
    held = found.write(f"CREATE TABLE t UNIQUE KEY (k, g) ROLLUP (p (g, k, v)) AS {source}")
    assert held["t"].total() == 14
    found.queries["z"] = "SELECT v FROM {t}"
    replaced = "CREATE OR REPLACE TABLE t DUPLICATE KEY (k) ROLLUP (p (g, k, v), z (v)) AS"
    assert found.write(f"{replaced} {source}")["t"].total() == 30
    few = source.replace("range(30)", "range(5)")
    assert found.write(f"{replaced} {few}")["t"].total() == 5


KINDS = {
    "num": ("DECIMAL(38,3)", "CAST(id % 4 AS DECIMAL(38,3)) / 8"),
    "bin": ("BINARY", "CASE WHEN id % 4 = 0 THEN X'' ELSE X'00FF' END"),
    "day": (
        "TIMESTAMP_NTZ",
        "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999' + make_dt_interval(id % 3)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("column", ["num", *(pytest.param(c, marks=SLOW) for c in ("bin", "day"))])
def test_groups_are_found_again_whatever_their_type(followed, column):
    found = followed("t", {"g": f"SELECT {column}, SUM(v), COUNT(*) FROM {{t}} GROUP BY 1"})
    kind, value = KINDS[column]
    found.lake.sql(
        f"CREATE TABLE t (k BIGINT, {column} {kind}, v BIGINT) DUPLICATE KEY (k);"
        f" INSERT INTO t SELECT id, CASE WHEN id > 5 THEN {value} END, id FROM range(40);"
        f" CREATE MATERIALIZED VIEW g AS SELECT {column}, SUM(v) s, COUNT(*) n FROM t"
        f" GROUP BY {column}"
    )
    found.check()
    found.write(f"UPDATE t SET v = v + 1, {column} = NULL WHERE k % 4 = 0")
    found.write(f"INSERT INTO t SELECT id, {value}, id FROM range(7)")
