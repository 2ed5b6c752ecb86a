"""What a lake holds at a snapshot: SELECTs, and model values made of their rows."""
