"""Verbs over schemas: from wanted schema changes to the change that a commit carries."""
