"""Python beside a driver that has none: it attaches the lakes of the configuration.

``python -m shelduck.doors.sidecar`` is what `Sidecar.java` starts, and nobody else.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections import OrderedDict
from contextlib import suppress

from shelduck.doors.attached.attach import attach, attached_to, forget, session_id, setting, share
from shelduck.doors.attached.takeover import TextKind
from shelduck.engine.bridge.driver import default_session, serve
from shelduck.engine.session import DataFrame, SparkSession
from shelduck.errors import Unsupported
from shelduck.text.tokens.parameters import has_parameters

_MOST = 64
"""So many sessions are kept. One that is forgotten gets its lakes again when it asks."""
_Place = tuple[str, str | None, str | None]


class Door:
    """The lakes of a driver's sessions: whose a statement is, and what it returns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: dict[_Place, SparkSession] = {}
        self._sessions: OrderedDict[str, SparkSession] = OrderedDict()

    def answer(
        self, spark: SparkSession, what: str, text: str, lakes: list[str]
    ) -> DataFrame | bool:
        """Answer what `Sidecar` asks: see `shelduck.engine.bridge.driver.Answer`."""
        known = self._with_lakes(spark, lakes)
        if what == "attach":
            return True
        if what == "plan":
            kind = attached_to(known).kind(text)
            if kind is not TextKind.SPARKS:
                _refuse_parameters(text, spark.version)
            if kind is not TextKind.QUERY:
                return kind is TextKind.STATEMENT
        return known.sql(text)

    def close(self) -> None:
        """Close the lakes."""
        for (name, *_), spark in self._owners.items():
            attached_to(spark).lakes[name].lake.close()

    def _with_lakes(self, spark: SparkSession, lakes: list[str]) -> SparkSession:
        """Return a session, with the lakes of its settings attached to it."""
        key = session_id(spark)
        with self._lock:
            known = self._sessions.setdefault(key, spark)
            self._sessions.move_to_end(key)
            attached = attached_to(known).lakes
            for name in lakes:
                if name.lower() not in attached:
                    self._attach(known, name)
            self._forget_oldest()
            return known

    def _attach(self, spark: SparkSession, name: str) -> None:
        place = _place(spark, name)
        owner = self._owners.get(place)
        if owner is None:
            # The lake stays open as long as the session to which it is attached.
            owner = default_session(spark)
            owner = owner if _place(owner, name) == place else spark
            attach(owner, name)
            self._owners[place] = owner
        if session_id(owner) != session_id(spark):
            share(owner, spark, name)

    def _forget_oldest(self) -> None:
        owners = {session_id(spark) for spark in self._owners.values()}
        while len(self._sessions) > _MOST + len(owners):
            oldest = next(key for key in self._sessions if key not in owners)
            forget(self._sessions.pop(oldest))


def _refuse_parameters(text: str, version: str) -> None:
    """Raise Unsupported for a text with parameters whose values this Spark tells no parser."""
    if version.startswith("4.0.") and has_parameters(text):
        raise Unsupported(
            f"on Spark {version}, the values of parameters do not reach a lake; write them into"
            " the statement, or use Spark 4.1 or newer"
        )


def _place(spark: SparkSession, name: str) -> _Place:
    return name.lower(), setting(spark, f"{name}.uri"), setting(spark, f"{name}.data-path")


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
