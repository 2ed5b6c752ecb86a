"""Decisions without I/O: how files are read, and in which of them a filter may find rows.

`scan` plans a read, with the help of `resolve`, `readable` and `scan_groups`; `prune` and `answers`
look at statistics. Input: a table version, files and layouts. Output: a scan plan, file ids.
"""
