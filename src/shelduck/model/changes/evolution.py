"""Changes that rows may make to the columns of their table: the words that `Table.append` takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from shelduck.errors import InvalidRequest
from shelduck.model.types.data_types import Member

_WORDS = ("none", "add", "widen", "all")


@dataclass(frozen=True, slots=True)
class Evolution:
    """The changes that a write may make to the columns of its table, in the snapshot of its rows.

    ``adds``: columns and struct fields that only the rows have. ``widens``: types that the rows
    need wider. ``rescue`` is the column for values that still do not fit, None if they are refused.
    ``expects`` are columns that the table must have when the rows are committed.
    """

    adds: bool = False
    widens: bool = False
    rescue: str | None = None
    expects: tuple[Member, ...] = ()

    @property
    def is_none(self) -> bool:
        """True if the columns stay, and rows that do not fit are refused."""
        return not (self.adds or self.widens) and self.rescue is None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `Table.append` that mean this."""
        return {"evolve": self.words, "rescue": self.rescue, "expect": self.expects or None}

    @property
    def words(self) -> tuple[str, ...]:
        """The words that mean this, without the rescue column."""
        return ("add",) * self.adds + ("widen",) * self.widens


NO_EVOLUTION = Evolution()
FULL_EVOLUTION = Evolution(adds=True, widens=True)


def evolution_of(
    evolve: str | Collection[str] | None,
    rescue: str | None = None,
    *,
    merges: bool = False,
    expects: Iterable[Member] = (),
) -> Evolution:
    """Return what a caller asks for; ``merges`` is Spark's ``mergeSchema``, the same as "all".

    Raises InvalidRequest for a word that there is not, for "none" beside other words, and for both
    ways of asking at once.
    """
    if evolve is not None and merges:
        raise InvalidRequest(
            'merge_schema is the same as evolve="all"; leave out one of the two', about="option"
        )
    if rescue == "":
        raise InvalidRequest(
            'the rescue column must have a name, such as "_rescued"', about="option"
        )
    is_one = isinstance(evolve, str) or not isinstance(evolve, Collection)
    words = () if evolve is None else [evolve] if is_one else evolve
    given = {_word(word) for word in words}
    if "none" in given and len(given) > 1:
        raise InvalidRequest(
            f"evolve has {', '.join(sorted(given))}; use none without other words", about="option"
        )
    is_all = merges or "all" in given
    adds, widens = is_all or "add" in given, is_all or "widen" in given
    return Evolution(adds, widens, rescue, tuple(expects))


def _word(word: object) -> str:
    found = word.strip().lower() if isinstance(word, str) else ""
    if found not in _WORDS:
        raise InvalidRequest(
            f"evolve must be one or several of {', '.join(_WORDS)}, not {word!r}", about="option"
        )
    return found
