"""Statements as values; no text, no lake."""
