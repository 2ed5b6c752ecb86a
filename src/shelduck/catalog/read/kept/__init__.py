"""Tables that a process keeps, and what its own commits make of them."""
