"""Lab 4: trimming in P4."""
