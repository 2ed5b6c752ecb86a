"""What others do in the middle of something: once, right before or after a function is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shelduck.jobs import lots

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def once_before(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]
) -> list[object]:
    """Acts before the first call of a function of a module or class; told is what that returned."""
    real, done = getattr(owner, name), []

    def late(*arguments: Any, **more: Any) -> Any:
        if not done:
            # Calls within the act are real ones.
            done.append(None)
            done[0] = act()
        return real(*arguments, **more)

    monkeypatch.setattr(owner, name, late)
    return done


def once_after(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]
) -> list[object]:
    """The same, after the first call has returned."""
    real, done = getattr(owner, name), []

    def late(*arguments: Any, **more: Any) -> Any:
        found = real(*arguments, **more)
        if not done:
            done.append(None)
            done[0] = act()
        return found

    monkeypatch.setattr(owner, name, late)
    return done


def convert_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let jobs convert small tables as they do large ones: in commits before they publish."""
    monkeypatch.setattr(lots, "is_little", lambda _: False)
