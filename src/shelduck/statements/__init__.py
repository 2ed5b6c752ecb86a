"""SQL statements carried out through the verbs: one runner for each kind of statement.

In come values of `shelduck.sql`, out come rows or what a command did. No text is parsed here, and
nothing is done that a verb cannot do.
"""
