"""Files replaced by others with the same rows, adopted, or removed."""
