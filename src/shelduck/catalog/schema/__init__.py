"""A new lake in a database, an existing one opened, and Shelduck's own tables beside DuckLake's."""
