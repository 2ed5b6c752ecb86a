"""Queries and expressions: the tables that they name, and their texts in other dialects."""
