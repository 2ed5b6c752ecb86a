"""What tests share: databases, a Spark session, and DuckDB's extension as oracle."""
