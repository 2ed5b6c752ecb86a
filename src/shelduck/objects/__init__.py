"""Tables, schemas, views and properties by name, and `Table`, put together from all verbs."""
