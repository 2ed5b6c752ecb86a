"""An encrypted lake over Spark Connect is refused before anything is read or written."""

from __future__ import annotations

import pytest

from shelduck import Unsupported
from shelduck.engine.bridge import Engine
from shelduck.engine.files import reaching


def test_a_session_without_a_jvm_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(reaching, "engine_for", Engine)

    reaching.require_connector(None, "/data/lake/")
    with pytest.raises(Unsupported, match="/data/lake/ is encrypted, and Spark Connect"):
        reaching.require_connector(None, "/data/lake/", encrypted=True)
