"""DuckDB's text form of structs, lists and maps, in which catalogs keep nested inlined values.

``{'a': 1, 'b': 'x,''y'}`` is a struct, ``[a, NULL, 'b c']`` a list, ``{k=1}`` a map. Strings are
quoted only if necessary. Inside quotes a backslash escapes the next character; outside it is a
plain backslash. A bare ``NULL`` is null; a quoted one is text.

If DuckDB 1.5.5 writes a struct that is not inside a list or map to another database, it writes a
SQL literal instead: a quote is doubled, a backslash is plain, and most types are written as
``CAST('2024-01-01' AS DATE)``. But it reads this as its text form, which loses values or raises an
error. Shelduck writes the text form in these databases too, after a blank. DuckDB skips the blank,
and it tells the two forms apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from shelduck.errors import CorruptLake
from shelduck.model.tables.schema import Field, Kind
from shelduck.model.types.data_types import SIGNED, UNSIGNED, Decimal
from shelduck.model.types.literals import blob_bytes

Item = TypeVar("Item")
Nested = dict[str, object] | list[object] | list[tuple[object, object]]

TEXT_FORM = " "
"""Precedes a struct in its text form in databases that otherwise contain SQL literals."""
_BLANK = " \t\n\v\f\r"
_QUOTES = ("'", '"')
_CAST, _CAST_END = "CAST(", re.compile(r" AS \w[\w ]*\)")
_CLOSING = frozenset("]}")
_BARE = frozenset({*SIGNED, *UNSIGNED, "boolean"})


def parse_nested(field: Field, text: str, *, sql_structs: bool = False) -> Nested | None:
    """Return the value that DuckDB's text of a nested ``field`` means.

    A dict by field name for a struct, a list for a list, a list of (key, value) pairs for a map;
    None for ``NULL``. Leaves are their DuckDB text, ``bytes`` for blobs, None for null. Members
    that are missing in the text of a struct are None. ``sql_structs`` says that structs are SQL
    literals, except inside lists and maps and after `TEXT_FORM`. Raises CorruptLake for text that
    is not a value of the field.
    """
    reader = _Reader(field, text)
    found = reader.value(field, "", sql=sql_structs and not text.startswith(TEXT_FORM))
    reader.finish()
    assert found is None or isinstance(found, dict | list)
    return found


class _Reader:
    """Recursive descent over one text, directed by the field's shape."""

    def __init__(self, field: Field, text: str) -> None:
        self.field = field
        self.text = text
        self.at = 0

    def value(self, field: Field, ends: str, *, sql: bool = False) -> object:
        """Read one value of ``field``; bare text stops before any of ``ends``."""
        self._skip()
        opening = "[" if field.shape is Kind.LIST else "{"
        if field.is_leaf or self._peek() != opening:
            return self._leaf(field, ends, sql=sql)
        self.at += 1
        if field.shape is Kind.LIST:
            return self._items("]", lambda: self.value(field.children[0], ",]"))
        if field.shape is Kind.MAP:
            return self._items("}", lambda: self._pair(field))
        members: dict[str, object] = {c.name: None for c in field.children}
        self._items("}", lambda: self._member(field, members, sql=sql))
        return members

    def finish(self) -> None:
        self._skip()
        if self.at != len(self.text):
            raise self._error("unexpected text after the value")

    def _leaf(self, field: Field, ends: str, *, sql: bool) -> object:
        is_cast = sql and self.text.startswith(_CAST, self.at)
        self.at += len(_CAST) if is_cast else 0
        quoted = is_cast or self._peek() in _QUOTES
        word = self._quoted(sql=sql) if quoted else self._bare(ends)
        if is_cast:
            self._end_cast()
        if not quoted and word.upper() == "NULL":
            return None
        if not field.is_leaf:
            raise self._error(f"expected a {field.type}")
        if str(field.shape) != "blob":
            return word
        value = blob_bytes(word)
        if value is None:
            raise self._error("expected a blob")
        return value

    def _pair(self, field: Field) -> tuple[object, object]:
        key = self.value(field.children[0], "=")
        self._expect("=")
        return key, self.value(field.children[1], ",}")

    def _member(self, field: Field, members: dict[str, object], *, sql: bool) -> None:
        self._skip()
        name = self._quoted(sql=sql) if self._peek() in _QUOTES else self._bare(":")
        self._expect(":")
        child = field.child(name)
        if child is None:
            raise self._error(f"there is no field {name!r}")
        members[child.name] = self.value(child, ",}", sql=sql)

    def _items(self, close: str, item: Callable[[], Item]) -> list[Item]:
        items: list[Item] = []
        self._skip()
        while self._peek() != close:
            if items:
                self._expect(",")
            items.append(item())
            self._skip()
            if self._peek() not in (",", close):
                raise self._error(f"expected ',' or {close!r}")
        self.at += 1
        return items

    def _bare(self, ends: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in ends:
            self.at += 1
        return self.text[start : self.at].strip(_BLANK)

    def _quoted(self, *, sql: bool) -> str:
        quote = self._peek()
        if quote not in _QUOTES:
            raise self._error("expected a quote")
        out: list[str] = []
        self.at += 1
        while self._peek() != quote or (sql and self.text.startswith(quote * 2, self.at)):
            is_escape = self._peek() == quote if sql else self._peek() == "\\"
            self.at += is_escape
            if self.at >= len(self.text):
                raise self._error("a quote is not closed")
            out.append(self.text[self.at])
            self.at += 1
        self.at += 1
        return "".join(out)

    def _end_cast(self) -> None:
        found = _CAST_END.match(self.text, self.at)
        if found is None:
            raise self._error("expected the end of a cast")
        self.at = found.end()

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _BLANK:
            self.at += 1

    def _expect(self, character: str) -> None:
        self._skip()
        if self._peek() != character:
            raise self._error(f"expected {character!r}")
        self.at += 1

    def _error(self, why: str) -> CorruptLake:
        return CorruptLake(
            f"column {self.field.name!r} ({self.field.type}) holds an inlined value that cannot be"
            f" parsed at character {self.at}: {why}: {self.text[:200]!r}"
        )


def nested_text(field: Field, value: object) -> str:
    """Return the text that DuckDB casts to the value of ``field``, which is not null.

    The value is as `InlinedRows` holds it. Everything but numbers is quoted, so no value can be
    mistaken for syntax or for NULL.
    """
    if field.shape is Kind.STRUCT:
        members = cast("dict[str, object]", value)
        inside = (f"{_quoted(c.name)}: {_text(c, members.get(c.name))}" for c in field.children)
        return f"{{{', '.join(inside)}}}"
    if field.shape is Kind.LIST:
        items = cast("list[object]", value)
        return f"[{', '.join(_text(field.children[0], v) for v in items)}]"
    key, item = field.children
    pairs = cast("list[tuple[object, object]]", value)
    return f"{{{', '.join(f'{_text(key, k)}={_text(item, v)}' for k, v in pairs)}}}"


def parts_of(field: Field, value: object) -> Iterator[tuple[Field, object]]:
    """Yield what is in a nested value of ``field``, which is not null, each with its own field.

    The value is as `InlinedRows` holds it.
    """
    if isinstance(value, dict):
        yield from ((child, value.get(child.name)) for child in field.children)
    else:
        for item in cast("list[object]", value):
            parts = cast("tuple[object, object]", item) if field.shape is Kind.MAP else (item,)
            yield from zip(field.children, parts, strict=True)


def survives(field: Field, value: object) -> bool:
    """Return whether DuckDB reads the value back correctly from its text.

    DuckDB 1.5.5 takes the text of a value with JSON inside for JSON. When it looks for the end of a
    nested value, it takes even a quoted closing bracket for the end. PostgreSQL stores no NUL in
    text.
    """
    if value is None or field.is_leaf:
        return True
    return not any(str(f.shape) == "json" for f in field.leaves()) and _survives(field, value, 0)


def _survives(field: Field, value: object, depth: int) -> bool:
    if value is None or isinstance(value, bytes):
        return True
    if field.is_leaf:
        return depth == 0 or _is_harmless(str(value), depth)
    names = [c.name for c in field.children] if field.shape is Kind.STRUCT else []
    return all(_is_harmless(name, depth + 1) for name in names) and all(
        _survives(part, inside, depth + 1) for part, inside in parts_of(field, value)
    )


def _is_harmless(text: str, depth: int) -> bool:
    return "\0" not in text and (depth < 2 or not _CLOSING.intersection(text))


def _text(field: Field, value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(field.shape, Kind):
        return nested_text(field, value)
    if isinstance(value, bytes):
        # Every byte is escaped, so none can be taken for a bracket.
        return _quoted("".join(f"\\x{b:02X}" for b in value))
    text = str(value)
    return text if isinstance(field.shape, Decimal) or str(field.shape) in _BARE else _quoted(text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
