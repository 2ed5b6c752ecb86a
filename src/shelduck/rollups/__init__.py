"""Rollups: tables that hold the rows of their base otherwise, and follow each change of them.

In come a base, its rollups and a change: of rows (`following`), of columns (`alter`, `altering`),
of names (`shape`), or a query that a rollup may answer (`answering`). Out come staged changes of
the rollups beside those of the base, a job that builds one (`builder`), and the findings of a check
(`check`). Nothing here commits or writes by a way of its own, and a table without rollups enters
none of it: the core asks `shelduck.work.hooks` by the features of its table.
"""
