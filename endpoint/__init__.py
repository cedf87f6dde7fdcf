"""MRC endpoints: a transport without I/O, a NIC driver around it, an agent in every host."""
