"""Changes in, one snapshot out."""
