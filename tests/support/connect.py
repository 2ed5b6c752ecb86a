"""A Spark Connect server in a process of its own, and sessions that know its address only."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from tests.support.processes import free_port, is_listening, running, wait_until
from tests.support.spark import settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address `sc://…` of a server that runs Spark locally with two cores."""
    port = free_port()
    binding = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    command = ["spark-submit", "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for key, value in (settings(folder) | binding).items():
        command += ["--conf", f"{key}={value}"]
    command.append("spark-internal")
    with running("connect", command, folder, memory="1500m") as server:
        wait_until(lambda: is_listening(port), "the Spark Connect server", folder, server)
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def remote_session(url: str) -> Iterator[SparkSession]:
    """A session over Spark Connect; no JVM runs in this process for it."""
    session = SparkSession.builder.remote(url).create()
    try:
        yield session
    finally:
        session.stop()
