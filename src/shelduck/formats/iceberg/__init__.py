"""Iceberg metadata over the Parquet files of a table.

`iceberg_survey` checks the files and lists the problems; `iceberg_export` writes. Only an export
imports PyIceberg.
"""
