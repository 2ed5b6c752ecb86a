"""Heavy schema changes in the background: submitted, worked on, published."""
