"""Schemas, views and macros as a transaction has staged them."""
