"""Spark's server processes on this machine: started, waited for, stopped with their children."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SPARK_HOME = Path(pyspark.__file__).parent
_SECONDS_TO_START = 240.0
_SECONDS_TO_STOP = 15.0


@contextmanager
def running(
    name: str, command: list[str], folder: Path, *, memory: str, more: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, output in `folder/name.log`; the group is ended afterwards.

    `command` is a script of Spark's `bin` folder and its arguments, `memory` the heap of its JVM,
    and `more` what its environment has besides. Everything binds to loopback.
    """
    folder.mkdir(parents=True, exist_ok=True)
    script, *arguments = command
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / script), *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment() | {"SPARK_DAEMON_MEMORY": memory} | (more or {}),
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process)


def wait_until(
    is_ready: Callable[[], bool], what: str, folder: Path, *processes: subprocess.Popen[bytes]
) -> None:
    """Return when `is_ready`; fail with the logs when it takes too long or a process ended."""
    deadline = time.monotonic() + _SECONDS_TO_START
    while not is_ready():
        ended = [p for p in processes if p.poll() is not None]
        if ended or time.monotonic() > deadline:
            reason = f"ended with {ended[0].returncode}" if ended else "did not become ready"
            raise RuntimeError(f"{what} {reason}\n{_logs(folder)}")
        time.sleep(0.1)


def free_port() -> int:
    """A TCP port of loopback that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(port: int) -> bool:
    """Whether somebody accepts connections on a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def environment() -> dict[str, str]:
    """What a program of Spark gets from these tests."""
    # A remote address or a session of the tests must not leak into the servers.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "TZ": "UTC",
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _logs(folder: Path) -> str:
    return "\n".join(
        f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}"
        for log in sorted(folder.glob("*.log"))
    )
