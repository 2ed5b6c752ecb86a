"""A law: what changes no row makes no snapshot and no file, of any kind of table, by any door.

What makes a snapshot on purpose: a load with ``once=``, a batch of a stream and a batch number
record that they landed; `restore` to an older snapshot with the same rows records that it restored.
"""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from shelduck.cli.app import app
from tests.support import no_rows
from tests.support.attaching import attached_lake, url_of
from tests.support.lakes import newest, rows

pytestmark = pytest.mark.guard

TWO = ("UPDATE by key", "MERGE of nothing")


def counted(answer):
    """The number of rows that a statement says it changed; 0 if it tells no number."""
    names = answer.columns if hasattr(answer, "collect") else answer.names
    found = answer.collect() if hasattr(answer, "collect") else answer.rows
    return sum(row[names.index("rows")] for row in found) if "rows" in names else 0


def unchanged(lake, acts):
    """The acts that change a lake, or say so, with what they did."""
    found, before = [], no_rows.state(lake)
    for name, act in acts.items():
        told = act()
        after = no_rows.state(lake)
        if after != before or told != 0:
            found.append((name, told, lake.snapshots()[-1].changes_made))
        before = after
    return found


def statements(run, texts):
    return {name: lambda text=text: counted(run(text)) for name, text in texts.items()}


def verbs(lake):
    table, none = lake.table("t"), lake.spark.sql(no_rows.NONE)

    def act(verb):
        done = verb(table, none)
        return getattr(done, "rows", 0)

    return {name: lambda verb=verb: act(verb) for name, verb in no_rows.VERBS.items()}


def test_statements_that_change_no_row_of_a_partitioned_table_do_nothing(spark, tmp_path):
    with no_rows.made(spark, tmp_path, "partitioned", "catalog") as lake:
        some = {name: no_rows.ROWS[name] for name in TWO}

        assert unchanged(lake, statements(lake.execute, some)) == []
        with lake.transaction() as tx:
            tx.sql("INSERT INTO t (id) VALUES (7)")
            tx.sql(some["UPDATE by key"])
        assert rows(lake.sql("SELECT count(*) FROM t WHERE id = 7")) == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize("fill", no_rows.FILLS)
@pytest.mark.parametrize("kind", no_rows.KINDS)
def test_what_changes_no_row_does_nothing(kind, fill, spark, tmp_path):
    with no_rows.made(spark, tmp_path, kind, fill) as lake:
        texts = {**no_rows.ROWS, **no_rows.UPKEEP}
        if fill in ("empty", "all deleted"):
            texts |= no_rows.FOR_EMPTY
        if fill == "empty":
            texts |= no_rows.FOR_NEW
        back = f"RESTORE TABLE t TO VERSION AS OF {newest(lake)}"
        acts = statements(lake.execute, {**texts, "RESTORE": back}) | verbs(lake)
        if "PARTITIONED" not in no_rows.KINDS[kind]:
            del acts["overwrite_partitions"]

        assert unchanged(lake, acts) == []


@pytest.mark.slow
@pytest.mark.parametrize("door", ["lake.sql", "spark.sql", "shelduck sql"])
@pytest.mark.parametrize("kind", ["plain", "partitioned", "partitioned, unique keys"])
def test_no_door_does_more(door, kind, spark, tmp_path, monkeypatch):
    texts = {**no_rows.ROWS, **no_rows.UPKEEP}
    with no_rows.made(spark, tmp_path, kind, "both") as lake:
        if door == "lake.sql":
            assert unchanged(lake, statements(lake.sql, texts)) == []

        def command(text):
            found = CliRunner().invoke(app, ["sql", text, "-c", url_of(tmp_path), "--json"])
            assert found.exit_code == 0, found.output
            return 0

        if door == "shelduck sql":
            acts = {n: lambda text=text: command(text) for n, text in texts.items()}
            assert unchanged(lake, acts) == []
    if door == "spark.sql":
        with attached_lake(spark, tmp_path) as lake:
            spark.sql("USE lake.main")
            # Spark would not know which lake is meant.
            del texts["VACUUM"]
            assert unchanged(lake, statements(spark.sql, texts)) == []
