"""What an incremental model's table lacks beside the rows that are to go into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shelduck.model.types.data_types import (
    DataType,
    List,
    Map,
    Member,
    Struct,
    parse_type,
    type_text,
)
from shelduck.model.types.promotions import promotion

Columns = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Clause:
    """A clause of an ALTER TABLE; ``is_heavy`` if files may have to be written for it."""

    text: str
    is_heavy: bool = False


def clauses(target: Columns, source: Columns, *, follows: bool) -> list[Clause]:
    """Return what gives a table the columns of its new rows, at all depths.

    Columns are names and types in Spark's words. Fields are added and types become wider. If the
    table ``follows`` the rows, columns and fields that they lack are dropped, too, and types become
    theirs, whatever that takes.
    """
    whole = [Struct(tuple(Member(n, parse_type(t)) for n, t in part)) for part in (target, source)]
    return list(_of_struct((), whole[0], whole[1], follows=follows))


def _of(path: tuple[str, ...], old: DataType, new: DataType, *, follows: bool) -> Iterator[Clause]:
    if isinstance(old, Struct) and isinstance(new, Struct):
        yield from _of_struct(path, old, new, follows=follows)
    elif isinstance(old, List) and isinstance(new, List):
        yield from _of((*path, "element"), old.element, new.element, follows=follows)
    elif isinstance(old, Map) and isinstance(new, Map):
        yield from _of((*path, "key"), old.key, new.key, follows=follows)
        yield from _of((*path, "value"), old.value, new.value, follows=follows)
    elif old != new:
        is_light = promotion(old, new).is_light
        if is_light or follows:
            text = f"ALTER COLUMN {_text(path)} TYPE {type_text(new)}"
            yield Clause(text, not is_light)


def _of_struct(
    path: tuple[str, ...], old: Struct, new: Struct, *, follows: bool
) -> Iterator[Clause]:
    before = {member.name.lower(): member for member in old.members}
    after = {member.name.lower(): member for member in new.members}
    for name, member in before.items():
        if name in after:
            yield from _of((*path, member.name), member.type, after[name].type, follows=follows)
        elif follows:
            # Views that read it are models, too, and made again behind it.
            yield Clause(f"DROP COLUMN {_text((*path, member.name))} CASCADE")
    for name, member in after.items():
        if name not in before:
            place = _text((*path, member.name))
            yield Clause(f"ADD COLUMN {place} {type_text(member.type)}")


def _text(path: Sequence[str]) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)
