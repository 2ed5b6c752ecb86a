"""The DuckLake format and nothing else: tables, columns, names and values, in each version."""
