"""The borders of a lake: tables of other formats come in and go out without a copy of their files.

Each format has modules of its own. They prepare and check everything; `api` commits.
"""
