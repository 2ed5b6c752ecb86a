"""The schema through time: lanes, places and words, compared with literals."""

from __future__ import annotations

from itertools import pairwise

import pytest

import shelduck
from shelduck.catalog.read.overview.lake_tables import ColumnState
from shelduck.web.history.lanes import (
    Family,
    changed_at,
    column_changes,
    family,
    lanes,
    order_changes,
)
from shelduck.web.history.picture import HEAD, LOW, TALL, Axis, Scale, picture, readable_scale
from tests.support.html import of_class, rows, words


def state(number, begin, end, name="a", type_="int32", *, parent=None, default=None, nullable=True):
    return ColumnState(number, parent, begin, end, number, name, type_, default, nullable)


def drawn(
    history, first, last, scale=Scale.SNAPSHOTS, *, opened=frozenset(), chosen=None, moved=()
):
    axis = Axis(first, last, changed_at(history), scale)
    return picture(lanes(history, moved), axis, opened, chosen)


def bars(row):
    return [(b.segment.name, b.segment.type, b.x, b.width) for b in row.bars]


def test_renames_and_types_are_segments_of_one_lane():
    history = [
        state(1, 0, 20, "id"),
        state(1, 20, 50, "number"),
        state(1, 50, 60, "number", "int64"),
        state(1, 60, None, "number", "int64", nullable=False),
    ]
    found = drawn(history, 0, 99)
    [row] = found.rows
    assert (row.lane.name, row.lane.fate) == ("id", "→ number")
    assert bars(row) == [
        ("id", "int32", 0.0, 20.0),
        ("number", "int32", 20.0, 30.0),
        ("number", "int64", 50.0, 50.0),
    ]
    assert [b.renamed for b in row.bars] == [False, True, False]
    assert [(m.x, m.told) for m in row.marks] == [(60.0, "not null")]
    assert row.end is None
    assert [s.snapshot for s in found.steps] == [0, 20, 50, 60]
    assert [(s.x, s.width) for s in found.steps] == [
        (0.0, 20.0), (20.0, 30.0), (50.0, 10.0), (60.0, 40.0),
    ]  # fmt: skip


def test_a_column_that_comes_back_has_a_lane_of_its_own():
    history = [state(1, 0, None, "id"), state(2, 0, 40, "v"), state(3, 70, None, "v", "varchar")]
    found = drawn(history, 0, 99)
    assert [(r.lane.id, r.lane.name, r.end, r.y, r.height) for r in found.rows] == [
        (1, "id", None, HEAD, LOW),
        (2, "v", 40.0, HEAD + LOW, LOW),
        (3, "v", None, HEAD + 2 * LOW, LOW),
    ]
    assert found.rows[1].end_text == "dropped in 40"
    assert [r.lane.fate for r in found.rows] == ["", "dropped", ""]
    assert bars(found.rows[2]) == [("v", "varchar", 70.0, 30.0)]
    assert found.height == HEAD + 3 * LOW + 5


def test_a_restored_column_has_a_gap_in_its_lane():
    history = [state(1, 0, 10, "v"), state(1, 50, None, "v")]
    [row] = drawn(history, 0, 99).rows
    assert bars(row) == [("v", "int32", 0.0, 10.0), ("v", "int32", 50.0, 50.0)]
    assert row.end is None


def test_a_converted_column_is_followed_by_its_successor():
    history = [
        state(1, 0, 50, "v", "varchar"),
        state(2, 0, None, "w"),
        state(7, 50, None, "v", "int32"),
    ]
    found = drawn(history, 0, 99, moved=[(1, 7)])
    assert [r.lane.id for r in found.rows] == [1, 7, 2]
    assert found.rows[0].end_text == "converted, now column 7"
    assert [r.lane.fate for r in found.rows] == ["now column 7", "", ""]


def test_a_column_that_an_undo_brought_back_keeps_its_place():
    history = [
        *(state(1, 0, 50, "v", "varchar"), state(1, 80, None, "v", "varchar")),
        state(2, 0, None, "w"),
        state(7, 50, 80, "v", "int32"),
    ]
    found = drawn(history, 0, 99, moved=[(1, 7), (7, 1)])
    assert [r.lane.id for r in found.rows] == [1, 7, 2]
    assert [r.end is None for r in found.rows] == [True, False, True]
    assert found.rows[1].end_text == "converted, now column 1"


NESTED = [
    state(1, 0, None, "s", "struct"),
    state(2, 0, 30, "x", parent=1),
    state(2, 30, None, "y", parent=1),
    state(3, 60, None, "l", "list", parent=1),
    state(4, 60, None, "element", parent=3),
]


def test_nested_fields_fold_and_leave_marks():
    [row] = drawn(NESTED, 0, 99).rows
    assert (row.lane.name, row.is_open, row.height) == ("s", False, TALL)
    assert [(m.x, m.told, m.text) for m in row.marks] == [
        (30.0, "changes of x", "changes of x"),
        (60.0, "changes of element, l", "changes of element, l"),
    ]

    opened = drawn(NESTED, 0, 99, opened={1})
    assert [(r.lane.path, r.lane.depth, r.is_open) for r in opened.rows] == [
        (("s",), 0, True),
        (("s", "x"), 1, None),
        (("s", "l"), 1, False),
    ]
    assert opened.rows[0].marks == ()
    every = drawn(NESTED, 0, 99, opened=None)
    assert every.rows[-1].lane.path == ("s", "l", "element")
    assert [r.lane.depth for r in every.rows] == [0, 1, 1, 2]
    assert drawn(NESTED, 0, 99, opened={3}).rows[0].is_open is False


def test_defaults_and_not_null_are_marks_from_the_beginning_on():
    history = [
        state(1, 0, 20, default="'x'", nullable=False),
        state(1, 20, 40, default="'y'", nullable=False),
        state(1, 40, None),
    ]
    [row] = drawn(history, 0, 99).rows
    assert [(m.x, m.told) for m in row.marks] == [
        (0.0, "default 'x', not null"),
        (20.0, "default 'y'"),
        (40.0, "no default, nullable"),
    ]
    crowded = [state(1, 0, 5, default="'x'"), state(1, 5, None, default="'y'")]
    [row] = drawn(crowded, 0, 99).rows
    assert [m.text for m in row.marks] == ["", "default 'y'"]


def test_a_thousand_snapshots_are_exact():
    history = [state(1, n, n + 1, f"v{n}") for n in range(999)] + [state(1, 999, None, "v999")]
    found = drawn(history, 0, 999)
    shapes = found.rows[0].bars
    assert len(shapes) == 1000
    assert [(b.x, b.width) for b in shapes[:3]] == [(0.0, 0.1), (0.1, 0.1), (0.2, 0.1)]
    assert (shapes[999].x, shapes[999].width) == (99.9, 0.1)
    assert sum(round(b.width * 10) for b in shapes) == 1000
    assert all(round(a.x + a.width - b.x, 3) == 0 for a, b in pairwise(shapes))
    labels = [s.snapshot for s in found.steps if s.has_label]
    assert labels[:3] == [0, 42, 84]
    assert len(labels) == 24

    zoomed = drawn(history, 500, 509)
    assert bars(zoomed.rows[0])[0] == ("v500", "int32", 0.0, 10.0)
    assert bars(zoomed.rows[0])[-1] == ("v509", "int32", 90.0, 10.0)
    assert [s.snapshot for s in zoomed.steps] == list(range(500, 510))


def test_a_range_cuts_segments_and_leaves_out_other_lanes():
    history = [state(1, 0, None, "id"), state(2, 0, 40, "old"), state(3, 80, None, "new")]
    found = drawn(history, 50, 69)
    assert [r.lane.name for r in found.rows] == ["id"]
    [bar] = found.rows[0].bars
    assert (bar.x, bar.width, bar.begins, bar.ends) == (0.0, 100.0, False, False)
    assert found.steps == ()
    ending = drawn(history, 30, 49).rows[1]
    assert (bars(ending), ending.end) == ([("old", "int32", 0.0, 50.0)], 50.0)
    assert [r.lane.name for r in drawn(history, 40, 49).rows] == ["id"]


def test_by_change_every_change_has_the_same_width():
    history = [state(1, 3, 5, "a"), state(1, 5, 1000, "b"), state(1, 1000, None, "c")]
    found = drawn(history, 3, 2000, Scale.CHANGES)
    assert [(x, w) for _, _, x, w in bars(found.rows[0])] == [
        (0.0, 33.3333), (33.3333, 33.3334), (66.6667, 33.3333),
    ]  # fmt: skip
    axis = Axis(10, 20, [12, 15, 30], Scale.CHANGES)
    assert [axis.place(n) for n in (5, 10, 11, 12, 14, 15, 20, 21, 99)] == [
        0.0, 0.0, 0.0, 33.3333, 33.3333, 66.6667, 66.6667, 100.0, 100.0,
    ]  # fmt: skip
    assert axis.changes == [12, 15]


@pytest.mark.parametrize(
    ("begin", "end", "shown"),
    [(20, None, True), (21, None, False), (0, 10, False), (0, 11, True), (12, 13, True)],
)
def test_a_part_is_on_the_line_if_one_of_its_snapshots_is(begin, end, shown):
    assert Axis(10, 20, [], Scale.SNAPSHOTS).shows(begin, end) is shown


@pytest.mark.parametrize(
    ("changes", "scale"),
    [
        ([], Scale.SNAPSHOTS),
        ([0, 20, 90], Scale.SNAPSHOTS),
        ([0, 2, 90], Scale.SNAPSHOTS),
        ([0, 1, 90], Scale.CHANGES),
        ([0, 50, 99], Scale.CHANGES),
    ],
)
def test_the_first_scale_is_the_one_that_can_be_read(changes, scale):
    assert readable_scale(0, 99, changes) is scale


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("int32", Family.NUMBER),
        ("uint128", Family.NUMBER),
        ("decimal(10,2)", Family.NUMBER),
        ("float64", Family.NUMBER),
        ("interval", Family.TIME),
        ("timestamptz", Family.TIME),
        ("date", Family.TIME),
        ("varchar", Family.TEXT),
        ("json", Family.TEXT),
        ("struct", Family.NESTED),
        ("list", Family.NESTED),
        ("map", Family.NESTED),
        ("uuid", Family.OTHER),
        ("boolean", Family.OTHER),
        ("blob", Family.OTHER),
    ],
)
def test_types_have_families(name, expected):
    assert family(name) is expected


def test_the_chosen_snapshot_has_its_label_and_others_make_room():
    history = [state(1, n, n + 1, f"v{n}") for n in (0, 1, 50)]
    steps = drawn(history, 0, 99, chosen=1).steps
    assert [(s.snapshot, s.has_label, s.is_chosen) for s in steps] == [
        (0, False, False),
        (1, True, True),
        (2, False, False),
        (50, True, False),
        (51, False, False),
    ]


def test_changes_are_told_once():
    before = [
        state(1, 0, 9, "s", "struct"),
        state(2, 0, 9, "x", parent=1),
        state(3, 0, 9, "gone", "struct"),
        state(4, 0, 9, "below", parent=3),
        state(5, 0, 9, "v", "varchar"),
    ]
    after = [
        state(1, 9, None, "s", "struct"),
        state(2, 9, None, "y", parent=1, type_="int64"),
        state(6, 9, None, "made", "list"),
        state(7, 9, None, "element", parent=6),
        state(8, 9, None, "v", "decimal(9,2)", default="1.00", nullable=False),
    ]
    assert [str(c) for c in column_changes(before, after, [(5, 8)])] == [
        "renamed s.x to y",
        "changed type of s.y int32 → int64",
        "dropped gone struct",
        "added made list",
        "converted v varchar → decimal(9,2)",
        "set the default of v to 1.00",
        "set NOT NULL on v",
    ]
    assert column_changes(before, before) == []


def test_another_order_is_told_by_parent():
    def placed(*orders):
        return [
            ColumnState(n, parent, 0, None, order, name, "int32", None, nullable=True)
            for n, parent, order, name in orders
        ]

    before = placed((1, None, 1, "a"), (2, None, 2, "s"), (3, 2, 1, "x"), (4, 2, 2, "y"))
    after = placed((1, None, 5, "a"), (2, None, 6, "s"), (3, 2, 9, "x"), (4, 2, 8, "y"))
    assert [str(c) for c in order_changes(before, after)] == ["changed the order of columns in s"]
    assert order_changes(before, before) == []


@pytest.fixture
def story(lake, sql):
    """Snapshots 1 to 5: made, renamed and added, retyped, default and NOT NULL, dropped."""
    sql("CREATE TABLE t (id INT NOT NULL, s STRUCT<x: INT>, old STRING)")
    with shelduck.connect(lake.url, author="Mara") as connected:
        with connected.transaction("names are in English") as tx:
            tx.table("t").alter(
                shelduck.rename_column("old", "ancient"), shelduck.add_column("c", "string")
            )
        connected.execute("ALTER TABLE t ALTER COLUMN id TYPE BIGINT, ADD COLUMN s.y DATE")
        connected.execute("ALTER TABLE t ALTER COLUMN c SET DEFAULT '??', RENAME COLUMN id TO nr")
        connected.execute("ALTER TABLE t DROP COLUMN ancient")
        connected.execute("CREATE TABLE other (a INT)")
    return f"/tables/{lake.table('t').id}"


def test_the_page_draws_the_story(page, story):
    found = page.tree(f"{story}?open=all&scale=snapshots")
    assert [words(li) for li in of_class(found, "lanes")[0]] == [
        "id → nr 1", "▾Fold s 2", "x 3", "y 6", "old → ancient, dropped 4", "c 5",
    ]  # fmt: skip
    shapes = [
        (words(s.find("title")), s.get("x"), s.get("width"), s.get("y"))
        for s in of_class(of_class(found, "story-svg")[0], "seg")
    ]
    assert shapes == [
        ("id int32, from snapshot 1 to before 3", "0.0%", "33.3333%", "51"),
        ("id int64, from snapshot 3 to before 4", "33.3333%", "16.6667%", "51"),
        ("nr int64, from snapshot 4", "50.0%", "50.0%", "51"),
        ("s struct, from snapshot 1", "0.0%", "100.0%", "103"),
        ("x int32, from snapshot 1", "0.0%", "100.0%", "137"),
        ("y date, from snapshot 3", "33.3333%", "66.6667%", "171"),
        ("old varchar, from snapshot 1 to before 2", "0.0%", "16.6667%", "205"),
        ("ancient varchar, from snapshot 2 to before 5", "16.6667%", "50.0%", "205"),
        ("c varchar, from snapshot 2", "16.6667%", "83.3333%", "239"),
    ]
    [end] = of_class(found, "end")
    assert (end.get("x"), words(end)) == ("66.6667%", "dropped in 5")
    marks = [(words(m.find("title")), m.get("x")) for m in of_class(found, "marks")]
    assert marks == [("not null in snapshot 1", "0.0%"), ("default '??' in snapshot 4", "50.0%")]
    steps = of_class(found, "step")
    assert [s.get("id") for s in steps] == ["at-1", "at-2", "at-3", "at-4", "at-5"]
    assert steps[1].get("href") == f"{story}?at=2&open=all&scale=snapshots"
    assert steps[1].get("title") == "Snapshot 2: renamed old to ancient, added c varchar"
    [svg] = of_class(found, "story-svg")
    assert words(svg.find("title")) == "Columns of main.t from snapshot 1 to 6"
    assert "One lane for each of 6 columns; 5 snapshots changed them." in words(svg.find("desc"))


def test_a_snapshot_shows_what_changed_who_and_why_and_the_schema_then(page, story):
    found = page.tree(f"{story}?at=2")
    text = words(found)
    assert "Snapshot 2" in text
    assert "who Mara why names are in English" in text
    assert [words(li) for ul in of_class(found, "changes")[:1] for li in ul] == [
        "renamed old to ancient", "added c varchar",
    ]  # fmt: skip
    assert rows(found, "Columns at snapshot 2") == [
        ["id", "int32", "no", "", "1"],
        ["s", "struct", "yes", "", "2"],
        ["x", "int32", "yes", "", "3"],
        ["ancient", "varchar", "yes", "", "4"],
        ["c", "varchar", "yes", "", "5"],
    ]
    links = {a.get("id"): a.get("href") for a in found.iter("a")}
    assert (links["older"], links["newer"]) == (f"{story}?at=1", f"{story}?at=3")
    listed = [(line[0], line[3]) for line in rows(found, "Changes of the columns")]
    assert listed == [
        ("5", "dropped ancient varchar"),
        ("4", "renamed id to nr set the default of c to '??'"),
        ("3", "changed type of id int32 → int64 added s.y date"),
        ("2", "renamed old to ancient added c varchar"),
        ("1", "added id int32 NOT NULL added s struct added old varchar"),
    ]


def test_a_range_is_zoomed_and_kept_by_the_links(page, story):
    found = page.tree(f"{story}?from=3&to=4&scale=snapshots")
    assert [s.get("id") for s in of_class(found, "step")] == ["at-3", "at-4"]
    assert of_class(found, "step")[0].get("href") == f"{story}?at=3&from=3&scale=snapshots&to=4"
    inputs = {i.get("name"): i.get("value") for i in found.iter("input")}
    assert inputs == {"from": "3", "to": "4", "scale": "snapshots"}
    links = {a.get("id"): a.get("href") for a in found.iter("a")}
    assert links["zoom-wider"] == f"{story}?from=2&scale=snapshots&to=5"
    assert links["zoom-earlier"] == f"{story}?from=2&scale=snapshots&to=3"
    assert links["zoom-later"] == f"{story}?from=4&scale=snapshots&to=5"
    assert "zoom-closer" not in links
    refused = page.text(f"{story}?from=4&to=3", 400)
    assert "the range from snapshot 4 to 3 is empty; swap the two numbers" in refused
    assert [s.get("id") for s in of_class(page.tree(f"{story}?from=0&to=99"), "step")][:1] == [
        "at-1"
    ]


def test_nested_columns_fold_by_links(page, story):
    closed = page.tree(story)
    links = {a.get("id"): a.get("href") for a in closed.iter("a")}
    assert [words(li) for li in of_class(closed, "lanes")[0]] == [
        "id → nr 1",
        "▸Unfold s 2",
        "old → ancient, dropped 4",
        "c 5",
    ]
    assert links["fold-2"] == f"{story}?open=2"
    assert links["fold-all"] == f"{story}?open=all"
    opened = page.tree(f"{story}?open=2")
    assert {a.get("id"): a.get("href") for a in opened.iter("a")}["fold-2"] == story
    assert "x 3" in [words(li) for li in of_class(opened, "lanes")[0]]
    assert page.tree(f"{story}?open=x,²,999") is not None


def test_expired_snapshots_keep_their_places(page, story, lake):
    with lake.store.write() as connection:
        for name in ("ducklake_snapshot", "ducklake_snapshot_changes"):
            connection.exec_driver_sql(f"DELETE FROM {name} WHERE snapshot_id IN (1, 2)")
    text = words(page.tree(f"{story}?at=2"))
    assert "This snapshot has expired: its time, author and message are gone." in text
    assert "renamed old to ancient" in text


def test_names_of_the_table_are_part_of_its_story(page, sql):
    sql("CREATE TABLE t (a INT)", "ALTER TABLE t RENAME TO u", "ALTER TABLE u ADD COLUMN b INT")
    number = page.id_of("u")
    found = words(page.tree(f"/tables/{number}?at=2"))
    assert "renamed the table to main.u" in found
