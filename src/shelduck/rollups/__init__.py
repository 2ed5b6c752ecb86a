"""Rollups: tables that hold the rows of their base otherwise, and follow each change of them.

In come a base, its rollups and a change: of rows or names (`following`), of columns
(`altered_bases`), or a query that one may answer (`following`). Out come staged
changes of the rollups beside those of the base, a job that builds one (`builder`), and what a check
finds (`check_rollups`). Nothing here commits, and a table without rollups enters none of it:
the core asks `shelduck.write.hooks` by the features of its table.
"""
