"""What any NIC needs, MRC's or RoCE's, without I/O: frames, packets, ports, memory, verbs, the scheduler."""
