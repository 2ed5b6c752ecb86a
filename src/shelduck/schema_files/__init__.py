"""Schema as code: tables as files of SQL, what differs from a lake, and how it is applied."""
