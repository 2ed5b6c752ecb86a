"""Spark's declarative pipelines over a lake: `spark-pipelines run` against a Connect server."""

from __future__ import annotations

import os
import subprocess
import sys

import pyspark
import pytest

import shelduck
from tests.support import door
from tests.support.connect import connect_process
from tests.support.documents import DOCS, blocks
from tests.support.oracle import DuckDBOracle
from tests.support.processes import SPARK_HOME

pytestmark = pytest.mark.slow

# Spark 4.0 has none.
HAS_PIPELINES = not pyspark.__version__.startswith("4.0.")
GUIDE = {block.title: block.text for block in blocks(DOCS / "guides" / "pipelines.md")}


@pytest.fixture(scope="module")
def server(spark, tmp_path_factory):
    """The addresses of a server and of its lake."""
    folder = tmp_path_factory.mktemp("pipelines")
    url = f"sqlite:///{folder}/lake.db"
    shelduck.connect(url, f"{folder}/data/").close()
    conf = door.settings(spark, folder, url, f"{folder}/data/")
    with connect_process(folder / "server", conf) as (address, _):
        yield address, url


@pytest.fixture
def lake(server, spark):
    with shelduck.connect(server[1]) as lake:
        yield lake
        if "nightly" in lake.schemas():
            lake.drop_branch("nightly")
        for name in lake.tables():
            lake.drop_table(str(name))


@pytest.fixture
def duck(server, lake):
    with DuckDBOracle(server[1]) as oracle:
        yield oracle


class Pipeline:
    """A project of a pipeline in a folder."""

    def __init__(self, address, folder, database="main", conf=""):
        self.address, self.folder = address, folder
        (folder / "transformations").mkdir()
        spec = GUIDE["spark-pipeline.yml"].replace("/data/", f"{folder}/")
        spec = spec.replace("database: main", f"database: {database}") + conf
        (folder / "spark-pipeline.yml").write_text(spec)

    def write(self, name, text):
        (self.folder / "transformations" / name).write_text(text)

    def run(self, *given, command="run"):
        """What a run says; fails if it does not complete."""
        code, told = self.ended(*given, command=command)
        assert code == 0, told
        assert "Run is COMPLETED" in told
        return told

    def ended(self, *given, command="run"):
        done = subprocess.run(
            [SPARK_HOME / "bin" / "spark-pipelines", command, *given, "--remote", self.address],
            cwd=self.folder,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def pipeline(server, lake, tmp_path):
    return Pipeline(server[0], tmp_path)


def ids(duck, table):
    """The columns of a table that are there, in order, with their ids."""
    return duck.sql(
        "SELECT column_name, column_id FROM __ducklake_metadata_lake.ducklake_column"
        " JOIN __ducklake_metadata_lake.ducklake_table USING (table_id)"
        " WHERE table_name = ? AND ducklake_column.end_snapshot IS NULL"
        " AND ducklake_table.end_snapshot IS NULL ORDER BY column_order",
        [table],
    )


def guide(clean="id, v", totals="id % 2 AS odd, sum(v) AS s"):
    """The statements of the guide with other queries."""
    text = GUIDE["transformations/shop.sql"]
    return text.replace("id, v ", f"{clean} ").replace("id % 2 AS odd, sum(v) AS s", totals)


@pytest.mark.every_spark if HAS_PIPELINES else lambda test: test
def test_datasets_follow_their_queries_by_alter(lake, duck, pipeline):
    lake.create_table("raw", {"id": "INT", "v": "INT"})
    lake.sql("INSERT INTO raw VALUES (1, 10), (2, 20), (3, 30)")
    pipeline.write("a.sql", guide())
    pipeline.run()
    assert sorted(duck.sql("FROM clean")) == [(1, 10), (2, 20), (3, 30)]
    assert sorted(duck.sql("FROM totals")) == [(0, 20), (1, 40)]
    known = ids(duck, "clean"), ids(duck, "totals")

    lake.sql("INSERT INTO raw VALUES (4, 40)")
    more = guide("id, v, id > 3 AS is_new", "id % 2 AS odd, sum(v) AS s, max(id) AS m")
    pipeline.write("a.sql", more)
    pipeline.run()

    rows = [(1, 10, None), (2, 20, None), (3, 30, None), (4, 40, True)]
    assert sorted(duck.sql("FROM clean")) == rows
    assert sorted(duck.sql("FROM totals")) == [(0, 60, 4), (1, 40, 3)]
    assert (ids(duck, "clean")[:2], ids(duck, "totals")[:2]) == known
    # The stream goes on behind a rename of its source, from the same checkpoint.
    lake.sql("ALTER TABLE raw RENAME COLUMN v TO amount")
    lake.sql("INSERT INTO raw VALUES (5, 50)")
    pipeline.write("a.sql", more.replace("id, v,", "id, amount AS v,"))
    pipeline.run()
    assert sorted(duck.sql("FROM clean")) == [*rows, (5, 50, True)]

    pipeline.write("a.sql", guide("id, amount", "id % 2 AS odd, 1.5D AS s"))
    pipeline.run("--full-refresh-all")
    assert sorted(duck.sql("FROM clean")) == [(n, n * 10) for n in range(1, 6)]
    assert sorted(duck.sql("FROM totals")) == [(0, 1.5), (1, 1.5)]
    assert dict(ids(duck, "clean"))["id"] == dict(known[0])["id"]
    with DuckDBOracle(lake._state.store.where) as fresh:
        assert fresh.sql("SELECT count(*) FROM clean AT (VERSION => 3)") == [(0,)]


FLOWS = """
CREATE STREAMING TABLE merged (id BIGINT COMMENT 'the id', v INT) PARTITIONED BY (v)
  COMMENT 'two flows' TBLPROPERTIES ('owner.team' = 'ducks');
CREATE FLOW even AS INSERT INTO merged BY NAME
  SELECT CAST(id AS BIGINT) AS id, v FROM STREAM lake.main.raw WHERE id % 2 = 0;
CREATE FLOW odd AS INSERT INTO merged BY NAME
  SELECT CAST(id AS BIGINT) AS id, -v AS v FROM STREAM lake.main.raw WHERE id % 2 = 1;
CREATE TEMPORARY VIEW positive AS SELECT id, v FROM merged WHERE v > 0;
CREATE MATERIALIZED VIEW joined AS
  SELECT p.id, r.v FROM positive p LEFT JOIN lake.main.raw r ON p.id = r.id;
"""
BY_PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()

@dp.table(name="large", cluster_by=["id"], comment="by Python")
def anything():
    return spark.readStream.table("lake.main.raw").where("id > 1")

@dp.materialized_view(table_properties={"owner.team": "geese"})
def counts():
    return spark.read.table("large").groupBy("v").count()
"""


def test_flows_layouts_and_choices_of_a_run(lake, duck, pipeline):
    lake.create_table("raw", {"id": "INT", "v": "INT"})
    lake.sql("INSERT INTO raw VALUES (1, 10), (2, 20), (3, 20)")
    pipeline.write("a.sql", FLOWS)
    pipeline.write("b.py", BY_PYTHON)
    pipeline.run(command="dry-run")
    assert duck.sql("SELECT table_name FROM ducklake_table_info('lake')") == [("raw",)]
    pipeline.run()
    assert sorted(duck.sql("FROM merged")) == [(1, -10), (2, 20), (3, -20)]
    assert duck.sql("FROM joined") == [(2, 20)]
    assert duck.sql("FROM counts") == [(20, 2)]
    told = lake.sql("SHOW CREATE TABLE merged").collect()[0][0]
    assert "COMMENT 'two flows'" in told
    assert "'owner.team' = 'ducks'" in told
    assert "COMMENT 'the id'" in told
    assert "PARTITIONED BY (v)" in told
    assert lake.sql("SHOW CREATE TABLE large").collect()[0][0].count("SORTED BY (id)") == 1

    lake.sql("INSERT INTO raw VALUES (4, 40)")
    told = pipeline.run("--refresh", "merged")
    assert "lake.main.large' is EXCLUDED" in told
    assert len(duck.sql("FROM merged")) == 4
    assert duck.sql("SELECT count(*) FROM large") == [(2,)]
    pipeline.run("--full-refresh", "large")
    assert sorted(duck.sql("FROM large")) == [(2, 20), (3, 20), (4, 40)]


def test_a_pipeline_on_a_branch_is_published_by_a_merge(server, lake, duck, tmp_path):
    lake.create_table("raw", {"id": "INT"})
    lake.create_table("totals", {"n": "BIGINT"})
    lake.sql("INSERT INTO raw VALUES (1), (2)")
    lake.sql("INSERT INTO totals VALUES (0)")
    lake.create_branch("nightly")
    on_branch = Pipeline(server[0], tmp_path, "nightly")
    totals = "CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, max(id) AS m FROM raw;"
    on_branch.write("a.sql", totals)
    on_branch.run()
    assert duck.sql("FROM totals") == [(0,)]
    assert duck.sql("FROM nightly.totals") == [(2, 2)]
    lake.merge_branch("nightly")
    assert duck.sql("FROM totals") == [(2, 2)]


def test_a_setting_of_a_branch_is_refused(server, lake, duck, tmp_path):
    lake.create_table("totals", {"n": "BIGINT"})
    lake.create_branch("nightly")
    on_branch = Pipeline(server[0], tmp_path, conf="configuration: {shelduck.branch: nightly}")
    on_branch.write("a.sql", "CREATE MATERIALIZED VIEW totals AS SELECT 1L AS n;")
    before = duck.snapshot()
    code, told = on_branch.ended()
    assert code != 0
    assert "write database: nightly into the specification" in told
    assert duck.snapshot() == before


REFUSED = {
    "AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE": """
from pyspark import pipelines as dp

dp.create_streaming_table("newest")
dp.create_auto_cdc_flow(target="newest", source="lake.main.raw", keys=["id"], sequence_by="v")
""",
    "write CREATE TEMPORARY VIEW": "CREATE OR REPLACE VIEW shown AS SELECT id FROM lake.main.raw;",
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_a_pipeline_cannot_have(lake, pipeline, sentence):
    lake.create_table("raw", {"id": "INT", "v": "INT"})
    pipeline.write("a.py" if "import" in REFUSED[sentence] else "a.sql", REFUSED[sentence])
    code, told = pipeline.ended()
    assert code != 0
    assert sentence in told
