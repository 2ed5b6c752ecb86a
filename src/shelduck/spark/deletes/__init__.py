"""Files of deleted positions."""
