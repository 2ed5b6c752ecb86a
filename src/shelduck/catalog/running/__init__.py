"""Work that is running on a lake: jobs and registered writers."""
