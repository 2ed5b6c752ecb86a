"""Rows staged for a commit, with what key models and rollups make of them."""
