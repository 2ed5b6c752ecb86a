"""Rows of a table: added, changed, deleted and replaced, by the rules of their table.

In come a table, DataFrames and conditions; out come DataFrames, or changes of one commit that
`shelduck.write.hooks` stages. Nothing here writes the catalog, and no other table is changed.
"""
