"""Lab 5: spraying over planes and paths."""
