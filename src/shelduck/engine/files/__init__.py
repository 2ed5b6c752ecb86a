"""Files and their footers, by raw keys on any file system."""
