"""Files of a table are written again: joined, converted and renewed, lot by lot; jobs use it."""
