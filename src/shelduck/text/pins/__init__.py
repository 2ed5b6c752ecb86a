"""Pinned views: today's rows of a table in the columns of an older snapshot, as SQL."""
