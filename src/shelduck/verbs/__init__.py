"""What tables and lakes can do, the same for Python and SQL."""
