"""The lake's metadata in a SQL database: the only importer of database drivers.

`databases` opens transactions on SQLite, PostgreSQL or a DuckDB file; `schema` makes and opens
lakes; `read` says what a lake holds at a snapshot; `commit` is the only way to change it; `running`
has jobs and writers. Model values go in and out, never driver rows.
"""
