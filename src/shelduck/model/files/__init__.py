"""What files and inlined rows hold, and where they lie."""
