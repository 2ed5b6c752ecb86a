"""The verbs of a whole lake."""
