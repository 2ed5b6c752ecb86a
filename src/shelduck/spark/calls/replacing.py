"""Methods of Spark's classes that are replaced while lakes are attached, and restored later.

Others may replace the same methods. Their replacement on top of ours then stays, and ours does what
the method did before. A call that somebody kept continues to work, with and without lakes.
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
        """Restore the original method, unless others have replaced ours since."""
        self.is_on = False
        if not self.is_on_top:
            return
        if self.is_inherited:
            delattr(self.kind, self.method)
        else:
            setattr(self.kind, self.method, self.original)


_replacements: dict[tuple[type, str], _Replacement] = {}


def replace_method(kind: type, method: str, instead: Callable[[Call], Call]) -> None:
    """Replace a method by the result of ``instead``, which gets the original; once until restored.

    If others have replaced the method since, theirs becomes the original.
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
    """Restore all methods to Spark's own, or to those of others."""
    while _replacements:
        _replacements.popitem()[1].give_back()
