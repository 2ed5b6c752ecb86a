"""Work on many tables or jobs, in which no failure stops the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Self, TypeVar

from shelduck.errors import NotFound

Thing = TypeVar("Thing")
Result = TypeVar("Result")


class Turns:
    """Processes all things even if some fail; raises the first error at the end."""

    def __init__(self) -> None:
        self._failed: list[Exception] = []

    def each(
        self,
        things: Iterable[Thing],
        act: Callable[[Thing], Result],
        told: Callable[[Thing], str] = "while working on table {}".format,
    ) -> Iterator[Result]:
        """Yield the result for each thing; an error gets a note from ``told`` about its thing.

        Tables that were dropped in the meantime are skipped.
        """
        for thing in things:
            try:
                done = act(thing)
            except Exception as error:  # noqa: BLE001 - raised after the others
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
