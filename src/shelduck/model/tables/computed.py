"""Columns whose values Shelduck makes: generated ones from their row, identities from a counter.

They are one property of the table. Other writers see plain columns.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace

from shelduck.errors import InvalidRequest
from shelduck.model.tables.keys import KeyModel, keys_in
from shelduck.model.tables.row_expressions import RowExpression, WrittenExpression, is_whole
from shelduck.model.tables.schema import Field, FieldId, Schema
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import quote_name
from shelduck.model.text.stored import Stored, each, record
from shelduck.model.types.data_types import Primitive

COMPUTED = "shelduck.computed"
"""The property that holds what computes columns."""
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Identity:
    """Numbers that no two rows share. With ``always`` nobody else may give them."""

    start: int = 1
    step: int = 1
    always: bool = True

    def next(self, taken: int, count: int) -> int | None:
        """Return the first of ``count`` numbers behind those taken; None if BIGINT ends before."""
        first, more = self.start + self.step * taken, self.step * (count - 1)
        made = (first, more, first + more, taken + count)
        fits = all(_LOWEST <= number <= _HIGHEST for number in made)
        return first if fits or not count else None

    def taken_with(self, number: int) -> int:
        """Return how many numbers are taken if this one is, with all that come before it."""
        return min(max(0, (number - self.start) // self.step + 1), _HIGHEST)

    def __str__(self) -> str:
        how = "ALWAYS" if self.always else "BY DEFAULT"
        told = f" (START WITH {self.start} INCREMENT BY {self.step})"
        return f"GENERATED {how} AS IDENTITY{told if (self.start, self.step) != (1, 1) else ''}"


@dataclass(frozen=True, slots=True)
class WrittenComputed:
    """What a statement says of a computed column."""

    column: str
    expression: WrittenExpression | None = None
    identity: Identity | None = None

    def made_in(self, zone: str) -> WrittenComputed:
        """Return it with the time zone in which its expression is evaluated."""
        made = self.expression
        return self if made is None else replace(self, expression=replace(made, zone=zone))

    def bound(self, columns: Schema, table: str) -> ComputedColumn:
        """Return the computed column over these columns; NotFound for a name of none of them."""
        made = None if self.expression is None else self.expression.bound(columns, table)
        return ComputedColumn(columns.get((self.column,), table).id, made, self.identity)


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column with its expression, or as an identity."""

    column: FieldId
    expression: RowExpression | None = None
    identity: Identity | None = None

    @property
    def meaning(self) -> tuple[object, ...]:
        """What it says, whatever the names of columns."""
        told = None if self.expression is None else self.expression.meaning
        return self.column, told, self.identity

    def clause(self, columns: Schema) -> str:
        """Return what stands behind the type of the column."""
        if self.expression is None:
            return str(self.identity)
        return f"GENERATED ALWAYS AS ({self.expression.spelled(columns) or self.expression.text})"


@dataclass(frozen=True, slots=True)
class ComputedColumns:
    """All computed columns of a table."""

    all: tuple[ComputedColumn, ...] = ()

    def __iter__(self) -> Iterator[ComputedColumn]:
        return iter(self.all)

    def of(self, column: FieldId) -> ComputedColumn | None:
        """Return how a column is computed, None if it is not."""
        return next((one for one in self.all if one.column == column), None)

    @property
    def identity(self) -> ComputedColumn | None:
        """The column with numbers, of which a table has at most one."""
        return next((one for one in self.all if one.identity is not None), None)


_STORED: Stored[ComputedColumns] = Stored(
    "computed columns", record(ComputedColumns, columns=each(record(ComputedColumn)).called("all"))
)
_NONE = ComputedColumns()


def computed_of(properties: Mapping[str, str], table: str) -> ComputedColumns:
    """Return the computed columns of a table; NewerFormat if only a newer Shelduck knows them."""
    return _STORED.known(properties[COMPUTED], table) if COMPUTED in properties else _NONE


def identity_of(table: TableVersion) -> tuple[Field, Identity] | None:
    """Return the column of a table with numbers and how they go on; None if it has none."""
    one = computed_of(table.properties, table.full_name).identity
    field = None if one is None else table.columns.by_id(one.column)
    # Another writer may have dropped the column.
    return None if one is None or one.identity is None or field is None else (field, one.identity)


def with_computed(properties: Mapping[str, str], found: ComputedColumns) -> dict[str, str]:
    """Return the properties of a table with these computed columns."""
    return _STORED.put(properties, COMPUTED, found if found.all else None)


def declared(
    columns: Schema, written: tuple[WrittenComputed, ...], properties: Mapping[str, str], table: str
) -> tuple[Schema, dict[str, str]]:
    """Return the columns and the properties of a new table; identities become NOT NULL.

    Raises InvalidRequest for what cannot be computed: a column twice or from another computed one,
    two identities or one that is not a BIGINT, and columns that loads of a key model combine.
    """
    names = {one.column.lower() for one in written}
    made: list[ComputedColumn] = []
    for one in written:
        field = columns.get((one.column,), table)
        what = f"column {quote_name(field.name)} of {table}"
        if field.default is not None:
            raise InvalidRequest(f"{what} is computed, and cannot have a DEFAULT; leave it out")
        computed = one.bound(columns, table)
        if any(other.column == computed.column for other in made):
            raise InvalidRequest(f"{what} is computed twice; give it one expression or IDENTITY")
        if computed.expression is not None:
            for used in computed.expression.tops(columns):
                if used.name.lower() in names:
                    raise InvalidRequest(
                        f"{what} is computed from {quote_name(used.name)}, which is computed"
                        " itself; repeat its expression"
                    )
        else:
            _require_number(field, one.identity, made, what)
            columns = columns.replace((field.name,), replace(field, nullable=False))
        made.append(computed)
    _require_rows(made, properties, table)
    return columns, with_computed(properties, ComputedColumns(tuple(made)))


def follow_columns(
    properties: Mapping[str, str],
    columns: Schema,
    before: Schema,
    converted: Container[FieldId],
    table: str,
) -> dict[str, str]:
    """Return the properties of a table after a change of its columns, which were ``before``.

    A job makes other columns of those that are ``converted``. Raises InvalidRequest if a computed
    column, or one that it needs, goes or gets another type, and for a default or NULL.
    """
    left = []
    for one in computed_of(properties, table):
        field, old = columns.by_id(one.column), before.by_id(one.column)
        shown = field or old
        if shown is None:
            continue  # another writer dropped it before
        what = f"column {quote_name(shown.name)} of {table}, {one.clause(columns)},"
        if _is_retyped(old, field, one, converted):
            raise InvalidRequest(
                f"cannot change the type of {what} because its values are computed; drop it, and"
                " create the table again with the other type"
            )
        if field is None:
            continue
        how = None if one.expression is None else one.expression.broken(columns, before)
        if how is not None:
            raise InvalidRequest(
                f"cannot {how} a column of {table} from which {what} is computed; drop"
                f" {quote_name(field.name)} first"
            )
        if field.default is not None or (one.identity is not None and field.nullable):
            raise InvalidRequest(f"{what} cannot have a DEFAULT or allow NULL; leave it as it is")
        left.append(one)
    return with_computed(properties, ComputedColumns(tuple(left)))


def _is_retyped(
    old: Field | None, new: Field | None, one: ComputedColumn, converted: Container[FieldId]
) -> bool:
    if any(part.id in converted for part in (() if old is None else old.walk())):
        return True
    if old is None or new is None or old.type == new.type:
        return False
    return one.identity is not None or not (is_whole(old) and is_whole(new))


def _require_number(
    field: Field, identity: Identity | None, others: list[ComputedColumn], what: str
) -> None:
    if field.shape != Primitive("int64"):
        raise InvalidRequest(f"{what} is an identity, so it must be BIGINT, not {field.type}")
    assert identity is not None
    for number in (identity.start, identity.step):
        if not _LOWEST <= number <= _HIGHEST:
            raise InvalidRequest(
                f"{what} is an identity, whose START WITH and INCREMENT BY must be BIGINT, not"
                f" {number}"
            )
    if any(other.identity is not None for other in others):
        raise InvalidRequest(f"{what} is a second identity; a table has one")


def _require_rows(made: list[ComputedColumn], properties: Mapping[str, str], table: str) -> None:
    """Refuse columns whose values loads of a key model would choose or combine."""
    keys = keys_in(properties, table)
    if keys is None or not keys.folds or not made:
        return
    if keys.model is KeyModel.AGGREGATE or any(one.identity is not None for one in made):
        raise InvalidRequest(
            f"{table} has a {keys.model.value} KEY, whose loads combine rows, so it cannot have"
            " such a computed column; compute it when you write rows"
        )
