"""Values and their algebra: frozen dataclasses over the standard library, no I/O.

Types, schemas, schema changes, files, changes of a commit and the matrix of their conflicts.
Everything above imports this package; it imports only `shelduck.errors`.
"""
