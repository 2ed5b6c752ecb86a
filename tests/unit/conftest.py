"""Plans are those of a lake: every subject takes part in them, as `shelduck.doors` lets it."""

import shelduck.doors.subjects  # noqa: F401
