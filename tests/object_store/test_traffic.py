"""What a lake asks of an object store, and what it does when the store fails."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from shelduck.engine.files.storage import write_bytes
from tests.support.s3 import BUCKET, SECRET, running_s3
from tests.support.s3_traffic import FILES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traffic")
    with running_s3(tells=False) as s3:
        story = [sys.executable, "-m", "tests.support.s3_traffic", str(folder), s3.endpoint]
        done = subprocess.run(story, check=False, capture_output=True, text=True, timeout=1100)
        assert done.returncode == 0, done.stderr[-4000:]
        assert SECRET not in done.stderr + done.stdout
        return json.loads((folder / "answers.json").read_text())


def test_requests_do_not_grow_with_the_files_that_a_query_plans(seen):
    assert seen["traffic"]["open"] == {}
    assert seen["traffic"]["plan"] == {}


def test_an_append_makes_few_requests_for_each_file(seen):
    total = {name: sum(kinds.values()) for name, kinds in seen["traffic"].items()}
    assert total["first append"] <= 3 * FILES + 10
    assert total["append"] <= 3 * FILES + 10
    assert total["append 1"] <= 13
    # Tasks write the files of partitions where they stay.
    assert total["append 5 partitions"] <= 3 * 5 + 10
    assert "COPY" not in seen["traffic"]["append 5 partitions"]
    assert seen["traffic"]["append"]["PUT"] == FILES
    # Two files were replaced, and each has one request to open it and one to read it at most.
    assert total["read"] <= 2 * (2 * FILES + 1)
    assert seen["traffic"]["cleanup"]["DELETE_MANY"] == 1
    assert sum(seen["connect"].values()) <= 2


def test_a_write_into_partitions_that_fails_leaves_no_object(seen):
    assert seen["faults"]["left in partitions"] == []


APPENDED = [40, 780]


def test_a_fault_that_passes_is_not_seen(seen):
    first, second = (seen["faults"][n] for n in ("slow, then fine", "reset, then fine"))
    assert (first["error"], first["rows"]) == (None, APPENDED)
    assert (second["error"], second["rows"]) == (None, [80, 1560])
    assert second["files"] == 8


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("append: slow for ever", ("write to main.f", "too busy", "part-0")),
        ("partitions: refused", ("write to main.g", "refuses these credentials")),
        ("append: reset for ever", ("write to main.f", "does not answer", "part-0")),
        ("append: expired", ("write to main.f", "expired", "part-0")),
        ("landing: slow for ever", ("the last look at new files", "too busy")),
        ("delete: slow for ever", ("delete from main.f", "too busy")),
        ("compaction: slow for ever", ("write to main.f", "too busy")),
        ("compaction: refused", ("of main.f", "refuses these credentials")),
    ],
)
def test_a_fault_that_stays_is_one_clear_error_and_changes_nothing(seen, name, told):
    found = seen["faults"][name]
    # The second is what a query says that cannot reach a file.
    assert found["error"].startswith(("StorageUnavailable: ", "UnreachedFile: ")), found
    assert [part for part in told if part not in found["error"]] == []
    assert (found["rows"], found["files"]) == ([80, 1560], 8)
    assert found["seconds"] < 120
    assert SECRET not in found["error"]


def test_a_job_waits_until_the_store_is_back(seen):
    assert "too busy" in seen["faults"]["job: slow for ever"]["error"]
    assert seen["faults"]["job before"] == ["RUNNING"]
    assert seen["faults"]["job again"]["error"] is None
    assert seen["faults"]["job again"]["rows"] == [80, 1560]
    assert seen["faults"]["job after"] == ["FINISHED"]


def test_a_cleanup_that_failed_is_repeated(seen):
    assert "cleanup of old files" in seen["faults"]["cleanup: slow for ever"]["error"]
    assert "too busy" in seen["faults"]["cleanup: slow for ever"]["error"]
    for name in ("compaction", "cleanup again", "orphans"):
        assert seen["faults"][name]["error"] is None
        assert seen["faults"][name]["rows"] == [80, 1560]


def test_a_file_of_the_driver_makes_no_objects_for_its_directories(s3, data_path):
    write_bytes(f"{data_path}main/t/w/part-0.parquet", b"rows")
    prefix = data_path.removeprefix(f"s3://{BUCKET}/")
    found = s3.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]
    assert [each["Key"] for each in found] == [f"{prefix}main/t/w/part-0.parquet"]
