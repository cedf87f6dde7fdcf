"""Lab 8: a NIC that loses ports."""
