"""The kinds of changes: one module for each, with its fold, its check and its rows."""
