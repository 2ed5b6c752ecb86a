"""What a stream computes from the rows of its source, also after columns get other names.

Names of the stream's text mean the columns that had them when it began: rows are shown to it under
these names, by the ids of the columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from shelduck.engine.session import AnalysisException, DataFrame
from shelduck.engine.types import data_type_of, spark_type
from shelduck.errors import InvalidRequest, ShelduckError
from shelduck.model.tables.schema import Field, FieldId, Path, Schema, new_field, with_paths
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.text.names import backticked
from shelduck.text.tokens.cursor import Cursor
from shelduck.text.tokens.lexer import tokenize

_HIDDEN = "__shelduck_carried_{}"
_KEY = re.compile(r"#(\d+)")
Names = Mapping[int, Path]
"""The paths of fields, by id, as the text of a stream knows them."""


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the rows that a stream carries.

    ``key`` tells it from the others: "#7" is the source's column of that id, "#7 n" the same column
    under a name that the text gives it, "=n" a computed one. ``field`` has the ids of the source,
    which mean nothing if it is ``computed``. ``value`` is SQL over the rows that the text sees.
    """

    key: str
    field: Field
    value: str
    computed: bool = False

    def parts(self) -> Iterator[tuple[str, Field]]:
        """Yield this field and all below it, with what tells each from the others."""
        yield from self._below(self.key, self.field)

    def _below(self, key: str, field: Field) -> Iterator[tuple[str, Field]]:
        yield key, field
        for child in field.children:
            yield from self._below(self.key_below(key, child), child)

    def key_below(self, key: str, child: Field) -> str:
        """Return what tells a field below another part: its id, or its name if it is computed."""
        return f"{key}/{child.name if self.computed else child.id}"


def key_after(key: str, replaced: Mapping[FieldId, FieldId]) -> str:
    """Return the key that a part has after jobs converted columns of the source."""
    found = _KEY.match(key)
    after = None if found is None else replaced.get(FieldId(int(found[1])))
    return key if found is None or after is None else f"#{after}{key[found.end() :]}"


def source_of(key: str) -> int | None:
    """Return the id of the source's field that a part is, None for a computed one."""
    found = _KEY.match(key)
    below = key.rpartition("/")[2]
    return None if found is None else int(found[1] if below == key else below)


@dataclass(frozen=True, slots=True)
class _Item:
    """One expression of a select: its text, the column if it is only one, and the given name."""

    text: str
    column: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class FlowText:
    """The conditions and the expressions of a stream, as SQL; no expressions are all columns."""

    conditions: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = ", ".join(self.expressions) or "*"
        where = " AND ".join(f"({one})" for one in self.conditions)
        return f"SELECT {shown}" + (f" WHERE {where}" if where else "")

    @property
    def is_plain(self) -> bool:
        """True for all columns of all rows."""
        return not self.conditions and self.expressions in ((), ("*",))

    def read(
        self, rows: DataFrame, version: TableVersion, names: Names
    ) -> tuple[DataFrame, tuple[Output, ...]]:
        """Return the rows of the stream, of those of its source, and its columns.

        InvalidRequest for a text that does not fit the columns of the source.
        """
        fields = version.columns.fields
        try:
            seen = self._seen(rows, fields, names)
            return seen, self._outputs(seen, fields, names)
        except AnalysisException as error:
            told = str(error).strip().splitlines()[0]
            raise InvalidRequest(
                f"{self} does not fit the columns of {version.full_name} in snapshot"
                f" {version.snapshot.id}: {told}; a stream goes on where it stopped if you run it"
                " with a text for these columns"
            ) from error

    def _seen(self, rows: DataFrame, columns: Sequence[Field], names: Names) -> DataFrame:
        """Return the rows that fulfil the conditions, with the names that the text knows."""
        if self.is_plain:
            return rows
        known = _called(columns, names)
        found = _typed(rows, [(f, _named(f, names)) for f in columns]).toDF(*known.values())
        for condition in self.conditions:
            found = found.where(condition)
        return found

    def _outputs(
        self, seen: DataFrame, columns: Sequence[Field], names: Names
    ) -> tuple[Output, ...]:
        known = _called(columns, {} if self.is_plain else names)
        everything = [Output(f"#{f.id}", f, backticked(known[f.id])) for f in columns]
        if self.is_plain:
            return tuple(everything)
        found: list[Output] = []
        gone = {path[0].lower() for n, path in names.items() if len(path) == 1} - {
            known[f.id].lower() for f in columns
        }
        for item in map(_item, self.expressions or ("*",)):
            if item.text == "*":
                found += everything
            elif item.column is None or item.column.lower() not in gone:
                found.append(_output(seen, item, everything))
        lowered = [one.field.name.lower() for one in found]
        twice = next((name for name in lowered if lowered.count(name) > 1), None)
        if twice is not None:
            raise InvalidRequest(f"{self} has two columns named {twice!r}; give one another name")
        return tuple(found)


def _output(seen: DataFrame, item: _Item, everything: Sequence[Output]) -> Output:
    column = None if item.column is None else backticked(item.column).lower()
    own = next((one for one in everything if one.value.lower() == column), None)
    if own is None:
        [made] = seen.selectExpr(item.text).schema.fields
        field = new_field(made.name, data_type_of(made.dataType, made.name), 1)
        return Output(f"={made.name}", field, item.text, computed=True)
    if item.name is None:
        return own
    return replace(own, key=f"{own.key} {item.name}", field=replace(own.field, name=item.name))


def _item(text: str) -> _Item:
    """Return an expression, of which only a single column and its new name are understood."""
    stripped = text.strip()
    try:
        cursor = Cursor(stripped, tokenize(stripped))
        column = cursor.name()
        name = cursor.name() if cursor.accept("AS") else None
        cursor.end()
    except ShelduckError:
        return _Item(stripped)
    return _Item(stripped, column, name)


def _called(columns: Sequence[Field], names: Names) -> dict[FieldId, str]:
    """Return the names of columns in the text; a later column never takes one that it knows."""
    known = {number: path[0] for number, path in names.items() if len(path) == 1}
    taken = {name.lower() for name in known.values()}
    return {
        f.id: known.get(f.id) or (_HIDDEN.format(f.id) if f.name.lower() in taken else f.name)
        for f in columns
    }


def _named(field: Field, names: Names) -> Field:
    """Return a field of which all below has the names that are known."""
    children = (
        replace(_named(c, names), name=names[c.id][-1] if c.id in names else c.name)
        for c in field.children
    )
    return replace(field, children=tuple(children))


def _typed(rows: DataFrame, fields: Sequence[tuple[Field, Field]]) -> DataFrame:
    """Return columns with other names in them: those of the second field of each pair."""
    # The first field may have names that the rows have not: a text sees those of its beginning.
    named = ((rows[backticked(f.name)], other) for f, other in fields)
    return rows.select(*(c.cast(spark_type(f.type)) if f.children else c for c, f in named))


def filling(seen: DataFrame, outputs: Sequence[Output], paths: Mapping[str, Path]) -> DataFrame:
    """Return rows as they fill a sink: ``paths`` are those of its fields, by the keys of parts."""
    fields = []
    for one in outputs:
        below = {int(f.id): paths[key] for key, f in one.parts() if key in paths}
        field = replace(one.field, name=paths[one.key][0])
        fields.append((field, field if one.computed else _named(field, below)))
    made = seen.selectExpr(*(one.value for one in outputs)).toDF(*(f.name for f, _ in fields))
    return _typed(made, fields)


def paths_in(columns: Schema) -> dict[int, Path]:
    """Return what the text of a stream calls the fields of its source, if it begins now."""
    return {int(field.id): path for path, field in with_paths(columns)}
