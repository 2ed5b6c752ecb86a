"""The report of what tests cost."""

from __future__ import annotations

from tests.support.cost import report


def test_seconds_are_added_up_by_folder_beside_the_loop_of_the_run():
    first = {"costs": {"tests/unit/test_a.py::test_b": 1.5, "x": 2}, "loop": {"seconds": 0.5}}
    second = {"costs": {"tests/unit/test_c.py::test_d": 0.5}, "loop": {"seconds": 0.5}}

    assert report([first, second]).splitlines()[2:5] == [
        "| shared | 2.0 | 4 |",
        "| unit | 2.0 | 4 |",
        "| all | 4.0 | 8 |",
    ]
