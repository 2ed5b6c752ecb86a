"""Constraints of a table: CHECK, which every write of Shelduck enforces, and keys for information.

They are one property of the table, so they have its history. Expressions are Spark's SQL. Columns
in them are found by id, so that a rename by anybody changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.tables.row_expressions import RowExpression, is_gone
from shelduck.model.tables.schema import FieldId, Schema
from shelduck.model.text.names import quote_name
from shelduck.model.text.stored import LEFT_OUT, Stored, each, record

CONSTRAINTS = "shelduck.constraints"
"""The property that holds the constraints."""
SHOWN_CHECK = "delta.constraints."
"""What names of CHECK constraints begin with among the properties that are shown, as in Delta."""


class ConstraintKind(Enum):
    """The kinds of constraints, by their words."""

    CHECK = "CHECK"
    PRIMARY_KEY = "PRIMARY KEY"
    UNIQUE = "UNIQUE"
    FOREIGN_KEY = "FOREIGN KEY"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint. CHECK has an expression, keys have columns.

    ``references`` is what stands behind REFERENCES. ``unproven``: rows that were there before were
    not checked. ``relies``: the word RELY stands behind a key.
    """

    name: str
    kind: ConstraintKind
    expression: RowExpression | None = None
    columns: tuple[FieldId, ...] = ()
    references: str = field(default="", metadata=LEFT_OUT)
    unproven: bool = False
    relies: bool = False

    @property
    def uses(self) -> set[FieldId]:
        """The columns and fields that it names."""
        return {*self.columns, *(() if self.expression is None else self.expression.fields)}

    @property
    def meaning(self) -> tuple[object, ...]:
        """What it says, whatever the names of columns: equal for constraints that say the same."""
        told = None if self.expression is None else self.expression.meaning
        return self.kind, told, self.columns, self.references, self.relies

    def text(self, columns: Schema) -> str:
        """Return the constraint as CREATE TABLE has it."""
        return f"CONSTRAINT {quote_name(self.name)} {self.clause(columns)}"

    def clause(self, columns: Schema) -> str:
        """Return what stands behind its name."""
        if self.expression is not None:
            return f"CHECK ({self.expression.spelled(columns) or self.expression.text})"
        names = (f.name for n in self.columns if (f := columns.by_id(n)) is not None)
        told = f"{self.kind.value} ({', '.join(map(quote_name, names))})"
        told += f" REFERENCES {self.references}" if self.references else ""
        return f"{told} NOT ENFORCED{' RELY' if self.relies else ''}"


@dataclass(frozen=True, slots=True)
class Constraints:
    """All constraints of a table, in the order in which they were added."""

    all: tuple[Constraint, ...] = ()

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.all)

    @property
    def checks(self) -> tuple[Constraint, ...]:
        """Those that are enforced."""
        return tuple(one for one in self.all if one.kind is ConstraintKind.CHECK)

    def find(self, name: str) -> Constraint | None:
        """Return the constraint of a name, in any case."""
        return next((one for one in self.all if one.name.lower() == name.lower()), None)

    def get(self, name: str, table: str) -> Constraint:
        """Return the constraint of a name or raise NotFound, naming similar ones."""
        found = self.find(name)
        if found is None:
            raise NotFound.named("constraint", name, [one.name for one in self.all], where=table)
        return found


_STORED: Stored[Constraints] = Stored(
    "constraints",
    record(Constraints, constraints=each(record(Constraint), by="name").called("all")),
)


def constraints_of(properties: Mapping[str, str], table: str) -> Constraints:
    """Return the constraints of a table; NewerFormat if only a newer Shelduck knows them."""
    text = properties.get(CONSTRAINTS)
    return Constraints() if text is None else _STORED.known(text, table)


def with_constraints(properties: Mapping[str, str], found: Constraints) -> dict[str, str]:
    """Return the properties of a table with these constraints."""
    return _STORED.put(properties, CONSTRAINTS, found if found.all else None)


def shown_checks(properties: Mapping[str, str], columns: Schema, table: str) -> dict[str, str]:
    """Return CHECK constraints as properties, as Delta shows them."""
    found = ((c.name, c.expression) for c in constraints_of(properties, table).checks)
    return {f"{SHOWN_CHECK}{n}": e.spelled(columns) or e.text for n, e in found if e is not None}


def require_kept(
    properties: Mapping[str, str],
    columns: Schema,
    before: Schema,
    known: Mapping[str, str],
    table: str,
) -> None:
    """Raise InvalidRequest if a change breaks a constraint, which was among the ``known`` ones.

    Keys are information about columns of any type.
    """
    for one in constraints_of(properties, table):
        if one.expression is None:
            is_broken = any(is_gone(number, columns, before) for number in one.columns)
            how = "drop or convert" if is_broken else None
        elif constraints_of(known, table).find(one.name) is None:
            how = None if one.expression.spelled(columns) else "drop or convert"
        else:
            how = one.expression.broken(columns, before)
        if how is not None:
            raise InvalidRequest(
                f"cannot {how} a column of {table} that the constraint {quote_name(one.name)} uses:"
                f" {one.clause(before)}; use ALTER TABLE {table} DROP CONSTRAINT"
                f" {quote_name(one.name)} first"
            )
