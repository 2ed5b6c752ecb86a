"""A lake under simulation: real commits, jobs, leases and cleanup in one thread, under a seed.

docs/reliability.md says what is real and what stands in for it.
"""
