"""`Table`, put together from the verbs of each subject, and tables and schemas by name.

The same for Python and SQL: statements call these verbs, or stage the same changes themselves.
"""
