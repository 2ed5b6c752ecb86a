"""Progress of work by Spark: rows and bytes while tasks write them."""

from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console

from shelduck.write import progress
from shelduck.write.parquet import write
from tests.support.time_limit import PATIENCE

STATEMENTS = ["CALL set_option('data_inlining_row_limit', '0')", "CREATE TABLE t (id BIGINT)"]


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal shows; work is long at once."""
    shown = io.StringIO()
    monkeypatch.setattr(progress, "_BEGIN", 0.05)
    monkeypatch.setattr(progress, "_BEAT", 0.05)
    monkeypatch.setattr(
        progress, "Console", lambda **_: Console(file=shown, force_terminal=True, width=200)
    )
    return shown


@pytest.fixture
def wait_for(terminal, monkeypatch):
    """Let writes go on only when the terminal shows a pattern: the display has time to look."""
    real = write._look_at

    def choose(pattern):
        def later(*args, **kwargs):
            # Tasks are done, and nobody has read their files yet.
            patience = time.monotonic() + PATIENCE
            while not re.search(pattern, terminal.getvalue()):
                assert time.monotonic() < patience, f"{pattern} is not shown"
                time.sleep(0.05)
            return real(*args, **kwargs)

        monkeypatch.setattr(write, "_look_at", later)

    return choose


@pytest.mark.every_spark
def test_an_append_shows_what_its_tasks_have_written(lake, spark, terminal, wait_for):
    wait_for("40 rows")
    lake.table("t").append(spark.range(0, 40, 1, 4))

    told = terminal.getvalue()
    assert re.search(r"writing main.t: 40 rows, [\d.]+ \w+, [\d.]+ \w+/s, \d+ s", told)
    assert re.search(r"writing main.t: 40 rows, [1-4] file\(s\), .* in \d+ s\n", told)


def test_a_compaction_shows_the_time_that_is_left(lake, spark, terminal, wait_for):
    for _ in range(3):
        lake.table("t").append(spark.range(20))
    terminal.seek(0)
    terminal.truncate()
    # The first look may come before or after Spark counts the rows.
    wait_for(r"compact main.t: (60 of 60 rows, )?0 of 1 file\(s\), .*\d+ s")
    lake.table("t").compact()

    told = terminal.getvalue()
    assert re.search(r"compact main.t: 60 of 60 rows, 1 of 1 file\(s\), .* in \d+ s\n", told)
