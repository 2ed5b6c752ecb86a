"""Shelduck: a lakehouse engine for Spark that changes the shape of a table while it is in use."""
