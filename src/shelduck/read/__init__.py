"""What one reader of a table sees: which files, deletes and inlined rows, as DataFrames.

`plan` decides without I/O how files are read, `scan` makes the frames. Nothing is committed.
"""
