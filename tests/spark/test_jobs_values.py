"""Jobs and the values that they convert: kept exactly, or told by column, value and file."""

from __future__ import annotations

import pytest

from shelduck import InvalidRequest, JobState, change_type
from shelduck.api import job_worker
from tests.support.lakes import rows

UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
STATEMENTS = [
    "CREATE TABLE texts (id INT, v STRING, s STRUCT<a: STRING>, l ARRAY<STRING>)",
    """INSERT INTO texts VALUES (1, ' 12 ', named_struct('a', ' a '), array(' ', '')),
    (2, '', named_struct('a', ''), array()), (3, NULL, NULL, NULL)""",
    "CREATE TABLE bytes (id INT, b BINARY, n INT)",
    "INSERT INTO bytes VALUES (1, X'31', 20240229), (2, X'FFFE', 202402290), (3, X'32', NULL)",
]


def test_bytes_keep_the_blanks_of_texts(lake):
    job = lake.table("texts").alter(
        change_type("v", "binary"), change_type("s.a", "binary"), change_type("l.element", "binary")
    )
    job.wait()

    assert rows(lake.sql("SELECT * FROM texts ORDER BY id")) == [
        (1, b" 12 ", (b" a ",), [b" ", b""]),
        (2, b"", (b"",), []),
        (3, None, None, None),
    ]


def test_defaults_become_what_values_become(lake):
    lake.sql("CREATE TABLE d (id INT, v STRING DEFAULT ' \\\\x41 ', w BINARY)")
    lake.sql("INSERT INTO d (id) VALUES (1)")
    lake.table("d").alter(change_type("v", "binary")).wait()
    lake.sql("INSERT INTO d (id) VALUES (2)")

    assert rows(lake.sql("SELECT id, v FROM d ORDER BY id")) == [
        (1, b" \\x41 "),
        (2, b" \\x41 "),
    ]


def test_a_value_that_is_lost_is_told_in_hexadecimal(lake):
    job = lake.table("bytes").alter(change_type("b", "string"))
    with pytest.raises(InvalidRequest, match=r"X'FFFE', in .*parquet"):
        job.wait()

    assert job.state is JobState.CANCELLED
    assert "'b'" in job.look().message
    assert "�" not in job.look().message


def test_a_number_with_nine_digits_is_no_date(lake):
    job = lake.table("bytes").alter(change_type("n", "date"))
    with pytest.raises(InvalidRequest, match="'n' do not survive as date, such as '202402290'"):
        job.wait()


@pytest.mark.parametrize(("target", "using"), [("uuid", "'no uuid'"), ("utinyint", "-1")])
def test_an_expression_makes_values_of_the_column_or_fails(lake, target, using):
    job = lake.table("bytes").alter(
        change_type("n", target, using=f"if(n = 20240229, {using}, NULL)")
    )
    with pytest.raises(InvalidRequest, match="'n' do not survive"):
        job.wait()
    lake.table("bytes").alter(
        change_type("n", target, using=f"if(n = 20240229, {using}, NULL)", on_error="null")
    ).wait()

    assert rows(lake.sql("SELECT n FROM bytes")) == [(None,)] * 3


def test_an_expression_that_fails_on_a_value_cancels_its_job_and_names_it(lake):
    table = lake.table("bytes")
    using = "cast(cast(b as string) as bigint)"
    job = table.alter(change_type("b", "bigint", using=using))
    with pytest.raises(InvalidRequest, match=r"'b' fails for X'FFFE' in .*parquet: .*CAST_"):
        job.wait()

    assert job.state is JobState.CANCELLED
    # The next change is not refused by what is left.
    table.alter(change_type("b", "bigint", using="try_cast(cast(b as string) as bigint)")).wait()
    assert rows(lake.sql("SELECT b FROM bytes ORDER BY id")) == [(1,), (None,), (2,)]


def test_a_fault_that_passes_is_tried_again_and_one_that_stays_cancels(lake, monkeypatch):
    real, left = job_worker.write_bins, [2]

    def failing(*arguments, **more):
        if left[0]:
            left[0] -= 1
            raise OSError("the disk is full")
        return real(*arguments, **more)

    monkeypatch.setattr(job_worker, "write_bins", failing)
    job = lake.table("texts").alter(change_type("v", "binary"))
    job.wait()
    assert job.state is JobState.FINISHED

    left[0] = 100
    job = lake.table("texts").alter(change_type("v", "string"))
    with pytest.raises(InvalidRequest, match="it failed 3 times: the disk is full"):
        job.wait()
    assert job.state is JobState.CANCELLED
    assert left[0] == 97
