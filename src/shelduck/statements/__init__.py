"""SQL statements carried out through the verbs."""
