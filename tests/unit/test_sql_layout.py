"""PARTITIONED BY and SORTED BY in SQL: what each spelling means, and what is refused."""

from __future__ import annotations

import pytest

from shelduck.doors.sql.parse import parse
from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.changes.schema_change import DropColumn, RenameColumn
from shelduck.model.tables.partition import (
    PartitionBy,
    ResetPartitioning,
    ResetSorting,
    SetPartitioning,
    SetSorting,
    SortKey,
    Transform,
    directory_keys,
    parse_sort_key,
)
from shelduck.text.ddl.sorting import (
    columns_of,
    key_text,
    renamed,
    sort_expression_for_spark,
    sort_key,
)


def _changes(text):
    [statement] = parse(f"ALTER TABLE t {text}")
    return statement.changes


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("region", ["region"]),
        ('`a.b`, "c d"', ["`a.b`", "`c d`"]),
        ("identity(region)", ["region"]),
        ("bucket(4, id)", ["bucket(4, id)"]),
        ("BUCKET(16, `odd name`), year(ts)", ["bucket(16, `odd name`)", "year(ts)"]),
        ("day(ts)", ["day(ts)"]),
        ("EPOCH_DAY(ts), epoch_year(`a b`)", ["epoch_day(ts)", "epoch_year(`a b`)"]),
        # What Spark and Iceberg call days is one key for each date, not for each day of a month.
        ("years(ts)", ["year(ts)"]),
        ("months(ts)", ["year(ts)", "month(ts)"]),
        ("days(ts)", ["year(ts)", "month(ts)", "day(ts)"]),
        ("hours(ts), region", ["year(ts)", "month(ts)", "day(ts)", "hour(ts)", "region"]),
        ("years(ts), days(ts)", ["year(ts)", "month(ts)", "day(ts)"]),
        ("years(a), years(b)", ["year(a)", "year(b)"]),
        ("year, bucket", ["year", "bucket"]),
    ],
)
def test_a_partition_key_is_read_in_every_spelling(text, keys):
    [change] = _changes(f"SET PARTITIONED BY ({text})")
    assert [str(k) for k in change.keys] == keys


def test_keys_of_a_table_are_read_with_its_columns():
    [made] = parse(
        "CREATE TABLE t (id INT, r STRING) PARTITIONED BY (r, bucket(2, id)) SORTED BY (id DESC)"
    )
    assert made.partitioned_by == (PartitionBy("r"), PartitionBy("id", Transform("bucket", 2)))
    assert made.sorted_by == (SortKey("id", descending=True),)


def test_changes_of_columns_and_layout_stand_in_one_statement():
    assert _changes(
        "RESET PARTITIONED BY, DROP COLUMN a, b, RENAME COLUMN c TO d, SET SORTED BY (d),"
        " SET PARTITIONED BY (d)"
    ) == (
        ResetPartitioning(),
        DropColumn(("a",)),
        DropColumn(("b",)),
        RenameColumn(("c",), "d"),
        SetSorting((SortKey("d"),)),
        SetPartitioning((PartitionBy("d"),)),
    )
    assert _changes("RESET SORTED BY") == (ResetSorting(),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET PARTITIONED BY ()", "expected a column"),
        ("SET PARTITIONED BY (region STRING)", "write the type in the list of columns"),
        ("SET PARTITIONED BY (bucket(id, 4))", "expected the number of buckets"),
        ("SET PARTITIONED BY (bucket(0, id))", "expected the number of buckets"),
        ("SET PARTITIONED BY (bucket(4.5, id))", "expected the number of buckets"),
        ("SET SORTED BY ()", "expected a column or an expression"),
        ("SET SORTED BY (3)", "it contains no column"),
        ("SET SORTED BY (upper(a)", "expected"),
    ],
)
def test_a_layout_that_cannot_be_read_is_refused(text, message):
    with pytest.raises(InvalidRequest) as caught:
        _changes(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET PARTITIONED BY (truncate(3, a))", "partitioning by truncate() is not supported"),
        ("SET PARTITIONED BY (s.a)", "only top-level columns can be keys"),
        ("SET SORTED BY (s.a)", "only top-level columns can be in a sort key"),
        ("SET SORTED BY (random())", "may have different meanings in Spark and DuckDB"),
        ("SET SORTED BY ((SELECT 1))", "may have different meanings in Spark and DuckDB"),
        ("SET LOCATION 'x'", "below its data path; leave it out"),
    ],
)
def test_a_layout_that_is_not_supported_says_so(text, message):
    with pytest.raises(Unsupported) as caught:
        _changes(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "stored", "spark"),
    [
        ("a", "a ASC NULLS LAST", "`a`"),
        ("a DESC", "a DESC NULLS LAST", "`a`"),
        ("A asc nulls first", "A ASC NULLS FIRST", "`A`"),
        ('"odd name" DESC', '"odd name" DESC NULLS LAST', "`odd name`"),
        ("`select`", '"select" ASC NULLS LAST', "`select`"),
        ("upper(b)", "upper(b) ASC NULLS LAST", "upper(`b`)"),
        ("a || 'x' desc", "a || 'x' DESC NULLS LAST", "`a` || 'x'"),
        (
            "date_trunc('day', ts)",
            "date_trunc('DAY', ts) ASC NULLS LAST",
            "date_trunc('DAY', `ts`)",
        ),
    ],
)
def test_a_sort_key_is_kept_in_the_words_of_duckdb(text, stored, spark):
    found = sort_key(text)
    assert str(found) == stored
    assert parse_sort_key(stored) == found
    assert sort_expression_for_spark(found.expression) == spark


@pytest.mark.parametrize(
    ("expression", "renamed_to"),
    [
        ("a", "b"),
        ("upper(A)", "upper(b)"),
        ("(a || 'a')", "(b || 'a')"),
        ('CAST("a" AS "A")', 'CAST(b AS "A")'),
        (
            "CASE  WHEN ((a > 1)) THEN (1) ELSE NULL END",
            "CASE  WHEN ((b > 1)) THEN (1) ELSE NULL END",
        ),
        ("upper(x)", "upper(x)"),
    ],
)
def test_a_renamed_column_changes_nothing_else_in_a_sort_key(expression, renamed_to):
    assert renamed(expression, "a", "b") == renamed_to


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("a ASC NULLS LAST", "a"),
        ('upper("odd name") DESC NULLS FIRST', "upper(`odd name`) DESC NULLS FIRST"),
        ("random() ASC NULLS LAST", "/* random() in DuckDB */"),
    ],
)
def test_a_sort_key_is_shown_as_a_statement_writes_it(stored, shown):
    assert key_text(parse_sort_key(stored)) == shown


def test_an_odd_name_is_quoted_in_a_sort_key():
    assert renamed("upper(a)", "a", 'x "y"') == 'upper("x ""y""")'
    assert columns_of('upper("x ""y""") || z') == {'x "y"', "z"}


def test_directories_of_keys_have_names_of_their_own():
    keys = [PartitionBy("ts", Transform("epoch_day")), PartitionBy("Epoch_Day")]
    keys += [PartitionBy("a", Transform("bucket", n)) for n in (2, 3, 4, 5)]

    assert directory_keys(keys) == [
        *("epoch_day", "Epoch_Day_Epoch_Day"),
        *("bucket", "bucket_a", "bucket_a_2", "bucket_a_3"),
    ]
