"""Values to text: the CREATE TABLE of a table, and types as Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.constraints import constraints_of
from shelduck.model.tables.keys import Aggregation, TableKeys, names_of, table_keys
from shelduck.model.tables.partition import named_keys, parse_sort_key
from shelduck.model.tables.properties import shown_properties
from shelduck.model.tables.rollup import RollupSpec
from shelduck.model.tables.schema import Default, Field, FieldId, Kind, Path, Schema, path_text
from shelduck.model.tables.table_version import PartitionColumn, TableVersion
from shelduck.model.text.names import quote_name, quote_text
from shelduck.model.types.data_types import DataType, Primitive, type_text
from shelduck.text.ddl.defaults import expression_for_spark
from shelduck.text.ddl.sorting import key_text
from shelduck.text.tokens.parts import NamedTable

_BARE = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NUMERIC = re.compile(r"u?int\d+|float\d+|decimal.*")


def create_table_text(
    name: NamedTable,
    table: TableVersion,
    rollups: Sequence[RollupSpec] = (),
    *,
    with_ids: bool = False,
) -> str:
    """Return the CREATE TABLE statement that makes a table like this one.

    Rollups that combine rows, and comments and defaults of struct fields, are statements of their
    own behind it. Types without a Spark word keep DuckLake's. A default that only DuckDB
    understands is a comment. ``with_ids`` adds the id of each column and struct field as a comment.
    """
    columns, comments, keys = table.columns, table.comments, table_keys(table)
    computed = computed_of(table.properties, table.full_name)
    constraints = constraints_of(table.properties, table.full_name).all
    partitioned_by, sorted_by = partition_texts(table), sort_texts(table)
    properties = shown_properties(table.properties, columns)
    how = {one.column: one.clause(columns) for one in computed}
    listed = _columns(columns, comments, keys, how, with_ids=with_ids)
    if constraints:
        listed[-1] += ","
        listed += [f"  {c.text(columns)}" + "," * (c != constraints[-1]) for c in constraints]
    inside = "\n".join(listed)
    text = f"CREATE TABLE {name} (\n{inside}\n)"
    if keys is not None:
        text += key_clauses(keys, columns)
    plain = [spec for spec in rollups if not spec.measures]
    if plain:
        text += f"\nROLLUP ({', '.join(map(_rollup, plain))})"
    if partitioned_by:
        text += f"\nPARTITIONED BY ({', '.join(partitioned_by)})"
    if sorted_by:
        text += f"\nSORTED BY ({', '.join(sorted_by)})"
    if None in comments:
        text += f"\nCOMMENT {quote_text(comments[None])}"
    if properties:
        told = (f"{quote_text(k)} = {quote_text(v)}" for k, v in properties.items())
        text += f"\nTBLPROPERTIES ({', '.join(told)})"
    more = [_materialized_view(name, spec) for spec in rollups if spec.measures]
    if keys is not None and keys.columns and not sorted_by:
        more.append(f"ALTER TABLE {name} RESET SORTED BY")
    details = [text for f in columns for text in _details(f, (), comments)]
    if details:
        more.append(f"ALTER TABLE {name} {', '.join(details)}")
    return ";\n".join([text, *more])


def partition_texts(table: TableVersion) -> list[str]:
    """Return the partition keys as in DDL; an unknown transform as it is stored."""
    return [_partition_text(table, key) for key in table.partition]


def _partition_text(table: TableVersion, key: PartitionColumn) -> str:
    try:
        return "".join(map(str, named_keys([key], table.columns)))
    except Unsupported:
        column = table.columns.by_id(key.column_id)
        return f"{key.transform}({quote_name(column.name) if column else key.column_id})"


def sort_texts(table: TableVersion) -> list[str]:
    """Return the sort keys as in DDL."""
    return [key_text(parse_sort_key(text)) for text in table.sort]


def has_text(default: Default) -> bool:
    """Return whether a default can be written in a statement."""
    if default.literal:
        return True
    try:
        expression_for_spark(default.text)
    except (InvalidRequest, Unsupported):
        return False
    return True


def key_clauses(keys: TableKeys, columns: Schema) -> str:
    """Return a key model as CREATE TABLE writes it behind the columns."""
    text = f"\n{keys.model.value} KEY ({_listed(columns, keys.columns)})" if keys.columns else ""
    if keys.distributed_by or keys.buckets:
        hashed = f"HASH ({_listed(columns, keys.distributed_by)})"
        text += f"\nDISTRIBUTED BY {hashed if keys.distributed_by else 'RANDOM'}"
        text += f" BUCKETS {keys.buckets}" if keys.buckets else ""
    sequence = columns.by_id(keys.sequence or 0)
    if sequence is not None:
        text += f"\nPROPERTIES ('function_column.sequence_col' = {quote_text(sequence.name)})"
    return text


def _rollup(spec: RollupSpec) -> str:
    text = f"{quote_name(spec.name)} ({', '.join(map(quote_name, spec.columns))})"
    if spec.duplicate_keys:
        text += f" DUPLICATE KEY ({', '.join(map(quote_name, spec.duplicate_keys))})"
    return text


def rollup_text(table: NamedTable | str, spec: RollupSpec) -> str:
    """Return the statement that adds a rollup to a table."""
    made = f"ALTER TABLE {table} ADD ROLLUP {_rollup(spec)}"
    return _materialized_view(table, spec) if spec.measures else made


def _materialized_view(table: NamedTable | str, spec: RollupSpec) -> str:
    keys = ", ".join(map(quote_name, spec.columns))
    made = [
        f"{m.measure.value}({'*' if m.column is None else quote_name(m.column)})"
        f" AS {quote_name(m.name)}"
        for m in spec.measures
    ]
    return (
        f"CREATE MATERIALIZED VIEW {quote_name(spec.name)} AS"
        f" SELECT {', '.join([keys, *made])} FROM {table} GROUP BY {keys}"
    )


def _listed(columns: Schema, ids: Sequence[FieldId]) -> str:
    return ", ".join(quote_name(name) for name in names_of(columns, ids))


def _columns(
    columns: Schema,
    comments: Mapping[FieldId | None, str],
    keys: TableKeys | None,
    computed: Mapping[FieldId, str],
    *,
    with_ids: bool,
) -> list[str]:
    """Return the lines that declare the columns."""
    how = {} if keys is None else dict(keys.aggregations)
    last = len(columns.fields) - 1
    return [
        line
        for place, f in enumerate(columns)
        for line in _entry(
            f,
            f"  {quote_name(f.name)} ",
            _clauses(f, comments.get(f.id), how.get(f.id), computed.get(f.id))
            + ("," if place < last else ""),
            with_ids=with_ids,
        )
    ]


def _entry(field: Field, before: str, after: str, *, with_ids: bool) -> list[str]:
    """Return the lines of a column or a struct field; its id is on the first one."""
    if not with_ids:
        return [f"{before}{type_text(field.type)}{after}"]
    indent = " " * (len(before) - len(before.lstrip()))
    lines = _type_lines(field, indent)
    lines[0] = before + lines[0]
    lines[-1] += after
    lines[0] += f"  -- id: {field.id}"
    return lines


def _type_lines(field: Field, indent: str) -> list[str]:
    """Return a type with a line for each struct field."""
    match field.shape:
        case Kind.STRUCT:
            last = len(field.children) - 1
            inside = [
                line
                for place, child in enumerate(field.children)
                for line in _entry(
                    child,
                    f"{indent}  {quote_name(child.name)}: ",
                    "," if place < last else "",
                    with_ids=True,
                )
            ]
            return ["STRUCT<", *inside, f"{indent}>"]
        case Kind.LIST:
            return _joined(["ARRAY<"], _type_lines(field.children[0], indent), [">"])
        case Kind.MAP:
            key, value = (_type_lines(child, indent) for child in field.children)
            return _joined(["MAP<"], key, [", "], value, [">"])
        case _:
            return [type_text(field.type)]


def _joined(*parts: list[str]) -> list[str]:
    """Return texts of several lines, each continued on the last line of the one before."""
    lines = [""]
    for part in parts:
        lines[-1] += part[0]
        lines += part[1:]
    return lines


def _details(field: Field, above: Path, comments: Mapping[FieldId | None, str]) -> Iterator[str]:
    """Yield clauses of ALTER TABLE for defaults and comments of struct fields."""
    path = (*above, field.name)
    if above and field.default is not None and has_text(field.default):
        yield f"ALTER COLUMN {path_text(path)} SET{_default(field.default, field.type)}"
    if above and field.id in comments:
        yield f"ALTER COLUMN {path_text(path)} COMMENT {quote_text(comments[field.id])}"
    for child in field.children:
        yield from _details(child, path, comments)


def _clauses(
    field: Field, comment: str | None, how: Aggregation | None, computed: str | None
) -> str:
    """Return what stands behind the type of a column."""
    text = "" if how is None else f" {how.value}"
    if not field.nullable:
        text += " NOT NULL"
    if computed is not None:
        text += f" {computed}"
    if field.default is not None:
        text += _default(field.default, field.type)
    if comment is not None:
        text += f" COMMENT {quote_text(comment)}"
    return text


def _default(default: Default, data_type: DataType) -> str:
    if default.literal:
        bare = (_NUMERIC.fullmatch(str(data_type)) and _BARE.fullmatch(default.text)) or (
            data_type == Primitive("boolean") and default.text in ("true", "false")
        )
        return f" DEFAULT {default.text if bare else quote_text(default.text)}"
    if has_text(default):
        return f" DEFAULT {expression_for_spark(default.text)}"
    shown = default.text.replace("*/", "* /").replace("/*", "/ *")
    return f" /* DEFAULT {shown} in DuckDB */"
