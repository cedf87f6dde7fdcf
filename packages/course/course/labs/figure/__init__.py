"""Lab 10: read the paper."""
