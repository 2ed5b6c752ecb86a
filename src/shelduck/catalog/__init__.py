"""The lake's metadata in a SQL database: the only importer of database drivers.

`databases` opens transactions on SQLite, PostgreSQL or a DuckDB file; `schema` makes and opens
lakes; `read` says what a lake holds at a snapshot; `commit` is the only way to add one; `running`
has jobs and writers; `upkeep` audits and removes. Model values go in and out, never driver rows.
"""
