"""Rows of a table as DataFrames, and the change feed."""
