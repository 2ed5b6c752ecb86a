"""The lake's metadata in a SQL database: the only importer of database drivers.

`store` opens transactions on SQLite, PostgreSQL or a DuckDB file; `tables` and `own_tables` define
their tables; `create` makes and opens lakes; `read` says what a lake holds at a snapshot; `commit`
is the only way to change it. Model values go in and out, never driver rows.
"""
