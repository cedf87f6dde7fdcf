"""Lab 9: find the fault."""
