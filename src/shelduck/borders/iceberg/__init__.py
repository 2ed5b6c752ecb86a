"""Iceberg metadata over the Parquet files of a table.

`survey` looks at the files and says what stands in the way; `export` writes. Only `manifests` needs
PyIceberg, and only an export imports it.
"""
