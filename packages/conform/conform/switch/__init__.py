"""A switch under test: one node of a fabric whose other nodes are the tester."""
