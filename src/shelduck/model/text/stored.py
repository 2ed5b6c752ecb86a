"""Texts that outlive a process: JSON with declared names and a version.

The fields of a dataclass, their names and types, declare what its text holds. Reading ignores names
that are not declared, and rewriting the text keeps them (docs/decisions/0034).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import lru_cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from shelduck.errors import CorruptLake, NewerFormat

Value = TypeVar("Value")

_VERSION = "version"
_VARIANT = "is"
_REQUIRED = object()
_NONE: Mapping[str, str] = MappingProxyType({})
LEFT_OUT: Mapping[str, bool] = MappingProxyType({"left out": True})
"""The metadata of a field that a text leaves out while it has its default."""


def _same(new: Any, _: Any) -> Any:
    return new


@dataclass(frozen=True, slots=True)
class Form:
    """How a value becomes plain JSON, and how it is restored.

    If a part of a record equals ``absent``, it is not written, and a missing part means ``absent``.
    ``keep`` adds to a new text the parts of an older text that the form does not name.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    absent: Any = _REQUIRED
    keep: Callable[[Any, Any], Any] = _same
    attribute: str = ""

    def called(self, attribute: str) -> Form:
        """Return the form of a part that has another name in Python than in the text."""
        return replace(self, attribute=attribute)


def plain(kind: type, absent: Any = _REQUIRED) -> Form:
    """Return the form of a value that JSON supports."""

    def read(found: Any) -> Any:
        if type(found) is not kind:
            raise TypeError(f"{found!r} is not of the type {kind.__name__}")
        return found

    return Form(lambda value: value, read, absent)


NUMBER = plain(int)
TEXT = plain(str)
_PLAIN = {int: NUMBER, str: TEXT, bool: plain(bool, absent=False)}
_UNIONS: dict[frozenset[type], Form] = {}


def word(kind: type[Enum]) -> Form:
    """Return the form of an enumeration whose values are stored as words."""

    def read(found: Any) -> Any:
        try:
            return kind(TEXT.read(found))
        except ValueError:
            raise _Newer(
                f"{found!r} is not one of {', '.join(one.value for one in kind)}"
            ) from None

    return Form(lambda value: value.value, read)


def maybe(form: Form) -> Form:
    """Return the form of a value that may be None."""

    def through(act: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: None if value is None else act(value)

    return Form(through(form.write), through(form.read), absent=None)


def each(form: Form, *, by: str = "") -> Form:
    """Return the form of a tuple; its records are identified ``by`` one of their parts."""

    def read(found: Any) -> Any:
        return tuple(form.read(one) for one in _list(found))

    def keep(new: Any, old: Any) -> Any:
        before = {one[by]: one for one in old} if by else {}
        return [form.keep(one, before[one[by]]) if by and one[by] in before else one for one in new]

    return Form(lambda value: [form.write(one) for one in value], read, absent=(), keep=keep)


def pair(first: Form, second: Form) -> Form:
    """Return the form of a tuple of two values."""

    def read(found: Any) -> Any:
        one, other = _list(found)
        return first.read(one), second.read(other)

    return Form(lambda value: [first.write(value[0]), second.write(value[1])], read)


def form_of(declared: Any) -> Form:
    """Return the form of values of the type that a field has."""
    shape, inside = get_origin(declared), get_args(declared)
    if shape in (UnionType, Union):
        kinds = frozenset(inside) - {NoneType}
        form = form_of(*kinds) if len(kinds) == 1 else later(lambda: _UNIONS[kinds])
        return maybe(form) if NoneType in inside else form
    if shape is tuple:
        return each(form_of(inside[0])) if ... in inside else pair(*map(form_of, inside))
    kind = getattr(declared, "__supertype__", declared)
    if kind in _PLAIN:
        return _PLAIN[kind]
    return word(kind) if issubclass(kind, Enum) else record(kind)


def record(kind: type, /, **others: Form) -> Form:
    """Return the form of a dataclass: that of each field, or another one by its name in the text.

    A missing tuple is empty, a missing flag False, and None is missing; see also `LEFT_OUT`.
    """
    names = {form.attribute or name: name for name, form in others.items()}
    types = get_type_hints(kind)
    parts: dict[str, Form] = {}
    for one in fields(kind):
        name = names.get(one.name, one.name)
        form = others.get(name) or form_of(types[one.name])
        parts[name] = replace(form, absent=one.default) if one.metadata == LEFT_OUT else form

    def write(value: Any) -> Any:
        held = {name: getattr(value, form.attribute or name) for name, form in parts.items()}
        return {n: parts[n].write(part) for n, part in held.items() if part != parts[n].absent}

    def read(found: Any) -> Any:
        given = {name: form for name, form in parts.items() if name in _object(found)}
        left_out = {name: form.absent for name, form in parts.items() if name not in given}
        missing = [name for name, value in left_out.items() if value is _REQUIRED]
        if missing:
            raise KeyError(*missing)
        values = {name: form.read(found[name]) for name, form in given.items()} | left_out
        return kind(**{parts[name].attribute or name: value for name, value in values.items()})

    def keep(new: Any, old: Any) -> Any:
        held = {n: parts[n].keep(v, old[n]) for n, v in new.items() if n in parts and n in old}
        return new | held | {n: v for n, v in old.items() if n not in parts}

    return Form(write, read, keep=keep)


def one_of(union: Any, /, **kinds: type) -> None:
    """Declare the form of a union of dataclasses: a name in the text says which kind it is."""
    names = {kind: name for name, kind in kinds.items()}
    variants = {name: record(kind) for name, kind in kinds.items()}

    def write(value: Any) -> Any:
        name = names[type(value)]
        return {_VARIANT: name} | variants[name].write(value)

    def read(found: Any) -> Any:
        name = TEXT.read(_object(found)[_VARIANT])
        if name not in variants:
            raise _Newer(f"{name!r} is not one of {', '.join(variants)}")
        return variants[name].read(found)

    _UNIONS[frozenset(get_args(union))] = Form(write, read)


def later(form: Callable[[], Form]) -> Form:
    """Return a form that contains itself and is therefore built on first use."""
    return Form(lambda value: form().write(value), lambda found: form().read(found))


def without_classes(names: Mapping[str, str] = _NONE) -> Callable[[Any], Any]:
    """Return a function that makes version 1 of a text without one, which names Python's classes.

    ``names`` are the names of variants, by the classes of that time.
    """

    def upgraded(found: Any) -> Any:
        if isinstance(found, list):
            return [upgraded(one) for one in found]
        if not isinstance(found, dict):
            return found
        if found.keys() == {_VARIANT, "value"}:
            return found["value"]
        parts = {name: upgraded(part) for name, part in found.items() if name != _VARIANT}
        variant = names.get(found.get(_VARIANT, ""))
        return parts if variant is None else {_VARIANT: variant} | parts

    return upgraded


_UPGRADED = without_classes()


@dataclass(frozen=True, slots=True, eq=False)
class Stored(Generic[Value]):
    """One kind of text. Errors use ``what`` to say what it describes.

    A higher ``version`` is for parts that older readers must not ignore. ``upgraded`` makes version
    1 of a text without one.
    """

    what: str
    form: Form
    upgraded: Callable[[Any], Any] = _UPGRADED
    version: int = 1

    def write(self, value: Value, before: str | None = None) -> str:
        """Return the text of a value, to replace the text ``before``.

        If that means the same, it stays as it is. Otherwise its parts outside the form are kept.
        """
        told = {_VERSION: self.version} | self.form.write(value)
        if before is not None:
            old = self._plain(before)
            if self.form.read(old) == value:
                return before
            told = self.form.keep(told, old)
        return json.dumps(told, separators=(",", ":"))

    def put(self, properties: Mapping[str, str], key: str, value: Value | None) -> dict[str, str]:
        """Return properties that hold a value under a key; without the key if there is none."""
        rest = {k: v for k, v in properties.items() if k != key}
        return rest if value is None else rest | {key: self.write(value, properties.get(key))}

    def known(self, text: str, table: str) -> Value:
        """Return what `read` does of a table's text, which is read once."""
        found: Value = _read(self, text, f"table {table}")
        return found

    def read(self, text: str, of: str) -> Value:
        """Return the value that a text means; ``of`` names the object to which it belongs.

        Raises NewerFormat if only a newer Shelduck can read it, and CorruptLake if no version can.
        """
        try:
            found: Value = self.form.read(self._plain(text))
        except _Newer as newer:
            raise NewerFormat(
                f"the {self.what} of {of} was made by a newer Shelduck; upgrade ({newer})"
            ) from None
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptLake(f"cannot decode the {self.what} of {of}: {text[:80]!r}") from error
        return found

    def _plain(self, text: str) -> Any:
        found = json.loads(text)
        if not isinstance(found, dict) or _VERSION not in found:
            return self.upgraded(found)
        number = NUMBER.read(found.pop(_VERSION))
        if number > self.version:
            raise _Newer(f"format version {number}, supported: {self.version}")
        return found


@lru_cache(maxsize=2048)
def _read(stored: Stored[Any], text: str, of: str) -> Any:
    return stored.read(text, of)


class _Newer(Exception):
    """A text contains something that only newer code can read."""


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise TypeError(f"{found!r} is not a list")
    return found


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise TypeError(f"{found!r} is not an object")
    return found
