"""Decisions without I/O: how files are read, and in which of them a filter may find rows.

`scan` plans a read, `scan_groups` the columns of files that are read alike; `prune` and `answers`
look at statistics. Input: a table version, files and layouts. Output: a scan plan, file ids.
"""
