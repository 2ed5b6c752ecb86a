"""A table and rows in, new files and the changes that name them out; nothing is committed."""
