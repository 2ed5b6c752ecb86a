"""RESTORE TABLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shelduck.api.results import Result
from shelduck.api.runner import Answer, Runner
from shelduck.sql import upkeep_statements as up


def restore(runner: Runner, statement: up.Restore) -> Result:
    """RESTORE TABLE ... TO VERSION or TIMESTAMP AS OF."""
    table = runner.table(statement.name)
    return table.restore(version=statement.version, timestamp=statement.timestamp)


RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    up.Restore: restore,
}
