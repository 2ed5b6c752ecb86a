"""One configuration is enough for Python and for Spark, and no other user of the session has it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.s3 import SECRET, running_s3

pytestmark = pytest.mark.slow

USED = [[2, "a b"], [4, "a b"], [5, "c%d"], [10, "a b"], [11, "c%d"]]


def test_one_configuration_is_enough_and_is_for_the_lake_alone(tmp_path):
    with running_s3(checks_keys=True, tells=False) as s3:
        story = [sys.executable, "-m", "tests.support.s3_settings", str(tmp_path), s3.endpoint]
        done = subprocess.run(story, check=False, capture_output=True, text=True, timeout=800)
        assert done.returncode == 0, done.stderr[-4000:]
        seen = json.loads((tmp_path / "answers.json").read_text())
        for told in ("given", "attached", "environment", "session"):
            assert seen[told] == USED, told
        assert seen["inserted"] == 100
        assert seen["plain"]
        assert seen["left"] == [None, None]
        assert not seen["shown"]
        assert SECRET not in done.stderr + done.stdout
        assert SECRET.encode() not in (tmp_path / "given.db").read_bytes()
        assert {key.split("/")[0] for key in s3.keys("")} == {"given", "env", "own"}
