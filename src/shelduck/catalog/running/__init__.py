"""Who is at work on a lake: jobs and registered writers."""
