"""Files and inlined rows: their contents and their places."""
