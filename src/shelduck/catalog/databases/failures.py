"""What a failure of the catalog database means for the caller, for all databases."""

from __future__ import annotations

from enum import Enum

from shelduck.errors import CatalogUnavailable


class Failure(Enum):
    """The classes of all drivers' errors."""

    RETRYABLE = (
        "it was busy or another writer was faster; nothing was written, and you can repeat the work"
    )
    UNAVAILABLE = "it cannot be reached, opened or written; nothing was written"
    DENIED = "the server denies its role a right; nothing was written"
    OUTCOME_UNKNOWN = "the connection broke during COMMIT"
    CORRUPT = "the database file is damaged or is not a database"
    OTHER = "an error of the statement itself, or of the caller"


class Contention(CatalogUnavailable):
    """The catalog was locked, or another writer won a race: nothing was written, run it again."""
