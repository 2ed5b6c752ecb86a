"""The data files of a table: as objects, as numbers, and which of them filters leave out."""
