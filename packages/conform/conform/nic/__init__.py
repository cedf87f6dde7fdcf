"""A NIC under test: the tester is its peer and the fabric."""
