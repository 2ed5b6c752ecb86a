"""What the SQL and the types of each catalog database are like: one module for each, one value."""
