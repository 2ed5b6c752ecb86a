"""The smoke story wherever Shelduck runs: here, on a cluster, over Spark Connect.

The last two have a session of their own kind, and a process has one session: `make test-all` gives
each of them a pytest of its own.
"""

from __future__ import annotations

import pytest

from tests.stories.smoke import run_story
from tests.support.cluster import WORKERS, cluster_session, executors, standalone_cluster
from tests.support.connect import connect_server, remote_session


@pytest.mark.every_spark
def test_the_smoke_story_on_a_local_session(sqlite_url, data_path, spark):
    run_story(sqlite_url, data_path, spark)


@pytest.mark.slow
@pytest.mark.cluster
def test_the_smoke_story_on_a_cluster_with_two_workers(postgres_url, data_path, tmp_path):
    with (
        standalone_cluster(tmp_path / "cluster") as master,
        cluster_session(master, tmp_path / "session") as spark,
    ):
        assert executors(spark) == WORKERS

        run_story(postgres_url, data_path, spark)


@pytest.mark.slow
@pytest.mark.connect
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_the_smoke_story_over_spark_connect(sqlite_url, data_path, tmp_path):
    with connect_server(tmp_path / "server") as url, remote_session(url) as spark:
        assert not hasattr(spark, "_jvm")

        run_story(sqlite_url, data_path, spark)
