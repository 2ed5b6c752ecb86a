"""Decisions without I/O: how files are read, and which of them a filter may find rows in.

`scan` plans a read, from what `resolve`, `readable` and `merge` find out; `prune` and `ranges` look
at statistics. Comes in: a table version, files and layouts. Goes out: a scan plan, file ids.
"""
