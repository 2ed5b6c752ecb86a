"""Delta tables: read into a lake with their history (`plan`), and written over a lake's files."""
