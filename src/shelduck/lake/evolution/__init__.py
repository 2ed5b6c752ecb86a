"""A table and schema changes in, a plan with one change for a commit out; no I/O, and no commit."""
