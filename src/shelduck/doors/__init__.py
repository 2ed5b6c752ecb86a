"""The ways in: `connect` and `Lake`, SQL, Spark's own calls, and files of SQL.

Thin and typed: in come calls of users, and the verbs below do the work. Nothing here commits in a
way of its own, and nothing below knows it.
"""
