"""The partition values of rows that the catalog itself keeps, as files of these rows have them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from shelduck.errors import CorruptLake
from shelduck.model.files.data_file import InlinedRows
from shelduck.model.files.fitted import fitted_values
from shelduck.model.tables.partition import BUCKET, IDENTITY, Transform, parse_transform
from shelduck.model.tables.schema import Field, FieldId, Kind
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import quote_name
from shelduck.model.types.buckets import bucket_of_text
from shelduck.model.types.data_types import Decimal, Leaf
from shelduck.model.types.literals import canonical_text
from shelduck.model.types.temporal import calendar_field, is_infinite

Values = tuple[str | None, ...]
_TEXTS = ("varchar", "json")


def partition_values(table: TableVersion, part: InlinedRows) -> list[Values]:
    """Return the value of each partition key of the table, for each row.

    Raises Unsupported for an unknown transform, and what `fitted_values` raises.
    """
    found = [_key_values(table, part, k.column_id, k.transform) for k in table.partition]
    return list(zip(*found, strict=True)) if found else [()] * len(part.rows)


def _key_values(
    table: TableVersion, part: InlinedRows, column_id: FieldId, transform: str
) -> list[str | None]:
    field = table.columns.by_id(column_id)
    if field is None or isinstance(field.shape, Kind):
        raise CorruptLake(f"{table.full_name} is partitioned by column id {column_id}, not a value")
    made = _maker(field, parse_transform(transform))
    return [None if v is None else made(v) for v in fitted_values(part.columns, part.rows, field)]


def _maker(field: Field, transform: Transform) -> Callable[[object], str | None]:
    leaf = field.leaf
    if transform.kind == IDENTITY:
        return partial(_identity, leaf)

    def made(value: object) -> str | None:
        known = value if isinstance(value, bytes) else str(value)
        if transform.kind == BUCKET:
            number = bucket_of_text(leaf, known, transform.buckets)
        elif is_infinite(str(value)):
            return None
        else:
            number = calendar_field(leaf, str(value), transform.kind)
        if number is None:
            raise CorruptLake(
                f"inlined column {quote_name(field.name)} holds {value!r}, which has no"
                f" {transform.kind}"
            )
        return str(number)

    return made


def _identity(leaf: Leaf, value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value_text(leaf, str(value))


def value_text(leaf: Leaf, text: str) -> str:
    """Return the text of a value as it is stored for a partition of one."""
    if str(leaf) in _TEXTS:
        return text
    found = canonical_text(leaf, text)
    if isinstance(leaf, Decimal) and leaf.precision == leaf.scale:
        return re.sub(r"^(-?)0\.", r"\1.", found)
    # Zero has no sign there.
    return "0.0" if found == "-0.0" else found
