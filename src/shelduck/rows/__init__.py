"""Rows of a table: read, added, changed, deleted and restored, with key models on their way."""
