"""Heavy schema changes in the background: submitted, worked on, published.

A job is a row of the catalog: `record` steps it, `worker` brings it from state to state, `lots`
and `shares` write its files by `convert`.
"""
