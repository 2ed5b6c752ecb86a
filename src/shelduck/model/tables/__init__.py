"""What a table is at one snapshot: columns, keys, partitions, sort order, properties."""
