"""Expressions over the columns of one row, as statements write them and as a lake keeps them.

A kept expression is text in which columns are known by id, with the time zone that it was made in
and the names that parts of its columns had. So it means the same in every session, and after every
rename, move and new field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from shelduck.errors import InvalidRequest, NotFound
from shelduck.model.tables.schema import Field, FieldId, Kind, Path, Schema, path_text
from shelduck.model.text.names import backticked, quote_text, split_name
from shelduck.model.text.stored import LEFT_OUT

ROW = "__shelduck_row"
"""What Spark calls the row of an expression, so that nothing else in it can be a column."""
_WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name with its parts in an expression: where it starts, and where each part ends.

    ``is_function``: without a column of the name, it is a function without brackets.
    """

    start: int
    path: Path
    ends: tuple[int, ...]
    is_function: bool = False


@dataclass(frozen=True, slots=True)
class WrittenExpression:
    """An expression as a statement has it, and the names of columns in it.

    ``exact``: its value does not ask how large whole numbers in its columns can be.
    """

    text: str
    names: tuple[NameUse, ...] = ()
    exact: bool = False
    zone: str = field(default="", metadata=LEFT_OUT)

    def bound(self, columns: Schema, table: str) -> RowExpression:
        """Return the expression over these columns; NotFound for a name that is none of them."""
        made, at, uses = "", 0, []
        parts: dict[FieldId, KnownPart] = {}
        for name in self.names:
            made += self.text[at : name.start]
            if name.is_function and columns.find(name.path) is None:
                at = name.ends[0]
                # With brackets it stays one when a column gets its name.
                made += f"{self.text[name.start : at]}()"
                continue
            at, found = _bound(name, columns, table)
            uses.append(ColumnUse(len(made), len(made) + at - name.start, found.id))
            made += self.text[name.start : at]
            parts |= {f.id: KnownPart(f.id, f.name) for f in found.walk() if f is not found}
        text, used = made + self.text[at:], tuple(uses)
        return RowExpression(text, used, tuple(parts.values()), self.exact, self.zone)


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """The text between two places of an expression, which names a column or a struct's field."""

    start: int
    end: int
    column: FieldId


@dataclass(frozen=True, slots=True)
class KnownPart:
    """A field below a column that an expression uses, and the name that the expression knows."""

    column: FieldId
    name: str


@dataclass(frozen=True, slots=True)
class RowExpression:
    """An expression over columns of a table, which are known by id.

    ``parts`` are the fields below them, in the order that the expression knows. ``zone`` is the
    time zone that it is evaluated in, always with ANSI mode; empty is UTC.
    """

    text: str
    uses: tuple[ColumnUse, ...] = ()
    parts: tuple[KnownPart, ...] = ()
    exact: bool = False
    zone: str = field(default="", metadata=LEFT_OUT)

    @property
    def fields(self) -> set[FieldId]:
        """The columns and fields whose values it may use."""
        return {use.column for use in self.uses} | {part.column for part in self.parts}

    def spelled(self, columns: Schema) -> str | None:
        """Return Spark's SQL with the present names; None if another writer dropped a column."""

        def spell(written: str, path: list[Field]) -> str:
            names = [field.name for field in path]
            return written if _names(written, names) else ".".join(map(backticked, names))

        return self._with(columns, spell)

    def evaluated(self, columns: Schema) -> str | None:
        """Return Spark's SQL over a row called `ROW`, with the parts that it knows of columns.

        None if another writer dropped a column or a part.
        """
        if any(columns.by_id(part.column) is None for part in self.parts):
            return None
        known = {part.column: part.name for part in self.parts}

        def spell(_: str, path: list[Field]) -> str:
            names = (ROW, *(field.name for field in path))
            return _as_known(".".join(map(backticked, names)), path[-1], known, 0)

        return self._with(columns, spell)

    def _with(self, columns: Schema, spell: Callable[[str, list[Field]], str]) -> str | None:
        made, at = "", 0
        for use in self.uses:
            path = _path_in(use.column, columns.fields)
            if path is None:
                return None
            made += self.text[at : use.start] + spell(self.text[use.start : use.end], path)
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

    def broken(self, columns: Schema, before: Schema) -> str | None:
        """Return what a change does that the expression cannot follow, None if it follows.

        It follows a rename, a move and a new field: it knows its columns by id, and projects them
        to the parts that it knows. Whole numbers may get another size if it is `exact`.
        """
        for number in sorted(self.fields):
            old, new = before.by_id(number), columns.by_id(number)
            if old is None:
                continue  # another writer dropped it before
            if new is None:
                return "drop or convert"
            is_same = self.exact and is_whole(old) and is_whole(new)
            if old.shape != new.shape and not is_same:
                return "change the type of"
        return None


def is_gone(number: FieldId, columns: Schema, before: Schema) -> bool:
    """Return whether a change drops a column or field; a job replaces the one that it converts."""
    return columns.by_id(number) is None and before.by_id(number) is not None


def is_whole(field: Field) -> bool:
    """Return whether Spark computes with a column's values as whole numbers of up to 64 bits."""
    return str(field.shape) in _WHOLE


def _names(written: str, names: list[str]) -> bool:
    with suppress(InvalidRequest):
        return [part.lower() for part in split_name(written)] == [part.lower() for part in names]
    return False


def _path_in(number: FieldId, fields: tuple[Field, ...]) -> list[Field] | None:
    for one in fields:
        if one.id == number:
            return [one]
        below = _path_in(number, one.children)
        if below is not None:
            return [one, *below]
    return None


def _bound(use: NameUse, columns: Schema, table: str) -> tuple[int, Field]:
    """Return the field of a struct that a name reaches, and where its name ends."""
    found = columns.find(use.path[:1])
    if found is None:
        raise NotFound.named("column", path_text(use.path), columns.names, where=table)
    depth = 1
    while depth < len(use.path) and found.shape is Kind.STRUCT:
        below = found.child(use.path[depth])
        if below is None:
            break
        found, depth = below, depth + 1
    return use.ends[depth - 1], found


def _as_known(text: str, field: Field, known: Mapping[FieldId, str], depth: int) -> str:
    """Return SQL for a value with the fields that an expression knows, in its order and names."""
    if field.is_leaf:
        return text
    if field.shape is Kind.STRUCT:
        children = {child.id: child for child in field.children}
        kept = [(name, children[number]) for number, name in known.items() if number in children]
        places = [f"{text}.{backticked(child.name)}" for _, child in kept]
        values = [_as_known(p, c, known, depth) for p, (_, c) in zip(places, kept, strict=True)]
        is_same = kept == [(child.name, child) for child in field.children] and values == places
        if is_same or not kept:
            return text
        members = [f"{quote_text(n)}, {v}" for (n, _), v in zip(kept, values, strict=True)]
        return f"if({text} IS NULL, NULL, named_struct({', '.join(members)}))"
    each_one = f"__shelduck_part{depth}"
    inner = [_as_known(each_one, child, known, depth + 1) for child in field.children]
    if all(one == each_one for one in inner):
        return text
    if field.shape is Kind.LIST:
        return f"transform({text}, {each_one} -> {inner[0]})"
    sides = [
        f"transform(map_{what}({text}), {each_one} -> {one})"
        for what, one in zip(("keys", "values"), inner, strict=True)
    ]
    return f"map_from_arrays({', '.join(sides)})"
