"""A table as the source and the sink of streams: batches end at snapshots, and commit only once."""
