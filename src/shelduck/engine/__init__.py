"""Rows in, files out; files in, rows out: the only package that imports PySpark.

It has types and store assignment, the write of data files with their statistics, and the read of a
table's files as one native scan. Nothing here knows the catalog database.
"""
