"""Lab 2: the P4 of a uSID hop."""
