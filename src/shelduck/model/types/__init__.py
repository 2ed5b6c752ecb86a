"""Data types, their promotions, and the texts and bounds of their single values."""
