"""The needs of a type change, at any depth: as much as the most demanding of its parts.

`shelduck.model.types.promotions` judges leaves. Struct members are matched by name without case,
lists by their element, maps by key and value. NOT NULL inside a nested type is ignored here,
because DuckLake keeps it for top-level columns only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shelduck.model.tables.schema import Path, path_text
from shelduck.model.tables.writable import unwritable_parts
from shelduck.model.types.accepted import Engine
from shelduck.model.types.data_types import DataType, Decimal, List, Map, Primitive, Struct
from shelduck.model.types.promotions import Promotion, Verdict, promotion

Finding = tuple[Path, Promotion]

_DEMANDS = tuple(Verdict)


def conversion_verdict(source: DataType, target: DataType) -> Promotion:
    """Return what changing values of ``source`` to ``target`` needs, whatever types they are.

    The reason gives the path of the first part that decides, such as ``a.element.b``, or no path
    for the whole type. Members that only the target has are NULL for old values; members that only
    the source has are dropped. The order of members is the target's. This needs only metadata,
    except inside a map's key.
    """
    found = _whole(list(_findings(source, target, ())), promotion(target, target))
    if found.verdict is Verdict.CONVERT:
        for path, reason in unwritable_parts(target):
            return Promotion(Verdict.REFUSED, _told(path, reason))
    return found


def _whole(findings: Sequence[Finding], same: Promotion) -> Promotion:
    others = [(path, part) for path, part in findings if part.verdict is not Verdict.SAME]
    if not others:
        return same
    path, worst = max(others, key=lambda f: _DEMANDS.index(f[1].verdict))
    parts = [part for _, part in others]
    return replace(
        worst,
        reason=_told(path, worst.reason),
        bounds_hold=all(p.bounds_hold for p in parts),
        same_grain=all(p.same_grain for p in parts),
        accepted_by=frozenset.intersection(*(p.accepted_by for p in parts)),
    )


def _told(path: Path, reason: str) -> str:
    return f"{path_text(path)}: {reason}" if path else reason


def _findings(
    source: DataType, target: DataType, path: Path, *, in_key: bool = False
) -> Iterator[Finding]:
    """Yield the verdicts on all parts of a pair in pre-order."""
    match source, target:
        case Struct(), Struct():
            yield from _of_members(source, target, path, in_key=in_key)
        case List(), List():
            below = (*path, "element")
            yield from _findings(source.element, target.element, below, in_key=in_key)
        case Map(), Map():
            yield from _findings(source.key, target.key, (*path, "key"), in_key=True)
            yield from _findings(source.value, target.value, (*path, "value"), in_key=in_key)
        case ((Primitive() | Decimal()), (Primitive() | Decimal())):
            yield path, promotion(source, target)
        case _:
            reason = f"there is no conversion from {source} to {target}; give one with USING"
            yield path, Promotion(Verdict.REFUSED, reason)


def _of_members(source: Struct, target: Struct, path: Path, *, in_key: bool) -> Iterator[Finding]:
    known = {m.name.lower(): m for m in source.members}
    wanted = {m.name.lower() for m in target.members}
    kept = [m.name for m in source.members if m.name.lower() in wanted]
    if kept != [m.name for m in target.members if m.name.lower() in known]:
        yield path, _reshaped("fields of the struct change their order or spelling")
    for member in source.members:
        if member.name.lower() not in wanted:
            yield (*path, member.name), _dropped(in_key=in_key)
    for member in target.members:
        below = (*path, member.name)
        old = known.get(member.name.lower())
        if old is None:
            yield below, _reshaped("a new field is NULL in existing values")
        else:
            yield from _findings(old.type, member.type, below, in_key=in_key)


def _reshaped(reason: str) -> Promotion:
    """Return the verdict on a struct's shape; how other engines handle it was not measured."""
    ours = frozenset({Engine.DUCKLAKE, Engine.DUCKDB})
    return Promotion(Verdict.SAFE, reason, same_grain=True, accepted_by=ours)


def _dropped(*, in_key: bool) -> Promotion:
    if in_key:
        return Promotion(
            Verdict.CONVERT, "map keys that differ only in this field would become equal"
        )
    return _reshaped("the field is dropped")
