"""Rows staged for a commit, and the effect of key models and rollups on them."""
