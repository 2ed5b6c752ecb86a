"""``delta.typeChanges``: the types that a field had before, as in a Delta schema.

Readers must refuse a table with a change that they do not know, because they cannot know what older
files hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from shelduck.borders.delta.delta_types import shown_as
from shelduck.borders.report import column_of
from shelduck.errors import CorruptLake, Unsupported
from shelduck.model.types.accepted import DELTA_WORDS, delta_widens
from shelduck.model.types.data_types import Decimal, Leaf, Primitive

TYPE_CHANGES = "delta.typeChanges"
# Files with "int" exist beside the "integer" of the protocol.
_TYPE_NAMES = {word: name for name, word in DELTA_WORDS.items()} | {"int": "int32"}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_TEXT = re.compile(r"(?:var)?char\(\d+\)|string collate \S+", re.IGNORECASE)


def leaf_of(text: str) -> Leaf | None:
    """Return the type that Delta calls ``text``, None for a type that DuckLake does not have."""
    known = _TYPE_NAMES.get(text)
    if known is not None:
        return Primitive(known)
    match = _DECIMAL.fullmatch(text)
    if match and 0 <= int(match[2]) <= int(match[1]) <= 38:
        return Decimal(int(match[1]), int(match[2]))
    return Primitive("varchar") if _TEXT.fullmatch(text) else None


def require_known_changes(
    metadata: Mapping[str, Any], leaves: Iterable[tuple[str, ...]], path: tuple[str, ...]
) -> None:
    """Raise Unsupported for a type change of a field that Delta's type widening does not have.

    ``leaves`` are the field paths of the field's leaves outside of structs: ``()`` for a field that
    is a leaf itself, ``("element",)`` for a list of leaves. Raises CorruptLake for an entry that
    cannot be read or whose path does not exist.
    """
    here = f"{column_of(path)} of the Delta table"
    known = set(leaves)
    for entry in _entries(metadata, here):
        place = tuple(entry.get("fieldPath", "").split(".")) if entry.get("fieldPath") else ()
        if place not in known:
            raise CorruptLake(
                f"{here} has a type change ({TYPE_CHANGES}) at {'.'.join(place)!r}, where it has no"
                " value; restore the schema in the log"
            )
        if not _is_known(entry["fromType"], entry["toType"]):
            raise Unsupported(
                f"{here} was changed from {entry['fromType']} to {entry['toType']}"
                f" ({TYPE_CHANGES}), which is not a change of Delta's type widening, so the types"
                " in its files are unknown; rewrite the table there without the feature"
                " typeWidening"
            )


def told_changes(narrow: Iterable[str], shown: str) -> list[tuple[str, str]]:
    """Return the changes of a leaf that files hold in these narrower types, the oldest first.

    Each type leads to the next wider one, as the column changed, and the last one to the current
    type.
    """
    ordered = _narrowest_first(narrow)
    wider = [*ordered, shown]
    return [
        (old, next(new for new in wider[n + 1 :] if new == shown or _widens(old, new)))
        for n, old in enumerate(ordered)
    ]


def words_of(had: Iterable[Leaf], shown: str) -> tuple[str, ...]:
    """Return the Delta types of a column's earlier types from which Delta can widen to ``shown``.

    DuckLake has more types and more promotions than Delta: a ``uint8`` was shown as another type,
    and some steps are none of Delta's.
    """
    words = (found.type for leaf in had if (found := shown_as(leaf)) is not None)
    return tuple(word for word in words if _widens(word, shown))


def _entries(metadata: Mapping[str, Any], here: str) -> list[Mapping[str, Any]]:
    told = metadata.get(TYPE_CHANGES) or []
    is_right = isinstance(told, list) and all(
        isinstance(e, dict)
        and isinstance(e.get("fromType"), str)
        and isinstance(e.get("toType"), str)
        and isinstance(e.get("fieldPath", ""), str)
        for e in told
    )
    if not is_right:
        raise CorruptLake(f"cannot read the type changes ({TYPE_CHANGES}) of {here}")
    return list(told)


def _is_known(old: str, new: str) -> bool:
    source, target = leaf_of(old), leaf_of(new)
    if source is None or target is None:
        return False
    # Lengths and collations of texts change no value.
    return source == target or delta_widens(source, target)


def _widens(old: str, new: str) -> bool:
    source, target = leaf_of(old), leaf_of(new)
    return source is not None and target is not None and delta_widens(source, target)


def _narrowest_first(types: Iterable[str]) -> list[str]:
    left, ordered = sorted(types), []
    while left:
        first = next(one for one in left if not any(_widens(other, one) for other in left))
        ordered.append(first)
        left.remove(first)
    return ordered
