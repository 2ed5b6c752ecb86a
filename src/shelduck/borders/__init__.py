"""Tables of other formats at the borders of the lake: what it takes to leave, and leaving.

A report comes first (`report`); what writes metadata of another format stands beside it.
"""
