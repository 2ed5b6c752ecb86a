"""Rows into new files: clustered, partitioned, encoded, measured; no commit names them yet."""
