"""Files of a table are written again: joined, converted and renewed, lot by lot; jobs use it.

In come files of a table; out come commits in which others take their places, with the same rows.
"""
