"""A table as the source and the sink of streaming queries: batches end at snapshots."""
