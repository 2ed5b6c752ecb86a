"""The shape of a table with rollups changes: they follow in the same commit, or are made anew."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

import shelduck
from shelduck import AlreadyExists, Conflict, InvalidRequest, NotFound, Unsupported
from shelduck.lake import unit
from tests.support.lakes import newest, refusal, rows
from tests.support.meanwhile import once_before
from tests.support.rollups import Followed

STATEMENTS = [
    "CREATE TABLE d (k INT, g STRING, v INT, w INT) DUPLICATE KEY (k) ROLLUP (p (v, g, w))",
    "INSERT INTO d VALUES (1, 'a', 1, 1), (2, NULL, 2, NULL), (3, 'b', NULL, 3), (3, 'b', 3, 3)",
    (
        "CREATE TABLE u (k INT, g INT, v INT, w INT) UNIQUE KEY (k, g)"
        " ROLLUP (p (g, k, v), r (g, k, w))"
    ),
    "INSERT INTO u VALUES (1, 1, 1, 1), (2, 1, 2, 2), (NULL, NULL, 3, 3)",
    (
        "CREATE TABLE a (k INT, g INT, s INT SUM, m INT MAX) AGGREGATE KEY (k, g)"
        " ROLLUP (few (g, s), other (g, k, m))"
    ),
    "INSERT INTO a VALUES (1, 1, 1, 1), (2, 1, 2, 2), (NULL, NULL, 3, 3)",
]
QUERIES = {
    "d": {"p": "SELECT v, g, w FROM {t}"},
    "u": {"p": "SELECT g, k, v FROM {t}", "r": "SELECT g, k, w FROM {t}"},
    "a": {"few": "SELECT g, SUM(s) FROM {t} GROUP BY g", "other": "SELECT g, k, m FROM {t}"},
}
C = "CREATE MATERIALIZED VIEW c AS SELECT g, SUM(v) s, MAX(w) m, COUNT(*) n FROM d GROUP BY g"
IN_C = {"c": "SELECT g, SUM(v), MAX(w), COUNT(*) FROM {t} GROUP BY g"}
# Changes of metadata, each in one snapshot, and what rollups hold from then on.
CHANGES = {
    "d": [
        ("ADD COLUMN n INT DEFAULT 5 AFTER g TO p", {"p": "SELECT v, g, n, w FROM {t}"}),
        ("RENAME COLUMN g TO h, RENAME COLUMN n TO `o o`", {"p": 'SELECT v, h, "o o", w FROM {t}'}),
        ("ALTER COLUMN w TYPE BIGINT", {}),
        ("DROP COLUMN `o o`", {"p": "SELECT v, h, w FROM {t}"}),
        ("MODIFY COLUMN v INT AFTER h FROM p", {"p": "SELECT h, v, w FROM {t}"}),
        ("ORDER BY (v, h, w) FROM p", {"p": "SELECT v, h, w FROM {t}"}),
        ("DROP COLUMN v FROM p", {"p": "SELECT h, w FROM {t}"}),
    ],
    "u": [
        (
            "ADD COLUMN n INT KEY DEFAULT 1",
            {"p": "SELECT g, k, n, v FROM {t}", "r": "SELECT g, k, n, w FROM {t}"},
        ),
        ("ADD COLUMN x STRING DEFAULT 'x' TO r", {"r": "SELECT g, k, n, w, x FROM {t}"}),
        (
            "DROP COLUMN v, DROP COLUMN w FROM r",
            {"p": "SELECT g, k, n FROM {t}", "r": "SELECT g, k, n, x FROM {t}"},
        ),
        ("ORDER BY (n, k, g) FROM p", {"p": "SELECT n, k, g FROM {t}"}),
    ],
    "a": [
        (
            "ADD COLUMN n INT SUM DEFAULT 0 TO few, ADD COLUMN y INT MIN DEFAULT 7 TO other",
            {
                "few": "SELECT g, SUM(s), SUM(n) FROM {t} GROUP BY g",
                "other": "SELECT g, k, m, y FROM {t}",
            },
        ),
        (
            "ADD COLUMN x INT DEFAULT 9 TO few",
            {
                "few": "SELECT g, x, SUM(s), SUM(n) FROM {t} GROUP BY g, x",
                "other": "SELECT g, k, MAX(m), MIN(y) FROM {t} GROUP BY g, k",
            },
        ),
        (
            "RENAME COLUMN s TO z, RENAME COLUMN g TO h",
            {
                "few": "SELECT h, x, SUM(z), SUM(n) FROM {t} GROUP BY h, x",
                "other": "SELECT h, k, MAX(m), MIN(y) FROM {t} GROUP BY h, k",
            },
        ),
        ("DROP COLUMN n", {"few": "SELECT h, x, SUM(z) FROM {t} GROUP BY h, x"}),
    ],
}
AFTER = {
    "d": [
        "INSERT INTO d VALUES (4, 'b', 4, 4), (5, NULL, NULL, NULL)",
        "DELETE FROM d WHERE k < 3",
    ],
    "u": ["INSERT INTO u VALUES (1, 1, 1, 2, 'y'), (1, 1, 2, 3, 'z')"],
    "a": ["INSERT INTO a VALUES (1, 1, 9, 5, 5, 1), (1, 1, 8, 1, 6, 9), (4, NULL, 4, 4, 4, 4)"],
}


@pytest.fixture
def followed(copied):
    catalog, lake = copied

    def of(table):
        return Followed(lake, f"sqlite:///{catalog}", table, dict(QUERIES[table]))

    return of


@pytest.fixture
def other(copied, spark):
    """Another connection to the lake, as another process would have it."""
    with shelduck.connect(f"sqlite:///{copied[0]}", spark=spark, progress=False) as lake:
        yield lake


def names(found):
    return {t.name for t in found.lake.tables()}


@pytest.mark.slow
@pytest.mark.parametrize("table", CHANGES)
def test_columns_change_in_base_and_rollups_at_once(followed, table):
    found = followed(table)
    found.check()
    for clauses, queries in CHANGES[table]:
        found.queries |= queries
        found.write(f"ALTER TABLE {table} {clauses}")
    for statement in AFTER[table]:
        found.write(statement)

    found.check_history()


def test_sums_that_need_more_digits_are_made_anew(followed):
    found = followed("d")
    found.lake.sql(C)
    found.queries = IN_C
    found.lake.sql("ALTER TABLE d DROP ROLLUP p; ALTER TABLE d ALTER COLUMN v TYPE BIGINT")
    found.check()
    assert str(found.lake.table("d$c").columns.get(("s",)).type) == "decimal(38,0)"
    found.write("INSERT INTO d VALUES (9, 'a', 3000000000, 9)")


@pytest.mark.slow
def test_values_that_are_converted_are_converted_in_rollups_too(followed):
    found = followed("d")
    found.lake.sql("ALTER TABLE d ALTER COLUMN g TYPE INT USING length(g)")
    assert found.check()["d$p"][1, 1, 1] == 1
    found.lake.sql("ALTER TABLE d ALTER COLUMN w TYPE STRING PROPERTIES ('wait' = 'false')")
    found.write("INSERT INTO d VALUES (4, 4, 4, 4)")
    found.lake.run_jobs()
    found.check()
    found.write("UPDATE d SET w = 'x' WHERE w IS NULL")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("table", "clause"),
    [
        ("d", "ALTER COLUMN v TYPE INT USING v * 100"),
        ("u", "ALTER COLUMN v TYPE INT USING v * 100"),
        ("a", "ALTER COLUMN s TYPE INT USING s * 100"),
    ],
)
def test_values_that_become_others_of_their_type_do_so_in_rollups_too(followed, table, clause):
    found = followed(table)
    found.lake.sql(f"ALTER TABLE {table} {clause}")

    assert any(300 in row for row in found.check()[f"{table}${next(iter(found.queries))}"])
    found.write(f"DELETE FROM {table} WHERE k = 1")


@pytest.mark.slow
def test_sums_of_values_that_become_null_are_made_anew(followed):
    found = followed("a")
    found.lake.sql("CREATE TABLE n (k INT, g INT, s DECIMAL(10,2) SUM) AGGREGATE KEY (k, g)")
    found.lake.sql("INSERT INTO n VALUES (1, 1, 1000), (2, 1, 2)")
    found.lake.sql("ALTER TABLE n ADD ROLLUP few (g, s)")
    found.base, found.queries = "n", {"few": "SELECT g, SUM(s) FROM {t} GROUP BY g"}
    found.lake.sql("ALTER TABLE n ALTER COLUMN s TYPE DECIMAL(4,2) ON ERROR NULL")

    assert found.check()["n$few"] == {(1, 2): 1}


def test_a_write_beside_the_publication_does_not_call_older_values_right(
    followed, monkeypatch, other
):
    found = followed("d")
    found.lake.sql(
        "ALTER TABLE d ALTER COLUMN v TYPE INT USING v * 100 PROPERTIES ('wait' = 'false')"
    )
    once_before(monkeypatch, unit, "commit", other.run_jobs)
    with suppress(Conflict):
        found.lake.sql("DELETE FROM d WHERE k = 3")

    found.lake.sql("CALL refresh_rollups('d')")
    found.check()


def test_what_a_job_converts_goes_without_changes_of_rollups(copied, base):
    catalog, lake = copied
    text = "ALTER TABLE d DROP COLUMN w, ALTER COLUMN g TYPE INT USING length(g)"

    told = refusal(Unsupported, lambda: lake.sql(text), catalog, base.folder / "data")
    assert "with changes of columns that rollups contain; write two statements" in told


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["STRING", "INT USING v * 100"])
def test_a_measure_keeps_its_column_from_becoming_what_it_is_not_made_of(copied, base, kind):
    catalog, lake = copied
    lake.sql(C)

    told = refusal(
        InvalidRequest,
        lambda: lake.sql(f"ALTER TABLE d ALTER COLUMN v TYPE {kind}"),
        catalog,
        base.folder / "data",
    )
    assert "rollup c uses it" in told


def test_a_type_that_the_base_may_widen_is_widened_in_rollups(followed):
    found = followed("d")
    found.lake.sql("ALTER TABLE d SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")

    plan = found.lake.table("d").plan_alter(shelduck.change_type("w", "DECIMAL(12,2)"))
    assert not plan.is_heavy
    found.lake.sql("ALTER TABLE d ALTER COLUMN w TYPE DECIMAL(12,2)")
    found.check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "statement", "query"),
    [
        ("d", "ALTER TABLE d ORDER BY (v, g, w, k)", "SELECT v, g, w FROM {t}"),
        ("u", "ALTER TABLE u ORDER BY (g, k, v, w)", "SELECT g, k, v FROM {t}"),
        ("u", "ALTER TABLE u ORDER BY (k, g, v) FROM p", "SELECT k, g, v FROM {t}"),
    ],
)
def test_a_rollup_in_the_order_of_its_base_is_of_no_use_and_stays(
    followed, table, statement, query
):
    found = followed(table)
    found.queries["p"] = query
    if table == "d":
        found.lake.sql("CREATE OR REPLACE TABLE d AS SELECT * FROM d")
        found.lake.sql("ALTER TABLE d ADD ROLLUP p (v, g, w)")
    found.lake.sql(statement)

    found.check()


def test_names_are_swapped_in_base_and_rollups(followed):
    found = followed("d")
    found.queries["p"] = "SELECT w, g, v FROM {t}"

    found.lake.sql("ALTER TABLE d RENAME COLUMN v TO x, RENAME COLUMN w TO v, RENAME COLUMN x TO w")
    found.check()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("value", ["5", "3000000000"])
def test_a_schema_that_grows_with_rows_takes_rollups_with_it(followed, spark, value):
    found = followed("d")
    more = spark.sql(f"SELECT 9 AS k, 'a' AS g, CAST({value} AS BIGINT) AS v, 'x' AS new")

    found.lake.table("d").append(more, merge_schema=True)
    found.check()


@pytest.mark.slow
def test_a_merge_that_changes_types_takes_rollups_with_it(followed):
    found = followed("d")
    source = "SELECT 1 AS k, CAST(7 AS BIGINT) AS v"

    found.lake.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO d USING ({source}) s ON d.k = s.k"
        " WHEN MATCHED THEN UPDATE SET *"
    )
    found.check()


def test_rollups_are_renamed_and_dropped_with_their_base(followed):
    found = followed("u")
    before = found.check()
    found.base = "x"
    found.write("ALTER TABLE u RENAME TO x")
    at = newest(found.lake)
    with pytest.raises(InvalidRequest, match="it is a rollup, which is named after its base table"):
        found.lake.sql("ALTER TABLE `x$p` RENAME TO y")
    del found.queries["r"]
    found.write("DROP TABLE `x$r`")
    found.lake.sql("DROP TABLE x")

    assert newest(found.lake) == at + 2
    assert not {"x", "x$p", "x$r"} & names(found)
    found.check_history()
    assert [r[0] for r in rows(found.lake.sql(f"SELECT g FROM `x$r` VERSION AS OF {at}"))]
    assert before["u$p"].total() == 3


def test_a_table_that_is_replaced_leaves_no_rollup(followed):
    found = followed("u")
    found.queries = {"z": "SELECT v FROM {t}"}
    found.write("CREATE OR REPLACE TABLE u (k INT, v INT) DUPLICATE KEY (k) ROLLUP (z (v))")

    assert {n for n in names(found) if n.startswith("u")} == {"u", "u$z"}


def test_a_replacement_that_fails_in_a_transaction_changes_nothing(followed):
    found = followed("u")
    failing = "SELECT 1 AS k, CAST(raise_error('no') AS INT) AS v"
    found.lake.sql("BEGIN")
    with pytest.raises(Exception, match="no"):
        found.lake.sql(f"CREATE OR REPLACE TABLE u DUPLICATE KEY (k) ROLLUP (z (v)) AS {failing}")
    found.lake.sql("COMMIT")

    assert {n for n in names(found) if n.startswith("u")} == {"u", "u$p", "u$r"}
    found.check()


@pytest.mark.slow
def test_a_restored_table_has_the_rollups_of_today(followed):
    found = followed("d")
    first = newest(found.lake)
    found.lake.sql(C)
    found.queries |= IN_C
    found.lake.sql("ALTER TABLE d DROP ROLLUP p; INSERT INTO d VALUES (4, 'b', 4, 4)")
    del found.queries["p"]
    found.write(f"RESTORE TABLE d TO VERSION AS OF {first}")
    found.lake.sql("ALTER TABLE d ADD ROLLUP p (v, g, w)")
    found.queries |= QUERIES["d"]
    found.check()


@pytest.mark.slow
@pytest.mark.parametrize("change", ["RENAME COLUMN w TO x", "ALTER COLUMN w TYPE STRING"])
def test_columns_that_come_back_come_back_in_rollups(followed, change):
    found = followed("d")
    first = newest(found.lake)
    found.lake.sql(f"ALTER TABLE d {change}")
    found.lake.sql(f"RESTORE TABLE d TO VERSION AS OF {first}")

    found.write("INSERT INTO d VALUES (4, 'b', 4, 4)")


@pytest.fixture
def own(tmp_path, spark):
    """A lake whose files may be deleted."""
    url = f"sqlite:///{tmp_path}/lake.db"
    with shelduck.connect(url, f"{tmp_path}/data/", spark, progress=False) as lake:
        for statement in STATEMENTS[:2]:
            lake.sql(statement)
        yield Followed(lake, url, "d", dict(QUERIES["d"]))


@pytest.mark.slow
def test_upkeep_leaves_rollups_as_they_are(own):
    own.lake.sql(C)
    own.queries |= IN_C
    own.duckdb("INSERT INTO d VALUES (5, NULL, 5, 5)", inline=100)
    own.write("INSERT INTO d VALUES (4, 'b', 4, 4)")
    own.write("DELETE FROM d WHERE k = 4 OR k = 2")
    for name in own.tables:
        for verb in ("compact", "rewrite_deletes", "rewrite"):
            getattr(own.lake.table(name), verb)()
            own.check()
    own.lake.expire_snapshots(older_than=timedelta(0))
    own.lake.cleanup_old_files(older_than=timedelta(0))
    own.lake.remove_orphans(older_than=timedelta(0))
    own.agree()
    own.write("UPDATE d SET v = v + 1 WHERE g IS NULL OR k = 3")


@pytest.mark.slow
def test_history_that_expires_leaves_rollups_fresh(own):
    own.write("DELETE FROM d WHERE k = 2")
    for name in own.tables:
        own.lake.table(name).rewrite()
    own.check()
    own.lake.expire_snapshots(older_than=timedelta(0))
    own.check()


def test_history_that_expires_hides_nothing_that_others_did(own):
    own.duckdb("INSERT INTO d VALUES (5, NULL, 5, 5)")
    own.lake.sql("CREATE TABLE other (k INT)")
    own.lake.expire_snapshots(older_than=timedelta(0))
    assert own.fresh() == dict.fromkeys(own.queries, False)
    own.write("DELETE FROM d WHERE k = 2")


@pytest.mark.slow
def test_a_flush_leaves_rollups_fresh(own):
    own.duckdb("INSERT INTO d VALUES (5, NULL, 5, 5), (6, 'x', 6, 6)", inline=100)
    own.write("INSERT INTO d VALUES (4, 'b', 4, 4)")
    own.lake.set_option("data_inlining_row_limit", 100)
    own.write("DELETE FROM d WHERE k = 1 OR k = 5")
    for name in own.tables:
        own.lake.table(name).flush_inlined_data()
        own.check()


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        (AlreadyExists, "ADD COLUMN v INT TO p", "cannot add column v to rollup p: base table"),
        (NotFound, "DROP COLUMN k FROM p", "column 'k' does not exist in p"),
        (
            NotFound,
            "ADD COLUMN c INT TO q",
            "Index[q] does not exist in table[d]; existing rollups: p",
        ),
        (InvalidRequest, "ADD COLUMN c INT TO d", "d is the table itself"),
        (InvalidRequest, "ORDER BY (v, g) FROM p", "'w' is missing"),
        (
            InvalidRequest,
            "MODIFY COLUMN v INT FROM p",
            "is only for moving a column within a rollup",
        ),
        (InvalidRequest, "DROP COLUMN v, DROP COLUMN g, DROP COLUMN w", "no key column left"),
        (
            InvalidRequest,
            "DROP COLUMN s FROM one",
            "cannot drop column s of rollup one of main.d: it is the last aggregate; drop the",
        ),
    ],
)
def test_what_rollups_do_not_allow_leaves_everything(copied, base, kind, text, told):
    catalog, lake = copied
    if text.endswith("one"):
        lake.sql("CREATE MATERIALIZED VIEW one AS SELECT g, SUM(v) s FROM d GROUP BY g")

    found = refusal(kind, lambda: lake.sql(f"ALTER TABLE d {text}"), catalog, base.folder / "data")
    assert told in found
