"""What changing a type needs, and what becomes of a field and of everything below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shelduck.errors import Unsupported
from shelduck.model.tables.properties import TYPE_WIDENING, Properties, allows_promotion
from shelduck.model.tables.schema import Field, FieldId, Kind, Path, new_field, path_text
from shelduck.model.tables.table_version import unwritable_parts
from shelduck.model.types.accepted import TypeRules
from shelduck.model.types.data_types import (
    DataType,
    Decimal,
    Leaf,
    List,
    Map,
    Primitive,
    Struct,
    shared_parts,
    type_text,
)
from shelduck.model.types.literals import as_float32, float_text
from shelduck.model.types.promotions import Promotion, Verdict, promotion

Finding = tuple[Path, Promotion]
_TEXT = Primitive("varchar")
_DEMANDS = tuple(Verdict)


class Retyping:
    """Retypes one field after another, giving new members ids from ``next_id`` on.

    Struct members are matched by name as in DuckLake: new ones are added, missing ones end, the
    others keep their ids. ``unsafe_bounds`` collects leaves whose bounds are no longer valid.
    ``properties`` are the table's: they say which promotions it allows.
    """

    def __init__(self, next_id: int, table: str, properties: Properties) -> None:
        self.next_id = next_id
        self.table = table
        self._properties = properties
        self.unsafe_bounds: frozenset[FieldId] = frozenset()

    def field(self, old: Field, new: DataType, path: Path) -> Field:
        """Return ``old`` with the type ``new``; Unsupported if values would be lost."""
        if old.is_leaf and isinstance(new, Primitive | Decimal):
            return self._leaf(old, new, path)
        if isinstance(new, Struct) and old.shape is Kind.STRUCT:
            return replace(old, children=self._members(old, new, path))
        fresh = new_field(old.name, new, 0)
        if old.is_leaf or fresh.shape is not old.shape:
            raise Unsupported(
                f"cannot change {path_text(path)} of {self.table} from {old.type} to {new}: a"
                " struct, list or map cannot be changed to or from another kind of type; add a new"
                " column and drop the old one"
            )
        children = tuple(
            self.field(o, n.type, (*path, o.name))
            for o, n in zip(old.children, fresh.children, strict=True)
        )
        return replace(old, children=children)

    def _members(self, old: Field, new: Struct, path: Path) -> tuple[Field, ...]:
        wanted = {m.name.lower(): m for m in new.members}
        kept = [
            self.field(child, wanted[child.name.lower()].type, (*path, child.name))
            for child in old.children
            if child.name.lower() in wanted
        ]
        present = {child.name.lower() for child in old.children}
        for member in new.members:
            if member.name.lower() not in present:
                made = new_field(member.name, member.type, self.next_id)
                self.next_id += sum(1 for _ in made.walk())
                last = max((f.order for f in kept), default=0)
                kept.append(replace(made, order=max(made.id, last + 1)))
        return tuple(kept)

    def _leaf(self, old: Field, new: Leaf, path: Path) -> Field:
        found = promotion(old.type, new)
        if not found.is_light:
            raise self._refusal(old, new, path, found)
        if not allows_promotion(self._properties, found):
            raise Unsupported(
                f"cannot change {path_text(path)} of {self.table} from {old.type} to {new}:"
                f" {self._why_not(found)}; enable it with ALTER TABLE {self.table} SET"
                f" TBLPROPERTIES ('{TYPE_WIDENING}' = 'true')"
            )
        if found.is_finer and old.default is not None and not old.default.literal:
            raise self._other_default(old, new, path)
        if not found.bounds_hold:
            self.unsafe_bounds |= {old.id}
        return replace(old, shape=new, initial_default=_same_value(old, new))

    def _why_not(self, found: Promotion) -> str:
        if self._properties.get(TYPE_WIDENING) == "false":
            return "type widening is disabled"
        assert not found.is_default
        return (
            "the DuckLake specification does not allow this promotion, and type widening is not"
            " enabled"
        )

    def _refusal(self, old: Field, new: Leaf, path: Path, found: Promotion) -> Unsupported:
        remedy = self._by_using(old, new, path)
        if found.verdict is Verdict.CONVERT:
            remedy = "; add a column of the new type, fill it and drop the old one"
            if len(path) == 1:
                added = path_text((f"new_{path[0]}",))
                remedy += f": ALTER TABLE {self.table} ADD COLUMN {added} {type_text(new)}"
        return Unsupported(
            f"cannot change {path_text(path)} of {self.table} from {old.type} to {new}:"
            f" {found.reason}, and only widening works by metadata alone{remedy}"
        )

    def _by_using(self, old: Field, new: Leaf, path: Path) -> str:
        """Return the clause that would convert the values by way of text, if one can."""
        if len(path) > 1 or any(found for t in (old.type, new) for found in unwritable_parts(t)):
            return ""
        if promotion(_TEXT, new).verdict is Verdict.REFUSED:
            return ""
        column = path_text(path)
        # The job casts the text to the type, and checks that it is one of its values.
        return (
            f"; give a conversion, as in ALTER TABLE {self.table} ALTER COLUMN {column} TYPE"
            f" {type_text(new)} USING CAST({column} AS STRING)"
        )

    def _other_default(self, old: Field, new: Leaf, path: Path) -> Unsupported:
        assert old.default is not None
        column = path_text(path)
        return Unsupported(
            f"cannot change {column} of {self.table} from {old.type} to {new}: its default"
            f" {old.default.text} would produce other values than before; drop the default and set"
            f" a new one: ALTER TABLE {self.table} ALTER COLUMN {column} DROP DEFAULT, ALTER"
            f" COLUMN {column} TYPE {type_text(new)}, ALTER COLUMN {column} SET DEFAULT …"
        )


def _same_value(old: Field, new: Leaf) -> str | None:
    """Return the initial default as text of ``new``: existing rows keep their value.

    The text of a float is the shortest text that identifies it among floats of its own width, so as
    a double it would be another number.
    """
    text = old.initial_default
    if text is None or old.type == new or str(old.type) != "float32":
        return text
    value = as_float32(float(text))
    assert value is not None
    return float_text(new, value)


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
        case (List(), List()) | (Map(), Map()):
            for old, new in shared_parts(source, target) or ():
                is_key = in_key or new.name == "key"
                yield from _findings(old.type, new.type, (*path, new.name), in_key=is_key)
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
    ours = frozenset({TypeRules.DUCKLAKE, TypeRules.DUCKDB})
    return Promotion(Verdict.SAFE, reason, same_grain=True, accepted_by=ours)


def _dropped(*, in_key: bool) -> Promotion:
    if in_key:
        return Promotion(
            Verdict.CONVERT, "map keys that differ only in this field would become equal"
        )
    return _reshaped("the field is dropped")
