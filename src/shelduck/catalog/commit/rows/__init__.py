"""The rows of the catalog that several kinds of change write."""
