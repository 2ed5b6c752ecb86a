"""A standalone Spark cluster on this machine: a master, two workers, executors of their own."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError

from pyspark.sql import SparkSession

from tests.support.processes import free_port, running, wait_until
from tests.support.spark import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WORKERS = 2
_HEAP = "256m"


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """The address `spark://…` of a master whose two workers, one core each, are registered."""
    port, page = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    ends = ["--host", "127.0.0.1"]
    with ExitStack() as stack:
        command = ["spark-class", "org.apache.spark.deploy.master.Master", *ends]
        command += ["--port", str(port), "--webui-port", str(page)]
        master = stack.enter_context(running("master", command, folder, memory=_HEAP))
        # A worker that starts before its master waits six seconds until it tries again.
        wait_until(lambda: _state(page) is not None, "the master", folder, master)
        workers = [
            stack.enter_context(
                running(f"worker-{n}", _worker(n, url, folder), folder, memory=_HEAP)
            )
            for n in range(WORKERS)
        ]
        wait_until(lambda: _alive_workers(page) == WORKERS, "a worker", folder, master, *workers)
        yield url


@contextmanager
def cluster_session(
    url: str, folder: Path, more: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session on the cluster, begun when both executors are there; one at a time per process.

    `more` are further settings; those of the driver's JVM are taken from the first session.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(url).appName("shelduck-cluster-tests")
    for key, value in (_settings(folder) | dict(more or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        if session.sparkContext.master != url:
            raise RuntimeError("this process has another session already: use a process of its own")
        session.sparkContext.setLogLevel("ERROR")
        # Spark waits for their cores, which it knows a moment before it counts them.
        wait_until(lambda: executors(session) == WORKERS, "an executor", folder)
        yield session
    finally:
        session.stop()


def executors(session: SparkSession) -> int:
    """How many processes other than the driver run tasks of the session."""
    context = session.sparkContext._jsc.sc()
    return int(context.getExecutorMemoryStatus().size()) - 1


def executor_processes(folder: Path) -> list[int]:
    """The processes that run tasks on the workers of the cluster in `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes()
            place = (process / "cwd").resolve(strict=True)
            if b"CoarseGrainedExecutorBackend" in words and place.is_relative_to(folder):
                found.append(int(process.name))
    return found


def _worker(number: int, url: str, folder: Path) -> list[str]:
    return [
        *["spark-class", "org.apache.spark.deploy.worker.Worker"],
        *["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "768m"],
        *["--work-dir", str(folder / f"work-{number}"), url],
    ]


def _settings(folder: Path) -> dict[str, str]:
    return settings(folder) | {
        "spark.cores.max": str(WORKERS),
        "spark.driver.memory": "1g",
        "spark.executor.cores": "1",
        "spark.executor.memory": "768m",
        # Tasks shall run on both executors, so they are waited for.
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.ui.showConsoleProgress": "false",
    }


def _alive_workers(page: int) -> int:
    state = _state(page) or {"workers": []}
    return sum(worker["state"] == "ALIVE" for worker in state["workers"])


def _state(page: int) -> dict[str, list[dict[str, str]]] | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
            found: dict[str, list[dict[str, str]]] = json.load(answer)
            return found
    except (URLError, ConnectionError, TimeoutError, ValueError):
        return None
