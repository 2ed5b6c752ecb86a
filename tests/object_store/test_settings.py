"""A lake on S3 whose partitions have awkward names: Spark, DuckDB and the bucket agree."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing

import pytest

from tests.support.lakes import catalog_files
from tests.support.odd_names import FEW, ODD
from tests.support.oracle import EXTENSIONS, duckdb_attach_string, duckdb_with
from tests.support.s3 import BUCKET, KEY, SECRET, running_s3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WRITTEN = [[start + n, value] for start in (0, 1000) for n, value in enumerate(FEW)]
CHANGED = sorted(
    [n + 5000 if n < 1000 and n % 3 == 0 else n, value] for n, value in WRITTEN if n < 1000 or n % 2
)


def read_by_duckdb(url: str, address: str) -> list[list[object]]:
    with closing(duckdb_with((*EXTENSIONS, "httpfs"))) as connection:
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', REGION 'us-east-1',"
            f" ENDPOINT '{address}', USE_SSL false, URL_STYLE 'path')"
        )
        connection.execute(duckdb_attach_string(url))
        found = connection.execute("SELECT id, city FROM lake.t ORDER BY id").fetchall()
        some = connection.execute("SELECT id FROM lake.t WHERE city = 'A+B'").fetchall()
        assert len(some) == sum(value == "A+B" for _, value in CHANGED)
        for n, value in enumerate(ODD):
            query = "SELECT id FROM lake.odd WHERE city IS NOT DISTINCT FROM ?"
            assert connection.execute(query, [value]).fetchall() == [(n,)], value
        return [list(row) for row in found]


def test_partitions_of_any_name_are_written_changed_compacted_and_cleaned(tmp_path):
    catalog, answers = tmp_path / "lake.db", tmp_path / "answers.json"
    url = f"sqlite:///{catalog}"
    with running_s3() as s3:
        s3.put("lake/main/a.txt", b"of somebody else")
        story = [sys.executable, "-m", "tests.support.s3_story", url, f"s3a://{BUCKET}/lake"]
        done = subprocess.run(
            [*story, str(answers)], check=False, capture_output=True, text=True, timeout=800
        )
        assert done.returncode == 0, done.stderr[-4000:]
        seen = json.loads(answers.read_text())

        assert seen["written"] == WRITTEN
        assert seen["changed"] == CHANGED
        assert seen["compacted"] == CHANGED
        assert seen["orphans"] == []
        assert seen["deleted"]
        assert seen["odd"] == [[n, value] for n, value in enumerate(ODD)]
        named = {"main/a.txt"} | catalog_files(catalog, live=True)
        assert s3.keys("lake/") == sorted(f"lake/{path}" for path in named)
        assert read_by_duckdb(url, s3.address) == CHANGED


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
