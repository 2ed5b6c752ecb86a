"""Who is alive: names of processes, their leases, and writers that register before they write."""
