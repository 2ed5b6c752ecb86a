"""Spark's UI shows how many files of the snapshot a query leaves out, as metrics of its plan."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.attaching import attached_lake
from tests.support.lakes import rows

pytestmark = pytest.mark.every_spark
SETTING = "spark.shelduck.fileMetrics"
SHOWN = [
    "number of files in the snapshot",
    "number of files left out",
    "size of files in the snapshot",
    "size of files left out",
]


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """Sales of 20 days, a file for each, and a small table of days."""
    folder = tmp_path_factory.mktemp("lake")
    with attached_lake(
        spark,
        folder,
        "CREATE TABLE sales (id BIGINT, day INT, n INT)",
        "ALTER TABLE sales SET PARTITIONED BY (day)",
        "INSERT INTO sales SELECT id, int(id % 20), int(id) FROM range(2000)",
        "CREATE TABLE days (day INT, season STRING)",
        "INSERT INTO days SELECT int(id), if(id < 3, 'x', 'y') FROM range(0, 2000, 1, 1)",
    ) as found:
        found.folder = folder
        yield found


def nodes(frame, kind):
    """The nodes of a class in an executed plan."""
    found = []

    def look(node):
        name = node.getClass().getSimpleName()
        if name == kind:
            found.append(node)
        if name == "AdaptiveSparkPlanExec":
            look(node.executedPlan())
        if name.endswith("QueryStageExec"):
            look(node.plan())
        children = node.children()
        for at in range(children.size()):
            look(children.apply(at))

    look(frame._jdf.queryExecution().executedPlan())
    return found


def counted(frame):
    """Files and bytes before filters and left out, of each scan of an executed plan."""
    found = []
    for node in nodes(frame, "LakeFiles"):
        by_name = {}
        values = node.metrics().valuesIterator()
        while values.hasNext():
            metric = values.next()
            by_name[metric.name().get()] = metric.value()
        assert sorted(by_name) == SHOWN
        found.append(tuple(by_name[name] for name in SHOWN))
    return sorted(found)


def on_disk(folder, table, wanted=lambda day: True):
    """The bytes of the files of some days."""
    files = Path(folder, "data", "main", table).rglob("*.parquet")
    days = [(int(f.parent.name.partition("=")[2] or 0), f.stat().st_size) for f in files]
    return sum(size for day, size in days if wanted(day))


FILTERS = {
    "true": (20, 0, lambda day: False),
    "day = 4": (20, 19, lambda day: day != 4),
    "day > 16 AND n < 20": (20, 17, lambda day: day <= 16),
    "n >= 1995": (20, 15, lambda day: day < 15),
    "day = 50": (20, 20, lambda day: True),
}


@pytest.mark.parametrize("condition", FILTERS)
def test_a_query_counts_the_files_that_it_leaves_out(spark, lake, condition):
    frame = spark.sql(f"SELECT id, n FROM lake.main.sales WHERE {condition}")
    rows(frame)
    files, left_out, wanted = FILTERS[condition]
    sizes = on_disk(lake.folder, "sales"), on_disk(lake.folder, "sales", wanted)
    assert counted(frame) == [(files, left_out, *sizes)]


def test_a_filter_on_what_a_generated_column_is_made_of_leaves_out_its_partitions(spark, lake):
    spark.sql(
        "CREATE TABLE lake.main.logs (at TIMESTAMP, n INT, day DATE GENERATED ALWAYS AS"
        " (CAST(at AS DATE))) PARTITIONED BY (day)"
    )
    spark.sql(
        "INSERT INTO lake.main.logs (at, n) SELECT TIMESTAMP '2024-01-01 00:00:00'"
        " + make_interval(0, 0, 0, 0, CAST(id AS INT)), CAST(id AS INT) FROM range(240)"
    )
    frame = spark.sql("SELECT n FROM lake.main.logs WHERE at >= TIMESTAMP '2024-01-09 05:00:00'")
    assert rows(frame) == [(n,) for n in range(197, 240)]
    assert [found[:2] for found in counted(frame)] == [(10, 8)]


def test_files_that_a_join_leaves_out_are_counted(spark, lake):
    frame = spark.sql(
        "SELECT sum(n) FROM lake.main.sales s JOIN lake.main.days d ON s.day = d.day"
        " WHERE d.season = 'x'"
    )
    assert rows(frame) == [(297300,)]
    # The rows of the other table decide, while the query runs.
    assert [found[:2] for found in counted(frame)] == [(1, 0), (20, 17)]


def test_the_listener_of_the_ui_gets_the_numbers(spark, lake):
    spark.sql("SELECT id FROM lake.main.sales WHERE day = 4").collect()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    query = store.executionsList().last().executionId()
    values, shown = store.executionMetrics(query), {}
    graph = store.planGraph(query).allNodes()
    for at in range(graph.size()):
        node = graph.apply(at)
        for metric in range(node.metrics().size()):
            of = node.metrics().apply(metric)
            shown[node.name().strip(), of.name()] = values.get(of.accumulatorId()).get()
    assert shown["LakeFiles", "number of files in the snapshot"] == "20"
    assert shown["LakeFiles", "number of files left out"] == "19"
    assert shown["Scan parquet", "number of files read"] == "1"


def test_a_setting_turns_the_metrics_off(spark, lake):
    query = "SELECT count(n), sum(id) FROM lake.main.sales WHERE n < 1000"
    expected = rows(spark.sql(query))
    spark.conf.set(SETTING, "false")
    try:
        frame = spark.sql(query)
        assert rows(frame) == expected
        assert len(nodes(frame, "FileSourceScanExec")) == 1
        assert counted(frame) == []
    finally:
        spark.conf.unset(SETTING)


def test_equal_scans_are_run_once(spark, lake):
    """Spark still sees that two parts of a query read the same."""
    of = "(SELECT day, count(n) c FROM lake.main.sales WHERE n > 5 GROUP BY day)"
    frame = spark.sql(f"SELECT a.c FROM {of} a JOIN {of} b ON a.day = b.day AND a.c = b.c")
    assert len(rows(frame)) == 20
    assert "Reused" in frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.slow
def test_the_rest_interface_shows_the_numbers(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.shown_metrics", str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    found, description = json.loads(run.stdout.splitlines()[-1])
    assert found["LakeFiles"]["number of files in the snapshot"] == "20"
    assert found["LakeFiles"]["number of files left out"] == "17"
    assert found["Scan parquet"]["number of files read"] == "3"
    assert found["LakeFiles"]["size of files left out"].endswith(" KiB")
    assert "[/main.t, snapshot 3, 20 files]" in description


def test_files_are_shared_out_evenly_among_tasks(lake, spark):
    lake.sql("CALL set_option('data_inlining_row_limit', 0)")
    lake.sql("CREATE TABLE shared (id BIGINT, text STRING)")
    for first, count in (
        (0, 60_000),
        (60_000, 60_000),
        *((n, 10) for n in range(10**6, 10**6 + 8)),
    ):
        made = f"SELECT id, uuid() FROM range({first}, {first + count}, 1, 1)"
        lake.sql(f"INSERT INTO shared {made}")
    # Two tasks on any machine; Spark fills the first with both large files.
    settings = {
        "spark.sql.files.minPartitionNum": "2",
        "spark.sql.files.maxPartitionBytes": str(24 << 20),
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        read = spark.table("lake.main.shared").select("id")
        counts = [len(part) for part in read.rdd.glom().collect()]
    finally:
        for key in settings:
            spark.conf.unset(key)
    assert sum(counts) == 120_080
    assert len(counts) == 2
    assert max(counts) < 70_000
