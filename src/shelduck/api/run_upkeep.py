"""Statements of maintenance: CALL, OPTIMIZE, VACUUM, CHECKPOINT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shelduck.api.procedures import call
from shelduck.api.runner import Answer, Runner
from shelduck.sql import upkeep_statements as up

RUN: dict[type, Callable[[Runner, Any], Answer]] = {
    up.Call: call,
}
