"""`Table`, put together from the verbs of each subject, and tables and schemas by name.

The same for Python and SQL: a statement calls the verb that a user of Python would.
"""
