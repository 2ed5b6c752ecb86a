"""Verbs over rows and tables: each turns a table version and rows into changes; none commits.

Input: table versions from the catalog, DataFrames from the user. Output: DataFrames to read,
changes to commit.
"""
