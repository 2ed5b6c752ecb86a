"""What a table holds for one reader."""
