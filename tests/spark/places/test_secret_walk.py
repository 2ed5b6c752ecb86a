"""No secret is shown: all public calls, with a secret in each place, and all that they show."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections import defaultdict

import pytest

from tests.differential.test_encrypted import every_key
from tests.support.s3 import BUCKET, running_s3
from tests.support.secret_calls import BY_OPTION, ENTRIES, public_calls
from tests.support.secret_places import MARK

FOUND = re.compile(rf"{MARK}-[a-z-]*")


def test_each_public_call_is_in_the_walk():
    assert public_calls() == set(ENTRIES)


@pytest.mark.slow
def test_nothing_that_any_call_shows_has_a_secret(postgres_server, tmp_path):
    with postgres_server.fresh_database() as url, running_s3(checks_keys=True, tells=False) as s3:
        run = subprocess.run(
            [sys.executable, "-m", "tests.support.secret_walk", str(tmp_path), url, s3.endpoint],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        keys = s3.keys("lake/")
        objects = {key: s3.client.get_object(Bucket=BUCKET, Key=key) for key in keys}
        texts = {"stdout": run.stdout, "stderr": run.stderr}
        texts |= {key: found["Body"].read().decode("latin1") for key, found in objects.items()}
    assert run.returncode == 0, run.stderr[-5000:]
    assert json.loads((tmp_path / "failed.json").read_text()) == {}
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.relative_to(tmp_path).parts[0] != "private":
            texts[str(file.relative_to(tmp_path))] = file.read_bytes().decode("latin1")
    seen = json.loads(texts.pop("told/seen.json"))
    texts |= {name: "\n".join(said) for name, said in seen.items()}
    assert len(texts["told/log4j.txt"]) > 1_000_000
    assert any(name.startswith("spark: query") for name in texts)
    # Few rows of a table stay in the catalog.
    assert len(objects) > 50
    shown = defaultdict(set)
    for name, text in texts.items():
        for secret in FOUND.findall(text):
            shown[secret].add(name)
    # What a user gives to Spark, Spark and py4j have in their logs.
    assert shown.pop(f"{MARK}-setting", set()) <= {"told/log4j.txt", "told/python.txt"}
    assert shown.pop(f"{MARK}{BY_OPTION}", set()) <= {"told/python.txt"}
    assert dict(shown) == {}


@pytest.mark.slow
def test_nothing_shows_a_key_of_an_encrypted_lake(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.sealed_walk", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    keys = [base64.b64decode(key) for key in every_key(tmp_path / "lake.db") if key is not None]
    assert len(keys) > 10
    texts = {"stdout": run.stdout.encode(), "stderr": run.stderr.encode()}
    for file in (*(tmp_path / "told").rglob("*"), *(tmp_path / "data").rglob("*")):
        if file.is_file():
            texts[str(file.relative_to(tmp_path))] = file.read_bytes()
    assert len(texts["told/log4j.txt"]) > 1_000_000
    assert len(texts["told/python.txt"]) > 1_000_000
    assert any(b"SparkListenerSQLExecutionStart" in text for text in texts.values())
    found = {
        name
        for name, text in texts.items()
        for key in keys
        if any(w in text for w in (key, base64.b64encode(key), key.hex().encode()))
    }
    assert found == set()
