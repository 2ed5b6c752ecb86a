"""As which Delta type a column is shown, by what the files physically hold, and which it had.

Delta's readers accept a stored value of exactly this type, or of a type that Delta's type widening
lists as narrower. If a file holds anything else, it must be rewritten. They must refuse a table
with a change of types (``delta.typeChanges``) that they do not know, because they cannot know what
older files hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shelduck.errors import CorruptLake, Unsupported
from shelduck.formats.report import column_of
from shelduck.model.files.layout import PhysicalField
from shelduck.model.tables.schema import Kind
from shelduck.model.types.accepted import DELTA_WORDS, delta_widens, delta_word
from shelduck.model.types.data_types import Decimal, Leaf, Primitive

_WHOLE = "integers are shown as {}"
_TEXT = "Delta has no such type: shown as text"
_HUGE = Decimal(38, 0)
_NULL = "a variant that is null, as which DuckDB stores NULL, is a value to Delta"


@dataclass(frozen=True, slots=True)
class DeltaType:
    """How a leaf is shown: a Delta type, and the differences that readers will see.

    ``stored`` are the types, and their encodings, that readers accept for it unchanged.
    """

    type: str
    leaf: Leaf
    stored: frozenset[tuple[str, str]]
    loss: str = ""

    def holds(self, stored: PhysicalField) -> bool:
        """Return whether a stored leaf is of this type."""
        return (str(stored.shape), stored.encoding) in self.stored

    def narrower(self, stored: PhysicalField) -> str | None:
        """Return the Delta type of a stored leaf that can be widened to this one, or None."""
        if isinstance(stored.shape, Kind) or stored.encoding:
            return None
        return delta_word(stored.shape) if delta_widens(stored.shape, self.leaf) else None


def shown_as(leaf: Leaf) -> DeltaType | None:
    """Return how Delta shows a type; None if Delta has no type for it."""
    if isinstance(leaf, Decimal):
        return _shown(str(leaf), leaf, (str(leaf), ""))
    name = leaf.name
    if name in ("timestamp_s", "timestamp_ms"):
        leaf = Primitive("timestamp")
        return _shown("timestamp_ntz", leaf, ("timestamp", ""))
    if name == "timestamptz":
        return _shown("timestamp", leaf, (name, ""), ("timestamp", "int96"))
    if name in _OTHERS:
        return _OTHERS[name]
    if name == "variant":
        return _shown(name, leaf, (name, ""), loss=_NULL)
    text = delta_word(leaf)
    if text is None:
        return None
    also = (("json", ""),) if name == "varchar" else ()
    return _shown(text, leaf, (name, ""), *also)


def _shown(text: str, leaf: Leaf, *stored: tuple[str, str], loss: str = "") -> DeltaType:
    return DeltaType(text, leaf, frozenset(stored), loss)


# Files hold these as Spark wrote them or, for the small unsigned ones, as DuckDB wrote them. The
# values are the same for every reader that respects the type of the file.
_OTHERS: dict[str, DeltaType] = {
    "uint8": _shown(
        "short", Primitive("int16"), *(("int16", ""), ("uint8", "")), loss=_WHOLE.format("short")
    ),
    "uint16": _shown(
        "integer",
        Primitive("int32"),
        *(("int32", ""), ("uint16", "")),
        loss=_WHOLE.format("integer"),
    ),
    "uint32": _shown(
        "long", Primitive("int64"), *(("int64", ""), ("uint32", "")), loss=_WHOLE.format("long")
    ),
    "uint64": _shown(
        "decimal(20,0)", Decimal(20, 0), ("decimal(20,0)", ""), loss=_WHOLE.format("decimal(20,0)")
    ),
    **dict.fromkeys(
        ("int128", "uint128"),
        _shown(str(_HUGE), _HUGE, (str(_HUGE), ""), loss=_WHOLE.format(_HUGE)),
    ),
    **dict.fromkeys(
        ("time", "timetz", "json", "uuid"),
        _shown(
            "string",
            Primitive("varchar"),
            *(("varchar", ""), ("json", ""), ("uuid", "utf8")),
            loss=_TEXT,
        ),
    ),
}


TYPE_CHANGES = "delta.typeChanges"
# Files with "int" exist beside the "integer" of the protocol.
_TYPE_NAMES = {word: name for name, word in DELTA_WORDS.items()} | {"int": "int32"}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_ANY_TEXT = re.compile(r"(?:var)?char\(\d+\)|string collate \S+", re.IGNORECASE)


def leaf_of(text: str) -> Leaf | None:
    """Return the type that Delta calls ``text``, None for a type that DuckLake does not have."""
    known = _TYPE_NAMES.get(text)
    if known is not None:
        return Primitive(known)
    match = _DECIMAL.fullmatch(text)
    if match and 0 <= int(match[2]) <= int(match[1]) <= 38:
        return Decimal(int(match[1]), int(match[2]))
    return Primitive("varchar") if _ANY_TEXT.fullmatch(text) else None


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
