"""Lab 7: a congestion window."""
