"""What ALTER TABLE asks for, what a commit carries, and which changes exclude each other."""
