"""A Spark Connect server in a process of its own, and sessions that know its address only."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from tests.support.processes import SPARK_HOME, free_port, is_listening, running, wait_until
from tests.support.spark import settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SOURCES = Path(__file__).parents[2] / "src"


@contextmanager
def connect_server(folder: Path, conf: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address `sc://…` of a server that runs Spark locally with two cores.

    Its configuration is that of the tests, or one whose lakes it knows.
    """
    with connect_process(folder, conf) as (address, _):
        yield address


@contextmanager
def connect_process(
    folder: Path, conf: Mapping[str, str] | None = None
) -> Iterator[tuple[str, int]]:
    """The address of such a server, and the group of its processes."""
    port = free_port()
    binding = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    command = ["spark-submit", "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    given = settings(folder) if conf is None else conf
    for key, value in {**given, **binding}.items():
        command += ["--conf", f"{key}={value}"]
    command.append("spark-internal")
    more = None if conf is None else {"PYTHONPATH": str(_SOURCES)}
    with running("connect", command, folder, memory="1500m", more=more) as server:
        wait_until(lambda: is_listening(port), "the Spark Connect server", folder, server)
        yield f"sc://127.0.0.1:{port}", server.pid


@contextmanager
def remote_session(url: str) -> Iterator[SparkSession]:
    """A session over Spark Connect; no JVM runs in this process for it."""
    session = SparkSession.builder.remote(url).create()
    try:
        yield session
    finally:
        session.stop()


def plain_client(url: str, program: str) -> str:
    """What a program prints that runs beside `spark`, a session of a client without Shelduck."""
    file = Path(__file__).with_name("plain_client.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(file), str(SPARK_HOME.parent), url],
        input=program,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the client ended with {done.returncode}: {done.stderr}")
    return done.stdout
