"""Work over many tables or jobs, of which none keeps the others from theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Self, TypeVar

from shelduck.errors import NotFound

Thing = TypeVar("Thing")
Result = TypeVar("Result")


class Turns:
    """Gives each its turn, whatever comes of those before; its end raises the first error."""

    def __init__(self) -> None:
        self._failed: list[Exception] = []

    def each(
        self,
        things: Iterable[Thing],
        act: Callable[[Thing], Result],
        told: Callable[[Thing], str] = "at table {}".format,
    ) -> Iterator[Result]:
        """Yield what came of each thing; an error gets a note of what ``told`` says of its thing.

        A table that was dropped meanwhile needs nothing.
        """
        for thing in things:
            try:
                done = act(thing)
            except Exception as error:  # noqa: BLE001 - raised when the others had their turn
                if not (isinstance(error, NotFound) and error.about == "table"):
                    error.add_note(told(thing))
                    self._failed.append(error)
            else:
                yield done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._failed:
            raise self._failed[0]
