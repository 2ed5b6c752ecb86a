"""Changes in, one snapshot out, in one transaction; no file of rows is read or written here."""
