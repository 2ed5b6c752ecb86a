"""SQL statements carried out: `run` has a function for each kind, and `calls` the procedures.

In comes a text, which `parse` turns into values; out come rows, or what a command did. A function
calls a verb, or stages in the same unit of work what no verb does; none commits in another way.
"""
