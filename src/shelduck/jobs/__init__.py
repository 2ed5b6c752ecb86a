"""Heavy schema changes in the background: submitted, worked on, published.

A job is a row of the catalog: `job_record` steps it, `worker` brings it from state to state, `lots`
writes its files by `convert`.
"""
