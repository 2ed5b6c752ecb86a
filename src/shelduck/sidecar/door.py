"""What the sidecar answers a driver: whose a statement is, and what it returns."""

from __future__ import annotations

import threading
from collections import OrderedDict

from shelduck.attached.attach import attach, attached_to, forget, share
from shelduck.attached.takeover import TextKind
from shelduck.spark.bridge.driver import default_session, session_id
from shelduck.spark.session import DataFrame, SparkSession

_MOST = 64
"""So many sessions are kept. One that is forgotten gets its lakes again when it asks."""
_Place = tuple[str, str | None, str | None]


class Door:
    """The lakes of a driver's sessions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: dict[_Place, SparkSession] = {}
        self._sessions: OrderedDict[str, SparkSession] = OrderedDict()

    def answer(
        self, spark: SparkSession, what: str, text: str, lakes: list[str]
    ) -> DataFrame | bool:
        """Answer what `Sidecar` asks: see `shelduck.spark.bridge.driver.Answer`."""
        known = self._with_lakes(spark, lakes)
        if what == "attach":
            return True
        if what == "plan":
            kind = attached_to(known).kind(text)
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


def _place(spark: SparkSession, name: str) -> _Place:
    setting = f"spark.sql.catalog.{name}"
    return (
        name.lower(),
        spark.conf.get(f"{setting}.uri", None),
        spark.conf.get(f"{setting}.data-path", None),
    )
