"""Statements of maintenance, of history, of jobs, and those that only look."""
