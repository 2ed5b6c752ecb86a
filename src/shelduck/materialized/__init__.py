"""Materialized views: tables that hold the rows of a query, and follow what it reads when asked."""
