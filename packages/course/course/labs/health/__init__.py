"""Lab 6: path health."""
