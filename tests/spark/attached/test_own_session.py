"""The session that Shelduck starts itself: nothing on stderr, nothing in the working directory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shelduck.engine.session import Stderr

START = (
    "WARNING: Using incubator modules: jdk.incubator.vector\n"
    "26/11/24 08:18:42 WARN Utils: Your hostname resolves to a loopback address\n"
)
PROGRAM = """
import shelduck
spark = shelduck.session("sqlite:///lake.db", "files/")
spark.sql("CREATE TABLE ducks AS SELECT 1 AS id")
spark.sql("CREATE TABLE spark_catalog.default.x (a INT) USING parquet")
rows = spark.readStream.table("lake.main.ducks").writeStream.format("memory").queryName("seen")
rows.trigger(availableNow=True).start().awaitTermination()
print(spark.sql("SELECT count(*) FROM ducks").collect()[0][0])
print(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))
"""


def test_noise_of_the_start_is_dropped_and_all_else_is_shown(capfd):
    said = Stderr()
    os.write(said.end, f"{START}26/11/24 08:18:43 ERROR Disk: full\nfetching jars\n".encode())
    said.open()

    assert capfd.readouterr().err == "26/11/24 08:18:43 ERROR Disk: full\nfetching jars\n"


def test_a_failed_start_shows_what_was_said_before(capfd):
    said = Stderr()
    os.write(said.end, f"{START}half a li".encode())
    said.open(with_noise=True)

    assert capfd.readouterr().err == f"{START}half a li"


def test_what_is_said_after_the_start_is_passed_on(capfd):
    said = Stderr()
    program = "import sys; sys.stdin.read(); print('WARNING: late', file=sys.stderr)"
    run = [sys.executable, "-c", program]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stderr=said.end) as later:
        said.open()
        later.communicate(b"")
    told = ""
    for _ in range(100):
        told += capfd.readouterr().err
        # A line comes in parts where the machine is busy.
        if told.endswith("\n"):
            break
        time.sleep(0.05)

    assert told == "WARNING: late\n"


@pytest.mark.slow
@pytest.mark.every_spark
def test_a_session_says_nothing_and_leaves_nothing_behind(tmp_path):
    run = [sys.executable, "-c", PROGRAM]
    found = ended(run, tmp_path)

    count, warehouse = found.stdout.split()
    assert (found.stderr, found.returncode, count) == ("", 0, "1")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["files", "lake.db"]
    assert "shelduck-warehouse-" in warehouse
    assert not Path(warehouse).exists()


@pytest.mark.slow
def test_the_command_line_prints_rows_alone(tmp_path):
    words = ["sql", "SELECT id FROM range(2)", "-c", "sqlite:///lake.db", "-d", "files"]
    run = [sys.executable, "-m", "shelduck.cli", *words]
    found = ended(run, tmp_path)

    assert found.stderr == ""
    assert found.stdout == "+---+\n|id |\n+---+\n|0  |\n|1  |\n+---+\n\n"
    assert [p.name for p in tmp_path.iterdir()] == ["lake.db"]


@pytest.mark.slow
def test_a_session_that_cannot_start_shows_why(tmp_path):
    words = ["sql", "SELECT 1 FROM range(2)", "-c", "sqlite:///lake.db", "-d", "files"]
    run = [sys.executable, "-m", "shelduck.cli", *words, "--conf", "spark.master=nowhere"]
    found = ended(run, tmp_path)

    assert found.returncode == 1
    assert "Master must either be yarn or start with spark, k8s, or local" in found.stderr


def ended(run, folder):
    """A process that has ended, without what the tests' own session sets."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    return subprocess.run(run, check=False, cwd=folder, env=env, capture_output=True, text=True)
