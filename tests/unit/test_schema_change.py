"""What each schema change does to the columns, what it refuses, and the laws that always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shelduck.errors import AlreadyExists, InvalidRequest, NotFound, ShelduckError, Unsupported
from shelduck.model.changes.definition import Position
from shelduck.model.changes.schema_change import (
    AddColumn,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SchemaDraft,
    SetComment,
    SetDefault,
    SetNullable,
)
from shelduck.model.tables.schema import Default, Schema, new_schema
from shelduck.model.text.names import split_name
from shelduck.model.types.data_types import Member, parse_type
from tests.support.lake import apply_changes

FIRST = Position()
BASE = {
    "a": "int",
    "b": "string",
    "s": "struct<f: int, g: string>",
    "l": "array<struct<e: int>>",
    "m": "map<string, struct<v: float>>",
    "x": "float",
}


def draft(kinds: dict[str, str] | None = None) -> SchemaDraft:
    made = new_schema([Member(n, parse_type(k)) for n, k in (kinds or BASE).items()])
    return SchemaDraft(made, max(f.id for f in made.walk()) + 1, {})


def after(*changes: SchemaChange, of: SchemaDraft | None = None) -> SchemaDraft:
    return apply_changes(of or draft(), changes, "main.t")


def add(path: str, kind: str, default: str | None = None, **rest: object) -> AddColumn:
    value = None if default is None else Default(default)
    return AddColumn(split_name(path), parse_type(kind), value, **rest)


def drop(path: str) -> DropColumn:
    return DropColumn(split_name(path))


def rename(path: str, name: str) -> RenameColumn:
    return RenameColumn(split_name(path), name)


def retype(path: str, kind: str) -> ChangeType:
    return ChangeType(split_name(path), parse_type(kind))


def move(path: str, position: Position) -> MoveColumn:
    return MoveColumn(split_name(path), position)


def columns(of: SchemaDraft, path: str | None = None) -> list[tuple[int, str, int]]:
    """Id, name and order of the columns, or of the children of one."""
    fields = of.columns.fields if path is None else of.columns.get(split_name(path)).children
    return [(f.id, f.name, f.order) for f in fields]


def type_of(of: SchemaDraft, path: str) -> str:
    return str(of.columns.get(split_name(path)).type)


def refusal(
    kind: type[ShelduckError], *changes: SchemaChange, of: SchemaDraft | None = None
) -> str:
    with pytest.raises(kind) as caught:
        after(*changes, of=of)
    assert type(caught.value) is kind
    return str(caught.value)


# Adding


def test_a_column_is_added_at_the_end_with_an_id_never_used():
    changed = after(add("n", "int"))

    assert columns(changed)[-1] == (14, "n", 14)
    assert changed.next_id == 15
    assert changed.columns.get(("n",)).initial_default is None


def test_a_default_is_what_old_and_new_rows_read_in_the_catalogs_writing():
    field = after(add("n", "decimal(5,2)", "1.5")).columns.get(("n",))

    assert (field.initial_default, field.default) == ("1.50", Default("1.50"))


@pytest.mark.parametrize(
    ("parent", "kind"),
    [
        ("s", "struct<f: int32, g: varchar, n: int64>"),
        ("l.element", "struct<e: int32, n: int64>"),
        ("m.value", "struct<v: float32, n: int64>"),
    ],
)
def test_a_field_is_added_to_a_struct_wherever_it_is(parent, kind):
    changed = after(add(f"{parent}.n", "bigint", "7"))

    assert type_of(changed, parent) == kind
    assert columns(changed, parent)[-1] == (14, "n", 14)
    assert changed.columns.get(split_name(f"{parent}.n")).initial_default == "7"


def test_an_added_struct_takes_ids_for_all_its_fields():
    changed = after(add("n", "struct<p: int, q: array<int>>"), add("o", "int"))

    assert [f.id for f in changed.columns.get(("n",)).walk()] == [14, 15, 16, 17]
    assert changed.columns.get(("o",)).id == 18


def test_adding_if_not_exists_changes_nothing_when_it_does():
    assert after(add("A", "string", if_not_exists=True)) == draft()


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (FIRST, [(4, "n", 0), (1, "a", 1), (2, "b", 2), (3, "c", 3)]),
        (Position("a"), [(1, "a", -1), (4, "n", 0), (2, "b", 2), (3, "c", 3)]),
        (Position("B"), [(1, "a", -2), (2, "b", -1), (4, "n", 0), (3, "c", 3)]),
        (Position("c"), [(1, "a", 1), (2, "b", 2), (3, "c", 3), (4, "n", 4)]),
    ],
)
def test_a_column_is_added_where_it_is_wanted(position, expected):
    abc = draft({"a": "int", "b": "int", "c": "int"})

    assert columns(after(add("n", "int", position=position), of=abc)) == expected


def test_a_gap_in_the_orders_is_used_before_anything_is_renumbered():
    gap = after(drop("b"), of=draft({"a": "int", "b": "int", "c": "int"}))

    assert columns(after(add("n", "int", position=Position("a")), of=gap)) == [
        (1, "a", 1),
        (4, "n", 2),
        (3, "c", 3),
    ]


def test_orders_stay_below_the_ids_of_columns_that_come_later():
    abc = draft({"a": "int", "b": "int", "c": "int"})
    last = after(move("a", Position("c")), of=abc)
    again = after(move("b", Position("a")), of=last)

    assert columns(last) == [(2, "b", -1), (3, "c", 0), (1, "a", 1)]
    assert columns(again) == [(3, "c", 0), (1, "a", 1), (2, "b", 2)]
    assert columns(after(move("c", Position("b")), of=again)) == columns(abc)


def test_a_field_is_added_first_in_its_struct():
    assert columns(after(add("s.n", "int", position=FIRST)), "s") == [
        (14, "n", 3),
        (4, "f", 4),
        (5, "g", 5),
    ]


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (add("A", "int"), AlreadyExists, "column 'A' already exists in main.t"),
        (add("s.G", "int"), AlreadyExists, "column 's.G' already exists in main.t"),
        (
            add("l.n", "int"),
            InvalidRequest,
            (
                "l of main.t is array<struct<e: int32>>: only structs have fields to add, drop or"
                " rename"
            ),
        ),
        (
            add("m.key.n", "int"),
            InvalidRequest,
            ("m.key of main.t is varchar: only structs have fields to add, drop or rename"),
        ),
        (
            add("q.n", "int"),
            NotFound,
            "column 'q' does not exist in main.t; existing columns: 'a', 'b', 's', 'l', 'm', 'x'",
        ),
        (
            add("n", "int", nullable=False),
            InvalidRequest,
            (
                "cannot add column n as NOT NULL to main.t: existing rows would hold NULL; give a"
                " literal DEFAULT (and only top-level columns can be NOT NULL)"
            ),
        ),
        (
            add("s.n", "int", "1", nullable=False),
            InvalidRequest,
            (
                "cannot add column s.n as NOT NULL to main.t: existing rows would hold NULL; give"
                " a literal DEFAULT (and only top-level columns can be NOT NULL)"
            ),
        ),
        (
            add("n", "varchar", "NULL"),
            Unsupported,
            (
                "the text 'NULL' cannot be the default of n of main.t: DuckLake writes it for"
                " columns without a default"
            ),
        ),
        (
            AddColumn(("n",), parse_type("uuid"), Default("uuid()", literal=False)),
            Unsupported,
            (
                "cannot add column n to main.t with the default uuid(): existing rows need one"
                " value, which only constants, current_timestamp() and current_date() give; add the"
                " column with a literal default, then SET DEFAULT"
            ),
        ),
        (
            add("n", "int", "1.5"),
            InvalidRequest,
            (
                "cannot set the default '1.5' of n of main.t: '1.5' is not a value of type int32:"
                " expected a whole number"
            ),
        ),
        (
            add("n", "tinyint", "128"),
            InvalidRequest,
            (
                "cannot set the default '128' of n of main.t: '128' is not a value of type int8:"
                " the range is -128 to 127"
            ),
        ),
        (
            add("n", "array<int>", "[1]"),
            Unsupported,
            (
                "cannot set a default for n of main.t, which is array<int32>: DuckLake supports"
                " no defaults for structs, lists and maps; set the default of a field of the"
                " struct, or leave it NULL"
            ),
        ),
        (
            add("n", "int", position=Position("q")),
            InvalidRequest,
            "cannot place a column after 'q', which does not exist in main.t",
        ),
        (AddColumn(("",), parse_type("int")), InvalidRequest, "the name of a column is empty"),
    ],
)
def test_an_addition_that_cannot_be_is_refused(change, kind, message):
    assert refusal(kind, change) == message


# Dropping


def test_a_dropped_column_takes_its_fields_and_comments_along():
    changed = after(SetComment(("s", "f"), "x"), SetComment(("a",), "y"), drop("s"))

    assert changed.columns.names == ["a", "b", "l", "m", "x"]
    assert changed.comments == {1: "y"}


@pytest.mark.parametrize(
    ("path", "parent", "kind"),
    [("s.f", "s", "struct<g: varchar>"), ("S.G", "s", "struct<f: int32>")],
)
def test_a_field_is_dropped_from_its_struct(path, parent, kind):
    assert type_of(after(drop(path)), parent) == kind


def test_a_column_that_is_added_again_has_another_id():
    changed = after(drop("a"), add("a", "int"))

    assert columns(changed)[-1] == (14, "a", 14)


def test_dropping_if_exists_changes_nothing_when_it_does_not():
    assert after(DropColumn(("q",), if_exists=True)) == draft()


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("bb", NotFound, "column 'bb' does not exist in main.t; did you mean 'b'?"),
        ("s.q", NotFound, "column 's.q' does not exist in main.t; did you mean 's.g', 's.f'?"),
        (
            "l.element",
            InvalidRequest,
            (
                "l of main.t is array<struct<e: int32>>: only structs have fields to add, drop or"
                " rename"
            ),
        ),
        (
            "l.element.e",
            InvalidRequest,
            "cannot drop l.element.e: it is the last field of l.element of main.t",
        ),
    ],
)
def test_a_drop_that_cannot_be_is_refused(path, kind, message):
    assert refusal(kind, drop(path)) == message


def test_the_last_column_is_not_dropped():
    message = refusal(InvalidRequest, drop("a"), of=draft({"a": "int"}))

    assert message == "cannot drop a: it is the last column of main.t"


# Renaming


@pytest.mark.parametrize("path", ["a", "s", "s.f", "l.element.e", "m.value.v"])
def test_a_renamed_field_keeps_all_but_its_name(path):
    before = draft().columns.get(split_name(path))
    changed = after(rename(path, "new"))
    found = changed.columns.by_id(before.id)

    assert found is not None
    assert found.name == "new"
    assert (found.type, found.order, found.nullable) == (before.type, before.order, before.nullable)


def test_names_are_swapped_through_a_third_one():
    swapped = after(rename("a", "tmp"), rename("b", "a"), rename("tmp", "b"))

    assert columns(swapped)[:2] == [(1, "b", 1), (2, "a", 2)]


def test_a_rename_may_change_the_case_alone():
    assert columns(after(rename("a", "A")))[0] == (1, "A", 1)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (rename("a", "B"), AlreadyExists, "column 'B' already exists in main.t"),
        (rename("s.f", "g"), AlreadyExists, "column 'g' already exists in main.t"),
        (
            rename("a", ""),
            InvalidRequest,
            "cannot rename column a of main.t: the new name is empty",
        ),
        (
            rename("a", "__shelduck_x"),
            InvalidRequest,
            (
                "column name '__shelduck_x' of main.t is reserved, like all names that begin with"
                " __shelduck_ or _ducklake_internal_; choose another name"
            ),
        ),
        (
            rename("l.element", "item"),
            InvalidRequest,
            (
                "l of main.t is array<struct<e: int32>>: only structs have fields to add, drop or"
                " rename"
            ),
        ),
        (
            rename("q", "r"),
            NotFound,
            "column 'q' does not exist in main.t; existing columns: 'a', 'b', 's', 'l', 'm', 'x'",
        ),
    ],
)
def test_a_rename_that_cannot_be_is_refused(change, kind, message):
    assert refusal(kind, change) == message


# Types


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a", "int64"), ("s.f", "int64"), ("l.element.e", "int64"), ("m.value.v", "float64")],
)
def test_a_leaf_is_widened_wherever_it_is(path, kind):
    before = draft().columns.get(split_name(path))
    changed = after(retype(path, kind))

    assert type_of(changed, path) == kind
    assert changed.columns.get(split_name(path)).id == before.id


def test_only_a_promotion_that_moves_values_makes_bounds_unsafe():
    assert after(retype("a", "bigint")).unsafe_bounds == frozenset()
    assert after(retype("x", "double"), retype("m.value.v", "double")).unsafe_bounds == {13, 12}


def test_old_rows_keep_the_float_that_their_default_was():
    changed = after(add("n", "float", "1.1"), retype("n", "double")).columns.get(("n",))

    assert changed.initial_default == "1.100000023841858"
    assert changed.default == Default("1.1")


def test_a_struct_is_matched_with_its_new_type_by_name():
    changed = after(retype("s", "struct<n: array<int>, G: string, f: bigint>"))

    assert type_of(changed, "s") == "struct<f: int64, g: varchar, n: array<int32>>"
    assert columns(changed, "s") == [(4, "f", 4), (5, "g", 5), (14, "n", 14)]
    assert changed.next_id == 16


def test_a_struct_loses_what_its_new_type_does_not_name():
    assert columns(after(retype("s", "struct<g: string>")), "s") == [(5, "g", 5)]


def test_a_member_that_a_new_type_brings_goes_last_whatever_the_orders_are():
    moved = after(
        *(move(f"s.{name}", Position(other)) for name, other in [("f", "g"), ("g", "f")] * 6)
    )
    changed = after(retype("s", "struct<f: int, g: string, n: int>"), of=moved)

    orders = [order for _, _, order in columns(changed, "s")]
    assert [name for _, name, _ in columns(changed, "s")] == ["f", "g", "n"]
    assert orders == sorted(set(orders))


def test_structs_inside_lists_and_maps_are_matched_too():
    changed = after(
        retype("l", "array<struct<e: bigint, n: int>>"),
        retype("m", "map<string, struct<v: double, n: int>>"),
    )

    assert type_of(changed, "l") == "array<struct<e: int64, n: int32>>"
    assert type_of(changed, "m") == "map<varchar, struct<v: float64, n: int32>>"
    assert changed.unsafe_bounds == {12}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            retype("a", "smallint"),
            (
                "cannot change a of main.t from int32 to int16: int16 cannot hold every int32,"
                " and only widening works by metadata alone; add a column of the new type, fill"
                " it and drop the old one: ALTER TABLE main.t ADD COLUMN new_a SMALLINT"
            ),
        ),
        (
            retype("s.f", "string"),
            (
                "cannot change s.f of main.t from int32 to varchar: values of int32 are stored in"
                " another form than those of varchar, and only widening works by metadata alone;"
                " add a column of the new type, fill it and drop the old one"
            ),
        ),
        (
            retype("s", "struct<f: string>"),
            (
                "cannot change s.f of main.t from int32 to varchar: values of int32 are stored in"
                " another form than those of varchar, and only widening works by metadata alone;"
                " add a column of the new type, fill it and drop the old one"
            ),
        ),
        (
            retype("a", "struct<f: int>"),
            (
                "cannot change a of main.t from int32 to struct<f: int32>:"
                " a struct, list or map cannot be changed to or from another kind of type;"
                " add a new column and drop the old one"
            ),
        ),
        (
            retype("s", "int"),
            (
                "cannot change s of main.t from struct<f: int32, g: varchar> to int32:"
                " a struct, list or map cannot be changed to or from another kind of type;"
                " add a new column and drop the old one"
            ),
        ),
        (
            retype("l", "map<int, int>"),
            (
                "cannot change l of main.t from array<struct<e: int32>> to map<int32, int32>:"
                " a struct, list or map cannot be changed to or from another kind of type;"
                " add a new column and drop the old one"
            ),
        ),
        (
            retype("a", "array<int>"),
            (
                "cannot change a of main.t from int32 to array<int32>:"
                " a struct, list or map cannot be changed to or from another kind of type;"
                " add a new column and drop the old one"
            ),
        ),
    ],
)
def test_a_type_that_cannot_hold_the_old_values_is_refused(change, message):
    assert refusal(Unsupported, change) == message


def test_the_same_type_again_changes_nothing():
    assert after(retype("a", "int"), retype("s", "struct<f: int, g: string>")) == draft()


def test_a_struct_needs_a_field_in_its_new_type_that_it_has_or_gets():
    changed = after(retype("l", "array<struct<n: int>>"))

    assert columns(changed, "l.element") == [(14, "n", 14)]


# Defaults, NOT NULL, comments


def test_a_default_of_new_rows_leaves_old_rows_alone():
    field = after(add("n", "int", "1"), SetDefault(("n",), Default("2"))).columns.get(("n",))

    assert (field.initial_default, field.default) == ("1", Default("2"))


def test_a_default_may_be_an_expression_for_new_rows():
    change = SetDefault(("b",), Default("uuid()", literal=False))

    assert after(change).columns.get(("b",)).default == Default("uuid()", literal=False)


def test_a_default_is_taken_away_from_new_rows_only():
    field = after(add("n", "int", "1"), SetDefault(("n",), None)).columns.get(("n",))

    assert (field.initial_default, field.default) == ("1", None)


@pytest.mark.parametrize(
    ("path", "text", "kind", "message"),
    [
        (
            "a",
            "q",
            InvalidRequest,
            (
                "cannot set the default 'q' of a of main.t: 'q' is not a value of type int32:"
                " expected a whole number"
            ),
        ),
        (
            "s",
            "q",
            Unsupported,
            (
                "cannot set a default for s of main.t, which is struct<f: int32, g: varchar>:"
                " DuckLake supports no defaults for structs, lists and maps; set the default of a"
                " field of the struct, or leave it NULL"
            ),
        ),
        (
            "q",
            "1",
            NotFound,
            "column 'q' does not exist in main.t; existing columns: 'a', 'b', 's', 'l', 'm', 'x'",
        ),
    ],
)
def test_a_default_that_does_not_fit_is_refused(path, text, kind, message):
    assert refusal(kind, SetDefault((path,), Default(text))) == message


def test_a_column_that_becomes_not_null_has_to_be_checked():
    changed = after(SetNullable(("a",), nullable=False))

    assert changed.must_hold_no_null == {1}
    assert not changed.columns.get(("a",)).nullable


def test_not_null_that_comes_and_goes_needs_no_check():
    changed = after(SetNullable(("a",), nullable=False), SetNullable(("a",), nullable=True))

    assert changed == draft()


def test_not_null_twice_is_not_null():
    assert after(SetNullable(("a",), nullable=True)) == draft()


def test_a_nested_field_cannot_become_not_null():
    message = refusal(Unsupported, SetNullable(("s", "f"), nullable=False))

    assert message == (
        "cannot change NOT NULL of s.f of main.t: it is nested, and DuckLake supports NOT NULL"
        " only for top-level columns"
    )


def test_comments_are_set_replaced_and_taken_away():
    changed = after(
        SetComment((), "table"),
        SetComment(("a",), "one"),
        SetComment(("a",), "two"),
        SetComment(("s", "f"), "field"),
        SetComment(("s", "f"), None),
    )

    assert changed.comments == {None: "table", 1: "two"}


# Moving


@given(st.lists(st.tuples(st.sampled_from("abcdnop"), st.sampled_from("abcd")), max_size=6))
def test_an_order_that_duckdb_sets_meets_no_other(moves):
    """DuckDB gives a column that it alters or adds its id as its order."""
    found = draft({"a": "int", "b": "int", "c": "int", "d": "int"})
    for name, other in moves:
        known = [f.name for f in found.columns]
        if name == other or other not in known:
            continue
        if name == "p":
            found = after(drop(other), of=found) if len(known) > 1 else found
            continue
        place = Position(other) if name in "acn" else FIRST
        change = move(name, place) if name in known else add(name, "int", position=place)
        found = after(change, of=found)

    orders = [f.order for f in found.columns]
    assert orders == sorted(set(orders))
    others = {f.id: {g.order for g in found.columns} - {f.order} for f in found.columns}
    assert all(number not in taken for number, taken in others.items())
    assert max(orders) < found.next_id


@pytest.mark.parametrize(
    ("name", "position", "expected"),
    [
        ("c", FIRST, [(3, "c", 0), (1, "a", 1), (2, "b", 2)]),
        ("a", Position("b"), [(2, "b", 0), (1, "a", 1), (3, "c", 3)]),
        ("a", Position("C"), [(2, "b", -1), (3, "c", 0), (1, "a", 1)]),
        ("b", Position("a"), [(1, "a", 1), (2, "b", 2), (3, "c", 3)]),
        ("a", FIRST, [(1, "a", 1), (2, "b", 2), (3, "c", 3)]),
    ],
)
def test_a_column_moves_and_few_orders_change(name, position, expected):
    abc = draft({"a": "int", "b": "int", "c": "int"})

    assert columns(after(move(name, position), of=abc)) == expected


def test_a_field_moves_inside_its_struct():
    assert [n for _, n, _ in columns(after(move("s.g", FIRST)), "s")] == ["g", "f"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (move("a", Position("A")), "cannot move column a of main.t after itself"),
        (
            move("s.f", Position("a")),
            "cannot place a column after 'a', which does not exist in main.t",
        ),
        (
            move("l.element", FIRST),
            (
                "l of main.t is array<struct<e: int32>>: only structs have fields to add, drop or"
                " rename"
            ),
        ),
    ],
)
def test_a_move_that_cannot_be_is_refused(change, message):
    assert refusal(InvalidRequest, change) == message


# Texts, as plan_alter prints them


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (add("s.n", "int", "5"), "ADD COLUMN s.n int32 DEFAULT '5'"),
        (
            add("n", "int", "5", nullable=False, position=FIRST, comment="it's"),
            "ADD COLUMN n int32 NOT NULL DEFAULT '5' COMMENT 'it\\'s' FIRST",
        ),
        (add("n", "int", position=Position("a b")), "ADD COLUMN n int32 AFTER `a b`"),
        (drop("`a b`.c"), "DROP COLUMN `a b`.c"),
        (rename("a", "x y"), "RENAME COLUMN a TO `x y`"),
        (retype("l.element.e", "bigint"), "ALTER COLUMN l.element.e TYPE int64"),
        (SetDefault(("a",), Default("5")), "ALTER COLUMN a SET DEFAULT '5'"),
        (SetDefault(("a",), Default("uuid()", literal=False)), "ALTER COLUMN a SET DEFAULT uuid()"),
        (SetDefault(("a",), None), "ALTER COLUMN a DROP DEFAULT"),
        (SetNullable(("a",), nullable=True), "ALTER COLUMN a DROP NOT NULL"),
        (SetNullable(("a",), nullable=False), "ALTER COLUMN a SET NOT NULL"),
        (move("a", FIRST), "ALTER COLUMN a FIRST"),
        (move("a", Position("b")), "ALTER COLUMN a AFTER b"),
        (SetComment((), "it's"), "COMMENT ON TABLE IS 'it\\'s'"),
        (SetComment(("a",), None), "COMMENT ON COLUMN a IS NULL"),
    ],
)
def test_a_change_prints_as_its_statement(change, text):
    assert str(change) == text


# Laws

PATHS = ["a", "b", "c", "s", "s.f", "s.g", "s.c", "l", "l.element", "l.element.e", "l.element.c"]
POSITIONS = st.one_of(st.none(), st.just(FIRST), st.sampled_from("abc").map(Position))
CHANGES = st.one_of(
    st.builds(
        lambda path, kind, position: add(path, kind, position=position),
        st.sampled_from(PATHS),
        st.sampled_from(["int", "float", "struct<f: int, g: int>", "array<struct<e: int>>"]),
        POSITIONS,
    ),
    st.sampled_from(PATHS).map(drop),
    st.builds(rename, st.sampled_from(PATHS), st.sampled_from("abcsl")),
    st.builds(
        retype,
        st.sampled_from(PATHS),
        st.sampled_from(["bigint", "double", "struct<f: int, c: int>"]),
    ),
    st.builds(move, st.sampled_from(PATHS), POSITIONS.map(lambda p: p or FIRST)),
)


def applied(changes: list[SchemaChange]) -> list[tuple[SchemaDraft, SchemaDraft]]:
    """Each step that was not refused: the draft before and after it."""
    steps = []
    now = draft()
    for change in changes:
        try:
            then = after(change, of=now)
        except ShelduckError:
            continue
        steps.append((now, then))
        now = then
    return steps


def ids(columns: Schema) -> set[int]:
    return {f.id for f in columns.walk()}


@given(st.lists(CHANGES, max_size=12))
def test_an_id_is_never_used_again(changes):
    ever = ids(draft().columns)
    for before, then in applied(changes):
        new = ids(then.columns) - ids(before.columns)
        assert new.isdisjoint(ever)
        assert all(before.next_id <= i < then.next_id for i in new)
        ever |= new


@given(st.lists(CHANGES, max_size=12))
def test_siblings_have_distinct_names_and_rising_orders(changes):
    for _, then in applied(changes):
        for siblings in [then.columns.fields, *(f.children for f in then.columns.walk())]:
            orders = [f.order for f in siblings]
            assert orders == sorted(set(orders))
            names = [f.name.lower() for f in siblings]
            assert len(names) == len(set(names))


@given(st.lists(CHANGES, max_size=12))
def test_a_refused_change_among_others_leaves_nothing_behind(changes):
    before = draft()
    try:
        after(*changes, of=before)
    except ShelduckError:
        assert before == draft()


def test_what_is_no_change_is_refused() -> None:
    with pytest.raises(
        InvalidRequest, match=r"cannot alter main\.t: expected a change such as add_column"
    ):
        after("DROP COLUMN a")  # type: ignore[arg-type]
