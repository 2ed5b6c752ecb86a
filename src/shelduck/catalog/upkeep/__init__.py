"""Maintenance of the catalog itself: expired snapshots and options."""
