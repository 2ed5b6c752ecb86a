"""Files of dead positions."""
