"""Files of a table are written again: found, put together, and committed lot by lot.

In come files of a table; out come commits in which others take their places, with the same rows.
"""
