"""The contents of a lake at a snapshot: SELECTs, and model values made from their rows."""
