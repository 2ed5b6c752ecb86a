"""What goes on beside commits: jobs, writers, shapes of pinned views, and places of rollups."""
