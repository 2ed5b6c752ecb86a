"""Facts that pages and reports show of a lake or a table: one aggregate statement per question.

Every number comes from the catalog; no file is opened.
"""
