"""Values to text: the CREATE TABLE of a table, and types as Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from shelduck.errors import InvalidRequest, Unsupported
from shelduck.model.keys import Aggregation, TableKeys, names_of
from shelduck.model.quoting import quote_name, quote_text
from shelduck.model.schema import Default, Field, FieldId, Schema
from shelduck.model.types import DataType, Primitive, type_text
from shelduck.sql.defaults import expression_for_spark
from shelduck.sql.parts import TableName

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
) -> str:
    """Return the CREATE TABLE statement that makes a table like this one.

    Types without a Spark word keep DuckLake's. Comments and defaults of nested fields have no place
    in such a statement and are left out; a default that only DuckDB understands is a comment.
    """
    how = {} if keys is None else dict(keys.aggregations)
    lines = ",\n".join(f"  {_column(f, comments.get(f.id), how.get(f.id))}" for f in columns)
    text = f"CREATE TABLE {name} (\n{lines}\n)"
    if keys is not None:
        text += key_clauses(keys, columns)
    if partitioned_by:
        text += f"\nPARTITIONED BY ({', '.join(partitioned_by)})"
    if sorted_by:
        text += f"\nSORTED BY ({', '.join(sorted_by)})"
    if None in comments:
        text += f"\nCOMMENT {quote_text(comments[None])}"
    if properties:
        listed = (f"{quote_text(k)} = {quote_text(v)}" for k, v in properties.items())
        text += f"\nTBLPROPERTIES ({', '.join(listed)})"
    return text


def key_clauses(keys: TableKeys, columns: Schema) -> str:
    """Return a key model as CREATE TABLE writes it behind the columns."""
    text = f"\n{keys.model.value} KEY ({_listed(columns, keys.columns)})"
    if keys.distributed_by:
        text += f"\nDISTRIBUTED BY HASH ({_listed(columns, keys.distributed_by)})"
    sequence = columns.by_id(keys.sequence or 0)
    if sequence is not None:
        text += f"\nPROPERTIES ('function_column.sequence_col' = {quote_text(sequence.name)})"
    return text


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
    try:
        return f" DEFAULT {expression_for_spark(default.text)}"
    except (InvalidRequest, Unsupported):
        shown = default.text.replace("*/", "* /").replace("/*", "/ *")
        return f" /* DEFAULT {shown} in DuckDB */"
