"""ALTER TABLE: its clauses, its verbs in Python, and columns and tables that come back.

`shelduck.lake.evolution` plans a change; a light one is committed, a heavy one becomes a job.
"""
