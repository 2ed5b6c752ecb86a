"""Verbs over rows and tables: each turns a table version and rows into changes; none commits.

Comes in: table versions from the catalog, DataFrames from the user. Goes out: DataFrames to read,
changes to commit.
"""
