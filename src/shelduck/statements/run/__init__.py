"""What runs each kind of statement."""
