"""The unit of work that every verb shares: state, staged changes, results, names resolved."""
