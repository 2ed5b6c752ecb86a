"""Options: what is taken, how it is written, and which setting holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shelduck.errors import CorruptLake, InvalidRequest, NotFound
from shelduck.model.tables.options import OptionSetting, Scope, option_text, table_options
from shelduck.model.text.intervals import Interval, parse_interval


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("data_inlining_row_limit", 5, "5"),
        ("target_file_size", "10MB", "10000000"),
        ("target_file_size", "1.5 GiB", "1610612736"),
        ("target_file_size", 1024, "1024"),
        ("parquet_compression", "ZSTD", "zstd"),
        ("parquet_version", 2, "V2"),
        ("parquet_row_group_size", 1000, "1000"),
        ("AUTO_COMPACT", False, "false"),
        ("sort_on_insert", "true", "true"),
        ("rewrite_delete_threshold", 0.1, "0.100000"),
        ("delete_older_than", "3 days", "3 days"),
        ("expire_older_than", "", ""),
        ("alter_table_timeout_second", 3600, "3600"),
        ("alter_tablet_worker_count", 3, "3"),
    ],
)
def test_values_are_written_as_duckdb_writes_them(name, value, text):
    assert option_text(name, value) == (name.lower(), text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data_inlining_row_limit", -1),
        ("data_inlining_row_limit", True),
        ("target_file_size", "10 apples"),
        ("target_file_size", 0),
        ("parquet_compression", "zip"),
        ("parquet_version", 3),
        ("parquet_row_group_size", 0),
        ("auto_compact", "perhaps"),
        ("rewrite_delete_threshold", 1.5),
        ("rewrite_delete_threshold", "much"),
        ("delete_older_than", "a while"),
        ("alter_table_timeout_second", 0),
        ("alter_tablet_worker_count", 0),
    ],
)
def test_a_value_that_an_option_does_not_take_is_refused(name, value):
    with pytest.raises(InvalidRequest, match=f"option {name} does not accept"):
        option_text(name, value)


def test_an_unknown_option_is_refused_with_the_near_ones():
    with pytest.raises(NotFound, match="did you mean 'data_inlining_row_limit'"):
        option_text("inlining_row_limit", 1)


def test_a_commit_message_is_demanded_by_the_lake_not_by_a_table():
    with pytest.raises(InvalidRequest, match="to the whole lake"):
        option_text("require_commit_message", True, Scope.TABLE)


def test_the_narrowest_scope_holds_and_others_do_not_count():
    settings = [
        OptionSetting("data_inlining_row_limit", "1", Scope.TABLE, 7),
        OptionSetting("data_inlining_row_limit", "2", Scope.SCHEMA, 0),
        OptionSetting("data_inlining_row_limit", "3"),
        OptionSetting("target_file_size", "4", Scope.TABLE, 8),
        OptionSetting("sort_on_insert", "false"),
        OptionSetting("version", "1.0"),
    ]
    mine = table_options(settings, schema_id=0, table_id=7)
    assert (mine.data_inlining_row_limit, mine.target_file_size) == (1, 512 * 1024 * 1024)
    assert not mine.sort_on_insert
    assert table_options(settings, schema_id=0, table_id=9).data_inlining_row_limit == 2
    assert table_options(settings, schema_id=5, table_id=9).data_inlining_row_limit == 3
    assert table_options([]).data_inlining_row_limit == 10


def test_ages_are_intervals_and_an_empty_text_is_none():
    found = table_options(
        [
            OptionSetting("expire_older_than", "1 month 3 hours"),
            OptionSetting("delete_older_than", ""),
        ]
    )
    assert found.expire_older_than == Interval(1, timedelta(hours=3))
    assert found.delete_older_than is None


def test_a_stored_text_that_is_no_value_is_told():
    with pytest.raises(
        CorruptLake, match="option data_inlining_row_limit has the invalid value 'many'"
    ):
        table_options([OptionSetting("data_inlining_row_limit", "many")])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2 days", Interval(0, timedelta(days=2))),
        ("1 year 2 months -3 days 100:00:00", Interval(14, timedelta(days=-3, hours=100))),
        ("1.5 hours", Interval(0, timedelta(minutes=90))),
        ("7 d", Interval(0, timedelta(days=7))),
        ("1.5 months", None),
        ("soon", None),
        ("", None),
        ("3", None),
    ],
)
def test_spans_of_time_are_read_as_duckdb_writes_them(text, found):
    assert parse_interval(text) == found


def test_a_month_before_the_last_of_march_is_the_last_of_february():
    march = datetime(2024, 3, 31, 12, tzinfo=UTC)
    assert Interval(1, timedelta(hours=1)).before(march) == datetime(2024, 2, 29, 11, tzinfo=UTC)
