"""Branches: schemas of twins, which anybody may write, and which merge back by ids.

In come a schema and a snapshot; out come a schema whose tables share the files of its tables, and
later one commit that gives these tables what happened there. A table without branches enters none
of it.
"""
