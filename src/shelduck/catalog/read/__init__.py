"""What a lake holds at a snapshot: SELECTs, and model values made from their rows."""
