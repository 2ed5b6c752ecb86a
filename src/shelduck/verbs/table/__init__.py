"""The verbs of one table."""
