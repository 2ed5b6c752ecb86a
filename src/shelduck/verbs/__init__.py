"""The verbs of tables and lakes, the same for Python and SQL."""
