"""The tables of a catalog database: DuckLake's, Shelduck's own, and those of inlined rows."""
