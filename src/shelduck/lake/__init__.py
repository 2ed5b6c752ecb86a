"""The unit of work that every verb shares: state, staged changes, results, names resolved.

In come changes, out comes one snapshot, or none. `hooks` lets subjects above take part; nothing
here imports one.
"""
