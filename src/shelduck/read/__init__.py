"""Which files, deletes and inlined rows one reader of a table sees; nothing is committed."""
