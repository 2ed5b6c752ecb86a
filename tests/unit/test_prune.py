"""Pruning leaves files out, and never one that holds a matching row."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shelduck.model.files.data_file import ColumnStats, DataFile, Layout, PhysicalField
from shelduck.model.files.predicate import (
    And,
    ComparedValue,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    StartsWith,
    Unknown,
)
from shelduck.model.tables.schema import Kind
from shelduck.model.text.names import write_directory
from shelduck.model.types.data_types import ducklake_type
from shelduck.model.types.literals import bound_text
from shelduck.read.plan.prune import matching_files
from shelduck.read.plan.scan import plan_scan
from tests.support.scans import column, table

NAN = math.nan


def may_match(predicate, known):
    """Whether a file may hold a row that matches, by its group and its statistics."""
    group, file, stats = known
    return file.id in matching_files(predicate, group, stats, [file])


def known_of(stored_as, table_type, stats, *, default=None, own=True):
    """A group, its file whose column `c` is stored as a type (None: not there), and statistics.

    Shelduck wrote the file if it is its own.
    """
    fields = [PhysicalField("k", 1, ducklake_type("int32"))]
    full = PhysicalField("c", 2, ducklake_type(stored_as or table_type))
    if stored_as is not None:
        fields.append(full)
    version = table(column("k", "int32", 1), column("c", table_type, 2, default=default))
    path = f"{version.path}{write_directory(version.uuid, 1, 1)}/1.parquet" if own else "/1.parquet"
    file = DataFile(1, path, 1, 1, 0, 1, layout=Layout(tuple(fields)))
    with_column = DataFile(2, "/2.parquet", 1, 1, 0, 1, layout=Layout((fields[0], full)))
    [group] = plan_scan(version, [file, with_column], {}).groups
    return group, file, {} if stats is None else {2: {file.id: stats}}


def stats_of(low, high, *, values=5, nulls=0, nan=None):
    return ColumnStats(2, 10, values, nulls, low, high, nan)


def compare(text, value, kind):
    return Comparison(Operator(text), ("c",), ComparedValue(value, ducklake_type(kind)))


@pytest.mark.parametrize(
    ("stats", "predicate", "expected"),
    [
        (stats_of("10", "20"), compare("=", 15, "int32"), True),
        (stats_of("10", "20"), compare("=", 21, "int32"), False),
        (stats_of("10", "20"), compare(">", 20, "int32"), False),
        (stats_of("10", "20"), compare(">=", 20, "int32"), True),
        (stats_of("10", "20"), compare("<", 10, "int32"), False),
        (stats_of("10", "10"), compare("!=", 10, "int32"), False),
        (stats_of("10", "11"), compare("!=", 10, "int32"), True),
        (stats_of("10", "20"), IsNull(("c",)), False),
        (stats_of("10", "20", nulls=1), IsNull(("c",)), True),
        (stats_of(None, None, values=0, nulls=5), IsNotNull(("c",)), False),
        (stats_of(None, None, values=0, nulls=5), compare("=", 1, "int32"), False),
        (stats_of(None, None, values=0, nulls=0), compare("=", 1, "int32"), True),
        (stats_of(None, None), compare("=", 1, "int32"), True),
        (stats_of("junk", "20"), compare("=", 1, "int32"), True),
        (None, compare("=", 1, "int32"), True),
        (stats_of("10", "20"), compare("=", "15", "varchar"), True),
        (stats_of("10", "20"), In(("c",), (ComparedValue(1, ducklake_type("int32")),)), False),
        (stats_of("10", "20"), In(("c",), ()), False),
        (stats_of("10", "20"), Unknown(), True),
        (stats_of("10", "20"), And((Unknown(), compare("=", 1, "int32"))), False),
        (stats_of("10", "20"), Or((Unknown(), compare("=", 1, "int32"))), True),
        (
            stats_of("10", "20"),
            Comparison(Operator.EQ, ("z",), ComparedValue(1, ducklake_type("int32"))),
            True,
        ),
    ],
)  # fmt: skip
def test_whole_numbers_prune_by_their_bounds(stats, predicate, expected):
    assert may_match(predicate, known_of("int32", "int32", stats)) is expected


# When a FLOAT becomes a DOUBLE, DuckDB 2.0 writes its bounds again, as doubles.
@pytest.mark.parametrize("text", ["1.1", "1.100000023841858", "1.10000002384185791015625"])
def test_bounds_of_a_promoted_column_are_read_in_the_type_they_were_written_in(text):
    floats = known_of("float32", "float64", stats_of(text, text, nan=False))

    assert may_match(compare("=", 1.100000023841858, "float64"), floats)
    assert may_match(compare(">", 1.1, "float64"), floats)
    assert not may_match(compare("=", 1.1, "float64"), floats)


def test_dates_bound_the_timestamps_that_they_are_read_as():
    days = known_of("date", "timestamp", stats_of("2024-01-01", "2024-01-02"))
    midnight = 1704153600 * 1_000_000

    assert may_match(compare("=", midnight, "timestamp"), days)
    assert not may_match(compare(">", midnight, "timestamp"), days)


@pytest.mark.parametrize(
    ("predicate", "nan", "expected"),
    [
        (compare(">", 100.0, "float64"), True, True),
        (compare(">", 100.0, "float64"), None, True),
        (compare(">", 100.0, "float64"), False, False),
        (compare("<", 0.5, "float64"), True, False),
        (compare("=", NAN, "float64"), True, True),
        (compare("=", NAN, "float64"), False, False),
        (compare("<", NAN, "float64"), False, True),
        (compare(">", NAN, "float64"), True, False),
    ],
)
def test_nan_is_greater_than_every_number(predicate, nan, expected):
    facts = known_of("float64", "float64", stats_of("1.0", "2.0", nan=nan))

    assert may_match(predicate, facts) is expected


@pytest.mark.parametrize(
    ("kind", "predicate", "own", "others"),
    [
        ("float64", compare(">", 100.0, "float64"), False, True),
        ("float64", compare("<", 0.5, "float64"), False, False),
        ("decimal(18,0)", compare("=", 100, "decimal(18,0)"), False, False),
        ("decimal(19,0)", compare("=", 100, "decimal(19,0)"), False, True),
        ("decimal(38,2)", IsNull(("c",)), False, False),
    ],
)
def test_others_are_not_certain_to_be_right_about_nan_and_wide_decimals(
    kind, predicate, own, others
):
    stats = stats_of("1", "2", nan=False if kind == "float64" else None)

    assert may_match(predicate, known_of(kind, kind, stats)) is own
    assert may_match(predicate, known_of(kind, kind, stats, own=False)) is others


def test_a_file_without_the_column_holds_its_default_in_every_row():
    five = known_of(None, "int32", None, default="5")
    nothing = known_of(None, "int32", None)

    assert may_match(compare("=", 5, "int32"), five)
    assert not may_match(compare("=", 6, "int32"), five)
    assert not may_match(IsNull(("c",)), five)
    assert may_match(IsNull(("c",)), nothing)
    assert not may_match(IsNotNull(("c",)), nothing)


@pytest.mark.parametrize(
    ("prefix", "expected"), [("b", True), ("ba", True), ("bz", True), ("c", False), ("a", False)]
)
def test_prefixes_prune_between_bounds(prefix, expected):
    texts = known_of("varchar", "varchar", stats_of("ba", "bz~"))

    assert may_match(StartsWith(("c",), prefix), texts) is expected


def test_counts_of_nested_columns_prove_nothing_but_their_bounds_do():
    inside = PhysicalField("x", 3, ducklake_type("int32"))
    version = table(column("s", "struct", 2, column("x", "int32", 3)))
    stored = Layout((PhysicalField("s", 2, Kind.STRUCT, (inside,)),))
    file = DataFile(1, "/1.parquet", 1, 1, 0, 1, layout=stored)
    [group] = plan_scan(version, [file], {}).groups
    known = group, file, {3: {file.id: ColumnStats(3, 10, 0, 0, "1", "2")}}
    nine = ComparedValue(9, ducklake_type("int32"))

    assert may_match(IsNull(("s", "x")), known)
    assert may_match(IsNotNull(("s", "x")), known)
    assert not may_match(Comparison(Operator.EQ, ("s", "x"), nine), known)


def test_the_files_of_a_group_are_told_apart_by_their_statistics():
    layouts = [Layout((PhysicalField("c", 2, ducklake_type(kind)),)) for kind in ("int32", "int64")]
    files = [
        DataFile(n, f"/{n}.parquet", 1, 1, 0, 1, layout=layout)
        for n, layout in enumerate([*layouts, layouts[0]])
    ]
    [group] = plan_scan(table(column("c", "int64", 2)), files, {}).groups
    stats = {2: {0: stats_of("1", "5"), 1: stats_of("6", "9")}}

    assert matching_files(compare("=", 7, "int64"), group, stats) == {1, 2}
    assert matching_files(compare("=", 3, "int64"), group, stats) == {0, 2}
    assert matching_files(compare("=", 3, "int64"), group, {}) == {0, 1, 2}


KINDS = {
    "int32": st.integers(-5, 5),
    "float32": st.sampled_from([-0.0, 0.0, 0.5, 1.25, -3.0, math.inf, -math.inf, NAN]),
    "float64": st.sampled_from([-0.0, 0.0, 0.1, 1.1, -2.5, 1e300, math.inf, -math.inf, NAN]),
    "varchar": st.text("ab\u00e9\U0001f986", max_size=3),
    "boolean": st.booleans(),
    "blob": st.binary(max_size=2),
}


def order(value):
    """A key that sorts as Spark does: NaN after every number."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0.0 if is_nan else value)


def holds(predicate, row):
    """What Spark says of a row; NULL counts as no."""
    match predicate:
        case And(parts):
            return all(holds(p, row) for p in parts)
        case Or(parts):
            return any(holds(p, row) for p in parts)
        case Unknown():
            return True
        case IsNull():
            return row is None
        case IsNotNull():
            return row is not None
        case StartsWith(prefix=prefix):
            return row is not None and row.startswith(prefix)
        case In(literals=literals):
            return row is not None and any(order(x.value) == order(row) for x in literals)
        case Comparison(operator=op, literal=literal):
            return row is not None and COMPARE[op](order(row), order(literal.value))


COMPARE = {
    Operator.EQ: operator.eq, Operator.NE: operator.ne, Operator.LT: operator.lt,
    Operator.LE: operator.le, Operator.GT: operator.gt, Operator.GE: operator.ge,
}  # fmt: skip


@st.composite
def columns_and_predicates(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    rows = draw(st.lists(st.none() | KINDS[kind], max_size=4))
    literals = KINDS[kind].map(lambda v: ComparedValue(v, ducklake_type(kind)))
    path = st.just(("c",))
    leaves = [
        st.builds(Comparison, st.sampled_from(list(Operator)), path, literals),
        st.builds(In, path, st.lists(literals, max_size=2).map(tuple)),
        st.builds(IsNull, path),
        st.builds(IsNotNull, path),
        st.just(Unknown()),
    ]
    if kind == "varchar":
        leaves.append(st.builds(StartsWith, path, KINDS[kind]))
    trees = st.recursive(
        st.one_of(leaves),
        lambda t: st.one_of(
            st.builds(And, st.lists(t, min_size=1, max_size=3).map(tuple)),
            st.builds(Or, st.lists(t, min_size=1, max_size=3).map(tuple)),
        ),
        max_leaves=5,
    )
    return kind, rows, draw(trees), draw(st.sampled_from(["full", "no bounds", "no nan flag"]))


def statistics(kind, rows, care):
    """The statistics that DuckDB keeps of those rows, or part of them."""
    leaf = ducklake_type(kind)
    values = [r for r in rows if r is not None]
    plain = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
    texts = (None, None)
    if plain and care != "no bounds":
        texts = (bound_text(leaf, min(plain)), bound_text(leaf, max(plain)))
    nan = len(plain) < len(values) if kind.startswith("float") and care != "no nan flag" else None
    return ColumnStats(2, 10, len(values), len(rows) - len(values), *texts, nan)


@given(columns_and_predicates())
def test_no_file_with_a_matching_row_is_left_out(case):
    kind, rows, predicate, care = case
    known = known_of(kind, kind, statistics(kind, rows, care))

    if any(holds(predicate, row) for row in rows):
        assert may_match(predicate, known)
