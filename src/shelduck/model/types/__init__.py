"""Data types, what they promote to, and the texts and bounds of their single values."""
