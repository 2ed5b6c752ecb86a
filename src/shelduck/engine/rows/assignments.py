"""Values that a statement assigns to columns and struct fields, by store assignment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - Spark's own name for it

from shelduck.engine.bridge import Named, Sql, select_named
from shelduck.engine.rows.assign import Assigning, Demand, has_rules
from shelduck.engine.rows.table_rules import ruled
from shelduck.errors import InvalidRequest
from shelduck.model.tables.schema import Field, Kind, Path, Schema, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked

Value = Column | str
_EVERY_FIELD = Demand("the new value", "give every field, or set only some, by their paths")


@dataclass(frozen=True, slots=True)
class SetValue:
    """One assignment to a column or a struct's field; the value is None for the default.

    With ``keeps``, fields that the value's structs lack stay as they are in a row of the table.
    """

    path: Path
    value: Value | None
    keeps: bool = False

    def __post_init__(self) -> None:
        if self.value is not None and not isinstance(self.value, Column | str):
            raise InvalidRequest(
                f"{path_text(self.path)} must be set to SQL text or a Spark column, such as"
                f' "upper(name)" or lit(5), not to {self.value!r}'
            )

    @property
    def expression(self) -> Column | None:
        """Return the value as a Spark column, None for the default."""
        return F.expr(self.value) if isinstance(self.value, str) else self.value


class Assignments:
    """Assignments to columns of one table, checked before anything runs.

    Raises NotFound for a path that the table does not have, and InvalidRequest for a path inside a
    list or map and for two paths of which one is a part of the other.
    """

    def __init__(self, table: TableVersion, values: Sequence[SetValue]) -> None:
        self.table = table
        self.values = tuple(values)
        self._places: dict[Path, int] = {}
        self._below: dict[str, list[Path]] = {}
        for number, given in enumerate(values):
            path = _known_path(table.columns, given.path, table.full_name)
            others = self._below.setdefault(path[0], [])
            for other in others:
                shorter = min(len(path), len(other))
                if path[:shorter] == other[:shorter]:
                    raise InvalidRequest(f"{path_text(given.path)} is assigned twice")
            others.append(path)
            self._places[path] = number

    def given(self, names: Sequence[str]) -> list[str]:
        """Return which of ``names``, one for each assignment, have a value and not the default."""
        return [n for n, v in zip(names, self.values, strict=True) if v.value is not None]

    def expressions(self) -> list[Column]:
        """Return the assigned values; a default has none."""
        return [value for v in self.values if (value := v.expression) is not None]

    def struct(self, names: Sequence[str]) -> Sql | Column | None:
        """Return all values in one struct, if there are any; the names end with those of fields."""
        fields = [name.rpartition(".")[2] for name in self.given(names)]
        if not fields:
            return None
        texts = [v.value for v in self.values if isinstance(v.value, Sql)]
        if len(texts) == len(fields):
            parts = [f"'{name}', {text}" for name, text in zip(fields, texts, strict=True)]
            return Sql(f"named_struct({', '.join(parts)})")
        values = zip(fields, self.expressions(), strict=True)
        return F.struct(*[value.alias(name) for name, value in values])

    def gives(self, field: Field) -> bool:
        """Return whether a column gets a value that is not its default."""
        number = self._places.get((field.name,))
        return number is not None and self.values[number].value is not None

    def sets(self, field: Field) -> bool:
        """Return whether a column, or a part of it, is assigned."""
        return field.name in self._below

    def needed(self) -> Iterator[int]:
        """Yield the places of the columns whose current value decides about the new one."""
        for place, field in enumerate(self.table.columns):
            number = self._places.get((field.name,))
            if number is None or (self.values[number].keeps and field.shape is Kind.STRUCT):
                yield place

    def columns(
        self,
        assigning: Assigning,
        schema: Mapping[str, T.StructField],
        names: Sequence[str],
        now: Sequence[str] | None,
    ) -> list[str | Column]:
        """Return the new value of each column of the table, from columns of a DataFrame.

        ``schema`` are its types; ``names`` are its columns with the assigned values, ``now`` those
        with the current values, None for a new row, which gets defaults.
        """
        given = [
            None if value.value is None else schema[name]
            for name, value in zip(names, self.values, strict=True)
        ]
        made: list[str | Column] = []
        for place, field in enumerate(self.table.columns):
            paths = self._below.get(field.name, ())
            below = {p[1:]: given[self._places[p]] for p in paths}
            if () in below or (now is None and not below):
                made.append(assigning.column(field, below.get(()), self._today(field, place, now)))
            elif now is not None and not below:
                made.append(now[place])
            else:
                today = None if now is None else F.col(now[place])
                made.append(_inside(assigning, field, (field.name,), today, below))
        return made

    def _today(self, field: Field, place: int, now: Sequence[str] | None) -> Column | None:
        """Return the current value of a column of which fields that the new one lacks stay."""
        number = self._places.get((field.name,))
        if now is None or number is None or field.shape is not Kind.STRUCT:
            return None
        return F.col(now[place]) if self.values[number].keeps else None


def updated_rows(matches: DataFrame, assignments: Assignments, *, keep: Sequence[str]) -> DataFrame:
    """Return the rows after the assignments: the table's columns, then those to ``keep``.

    ``matches`` are rows of the table. A value that does not fit fails the job that computes it (see
    `shelduck.engine.rows.assign.failure_of`); types that do not fit are InvalidRequest at once.
    """
    table = assignments.table
    # Spark resolves a name without a column to one of these, but nobody writes such a name.
    now = [f"__shelduck_now_{n}" for n in range(len(table.columns.names))]
    names = [f"__shelduck_value_{n}" for n in range(len(assignments.values))]
    today = [Named(c, backticked(f.name)) for f, c in zip(table.columns, now, strict=True)]
    values = [
        # Spark allows a generator, which makes several rows from one, in no other expression.
        Named(name, F.when(F.lit(True), value))
        for name, value in zip(assignments.given(names), assignments.expressions(), strict=True)
    ]
    kept = [Named(name, backticked(name)) for name in keep]
    found = select_named(matches, today + kept + values)
    assigning = Assigning.into(table, _EVERY_FIELD)
    types = {f.name: f for f in found.schema.fields}
    changed = assignments.columns(assigning, types, names, now)
    assigning.finish()
    named = [Named(f.name, c) for f, c in zip(table.columns, changed, strict=True)]
    made = select_named(found, named + kept)
    if not has_rules(table):
        return made
    return ruled(made, table, assignments.gives, assigning.fitting, is_set=assignments.sets)


def _inside(
    assigning: Assigning,
    field: Field,
    path: Path,
    now: Column | None,
    below: Mapping[Path, T.StructField | None],
) -> Column:
    """Return the value of a field if all of it, nothing, or a part below it is assigned."""
    if () in below:
        given = below[()]
        if given is None:
            return assigning.missing(field, path_text(path), top=False)
        step = assigning.step(given.dataType, field, path_text(path))
        value = F.col(given.name)
        return step.convert(value) if step.convert else value
    if not below:
        if now is None:
            return assigning.missing(field, path_text(path), top=False)
        assigning.check_writable(field, path_text(path))
        return now
    parts = []
    for child in field.children:
        deeper = {p[1:]: given for p, given in below.items() if p[0] == child.name}
        today = None if now is None else now.getField(child.name)
        part = _inside(assigning, child, (*path, child.name), today, deeper)
        parts.append(part.alias(child.name))
    return F.struct(*parts)


def _known_path(columns: Schema, path: Path, table: str) -> Path:
    """Return the path in the table's spelling."""
    found: list[str] = []
    for length in range(1, len(path) + 1):
        field = columns.get(path[:length], table)
        if length < len(path) and field.shape is not Kind.STRUCT:
            raise InvalidRequest(
                f"{path_text(path)} of {table} is neither a column nor a field of a struct; assign"
                f" all of {path_text(path[:length])}"
            )
        found.append(field.name)
    return tuple(found)
