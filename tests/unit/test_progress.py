"""Progress of long work: what is shown, where, and when."""

from __future__ import annotations

import io
import re
import sys
import time
from types import SimpleNamespace

import pytest
from rich.console import Console

from shelduck.write import progress
from shelduck.write.progress import Meter, counted, duration
from tests.support.time_limit import until


@pytest.fixture
def hurried(monkeypatch):
    """Work is long after 50 ms."""
    monkeypatch.setattr(progress, "_BEGIN", 0.05)
    monkeypatch.setattr(progress, "_BEAT", 0.05)


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal shows."""
    shown = io.StringIO()
    monkeypatch.setattr(
        progress, "Console", lambda **_: Console(file=shown, force_terminal=True, width=200)
    )
    return shown


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.4, "0 s"), (59.4, "59 s"), (61, "1 min 1 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")],
)
def test_times_are_told_for_people(seconds, told):
    assert duration(seconds) == told


def test_a_line_has_counts_rate_and_time(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 110.0)
    meter = Meter("writing main.t", rows=12_000, bytes=50_000_000, begun=100.0)

    assert meter.line() == "writing main.t: 12,000 rows, 50.0 MB, 5.0 MB/s, 10 s"
    assert meter.summary() == "writing main.t: 12,000 rows, 50.0 MB in 10 s"


def test_a_line_has_the_time_that_is_left_if_all_is_known(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 110.0)
    meter = Meter("compact main.t", rows_in_all=4000, files_in_all=8, begun=100.0)

    assert meter.line() == "compact main.t: 0 of 8 file(s), 10 s"
    meter.files = 2
    assert meter.line() == "compact main.t: 2 of 8 file(s), 30 s left"
    meter.rows = 3000
    assert meter.line() == "compact main.t: 3,000 of 4,000 rows, 2 of 8 file(s), 3 s left"


def test_a_terminal_shows_long_work_while_it_runs_and_when_it_is_done(hurried, terminal):
    for item in counted("abc", "adding files to main.`[b]`", 3):
        if item == "b":
            until(lambda: "adding files to main.`[b]`: 1 of 3 file(s)" in terminal.getvalue())

    done = r"adding files to main\.`\[b\]`: 3 of 3 file\(s\) in \d+ s\n"
    assert re.search(f"{done}$", terminal.getvalue())


def test_short_work_shows_nothing(terminal):
    assert list(counted("abc", "adding files", 3)) == ["a", "b", "c"]
    assert terminal.getvalue() == ""


def test_work_that_fails_leaves_no_line_behind(hurried, terminal):
    def fail():
        for _ in counted("abc", "adding files", 3):
            until(lambda: "adding files: " in terminal.getvalue())
            raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        fail()
    assert not re.search(r" in \d+ s", terminal.getvalue())


def test_logs_show_nothing(hurried, capfd):
    for _ in counted("ab", "adding files", 2):
        time.sleep(0.1)

    assert capfd.readouterr() == ("", "")


def test_only_the_outer_work_shows_its_progress(hurried, terminal):
    for _ in counted("a", "outer", 1):
        for _ in counted("a", "inner", 1):
            until(lambda: "outer" in terminal.getvalue())

    assert "inner" not in terminal.getvalue()


def test_a_notebook_shows_one_output_that_changes(hurried, monkeypatch):
    shown = []

    def display(html, *, display_id):
        shown.append(html)
        return SimpleNamespace(update=shown.append)

    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    shows = SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    for _ in counted("ab", "adding files to main.`<b>`", 2):
        until(lambda: shown)

    assert shown[0].startswith("<pre>adding files to main.`&lt;b&gt;`: ")
    done = r"<pre>adding files to main\.`&lt;b&gt;`: 2 of 2 file\(s\) in \d+ s</pre>"
    assert re.fullmatch(done, shown[-1])


def test_ipython_on_a_terminal_is_no_notebook(hurried, terminal, monkeypatch):
    ipython = SimpleNamespace(get_ipython=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    for _ in counted("a", "adding files", 1):
        until(lambda: "adding files" in terminal.getvalue())
