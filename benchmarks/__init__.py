"""What Shelduck's speed is, measured beside what else would do the same: `python -m benchmarks`."""
