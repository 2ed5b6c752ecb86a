"""The unit of work that every verb shares: state, staged changes, results, names resolved.

In come changes, out comes one snapshot, or none. `evolution` plans what ALTER TABLE changes.
"""
