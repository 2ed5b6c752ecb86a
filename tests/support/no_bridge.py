"""A session without the bridge, as over Spark Connect: what looks for it finds nothing."""

from __future__ import annotations

import sys

import pytest

_ANSWERS = {"bridge_for": lambda _: None, "has_jvm": lambda _: False}


def without_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no module of Shelduck reach the JVM, so that reads and writes agree on the way."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "shelduck":
            for asked, answer in _ANSWERS.items():
                if hasattr(module, asked):
                    monkeypatch.setattr(module, asked, answer)
