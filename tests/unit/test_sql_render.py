"""CREATE TABLE texts and the way back through the parser."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from shelduck.doors.sql.parse import parse
from shelduck.model.tables.schema import Default, Field, FieldId, Kind, Schema
from shelduck.model.tables.table_version import PartitionColumn
from shelduck.model.text.names import quote_text
from shelduck.model.types.data_types import (
    Decimal,
    List,
    Map,
    Member,
    Primitive,
    Struct,
    parse_type,
    type_text,
)
from shelduck.objects.statement.create_table import CreateTableStatement
from shelduck.text.ddl.render import create_table_text
from shelduck.text.tokens.parts import NamedTable
from tests.support.scans import table


def leaf(number, name, kind, **more):
    return Field(FieldId(number), name, Primitive(kind), **more)


def test_a_table_is_written_with_sparks_words():
    columns = Schema(
        (
            leaf(1, "id", "int64", nullable=False),
            leaf(2, "at", "timestamptz", default=Default("now()", literal=False)),
            leaf(3, "local time", "timestamp"),
            leaf(4, "big", "uint64", default=Default("5")),
            leaf(5, "name", "varchar", default=Default("it's \\")),
            leaf(6, "on", "boolean", default=Default("true")),
            leaf(7, "n", "int32", default=Default("nextval('s')", literal=False)),
            Field(
                FieldId(8),
                "s",
                Kind.STRUCT,
                (leaf(9, "a", "int8"), leaf(10, "b.c", "blob", nullable=False)),
            ),
        )
    )
    comments = {None: "all of it", FieldId(1): "the key"}
    name = NamedTable(("main", "my table"))
    keys = (PartitionColumn(FieldId(3), "identity"),)
    known = replace(table(*columns), comments=comments, partition=keys)
    assert create_table_text(name, known) == (
        "CREATE TABLE main.`my table` (\n"
        "  id BIGINT NOT NULL COMMENT 'the key',\n"
        "  at TIMESTAMP DEFAULT NOW(),\n"
        "  `local time` TIMESTAMP_NTZ,\n"
        "  big UINT64 DEFAULT 5,\n"
        "  name STRING DEFAULT 'it\\'s \\\\',\n"
        "  on BOOLEAN DEFAULT true,\n"
        "  n INT /* DEFAULT nextval('s') in DuckDB */,\n"
        "  s STRUCT<a: TINYINT, `b.c`: BINARY NOT NULL>\n"
        ")\n"
        "PARTITIONED BY (`local time`)\n"
        "COMMENT 'all of it'"
    )


NAMES = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=8)
LEAVES = st.one_of(
    st.sampled_from(
        "boolean int8 int64 int128 uint16 float32 float64 date time timestamp timestamp_ns"
        " timestamptz timetz interval varchar json blob uuid variant".split()
    ).map(Primitive),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s))),
)


def structs(inside):
    return st.lists(
        st.tuples(NAMES, inside, st.booleans()),
        min_size=1,
        max_size=3,
        unique_by=lambda m: m[0].lower(),
    ).map(lambda members: Struct(tuple(Member(*m) for m in members)))


TYPES = st.recursive(
    LEAVES,
    lambda inside: st.one_of(
        inside.map(List), st.tuples(inside, inside).map(lambda p: Map(*p)), structs(inside)
    ),
    max_leaves=6,
)


@given(TYPES)
def test_a_type_reads_back(data_type):
    assert parse_type(type_text(data_type)) == data_type


@given(st.text(st.characters(blacklist_categories=("Cs",))))
def test_a_string_reads_back(text):
    (found,) = parse(f"COMMENT ON TABLE t IS {quote_text(text)}")
    assert found.changes[0].comment == text


@example(["t"], [("SELECT", Primitive("boolean"), False, None, None)], None)
@given(
    st.lists(NAMES, min_size=1, max_size=3),
    st.lists(
        st.tuples(NAMES, LEAVES, st.booleans(), st.none() | NAMES, st.none() | NAMES),
        min_size=1,
        max_size=4,
    ),
    st.none() | NAMES,
)
def test_a_table_reads_back(name, columns, comment):
    schema = Schema(
        tuple(
            Field(FieldId(n), c[0], c[1], nullable=c[2], default=c[3] and Default(c[3]))
            for n, c in enumerate(columns)
        )
    )
    comments = {FieldId(n): c[4] for n, c in enumerate(columns) if c[4] is not None}
    if comment is not None:
        comments[None] = comment
    known = replace(table(*schema), comments=comments)
    (found,) = parse(create_table_text(NamedTable(tuple(name)), known))
    assert isinstance(found, CreateTableStatement)
    assert found.name.parts == tuple(name)
    assert found.comment == comment
    assert [(c.name, c.type, c.nullable, c.comment) for c in found.columns] == [
        (c[0], c[1], c[2], c[4]) for c in columns
    ]
    assert [c.default for c in found.columns] == [c[3] and Default(c[3]) for c in columns]
