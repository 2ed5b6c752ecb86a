"""The functions that run each kind of statement."""
