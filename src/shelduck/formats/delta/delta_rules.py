"""Rules of tables both ways: CHECK constraints, generated values and identities.

Delta keeps text over the names of columns. It is bound to ids of columns when it comes in, and
spelled with their names when it goes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shelduck.catalog.running.identity_numbers import last_number
from shelduck.errors import ShelduckError
from shelduck.formats.delta.delta_schema import DeltaField, DeltaType
from shelduck.formats.delta.log import Metadata
from shelduck.formats.report import Loss, column_of
from shelduck.model.changes.constraining import AddConstraint, apply_constraint
from shelduck.model.tables.computed import (
    ComputedColumn,
    ComputedColumns,
    Identity,
    WrittenComputed,
    computed_of,
    declared,
    with_computed,
)
from shelduck.model.tables.constraints import (
    SHOWN_CHECK,
    Constraint,
    ConstraintKind,
    Constraints,
    constraints_of,
    with_constraints,
)
from shelduck.model.tables.row_expressions import RowExpression
from shelduck.model.tables.schema import Field, FieldId, Schema
from shelduck.model.types.data_types import type_text
from shelduck.read.table_rows import TableRows
from shelduck.text.ddl.column_clauses import written_expression
from shelduck.text.tokens.lexer import in_brackets, tokenize

GENERATED = "delta.generationExpression"
IDENTITY = "delta.identity."
CHECKS, GENERATES, NUMBERS = "checkConstraints", "generatedColumns", "identityColumns"
"""The features that writers must know for a table with such rules."""
_START, _STEP, _LAST = f"{IDENTITY}start", f"{IDENTITY}step", f"{IDENTITY}highWaterMark"
_EXPLICIT = f"{IDENTITY}allowExplicitInsert"
# NULL breaks a condition in Delta, and satisfies it here as in SQL.
_STRICT, _LENIENT = ("IS", "TRUE"), ("IS", "NOT", "FALSE")
_END = "\n"
_DELTA, _UNENFORCED = "the Delta table", " is not enforced"
_ASKS_ZONE = re.compile(r"(?i)timestamp(?!_ntz)|current_date|curdate|\bnow\b")

Key = str | FieldId
"""A constraint by its name in small letters, or a computed column by its id."""
Rule = Constraint | ComputedColumn


@dataclass(frozen=True, slots=True)
class DeltaRules:
    """The rules of a version of a Delta table, as ``properties`` of a table of the lake.

    ``lost`` says why some cannot be, ``told`` what it means for each of all of them.
    ``last_number`` is the last one that the identity gave.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[Key, str] = field(default_factory=dict)
    lost: Mapping[Key, str] = field(default_factory=dict)
    last_number: int | None = None

    def notes(self, properties: Mapping[str, str], columns: Schema) -> Iterator[str]:
        """Yield which rules a table with these properties lacks, or evaluates otherwise."""
        here, there = _rules(properties), _rules(self.properties)
        for key, told in self.told.items():
            one, mine = there.get(key), here.get(key)
            if one is None:
                yield f"{told}: {self.lost[key]}"
            elif mine is None or mine.meaning != one.meaning:
                yield f"{told}: the table here has no such rule"
            elif (zone := _asked_zone(mine.expression, columns)) is not None:
                column = columns.by_id(key) if isinstance(key, int) else None
                rule = told.removesuffix(_UNENFORCED)
                subject = rule if column is None else column_of((column.name,))
                yield f"{subject}: its time zone is {zone} here, and that of the session in Delta"


def delta_rules(
    metadata: Metadata,
    columns: Schema,
    origin: Mapping[FieldId, DeltaField],
    zone: str,
    *,
    has_nulls: bool = False,
) -> DeltaRules:
    """Return the rules of a version, whose expressions get a time zone.

    ``has_nulls``: rows have NULL as the number of an identity, so it is none here.
    """
    found: dict[str, str] = {}
    told: dict[Key, str] = {}
    lost: dict[Key, str] = {}
    made: list[WrittenComputed] = []
    last = None
    for column in columns:
        said = origin[column.id].metadata
        text, here = said.get(GENERATED), column_of((column.name,))
        if text is not None:
            told[column.id] = f"{here}: Delta generates it as {text}, and it is plain here"
        elif _STEP in said:
            told[column.id] = f"{here}: it is an identity in Delta, and plain here"
        else:
            continue
        if text is None and has_nulls:
            lost[column.id] = "files have NULL in it"
            continue
        try:
            one = _written(column.name, said).made_in(zone)
            found = declared(columns, (*made, one), {}, _DELTA)[1]
        except ShelduckError as error:
            lost[column.id] = str(error)
            continue
        made.append(one)
        last = said.get(_LAST) if text is None else last
    for key, text in sorted(metadata.configuration.items()):
        if not key.lower().startswith(SHOWN_CHECK):
            continue
        name = key[len(SHOWN_CHECK) :]
        told[name.lower()] = f"CHECK constraint {name!r} ({text}){_UNENFORCED}"
        try:
            ours = _turned(text, _LENIENT, _STRICT)
            condition = written_expression(ours, "the condition", may_tell_time=True)
            change = AddConstraint(ConstraintKind.CHECK, name, condition).made_in(zone)
            found = apply_constraint(found, change, columns, _DELTA)[0]
        except ShelduckError as error:
            lost[name.lower()] = str(error)
    return DeltaRules(found, told, lost, last)


def _turned(text: str, theirs: tuple[str, ...], ours: tuple[str, ...]) -> str:
    """Return a condition with the words ``ours`` behind, without ``theirs`` if it has these."""
    tokens = tokenize(text)[:-1]
    inside, behind = tokens[: -len(theirs)], tokens[-len(theirs) :]
    if tuple(token.key for token in behind) == theirs and in_brackets(inside):
        return text[inside[0].end : inside[-1].start].strip()
    # A comment at the end must not take the bracket.
    return f"({text}{_END if '--' in text else ''}) {' '.join(ours)}"


def _written(name: str, told: Mapping[str, Any]) -> WrittenComputed:
    text = told.get(GENERATED)
    if text is not None:
        made = written_expression(str(text), "a generated value", may_tell_time=False)
        return WrittenComputed(name, made)
    start, step = int(told.get(_START, 1)), int(told[_STEP])
    return WrittenComputed(name, identity=Identity(start, step, not told.get(_EXPLICIT)))


def carried(properties: Mapping[str, str], before: DeltaRules, now: DeltaRules) -> dict[str, str]:
    """Return the properties of a table with what changed between the rules of two versions.

    What is the same in both stays as it is here, and so do rules that Delta does not have.
    """
    here, was, new = map(_rules, (properties, before.properties, now.properties))
    same = {k for k in was.keys() & new.keys() if was[k].meaning == new[k].meaning}
    left = {
        k: one
        for k, one in here.items()
        if k in same or k not in was or was[k].meaning != one.meaning
    }
    made = (left | {k: one for k, one in new.items() if k not in same and k not in left}).values()
    checks = Constraints(tuple(one for one in made if isinstance(one, Constraint)))
    computed = ComputedColumns(tuple(one for one in made if isinstance(one, ComputedColumn)))
    return with_computed(with_constraints(properties, checks), computed)


def _rules(properties: Mapping[str, str]) -> dict[Key, Rule]:
    return {
        **{one.name.lower(): one for one in constraints_of(properties, _DELTA)},
        **{one.column: one for one in computed_of(properties, _DELTA)},
    }


@dataclass(frozen=True, slots=True)
class ShownRules:
    """The rules of a table as Delta keeps them.

    ``checks`` are settings of the table, ``columns`` what the metadata of columns say. ``losses``
    are the rules that Delta does not have, or evaluates otherwise.
    """

    checks: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[FieldId, Mapping[str, Any]] = field(default_factory=dict)
    losses: tuple[Loss, ...] = ()

    @property
    def features(self) -> set[str]:
        """What writers must know because of these rules."""
        told = {key for each in self.columns.values() for key in each}
        wanted = {CHECKS: bool(self.checks), GENERATES: GENERATED in told, NUMBERS: _STEP in told}
        return {feature for feature, is_wanted in wanted.items() if is_wanted}


def shown_rules(rows: TableRows, types: Mapping[FieldId, DeltaType]) -> ShownRules:
    """Return the rules of a table whose leaves Delta shows with these types."""
    table, columns = rows.table, rows.table.columns
    checks: dict[str, str] = {}
    made: dict[FieldId, Mapping[str, Any]] = {}
    losses: list[Loss] = []
    for rule in constraints_of(table.properties, table.full_name):
        subject, why = rule.text(columns), _why_not(rule, columns, types)
        if why is None and rule.expression is not None:
            text = rule.expression.spelled(columns) or ""
            checks[f"{SHOWN_CHECK}{rule.name.lower()}"] = _turned(text, _STRICT, _LENIENT)
        losses += _losses(subject, rule.expression, columns, why)
    for one in computed_of(table.properties, table.full_name):
        column = columns.by_id(one.column)
        if column is None:
            continue  # another writer dropped it
        subject, why = f"{column_of((column.name,))}: {one.clause(columns)}", None
        if one.identity is not None:
            made[one.column] = _shown_identity(one.identity, last_number(rows.store, table))
        elif (why := _why_not(one, columns, types)) is None and one.expression is not None:
            text = one.expression.spelled(columns) or ""
            made[one.column] = {GENERATED: _typed(text, column, types)}
        losses += _losses(subject, one.expression, columns, why)
    return ShownRules(checks, made, tuple(losses))


def _shown_identity(identity: Identity, last: int | None) -> dict[str, Any]:
    told = {_START: identity.start, _STEP: identity.step, _EXPLICIT: not identity.always}
    return told if last is None else told | {_LAST: last}


def _typed(text: str, column: Field, types: Mapping[FieldId, DeltaType]) -> str:
    """Return an expression of the column's type: Delta's writer stores whatever type it has."""
    kind = type_text(types[column.id].leaf if column.is_leaf else column.type)
    tokens = tokenize(text)[:-1]
    is_cast = tokens[0].key == "CAST" and in_brackets(tokens[1:])
    if is_cast and text.upper().endswith(f" AS {kind})"):
        return text
    return f"CAST({text}{_END if '--' in text else ''} AS {kind})"


def _losses(
    subject: str, expression: RowExpression | None, columns: Schema, why: str | None
) -> Iterator[Loss]:
    if why is not None:
        yield Loss(subject, f"not shown{why}")
    elif (zone := _asked_zone(expression, columns)) is not None:
        yield Loss(subject, f"its time zone is {zone} here, and that of the session in Delta")


def _why_not(rule: Rule, columns: Schema, types: Mapping[FieldId, DeltaType]) -> str | None:
    """Return why Delta cannot have a rule, in words behind others; None if it can."""
    made = rule.expression
    if made is None:
        return ""
    if isinstance(rule, Constraint) and rule.unproven:
        return ": older rows were not checked; use VALIDATE CONSTRAINT"
    used = made.fields | ({rule.column} if isinstance(rule, ComputedColumn) else set())
    parts = {number: columns.by_id(number) for number in used}
    for part in parts.values():
        if part is None:
            return ": another writer dropped a column of it"
        for leaf in part.leaves():
            if leaf.id not in types or types[leaf.id].loss:
                return f": Delta has no type {leaf.type}"
    known = [(part.column, part.name) for part in made.parts]
    tops = [top for use in made.uses if (top := columns.by_id(use.column)) is not None]
    below = {f.id: f.name for top in tops for f in top.walk() if f is not top}
    return None if known == [*below.items()] else ": its columns have other fields by now"


def _asked_zone(expression: RowExpression | None, columns: Schema) -> str | None:
    """Return the time zone of an expression whose value may depend on it."""
    if expression is None:
        return None
    kinds = {str(leaf.shape) for top in expression.tops(columns) for leaf in top.leaves()}
    asks = "timestamptz" in kinds or _ASKS_ZONE.search(expression.text)
    return (expression.zone or "UTC") if asks else None
