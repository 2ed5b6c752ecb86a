"""A table at one snapshot: columns, keys, partitions, sort order, properties."""
