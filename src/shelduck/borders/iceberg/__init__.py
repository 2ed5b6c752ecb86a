"""Iceberg metadata over the Parquet files of a table.

`survey` checks the files and lists the problems; `export` writes. Only `manifests` needs PyIceberg,
and only an export imports it.
"""
