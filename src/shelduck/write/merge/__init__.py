"""MERGE, and loads into tables with key models."""
