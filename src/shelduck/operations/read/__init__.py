"""The rows of a table for one reader."""
