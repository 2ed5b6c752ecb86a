"""Streams from table to table that bring changes of columns along."""
