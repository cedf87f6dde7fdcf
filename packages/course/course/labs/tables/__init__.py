"""Lab 3: static tables from a plan."""
