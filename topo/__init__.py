"""The fabric as pure functions of one plan file, and its emulation in Mininet."""
