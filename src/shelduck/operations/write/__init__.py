"""Verbs over rows: changes prepared for one commit."""
