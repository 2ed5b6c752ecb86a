"""A lake as a catalog of the user's own Spark session: names, statements, and ``format``."""
