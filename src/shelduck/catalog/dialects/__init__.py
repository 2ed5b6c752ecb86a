"""The SQL and the types of each catalog database: one module and one value for each."""
