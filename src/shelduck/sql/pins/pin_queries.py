"""The query of a pinned view: the rows of a table of today in its columns of an older snapshot.

Columns are found by their ids, so renames are undone. Columns that were dropped since show their
default, and newer columns are left out. Fields of structs inside lists and maps are, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.errors import Unsupported
from shelduck.model.tables.schema import Field, Kind, Path, Schema, path_text
from shelduck.model.tables.table_version import TableVersion
from shelduck.model.tables.view import Pin
from shelduck.model.text.quoting import schema_names
from shelduck.model.types.data_types import type_text
from shelduck.sql.pins.casts import cast_back, is_shorter
from shelduck.sql.pins.words import DUCKDB, SPARK, Words
from shelduck.sql.query.translate import CATALOG

_ROWS = "pinned"


@dataclass(frozen=True, slots=True)
class PinTexts:
    """The query of a pinned view in the SQL of both engines."""

    duckdb: str
    spark: str


def pin_texts(pin: Pin, shape: Schema, now: TableVersion) -> PinTexts:
    """Return the query that shows a table in another shape, whose ids are those of today.

    Raises Unsupported if SQL cannot express it with the same meaning in both engines.
    """
    return PinTexts(*(_Query(pin, now, words).text(shape) for words in (DUCKDB, SPARK)))


class _Query:
    def __init__(self, pin: Pin, now: TableVersion, words: Words) -> None:
        self.pin = pin
        self.now = now
        self.words = words

    def text(self, shape: Schema) -> str:
        words = self.words
        shown = ", ".join(f"{self._column(f)} AS {words.name(f.name)}" for f in shape)
        table = ".".join(map(words.name, (*schema_names(self.now.schema.name), self.now.name)))
        catalog = f"{CATALOG}." if words is DUCKDB else ""
        return f"SELECT {shown} FROM {catalog}{table} AS {_ROWS}"

    def _column(self, then: Field) -> str:
        now = next((f for f in self.now.columns if f.id == then.id), None)
        if now is None:
            return self._missing(then)
        return self._value(f"{_ROWS}.{self.words.name(now.name)}", now, then, (then.name,))

    def _missing(self, then: Field) -> str:
        """Return what a column shows that the table does not have any more."""
        default = then.default.text if then.default and then.default.literal else None
        text = default if then.initial_default is None else then.initial_default
        if text is None or isinstance(then.shape, Kind):
            return f"CAST(NULL AS {self.words.type(then.type)})"
        return self.words.constant(then.shape, text)

    def _value(self, value: str, now: Field, then: Field, path: Path) -> str:
        if _is_same(now, then):
            return value
        if not isinstance(now.shape, Kind) and not isinstance(then.shape, Kind):
            told = (
                f"{path_text(path)} of {self.now.full_name} was {type_text(then.shape)} in snapshot"
                f" {self.pin.snapshot}, which does not hold "
            )
            try:
                return cast_back(self.words, value, now.shape, then.shape, told)
            except Unsupported as error:
                raise Unsupported(f"{path_text(path)} of {self.now.full_name}: {error}") from None
        if now.shape is not then.shape:
            raise Unsupported(
                f"{path_text(path)} of {self.now.full_name}: {type_text(now.type)} cannot be shown"
                f" as {type_text(then.type)}"
            )
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE {self._parts(value, now, then, path)} END"

    def _parts(self, value: str, now: Field, then: Field, path: Path) -> str:
        words, variable = self.words, f"e{len(path)}"
        if then.shape is Kind.STRUCT:
            return words.struct(
                [(c.name, self._member(value, now, c, path)) for c in then.children]
            )
        if then.shape is Kind.LIST:
            [old], [new] = then.children, now.children
            return words.elements(
                value, variable, self._value(variable, new, old, (*path, "element"))
            )
        (key, item), (new_key, new_item) = then.children, now.children
        if _has_more(new_key, key):
            raise Unsupported(
                f"{path_text(path)} of {self.now.full_name}: keys of the map have more fields now,"
                " and keys that differ only in these would become equal"
            )
        return words.entries(
            value,
            variable,
            self._value(words.member(variable, "key"), new_key, key, (*path, "key")),
            self._value(words.member(variable, "value"), new_item, item, (*path, "value")),
        )

    def _member(self, value: str, now: Field, then: Field, path: Path) -> str:
        found = next((c for c in now.children if c.id == then.id), None)
        if found is None:
            return self._missing(then)
        below = self.words.member(value, found.name)
        return self._value(below, found, then, (*path, then.name))


def _is_same(now: Field, then: Field) -> bool:
    """Return whether values are the same, down to the names and the order of fields."""
    if not isinstance(now.shape, Kind) and not isinstance(then.shape, Kind):
        return now.shape == then.shape and not is_shorter(now.shape, then.shape)
    if now.shape != then.shape or len(now.children) != len(then.children):
        return False
    pairs = zip(now.children, then.children, strict=True)
    return all(a.id == b.id and a.name == b.name and _is_same(a, b) for a, b in pairs)


def _has_more(now: Field, then: Field) -> bool:
    """Return whether a struct has fields that an older version of it has not, at any depth."""
    known = {f.id for f in then.walk()}
    return any(f.id not in known for f in now.walk())
