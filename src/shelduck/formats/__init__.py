"""The borders of a lake: import and export of tables of other formats, without copying files.

Each format has a separate package. An import checks everything before it commits the first
snapshot; an export begins with a report (`report`).
"""
