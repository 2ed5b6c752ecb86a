"""Nested values that DuckDB itself turned into text are read back as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shelduck.model.files.duckdb_text import TEXT_FORM, nested_text, parse_nested, survives
from shelduck.model.tables.schema import new_field
from shelduck.model.types.data_types import DataType, List, Map, Member, Primitive, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

VARCHAR, INT, BLOB = Primitive("varchar"), Primitive("int64"), Primitive("blob")
DUCKDB = {"varchar": "VARCHAR", "int64": "BIGINT", "blob": "BLOB"}
# DuckDB's text marks quotes only from 0x20 on; NUL cannot be in a literal.
AWKWARD = st.sampled_from(
    ["NULL", "null", "'", '"', "\\", "\\'", " a", "a ", "[", "{k=v}", ", ", "", "]", "}", "\\}"]
)
TEXTS = AWKWARD | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8
)
NAMES = st.lists(
    st.sampled_from(["a", "b c", "it's", 'q"q', "back\\slash", "é", "x,y", "n.m", "NULL"]),
    min_size=1,
    max_size=3,
    unique=True,
)


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    return NAMES.flatmap(
        lambda names: st.tuples(*(inner for _ in names)).map(
            lambda kinds: Struct(tuple(map(Member, names, kinds)))
        )
    )


LEAVES: st.SearchStrategy[DataType] = st.sampled_from([VARCHAR, INT, BLOB])
NESTED = st.recursive(
    LEAVES,
    lambda inner: inner.map(List) | st.builds(Map, LEAVES, inner) | structs(inner),
    max_leaves=6,
).filter(lambda kind: not isinstance(kind, Primitive))


def values(kind: DataType) -> st.SearchStrategy[Any]:
    if isinstance(kind, List):
        return st.none() | st.lists(values(kind.element), max_size=3)
    if isinstance(kind, Map):
        pair = st.tuples(not_null(kind.key), values(kind.value))
        return st.none() | st.lists(pair, max_size=3, unique_by=lambda p: p[0])
    if isinstance(kind, Struct):
        return st.none() | st.fixed_dictionaries({m.name: values(m.type) for m in kind.members})
    return st.none() | not_null(kind)


def not_null(kind: DataType) -> st.SearchStrategy[Any]:
    if kind == INT:
        return st.integers(-(2**63), 2**63 - 1).map(str)
    return st.binary(max_size=6) if kind == BLOB else TEXTS


def quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, mark * 2) + mark


def type_sql(kind: DataType) -> str:
    if isinstance(kind, List):
        return f"{type_sql(kind.element)}[]"
    if isinstance(kind, Map):
        return f"MAP({type_sql(kind.key)}, {type_sql(kind.value)})"
    if isinstance(kind, Struct):
        inside = ", ".join(f"{quoted(m.name, chr(34))} {type_sql(m.type)}" for m in kind.members)
        return f"STRUCT({inside})"
    return DUCKDB[str(kind)]


def value_sql(kind: DataType, value: Any) -> str:
    if value is None:
        return f"NULL::{type_sql(kind)}"
    if isinstance(kind, List):
        inside = ", ".join(value_sql(kind.element, v) for v in value)
        return f"[{inside}]::{type_sql(kind)}"
    if isinstance(kind, Map):
        keys = value_sql(List(kind.key), [k for k, _ in value])
        return f"MAP({keys}, {value_sql(List(kind.value), [v for _, v in value])})"
    if isinstance(kind, Struct):
        inside = (f"{quoted(m.name, chr(34))} := {value_sql(m.type, value[m.name])}"
                  for m in kind.members)  # fmt: skip
        return f"struct_pack({', '.join(inside)})"
    if kind == BLOB:
        return f"unhex('{value.hex()}')"
    return value if kind == INT else quoted(value, "'")


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_what_duckdb_casts_to_text_is_read_back_as_it_was(connection, data):
    kind = data.draw(NESTED)
    value = data.draw(values(kind).filter(lambda v: v is not None))
    [(text,)] = connection.execute(f"SELECT ({value_sql(kind, value)})::VARCHAR").fetchall()

    assert parse_nested(new_field("c", kind, 1), text) == value


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_duckdb_reads_the_text_that_we_write_as_the_value_it_was(connection, data):
    kind = data.draw(NESTED)
    value = data.draw(values(kind).filter(lambda v: v is not None))
    column = new_field("c", kind, 1)
    assume(survives(column, value))
    text = TEXT_FORM + nested_text(column, value)

    query = f"SELECT (?::VARCHAR)::{type_sql(kind)} IS NOT DISTINCT FROM {value_sql(kind, value)}"
    assert connection.execute(query, [text]).fetchall() == [(True,)]
    assert parse_nested(column, text, sql_structs=True) == value
