"""The public objects: `connect`, `Lake`, `Table`, `Transaction` and the values that they return.

Thin and typed: names are resolved here, work is done by operations and evolution, and every change
goes through one transaction to the one door of commits.
"""
