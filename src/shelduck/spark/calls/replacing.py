"""Methods of Spark's classes that are replaced while lakes are attached, and given back after.

Others may replace the same methods: what they put above ours stays, and ours then does what the
method did before. A call that somebody kept goes on working, with and without lakes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

Call = Callable[..., Any]


@dataclass(slots=True)
class _Replacement:
    """A method of a class that does something else while ``is_on``."""

    kind: type
    method: str
    original: Call
    is_inherited: bool
    is_on: bool = True
    call: Call | None = None

    @property
    def is_on_top(self) -> bool:
        """True unless others have replaced the method again since."""
        return getattr(self.kind, self.method) is self.call

    def give_back(self) -> None:
        """Do what the original did, and leave no trace unless others build upon this one."""
        self.is_on = False
        if not self.is_on_top:
            return
        if self.is_inherited:
            delattr(self.kind, self.method)
        else:
            setattr(self.kind, self.method, self.original)


_replacements: dict[tuple[type, str], _Replacement] = {}


def replace_method(kind: type, method: str, instead: Callable[[Call], Call]) -> None:
    """Have a method do what ``instead``, given the original, returns; once until all is given back.

    Where others have replaced the method since, theirs becomes the original.
    """
    known = _replacements.get((kind, method))
    if known is not None:
        if known.is_on_top:
            return
        known.give_back()
    original = getattr(kind, method)
    made = _Replacement(kind, method, original, method not in vars(kind))
    ours = instead(original)

    @wraps(original)
    def call(*arguments: Any, **more: Any) -> Any:
        return (ours if made.is_on else original)(*arguments, **more)

    made.call = call
    setattr(kind, method, call)
    _replacements[kind, method] = made


def give_methods_back() -> None:
    """Let all methods be Spark's own again, or those of others."""
    while _replacements:
        _replacements.popitem()[1].give_back()
