"""The lake's metadata in a SQL database: the only importer of database drivers.

`store` opens transactions on SQLite, PostgreSQL or a DuckDB file; `tables` and `own_tables` are
what lies in them; `create` makes and opens lakes; `read` answers what a lake holds at a snapshot;
`commit` is the one door for changes. Model values go in and out, never driver rows.
"""
