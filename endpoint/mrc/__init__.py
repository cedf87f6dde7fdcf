"""The MRC transport without I/O: the clock and the wire are arguments."""
