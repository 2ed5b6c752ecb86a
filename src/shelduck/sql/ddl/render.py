"""Values to text: the CREATE TABLE of a table, and types as Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.tables.keys import Aggregation, TableKeys, names_of
from shelduck.model.tables.rollup import RollupSpec
from shelduck.model.tables.schema import Default, Field, FieldId, Schema
from shelduck.model.text.quoting import quote_name, quote_text
from shelduck.model.types.data_types import DataType, Primitive, type_text
from shelduck.sql.ddl.defaults import expression_for_spark
from shelduck.sql.tokens.parts import TableName

_BARE = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NUMERIC = re.compile(r"u?int\d+|float\d+|decimal.*")


def create_table_text(
    name: TableName,
    columns: Schema,
    comments: Mapping[FieldId | None, str],
    partitioned_by: Sequence[str] = (),
    sorted_by: Sequence[str] = (),
    *,
    properties: Mapping[str, str] | None = None,
    keys: TableKeys | None = None,
    rollups: Sequence[RollupSpec] = (),
    with_ids: bool = False,
) -> str:
    """Return the CREATE TABLE statement that makes a table like this one.

    Rollups that combine rows are statements of their own behind it. Types without a Spark word keep
    DuckLake's. Comments and defaults of nested fields have no place in such a statement and are
    left out; a default that only DuckDB understands is a comment. ``with_ids`` adds the id of each
    column as a comment.
    """
    how = {} if keys is None else dict(keys.aggregations)
    lines = [f"  {_column(f, comments.get(f.id), how.get(f.id))}," for f in columns]
    lines[-1] = lines[-1].removesuffix(",")
    if with_ids:
        lines = [f"{line}  -- id: {f.id}" for line, f in zip(lines, columns, strict=True)]
    listed_columns = "\n".join(lines)
    text = f"CREATE TABLE {name} (\n{listed_columns}\n)"
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
        listed = (f"{quote_text(k)} = {quote_text(v)}" for k, v in properties.items())
        text += f"\nTBLPROPERTIES ({', '.join(listed)})"
    more = [_materialized_view(name, spec) for spec in rollups if spec.measures]
    if keys is not None and keys.columns and not sorted_by:
        more.append(f"ALTER TABLE {name} RESET SORTED BY")
    return ";\n".join([text, *more])


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


def _materialized_view(table: TableName, spec: RollupSpec) -> str:
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


def _column(field: Field, comment: str | None, how: Aggregation | None) -> str:
    text = f"{quote_name(field.name)} {type_text(field.type)}"
    if how is not None:
        text += f" {how.value}"
    if not field.nullable:
        text += " NOT NULL"
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
