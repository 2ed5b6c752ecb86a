"""PARTITION (key = value, …), as statements of Hive name partitions, and the rows that it means."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.engine.rows.store_rules import TEXTS, require_text
from shelduck.engine.types import field_type
from shelduck.errors import InvalidRequest
from shelduck.model.tables.partition import IDENTITY, NULL_DIRECTORY
from shelduck.model.tables.schema import Field
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked, quote_name
from shelduck.text.tokens.arguments import literal_text, text_of
from shelduck.text.tokens.cursor import Cursor

_EQUAL = ("=", "==")
_COMPARISONS = (*_EQUAL, "<>", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """One column of INSERT's PARTITION clause.

    ``value`` is the SQL text of a literal, NULL too; None when the source gives the column.
    """

    column: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """PARTITION (key = value, …): keys, comparisons and literals as SQL."""

    values: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        return f"({', '.join(' '.join(each) for each in self.values)})"


def read_partition_spec(cursor: Cursor) -> PartitionSpec:
    """Take ``PARTITION (key = value, …)``; a value is a literal, and NULL goes with ``=`` only."""
    cursor.expect("PARTITION")
    taken: set[str] = set()

    def item(cursor: Cursor) -> tuple[str, str, str]:
        column = cursor.new_column(taken)
        comparison = cursor.accept_any(*_COMPARISONS)
        if not comparison:
            raise cursor.failure("a comparison, such as = or <")
        value = literal_text(cursor)
        if comparison in _EQUAL:
            return column, "=", value
        if is_null_key(value):
            what = f"PARTITION ({quote_name(column)} {comparison} {value})"
            raise cursor.refusal(what, "NULL is not compared; use = for the partition of NULL")
        return column, comparison, value

    return PartitionSpec(cursor.in_brackets(item))


def is_null_key(literal: str) -> bool:
    """Return whether a literal of a PARTITION clause means NULL, as Spark reads it."""
    return literal.upper() == "NULL" or text_of(literal) == NULL_DIRECTORY


def partition_value(field: Field, literal: str, table: str) -> str:
    """Return a literal of a PARTITION clause as SQL, to be stored or compared as any other value.

    As in Spark, a text can be a value of each type, and each literal can be a text.
    """
    kind = field_type(field)
    if is_null_key(literal):
        return f"CAST(NULL AS {kind})"
    if str(field.type) in TEXTS:
        # VARCHAR(n) would cut it.
        return f"CAST({literal} AS STRING)"
    text = text_of(literal)
    if text is None and kind == "boolean":
        # Spark reads every value of the clause as a text, so 1 and 0 are truth values.
        text = literal.rstrip("LSYlsy")
    if text is None:
        return literal
    require_text(field.type, text, f"column {quote_name(field.name)} of {table}")
    return f"CAST(CAST({literal} AS STRING) AS {kind})"


def chosen_by(spec: PartitionSpec, table: TableVersion) -> str:
    """Return the condition of a PARTITION clause; its literals are values of their columns.

    Raises InvalidRequest for a column that is not a partition key itself.
    """
    keys = {k.column_id for k in table.partition if k.transform == IDENTITY}
    parts = []
    for column, comparison, literal in spec.values:
        field = table.columns.get((column,), table.full_name)
        if field.id not in keys:
            raise InvalidRequest(
                f"{table.full_name} is not partitioned by {quote_name(field.name)} itself; use"
                " DELETE FROM t WHERE"
            )
        value = partition_value(field, literal, table.full_name)
        word = "<=>" if comparison == "=" else comparison
        parts.append(f"{backticked(field.name)} {word} {value}")
    return " AND ".join(parts)
