"""The definition of a column, where it is added or redefined."""

from __future__ import annotations

from dataclasses import dataclass

from shelduck.model.tables.keys import Aggregation
from shelduck.model.tables.schema import Default, Path, path_text
from shelduck.model.text.quoting import quote_text
from shelduck.model.types.data_types import DataType


@dataclass(frozen=True, slots=True)
class Position:
    """Where a column goes: first, or after another column beside it."""

    after: str | None = None

    def __str__(self) -> str:
        return f"AFTER {path_text((self.after,))}" if self.after else "FIRST"


@dataclass(frozen=True, slots=True)
class Definition:
    """A column by its path, with its full definition; ``default`` None is NULL.

    ``key`` and ``aggregation`` are for tables with a key model.
    """

    path: Path
    type: DataType
    default: Default | None = None
    nullable: bool = True
    comment: str | None = None
    position: Position | None = None
    key: bool = False
    aggregation: Aggregation | None = None

    @property
    def text(self) -> str:
        """Return the definition as ALTER TABLE writes it."""
        text = f"{path_text(self.path)} {self.type}"
        if self.key:
            text += " KEY"
        if self.aggregation is not None:
            text += f" {self.aggregation.value}"
        if not self.nullable:
            text += " NOT NULL"
        if self.default is not None:
            text += f" DEFAULT {self.default}"
        if self.comment is not None:
            text += f" COMMENT {quote_text(self.comment)}"
        return f"{text} {self.position}" if self.position else text
