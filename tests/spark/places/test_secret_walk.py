"""No secret is shown: all public calls, with a secret in each place, and all that they show."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections import defaultdict

import psycopg
import pytest

from tests.differential.test_encrypted import every_key
from tests.support.s3 import BUCKET, running_s3
from tests.support.secret_calls import BY_OPTION, ENTRIES, public_calls
from tests.support.secret_places import MARK

FOUND = re.compile(rf"{MARK}-[a-z-]*")
KINDS = ("data", "delete")
# Other lakes and readers would need the keys.
REFUSED = {
    *(f"Table.{name}" for name in ("add_files", "export_delta", "export_iceberg", "plan_export")),
    *(f"CALL {name}" for name in ("add_files", "add_data_files", "import_delta", "plan_export")),
    *("CALL export_delta", "CALL export_iceberg", "Lake.import_delta"),
    *("ExportReport.require_ready", "add_index"),
}


def test_each_public_call_is_in_the_walk():
    assert public_calls() == set(ENTRIES)


@pytest.mark.slow
@pytest.mark.turns(2)
def test_nothing_that_any_call_shows_has_a_secret(postgres_server, tmp_path):
    texts, failed, _ = told_by_all_calls(postgres_server, tmp_path)
    assert failed == {}
    # Few rows of a table stay in the catalog.
    assert sum(name.startswith("lake/") for name in texts) > 50
    shown = defaultdict(set)
    for name, text in texts.items():
        for secret in FOUND.findall(text.decode("latin1")):
            shown[secret].add(name)
    # What a user gives to Spark, Spark and py4j have in their logs.
    assert shown.pop(f"{MARK}-setting", set()) <= {"told/log4j.txt", "told/python.txt"}
    assert shown.pop(f"{MARK}{BY_OPTION}", set()) <= {"told/python.txt"}
    assert dict(shown) == {}


@pytest.mark.slow
@pytest.mark.turns(2)
def test_no_call_on_an_encrypted_lake_shows_a_key(postgres_server, tmp_path):
    texts, failed, keys = told_by_all_calls(postgres_server, tmp_path, "encrypted")
    assert set(failed) == REFUSED
    assert all("encrypted lake" in error for error in failed.values())
    assert len(keys) > 100
    # The catalog has the keys, and this call answers with them, as in DuckDB.
    with_keys = {"CALL list_files", *(f"catalog: ducklake_{kind}_file" for kind in KINDS)}
    assert showing(keys, texts) == with_keys


def told_by_all_calls(server, folder, *how):
    """What all places show after a walk, the calls that failed, and the keys of files."""
    with server.fresh_database() as url, running_s3(checks_keys=True, tells=False) as s3:
        texts = walked("secret_walk", folder, url, s3.endpoint, *how)
        for key in s3.keys("lake/"):
            texts[key] = s3.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        with psycopg.connect(url) as catalog:
            keys = [
                base64.b64decode(key)
                for kind in KINDS
                for (key,) in catalog.execute(f"SELECT encryption_key FROM ducklake_{kind}_file")
                if key is not None
            ]
    assert any(name.startswith("spark: query") for name in texts)
    assert len(texts["metrics"]) > 10_000
    return texts, json.loads(texts.pop("failed.json")), keys


def walked(program, folder, *arguments):
    """The bytes that a walk left in files, by where they were seen."""
    run = subprocess.run(
        [sys.executable, "-m", f"tests.support.{program}", str(folder), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-5000:].decode()
    texts = {"stdout": run.stdout, "stderr": run.stderr}
    for file in folder.rglob("*"):
        place = file.relative_to(folder)
        if file.is_file() and place.parts[0] != "private" and file.suffix != ".db":
            texts[str(place)] = file.read_bytes()
    seen = json.loads(texts.pop("told/seen.json"))
    texts |= {name: "\n".join(said).encode() for name, said in seen.items()}
    assert len(texts["told/log4j.txt"]) > 1_000_000
    assert len(texts["told/python.txt"]) > 1_000_000
    return texts


def showing(keys, texts):
    """The names of texts that show one of some keys, in any form in which code prints bytes."""
    found = set()
    for key in keys:
        numbers = ", ".join(str(int.from_bytes([byte], signed=True)) for byte in key)
        forms = (
            *(key, base64.b64encode(key), base64.urlsafe_b64encode(key), key.hex().encode()),
            *(repr(key)[2:-1].encode(), numbers.encode(), ", ".join(map(str, key)).encode()),
        )
        found |= {name for name, text in texts.items() if any(form in text for form in forms)}
    return found


@pytest.mark.slow
def test_nothing_shows_a_key_of_an_encrypted_lake(tmp_path):
    texts = walked("sealed_walk", tmp_path)
    keys = [base64.b64decode(key) for key in every_key(tmp_path / "lake.db") if key is not None]
    assert len(keys) > 10
    assert any(b"SparkListenerSQLExecutionStart" in text for text in texts.values())
    assert showing(keys, texts) == set()
