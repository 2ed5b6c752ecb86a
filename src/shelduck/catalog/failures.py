"""What a failure of the catalog database means for the caller, apart from any database."""

from __future__ import annotations

from enum import Enum

from shelduck.errors import CatalogUnavailable


class Failure(Enum):
    """The classes that every driver's errors fall into."""

    RETRYABLE = "busy, or lost a race; nothing was written, the same work may be run again"
    UNAVAILABLE = "cannot be reached, opened or written; nothing was written"
    OUTCOME_UNKNOWN = "the connection broke during COMMIT"
    CORRUPT = "the database file is damaged or not a database"
    OTHER = "a fault of the statement itself: passed on as it is"


class Contention(CatalogUnavailable):
    """The catalog was locked, or another writer won a race: nothing was written, run it again."""
