"""Text to values and back: statements, queries, defaults and pushed filters. No I/O.

`predicates` is the way in for Spark's pushed filters, `defaults` for default expressions, `render`
the way out. Seven modules use sqlglot.
"""
