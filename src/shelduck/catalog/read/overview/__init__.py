"""What pages and reports show about a whole lake or a table: one aggregate statement per question.

Every number comes from the catalog; no file is opened.
"""
