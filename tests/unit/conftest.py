"""Plans are those of a lake: every subject takes part in them, as `shelduck.api` lets it."""

import shelduck.subjects  # noqa: F401
