"""Maintenance of a whole lake: expiry, cleanup, orphans, checks, and when each is due.

No live row changes here, and only what no snapshot and no writer needs is deleted.
"""
