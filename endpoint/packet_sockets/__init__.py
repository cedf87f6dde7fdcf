"""The plane ports of a NIC on real links: packet sockets, link state, the event loop."""
