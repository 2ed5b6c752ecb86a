"""Key models: tables that keep, combine or sort rows by their key, as in Apache Doris.

In come a table with a key model, and rows or clauses. Out come loads that have each key once, and
refusals of statements that would not (`unique_keys`); and what an ALTER TABLE may do (`key_draft`).
Nothing here commits. A table without keys enters none of it: the core asks `shelduck.write.hooks`,
and the rules that are put in there, by the features of its table.
"""
