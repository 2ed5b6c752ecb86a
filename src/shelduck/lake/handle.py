"""The bases of all verbs: a lake, or one table of it by name, and the open unit of work.

Whoever derives from `TellsOfSpark` needs nothing else: each public method tells of failures.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from shelduck.engine.failures import SparkFailure, told_of_spark
from shelduck.engine.session import DataFrame
from shelduck.errors import InvalidRequest
from shelduck.lake.lookup import version_at
from shelduck.lake.results import TableName, table_name
from shelduck.lake.state import LakeState
from shelduck.lake.unit import UnitOfWork, view_of
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import split_name


class TellsOfSpark:
    """Provides verbs, which are public methods, with the telling of Spark's failures."""

    def __init_subclass__(cls, *, in_parts: bool = False, **more: Any) -> None:
        """Let each verb that a class adds tell; those ``in_parts`` commit more than once."""
        super().__init_subclass__(**more)
        for name, verb in list(vars(cls).items()):
            if isinstance(verb, FunctionType) and not name.startswith("_"):
                setattr(cls, name, _telling(verb, in_parts=in_parts))

    def _subject(self) -> str:
        """Return the name of what the verbs work on."""
        return "the lake"


def _telling(verb: Callable[..., Any], *, in_parts: bool) -> Callable[..., Any]:
    @functools.wraps(verb)
    def telling(self: TellsOfSpark, *args: Any, **kwargs: Any) -> Any:
        try:
            return verb(self, *args, **kwargs)
        except SparkFailure as error:
            name = f"{verb.__name__}() of "
            told = told_of_spark(error, lambda: name + self._subject(), in_parts=in_parts)
            if told is None:
                raise
            raise told from error

    return telling


class LakeHandle(TellsOfSpark):
    """One lake, or one open transaction."""

    def __init__(self, state: LakeState, unit: UnitOfWork | None) -> None:
        self._state = state
        self._unit = unit

    def _name(self, text: str) -> TableName:
        return table_name(split_name(text), self._state.current.schema)


class TableHandle(TellsOfSpark):
    """One table by name, on a lake or inside an open transaction."""

    def __init__(self, state: LakeState, name: TableName, unit: UnitOfWork | None = None) -> None:
        self._state = state
        self._unit = unit
        self.name = name

    def __repr__(self) -> str:
        return f"Table({str(self.name)!r})"

    def _subject(self) -> str:
        return str(self.name)

    def _version(self) -> TableVersion:
        if self._unit is not None:
            self._unit.require_open()
            return self._unit.workspace.table(self.name)
        return version_at(self._state, self.name, None, None)

    def _view(self) -> UnitOfWork:
        """Return the open unit, or a new one that is only read from."""
        return view_of(self._state, self._unit)

    def _require_frame(self, given: object, verb: str) -> None:
        if not isinstance(given, DataFrame):
            raise InvalidRequest(
                f"cannot {verb} {self.name}: expected a Spark DataFrame, got"
                f" {type(given).__name__}; create one with spark.createDataFrame(...)"
            )
