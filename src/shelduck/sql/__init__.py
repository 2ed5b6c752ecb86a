"""Text to values and back: statements, queries, defaults and pushed filters. No I/O."""
