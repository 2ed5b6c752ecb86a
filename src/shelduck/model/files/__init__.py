"""What files and inlined rows contain, and where they are."""
