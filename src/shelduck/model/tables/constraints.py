"""Constraints of a table: CHECK, which every write of Shelduck enforces, and keys for information.

They are one property of the table, so they have its history. Expressions are Spark's SQL. Columns
in them are found by id, so that a rename by anybody changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.tables.schema import Field, FieldId, Path, Schema, path_text
from shelduck.model.text.names import split_name
from shelduck.model.text.quoting import backticked, quote_name
from shelduck.model.text.stored import FLAG, NUMBER, TEXT, Stored, each, maybe, plain, record, word

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
class NameUse:
    """A name with its parts in an expression: where it starts, and where each part ends."""

    start: int
    path: Path
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WrittenExpression:
    """An expression as a statement has it, and the names of columns in it."""

    text: str
    names: tuple[NameUse, ...] = ()

    def bound(self, columns: Schema, table: str) -> RowExpression:
        """Return the expression over these columns; NotFound for a name that is none of them."""
        return RowExpression(self.text, tuple(_bound(use, columns, table) for use in self.names))


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """The text between two places of an expression, which names a column or a struct's field."""

    start: int
    end: int
    column: FieldId


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression over columns of a table, which are known by id."""

    text: str
    uses: tuple[ColumnUse, ...] = ()

    def spelled(self, columns: Schema) -> str | None:
        """Return Spark's SQL with the present names; None if another writer dropped a column."""
        made, at = "", 0
        for use in self.uses:
            path = path_of(use.column, columns)
            if path is None:
                return None
            written = self.text[use.start : use.end]
            made += self.text[at : use.start]
            made += written if _names(written, path) else ".".join(map(backticked, path))
            at = use.end
        return made + self.text[at:]

    @property
    def meaning(self) -> tuple[object, ...]:
        """The text without the names of columns, with their ids in place of them."""
        ends = (0, *(use.end for use in self.uses))
        starts = (*(use.start for use in self.uses), len(self.text))
        between = (self.text[end:start] for end, start in zip(ends, starts, strict=True))
        return *between, *(use.column for use in self.uses)

    def tops(self, columns: Schema) -> list[Field]:
        """Return the columns of the table that it uses, or parts of which it uses."""
        used = {use.column for use in self.uses}
        return [f for f in columns if any(part.id in used for part in f.walk())]


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
    references: str = ""
    unproven: bool = False
    relies: bool = False

    @property
    def uses(self) -> set[FieldId]:
        """The columns and fields that it names."""
        return {*self.columns, *(use.column for use in (self.expression or RowExpression("")).uses)}

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


EXPRESSION_FORM = record(
    RowExpression, text=TEXT, uses=each(record(ColumnUse, start=NUMBER, end=NUMBER, column=NUMBER))
)
_STORED: Stored[Constraints] = Stored(
    "constraints",
    record(
        Constraints,
        constraints=each(
            record(
                Constraint,
                name=TEXT,
                kind=word(ConstraintKind),
                expression=maybe(EXPRESSION_FORM),
                columns=each(NUMBER),
                references=plain(str, absent=""),
                unproven=FLAG,
                relies=FLAG,
            ),
            by="name",
        ).called("all"),
    ),
)
_read = lru_cache(maxsize=256)(_STORED.read)


def constraints_of(properties: Mapping[str, str], table: str) -> Constraints:
    """Return the constraints of a table; NewerFormat if only a newer Shelduck knows them."""
    text = properties.get(CONSTRAINTS)
    return Constraints() if text is None else _read(text, f"table {table}")


def with_constraints(properties: Mapping[str, str], found: Constraints) -> dict[str, str]:
    """Return the properties of a table with these constraints."""
    rest = {k: v for k, v in properties.items() if k != CONSTRAINTS}
    if not found.all:
        return rest
    return rest | {CONSTRAINTS: _STORED.write(found, properties.get(CONSTRAINTS))}


def shown_checks(properties: Mapping[str, str], columns: Schema, table: str) -> dict[str, str]:
    """Return CHECK constraints as properties, as Delta shows them."""
    found = ((c.name, c.expression) for c in constraints_of(properties, table).checks)
    return {f"{SHOWN_CHECK}{n}": e.spelled(columns) or e.text for n, e in found if e is not None}


def path_of(number: FieldId, columns: Schema) -> Path | None:
    """Return where a column or a struct's field is, None if it is gone."""
    return _path_in(number, columns.fields) if columns.by_id(number) is not None else None


def is_gone(number: FieldId, columns: Schema, before: Schema) -> bool:
    """Return whether a change drops a column or field; a job replaces the one that it converts."""
    return columns.by_id(number) is None and before.by_id(number) is not None


def require_kept(
    properties: Mapping[str, str], columns: Schema, before: Schema, table: str
) -> None:
    """Raise InvalidRequest if a constraint needs a column that a change drops or converts."""
    for one in constraints_of(properties, table):
        if any(is_gone(number, columns, before) for number in one.uses):
            raise InvalidRequest(
                f"cannot drop or convert a column of {table} that the constraint"
                f" {quote_name(one.name)} uses: {one.kind.value}"
                f" {'' if one.expression is None else f'({one.expression.text})'}; use ALTER TABLE"
                f" {table} DROP CONSTRAINT {quote_name(one.name)} first"
            )


def _names(written: str, path: Path) -> bool:
    with suppress(InvalidRequest):
        return [part.lower() for part in split_name(written)] == [part.lower() for part in path]
    return False


def _path_in(number: FieldId, fields: tuple[Field, ...]) -> Path | None:
    for one in fields:
        if one.id == number:
            return (one.name,)
        below = _path_in(number, one.children)
        if below is not None:
            return (one.name, *below)
    return None


def _bound(use: NameUse, columns: Schema, table: str) -> ColumnUse:
    for length in range(len(use.path), 0, -1):
        found = columns.find(use.path[:length])
        if found is not None:
            return ColumnUse(use.start, use.ends[length - 1], found.id)
    raise NotFound.named("column", path_text(use.path), columns.names, where=table)
