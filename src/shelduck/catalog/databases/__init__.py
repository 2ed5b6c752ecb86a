"""The databases that a catalog may be: one store, and what differs below it."""
