"""Verbs over schemas: from requested schema changes to the change for a commit."""
