"""Tokens of a statement, and the readings that all statements share."""
