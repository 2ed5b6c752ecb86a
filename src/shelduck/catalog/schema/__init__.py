"""The tables that a catalog database has: DuckLake's, our own, and those of inlined rows."""
