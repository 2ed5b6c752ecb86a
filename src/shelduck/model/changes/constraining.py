"""Changes of constraints as values: ADD, DROP and VALIDATE CONSTRAINT, and what they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from shelduck.errors import AlreadyExists, InvalidRequest, NotFound
from shelduck.model.changes.definition import Clause, Weight
from shelduck.model.tables.computed import computed_of
from shelduck.model.tables.constraints import (
    Constraint,
    ConstraintKind,
    Constraints,
    constraints_of,
    with_constraints,
)
from shelduck.model.tables.keys import KeyModel, keys_in
from shelduck.model.tables.properties import Properties
from shelduck.model.tables.row_expressions import WrittenExpression
from shelduck.model.tables.schema import Schema
from shelduck.model.text.names import quote_name
from shelduck.model.text.stored import LEFT_OUT


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """Add a constraint. CHECK has an ``expression``, the others ``columns``.

    Without a ``name`` it gets one. Rows that are there are checked now only if it ``validates``.
    """

    kind: ConstraintKind
    name: str | None = None
    expression: WrittenExpression | None = None
    columns: tuple[str, ...] = ()
    references: str = field(default="", metadata=LEFT_OUT)
    relies: bool = False
    validates: bool = True

    def __str__(self) -> str:
        named = "" if self.name is None else f"CONSTRAINT {quote_name(self.name)} "
        return f"ADD {named}{self.clause}"

    @property
    def clause(self) -> str:
        """What stands behind the name."""
        if self.expression is not None:
            return f"CHECK ({self.expression.text}){'' if self.validates else ' NOT VALID'}"
        told = f"{self.kind.value} ({', '.join(map(quote_name, self.columns))})"
        return told + (f" REFERENCES {self.references}" if self.references else "")

    def made_in(self, zone: str) -> AddConstraint:
        """Return it with the time zone in which its expression is evaluated."""
        made = self.expression
        return self if made is None else replace(self, expression=replace(made, zone=zone))

    def means(self, other: Constraint, columns: Schema) -> bool:
        """Return whether a constraint says the same, and has the name if there is one here."""
        if self.kind is not other.kind or (self.name or other.name).lower() != other.name.lower():
            return False
        try:
            made = self.bound(other.name, columns, "")
        except NotFound:
            return False
        return made.meaning == other.meaning

    def bound(self, name: str, columns: Schema, table: str) -> Constraint:
        """Return the constraint over these columns; NotFound for a name that is none of them."""
        written = self.expression
        return Constraint(
            name,
            self.kind,
            None if written is None else written.bound(columns, table),
            tuple(columns.get((each_name,), table).id for each_name in self.columns),
            self.references,
            unproven=written is not None and not self.validates,
            relies=self.relies,
        )


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """Drop a constraint."""

    name: str
    if_exists: bool = False

    def __str__(self) -> str:
        return f"DROP CONSTRAINT {'IF EXISTS ' * self.if_exists}{quote_name(self.name)}"


@dataclass(frozen=True, slots=True)
class ValidateConstraint:
    """Check the rows that are there, which a constraint with NOT VALID left out."""

    name: str

    def __str__(self) -> str:
        return f"VALIDATE CONSTRAINT {quote_name(self.name)}"


ConstraintChange = AddConstraint | DropConstraint | ValidateConstraint


def apply_constraint(
    known: Properties, change: ConstraintChange, columns: Schema, table: str
) -> tuple[dict[str, str], str | None]:
    """Return the properties of a table after a change, and which constraint its rows must satisfy.

    Raises NotFound, AlreadyExists or InvalidRequest, naming ``table``.
    """
    found = constraints_of(known, table)
    if isinstance(change, DropConstraint):
        gone = found.find(change.name) if change.if_exists else found.get(change.name, table)
        return with_constraints(known, Constraints(tuple(c for c in found if c != gone))), None
    if isinstance(change, ValidateConstraint):
        one = found.get(change.name, table)
        if one.kind is not ConstraintKind.CHECK:
            raise InvalidRequest(
                f"cannot validate {one.kind.value} {quote_name(one.name)} of {table}: keys are"
                " information, and rows are not held to them"
            )
        proven = replace(one, unproven=False)
        every = tuple(proven if c == one else c for c in found)
        return with_constraints(known, Constraints(every)), one.name
    made = _made(change, found, columns, table)
    if made.expression is not None:
        _refuse_combined(known, made, columns, table)
    checks = made.name if made.expression is not None and change.validates else None
    return with_constraints(known, Constraints((*found, made))), checks


def _made(change: AddConstraint, found: Constraints, columns: Schema, table: str) -> Constraint:
    name = change.name or _free_name(change, found)
    if found.find(name) is not None:
        raise AlreadyExists.named("constraint", name, table)
    if change.kind is ConstraintKind.PRIMARY_KEY:
        other = next((c for c in found if c.kind is change.kind), None)
        if other is not None:
            raise AlreadyExists(
                f"{table} already has the PRIMARY KEY {quote_name(other.name)}; drop it first",
                about="constraint",
            )
    return change.bound(name, columns, table)


def _free_name(change: AddConstraint, found: Iterable[Constraint]) -> str:
    taken = {c.name.lower() for c in found}
    number, words = 1, change.kind.value.lower().replace(" ", "_")
    while f"{words}_{number}" in taken:
        number += 1
    return f"{words}_{number}"


def _refuse_combined(known: Properties, made: Constraint, columns: Schema, table: str) -> None:
    """Refuse a CHECK of values that come, or that loads combine, afterwards."""
    numbers = computed_of(known, table).identity
    if numbers is not None and numbers.column in made.uses:
        raise InvalidRequest(
            f"CHECK constraint {quote_name(made.name)} of {table} uses its identity, whose numbers"
            " come after the check; leave it out"
        )
    keys = keys_in(known, table)
    if keys is None or keys.model is not KeyModel.AGGREGATE or made.expression is None:
        return
    for top in made.expression.tops(columns):
        if top.id not in keys.columns:
            raise InvalidRequest(
                f"CHECK constraint {quote_name(made.name)} of {table} uses"
                f" {quote_name(top.name)}, which loads of an AGGREGATE KEY table combine"
                " afterwards; use only keys"
            )


CONSTRAINT_CLAUSES: dict[type, Clause] = {
    AddConstraint: Clause(
        "add_constraint", Weight(False, "metadata only, after a check of the rows if it is a CHECK")
    ),
    DropConstraint: Clause("drop_constraint", Weight(False, "metadata only")),
    ValidateConstraint: Clause(
        "validate_constraint", Weight(False, "metadata only, after a check of the rows")
    ),
}
"""All that the code knows of each kind of change of constraints."""
