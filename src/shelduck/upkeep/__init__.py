"""Maintenance of a whole lake: expiry, cleanup, orphans, checks, and when each is due."""
