"""``python -m shelduck.sidecar``: what `Sidecar.java` starts, and nobody else."""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import suppress

from shelduck.sidecar.door import Door
from shelduck.spark.bridge.driver import serve


def main() -> None:
    """Answer the JVM whose port and secret stand on stdin, until it closes stdin."""
    # PySpark logs each error as a line of JSON; the driver tells it, in words.
    logging.disable(logging.CRITICAL)
    # Ctrl-C in spark-sql goes to both. It ends the statement there, and not this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    port, secret = sys.stdin.readline().split()
    door = Door()
    serve(port, secret, door.answer)
    # The driver holds the other end, and says nothing more.
    sys.stdin.read()
    with suppress(Exception):
        door.close()
    # Threads that wait for a JVM which ends, too, must not keep this process.
    os._exit(0)


if __name__ == "__main__":
    main()
