"""Every verb beside Delta Lake and Apache Iceberg, in one Spark session.

They need Spark 4.1 and JARs of Maven Central: `make bench-peers` gets both.
"""
