"""Where a student's idea meets the transport: the class runs in its box, and a class of the transport asks it."""
