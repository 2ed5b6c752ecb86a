"""The public objects: `connect`, `Lake`, `Table`, `Transaction` and the values that they return.

Thin and typed: in come calls of users, and the verbs and subjects below do the work. Nothing here
commits in a way of its own, and nothing below knows it.
"""
