"""Schemas, tables, views and macros by SQL, and what SHOW and DESCRIBE tell of them."""
