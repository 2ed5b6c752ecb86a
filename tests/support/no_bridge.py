"""A session without the bridge, as over Spark Connect: it has only Spark's public API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shelduck.engine.bridge import Engine, classic

if TYPE_CHECKING:
    import pytest


def without_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every session the way of Spark's public API, instead of the one that is chosen."""
    monkeypatch.setattr(classic, "ClassicEngine", Engine)
    monkeypatch.setattr(classic, "_ENGINE", "_shelduck_public_engine")
