"""Rows of a DataFrame as rows of a table: store assignment and conversions."""
