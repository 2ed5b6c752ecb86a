"""Statements over schemas, tables, rollups and views."""
