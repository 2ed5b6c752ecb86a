"""The borders of a lake: tables of other formats come in and go out without a copy of their files.

Each format has a package of its own. Coming in, all is checked before `api` commits the first
snapshot; going out, a report comes first (`report`).
"""
