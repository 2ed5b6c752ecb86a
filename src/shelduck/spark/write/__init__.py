"""Rows into new files: clustered, partitioned, encoded, measured."""
