"""Decisions without I/O: how files are read, and which of them a filter may find rows in."""
