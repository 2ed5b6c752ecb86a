"""Spark's own calls on a table of a lake: readers, writers and streams."""
